"""Servers of npm and PyPI, as they come, under ward mcp wrap: their tools are accepted, calls work
within the walls, and what lies beyond fails. They are fetched once; without a registry these tests
are skipped."""
import http.server
import os
import threading

from harness import by_turns, timeout
from harness.mcp import text
from harness.serve import sdk
from run.test_mcp_wrap import ended, wrap

NATIVE_ONLY = "the same code runs sanitized in test_mcp_wrap.py; the servers are other programs"

NPM = tuple(f"@modelcontextprotocol/server-{name}@2026.8.31" for name in
            ("filesystem", "everything", "memory", "sequential-thinking"))
PIP = ("mcp-server-fetch==2026.10.24", "mcp-server-git==2026.10.19")
SQLITE = ("mcp-server-sqlite==2025.4.25", "mcp<2")


def start(t, ws, name, *words):
    """Accepts the server's tools, and wraps it as it was accepted."""
    r = t.ward("mcp", "trust", "--yes", "--name", name, *words, cwd=ws)
    t.check(r.rc == 0 and "not usable" not in r.out, r)
    return wrap(t, ws, name=name, server=None)


def npm(t, ws, name, *arguments, options=()):
    place = sdk(t, "npm", *NPM)
    main = os.path.join(place, f"node_modules/@modelcontextprotocol/server-{name}/dist/index.js")
    return start(t, ws, name, "--ro", place, *options, "--", "node", main, *arguments)


def pip(t, ws, name, *words, names=PIP, options=()):
    place = sdk(t, "pip", *names)
    return start(t, ws, name, "--ro", place, "--env", f"PYTHONPATH={place}", *options, "--",
                 "/usr/bin/python3", *words)


@by_turns
@timeout(400)
@ended
def test_wrap_npm_servers(t):
    ws = t.workspace({"notes.txt": "hello\n"})
    notes, new = os.path.join(ws, "notes.txt"), os.path.join(ws, "new")
    c = npm(t, ws, "filesystem", ws)
    r = c.call("read_text_file", path=notes)
    t.equal((text(r), r["structuredContent"]), ("hello\n", {"content": "hello\n"}))
    r = c.call("write_file", path=new, content="x")
    t.check(r["isError"] and "read-only" in text(r) and not os.path.exists(new), r)
    c.end()
    c = npm(t, ws, "filesystem", ws, options=("--set", "filesystem.mode=read_write"))
    t.equal(c.call("write_file", path=new, content="x")["isError"], False)
    t.check(os.path.exists(new), "where the policy says so")
    c = npm(t, ws, "everything")
    t.equal(text(c.call("get-sum", a=1, b=2)), "The sum of 1 and 2 is 3.")
    t.check("schema" in text(c.call("get-sum", a="1", b=2)), "arguments are checked")
    t.equal([x["type"] for x in c.call("get-tiny-image")["content"]], ["text", "image", "text"])
    t.check("SECRET_OF_THE_USER" not in text(c.call("get-env")), "variables stay outside")
    c.call("trigger-long-running-operation", duration=1, steps=2)
    c = npm(t, ws, "memory", options=("--env", "MEMORY_FILE_PATH=/tmp/memory.jsonl"))
    entity = {"name": "a", "entityType": "b", "observations": ["c"]}
    t.equal(c.call("create_entities", entities=[entity])["isError"], False)
    t.equal(c.call("read_graph")["structuredContent"]["entities"], [entity])
    c = npm(t, ws, "sequential-thinking")
    t.equal(c.call("sequentialthinking", thought="x", nextThoughtNeeded=False, thoughtNumber=1,
                   totalThoughts=1)["isError"], False)


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        found = self.path == "/page"
        body = b"<html><body><p>the page</p></body></html>" if found else b""
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@by_turns
@timeout(600)
@ended
def test_wrap_pypi_servers(t):
    ws = t.workspace({"notes.txt": "hello\n"})
    for words in (("init", "-q"), ("add", "notes.txt"),
                  ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")):
        t.equal(t.run("git", *words, cwd=ws).rc, 0)
    c = pip(t, ws, "git", "-m", "mcp_server_git")
    t.check("first" in text(c.call("git_log", repo_path=ws)), "git")
    t.equal(c.call("git_reset", repo_path=ws)["isError"], True, "the workspace is read-only")
    c = pip(t, ws, "sqlite", "-c", "import mcp_server_sqlite; mcp_server_sqlite.main()",
            "--db-path", "/tmp/x.db", names=SQLITE)
    c.call("create_table", query="CREATE TABLE t (x int)")
    c.call("write_query", query="INSERT INTO t VALUES (5)")
    t.equal(text(c.call("read_query", query="SELECT * FROM t")), "[{'x': 5}]")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        c = pip(t, ws, "fetch", "-m", "mcp_server_fetch", "--ignore-robots-txt",
                "--allow-private-ips", options=("--service", f"site=127.0.0.1:{port}"))
        r = c.call("fetch", url=f"http://127.0.0.1:{port}/page")
        t.check(r["isError"] and "the page" not in text(r), r)
        t.equal(c.result("tools/list")["tools"][0]["annotations"]["openWorldHint"], True)
        r = c.call("fetch", url=f"http://site:{port}/page", raw=True)  # else it starts npm
        t.check(not r["isError"] and "the page" in text(r), r)
        server.shutdown()
