"""ward mcp serve under the stock clients: the MCP inspector, the SDKs of npm in both eras and the
one of PyPI, as they come. They are fetched once; without a registry these tests are skipped."""
import json
import os

from harness import timeout
from harness.serve import sdk

NATIVE_ONLY = "the same calls run sanitized in test_mcp_serve.py; the clients are other programs"

NATURE = {"private_data": False, "untrusted_content": False, "communicates_outside": False,
          "destructive": False}
NPM = ("@modelcontextprotocol/sdk@1.32.2", "@modelcontextprotocol/inspector@2.12.0",
       "@modelcontextprotocol/client@2.4.0")
PIP = ("mcp==2.3.0",)

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

LEGACY = """
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
const client = new Client({ name: 'test', version: '1' })
const [command, ...args] = JSON.parse(process.env.SERVER)
await client.connect(new StdioClientTransport({ command, args, env: process.env }))
const plain = [], withOptions = o => [undefined, o]
""" + SCENE

DUAL = """
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } })
const [command, ...args] = JSON.parse(process.env.SERVER)
await client.connect(new StdioClientTransport({ command, args, env: process.env }))
const plain = [], withOptions = o => [o]
""" + SCENE

PYTHON = """
import asyncio, json, os
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
command, *args = json.loads(os.environ["SERVER"])
async def main(mode):
    server = StdioServerParameters(command=command, args=args, env=dict(os.environ))
    async with Client(stdio_client(server), mode=mode) as c:
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


def run_js(t, text):
    ws, place = workspace(t), t.fresh_dir("js")
    t.write(place, {"t.mjs": text})
    os.symlink(os.path.join(sdk(t, "npm", *NPM), "node_modules"),
               os.path.join(place, "node_modules"))
    r = t.run("node", "t.mjs", cwd=place, env={"SERVER": json.dumps(server(t, ws))}, timeout=100)
    t.equal((r.rc, r.out), (0, "all fine\n"), r.err[-2000:])


@timeout(400)
def test_mcp_npm_sdk(t):
    run_js(t, LEGACY)


@timeout(400)
def test_mcp_npm_client_of_both_eras(t):
    run_js(t, DUAL)


@timeout(400)
def test_mcp_python_sdk(t):
    ws = workspace(t)
    r = t.run("/usr/bin/python3", "-c", PYTHON, timeout=100,
              env={"SERVER": json.dumps(server(t, ws)), "PYTHONPATH": sdk(t, "pip", *PIP)})
    t.equal((r.rc, r.out), (0, "all fine\n"), r.err[-2000:])


def inspect(t, ws, *words):
    program = os.path.join(sdk(t, "npm", *NPM), "node_modules/.bin/mcp-inspector")
    r = t.run(program, "--cli", *server(t, ws), *words, timeout=100)
    return r, (json.loads(r.out) if r.rc == 0 else None)


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
