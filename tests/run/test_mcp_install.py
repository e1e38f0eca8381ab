"""ward mcp install and uninstall: configurations of clients change by one entry and not a byte
else, shown first, and are put back as they were."""
import json
import os
import tomllib

from harness import by_turns

HOME = {"claude": ".claude.json", "codex": ".codex/config.toml", "cursor": ".cursor/mcp.json",
        "vscode": ".config/Code/User/mcp.json", "gemini": ".gemini/settings.json"}
PROJECT = {"claude": ".mcp.json", "codex": ".codex/config.toml", "cursor": ".cursor/mcp.json",
           "vscode": ".vscode/mcp.json", "gemini": ".gemini/settings.json"}
TEXTS = {".json": ["{}", '{\n  "theme": "dark"\n}\n', '{"mcpServers": {}, "servers": {}}',
                   '{"a": "\u00e9\\u0041",\n\t"mcpServers" : { "x": {"command": "y"} },\n'
                   '\t"servers": {"x": {\n}}}\n'],
         ".toml": ["", "model = 'x' # c\n", "[mcp_servers.other]\ncommand = \"a\"\nargs = [\n"
                   "\"b\", # [mcp_servers.ward]\n]\n[[x]]\ny = 1\n"]}


def entry(text, path):
    if path.endswith(".toml"):
        return tomllib.loads(text).get("mcp_servers", {}).get("ward")
    data = json.loads(text)
    return data.get("servers" if "vscode" in path or "Code" in path else "mcpServers",
                    {}).get("ward")


def project(t):
    return t.workspace({"tools.yaml": json.dumps({"version": 1, "tools": {"x": {
        "description": "x", "run": ["echo", "hi"], "scope": {},
        "nature": {"private_data": False, "untrusted_content": False,
                   "communicates_outside": False, "destructive": False}}}})})


@by_turns
def test_every_client(t):
    ws = project(t)
    for scope, places in (("", HOME), ("--project", PROJECT)):
        base = ws if scope else t.home
        for client, name in places.items():
            words = [w for w in (scope, client) if w]
            for text in [None] + TEXTS[os.path.splitext(name)[1]]:
                path = os.path.join(base, name)
                if text is not None:
                    t.write(base, {name: text})
                    os.chmod(path, 0o640)
                r = t.ward("mcp", "install", *words, "-f", "tools.yaml", "--yes", cwd=ws)
                t.equal(r.rc, 0, f"{client}: {r.err}")
                t.check(f"+++ {path}" in r.out and "mcp" in r.out, f"shown: {r.out}")
                new = t.read(path)
                e = entry(new, name)
                t.equal(e["args"], ["mcp", "serve", "-f", f"{os.path.realpath(ws)}/tools.yaml"])
                t.equal(e.get("type"), "stdio" if client in ("claude", "vscode") else None)
                t.check(os.path.isabs(e["command"]) and os.access(e["command"], os.X_OK), e)
                t.equal(os.stat(path).st_mode & 0o777, 0o600 if text is None else 0o640)
                if text is not None and name.endswith("json"):
                    old, got = json.loads(text), json.loads(new)
                    group = "servers" if "mcp.json" in name and client == "vscode" else "mcpServers"
                    got[group].pop("ward")
                    t.equal({**got, group: got[group] or None},
                            {**old, group: old.get(group) or None}, "foreign keys")
                r = t.ward("mcp", "install", *words, "--session", "--yes", cwd=ws)
                t.check(r.rc == 125 and "already" in r.err, r)
                t.equal(t.ward("mcp", "uninstall", *words, "--yes", cwd=ws).rc, 0)
                t.equal(t.read(path), text, f"{client}: exactly as it was")
                r = t.ward("mcp", "uninstall", *words, "--yes", cwd=ws)
                t.check(r.rc == 125, r)
            os.unlink(path)


def test_the_entry_serves(t):
    """What is written is a command line that a client can start."""
    ws = project(t)
    t.ward("mcp", "install", "cursor", "-f", "tools.yaml", "--yes", cwd=ws)
    e = json.loads(t.read(t.home, ".cursor/mcp.json"))["mcpServers"]["ward"]
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
             "params": {"protocolVersion": "2025-11-25"}}
    r = t.run(e["command"], *e["args"], input=json.dumps(hello) + "\n", cwd="/")
    t.equal((r.rc, json.loads(r.out)["id"]), (0, 1), r.err)
    t.equal(t.ward("mcp", "uninstall", "cursor", "--yes", cwd=ws).rc, 0)
    t.check(not os.path.exists(f"{t.home}/.cursor/mcp.json"), "a file that install made goes")


def test_a_file_that_changed_since(t):
    ws = project(t)
    t.write(t.home, {".cursor/mcp.json": '{"mcpServers": {"a": {"command": "b"}}}\n'})
    t.ward("mcp", "install", "cursor", "-f", "tools.yaml", "--yes", cwd=ws)
    path = os.path.join(t.home, ".cursor/mcp.json")
    data = json.loads(t.read(path))
    data["mcpServers"]["later"] = {"command": "c"}
    t.write(t.home, {".cursor/mcp.json": json.dumps(data)})
    t.equal(t.ward("mcp", "uninstall", "cursor", "--yes", cwd=ws).rc, 0)
    t.equal(json.loads(t.read(path)), {"mcpServers": {"a": {"command": "b"},
                                                      "later": {"command": "c"}}})


def test_refusals(t):
    ws = project(t)
    bad = ['{"a": 1, // comment\n}', '{"a": 1,}', "[]", "nonsense", '{"mcpServers": []}',
           '{"mcpServers": {}, "mcpServers": {}}', '{"mcpServers": {"ward": {"command": "mine"}}}',
           "{" + '"a":{' * 100 + "}" * 101, '{"a": "\x00"}', b'{"a": "\xff"}']
    for text in bad:
        t.write(ws, {".mcp.json": text})
        r = t.ward("mcp", "install", "--project", "claude", "--session", "--yes", cwd=ws)
        t.check(r.rc == 125 and ".mcp.json" in r.err and r.out == "", f"{text!r}: {r}")
        with open(f"{ws}/.mcp.json", "rb") as f:
            t.equal(f.read(), text if isinstance(text, bytes) else text.encode(), "left alone")
    os.unlink(f"{ws}/.mcp.json")
    target = t.fresh_dir("other")
    t.write(target, {"f": "{}"})
    for link, where in ((".mcp.json", f"{target}/f"), (".mcp.json", "/dev/zero")):
        os.symlink(where, f"{ws}/{link}")
        r = t.ward("mcp", "install", "--project", "claude", "--session", "--yes", cwd=ws)
        t.check(r.rc == 125 and "no ordinary file" in r.err, r)
        os.unlink(f"{ws}/{link}")
    os.symlink(target, f"{ws}/.cursor")
    r = t.ward("mcp", "install", "--project", "cursor", "--session", "--yes", cwd=ws)
    t.check(r.rc == 125, r)
    t.equal((os.listdir(target), t.read(target, "f")), (["f"], "{}"), "links lead nowhere")
    for words, rc in ((("install",), 2), (("install", "emacs"), 2), (("install", "cursor"), 125),
                      (("install", "cursor", "--session", "--name", "a b", "--yes"), 2),
                      (("install", "cursor", "-f", "no.yaml", "--yes"), 125),
                      (("uninstall", "gemini", "--yes"), 125)):
        t.equal(t.ward("mcp", *words, cwd=ws).rc, rc, repr(words))


def test_it_asks_first(t):
    ws = project(t)
    r = t.ward("mcp", "install", "gemini", "--session", cwd=ws)
    t.check(r.rc == 125 and "--yes" in r.err and "+++" in r.out, r)
    r = t.ward("mcp", "install", "gemini", "--session", "--dry-run", cwd=ws)
    t.check(r.rc == 0 and "+++" in r.out, r)
    t.check(not os.path.exists(f"{t.home}/.gemini"), "nothing was made")
    argv = t.ward_argv("mcp", "install", "gemini", "--session")
    t.equal(t.tty(*argv, input=b"n\n", after=b"[y/N]", cwd=ws).rc, 125)
    t.check(not os.path.exists(f"{t.home}/.gemini"), "no is no")
    t.equal(t.tty(*argv, input=b"y\n", after=b"[y/N]", cwd=ws).rc, 0)
    t.check(os.path.exists(f"{t.home}/.gemini/settings.json"), "yes is yes")
    t.equal(t.ward("mcp", "uninstall", "gemini", "--yes", cwd=ws).rc, 0)
