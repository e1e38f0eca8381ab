"""The code interpreter of ward serve under the stock SDKs of E2B, npm's and PyPI's, and by hand."""
import json
import os
import threading
import time

from harness import by_turns, timeout
from harness.serve import environment, sdk, Server

NATIVE_ONLY = "ward-envd has no sanitizer in either build; the SDKs bring their own programs"

PYTHON = """
import time
from e2b_code_interpreter import Sandbox, NotFoundException, TimeoutException
s = Sandbox.create(timeout=100, envs={"SET": "by the sandbox"})
run = s.run_code
assert run("x = 20\\nx + 1").text == "21" and run("x * 2").text == "40"
r = run("print(1); import sys; print(2, file=sys.stderr); 'text'")
assert (r.logs.stdout, r.logs.stderr, r.text) == (["1\\n"], ["2\\n"], "text"), r
assert run("1").execution_count == 4
e = run("def f():\\n    return 1 / 0\\nf()").error
assert (e.name, e.value) == ("ZeroDivisionError", "division by zero")
assert "return 1 / 0" in e.traceback and "ward" not in e.traceback, e.traceback
assert run("x +").error.name == "SyntaxError"
assert run("import os; os.getcwd()").text == "/home/user"
assert run("os.getenv('SET')").text == "by the sandbox"
assert run("os.getenv('SET')", envs={"SET": "by the call"}).text == "by the call"
assert run("os.getenv('SET')").text == "by the sandbox"
seen = []
run("import time\\nfor i in range(3):\\n    print(i, flush=True); time.sleep(0.2)",
    on_stdout=lambda m: seen.append((m.line, time.monotonic())))
assert [line for line, _ in seen] == ["0\\n", "1\\n", "2\\n"], seen
assert seen[2][1] - seen[0][1] > 0.2
assert run("!echo $HOME; echo bad >&2").logs.stdout == ["/home/user\\n"]
assert run("import asyncio\\nawait asyncio.sleep(0.01)\\n'awaited'").text == "awaited"
shown = run('''
    from IPython.display import display, HTML
    class Own:
        def _repr_svg_(self): return "<svg/>"
        def _repr_png_(self): return b"png"
        def _repr_json_(self): return {"a": float("nan")}
        def _repr_mimebundle_(self, **o): return {"application/x-own": 1}
    display(HTML("<b>"))
    display({"text/latex": "l"}, raw=True)
    Own()
''').results
assert [sorted(r.formats()) for r in shown] == [
    ["html", "text"], ["latex"], ["application/x-own", "json", "png", "svg", "text"]], shown
assert (shown[2].svg, shown[2].png, shown[2].json) == ("<svg/>", "cG5n", {"a": None})
assert [r.is_main_result for r in shown] == [False, False, True]
languages = [c.language for c in s.list_code_contexts()]
assert languages == ["python", "javascript"], languages
c = s.create_code_context(cwd="/tmp")
assert (c.language, c.cwd) == ("python", "/tmp")
assert run("x", context=c).error.value == "name 'x' is not defined"
assert run("y = 1; import os; os.getcwd()", context=c).text == "/tmp"
s.restart_code_context(c)
assert run("y", context=c).error.value == "name 'y' is not defined"
s.remove_code_context(c)
assert c.id not in [o.id for o in s.list_code_contexts()]
for gone in (lambda: run("1", context=c), lambda: s.remove_code_context(c)):
    try:
        gone()
        assert False
    except NotFoundException:
        pass
try:
    run("import time; time.sleep(60)", timeout=1)
    assert False
except TimeoutException:
    pass
assert run("x", timeout=10).text == "20"
assert run("import os; os._exit(3)").error.name == "KernelDied"
assert run("x").error.value == "name 'x' is not defined"
late = run("import sys; sys.stdout.write('a' * 3000000); None").logs.stdout
assert sum(map(len, late)) == 3000000
assert s.kill()
print("all fine")
"""

JS = """
import { Sandbox, TimeoutError } from '@e2b/code-interpreter'
import assert from 'node:assert'
const s = await Sandbox.create({ timeoutMs: 100000, envs: { SET: 'by the sandbox' } })
const js = (code, o = {}) => s.runCode(code, { language: 'js', ...o })
assert.equal((await s.runCode('1 + 1')).text, '2')
assert.deepEqual((await js('console.log("Hello")')).logs.stdout, ['Hello\\n'])
await js('const z = 1; let { a, b } = { a: 2, b: 3 }; class C { m() { return 7 } }')
assert.equal((await js('z + a + b + new C().m()')).text, '13')
assert.equal((await js('const z = 5; z')).text, '5')
assert.equal((await js('async function f() { return "later" }\\nawait f()')).text, 'later')
assert.equal((await js('f().then')).text, '[Function: then]')
assert.equal((await js('import os, { EOL } from "os"\\nEOL === os.EOL')).text, 'true')
assert.equal((await js('process.cwd()')).text, '/home/user')
assert.equal((await js('process.env.SET')).text, 'by the sandbox')
assert.equal((await js('process.env.SET', { envs: { SET: 'by the call' } })).text, 'by the call')
assert.equal((await js('process.env.SET')).text, 'by the sandbox')
const failed = (await js('function bad() {\\n  throw new TypeError("no")\\n}\\nbad()')).error
assert.deepEqual([failed.name, failed.value], ['TypeError', 'no'])
assert.match(failed.traceback, /at bad \\(<cell \\d+>:2:9\\)/)
assert.equal((await js('let 1')).error.name, 'SyntaxError')
const shown = (await js(`display.html('<b>')
  ;({ [Symbol.for('Jupyter.display')]: () => ({ 'image/png': Buffer.from('png') }) })`)).results
assert.deepEqual(shown.map(r => r.formats()), [['html'], ['png']])
assert.equal(shown[1].png, 'cG5n')
const sub = await js('require("child_process").execSync("echo sub", { stdio: "inherit" }); 0')
assert.deepEqual(sub.logs.stdout, ['sub\\n'])
const c = await s.createCodeContext({ language: 'js', cwd: '/tmp' })
assert.deepEqual([c.language, c.cwd], ['javascript', '/tmp'])
assert.equal((await s.runCode('process.cwd()', { context: c })).text, '/tmp')
for (const forever of ['while (true) {}', 'await new Promise(() => {})'])
  await assert.rejects(s.runCode(forever, { context: c, timeoutMs: 500 }))
assert.equal((await s.runCode('1 + 2', { context: c })).text, '3')
const long = s.runCode('import time; time.sleep(60)').catch(e => e)
await new Promise(r => setTimeout(r, 500))
await s.kill()
assert.equal((await long).constructor.name, 'TimeoutError')
console.log('all fine')
"""

def run_python(t, text, env):
    path = sdk(t, "pip", "e2b-code-interpreter")
    r = t.run("/usr/bin/python3", "-c", text, env={**env, "PYTHONPATH": path}, timeout=100)
    t.equal((r.rc, r.out, r.err), (0, "all fine\n", ""))


@by_turns
@timeout(400)
def test_serve_code_python_sdk(t):
    s = Server(t)
    run_python(t, PYTHON, environment(s))


@by_turns
@timeout(400)
def test_serve_code_npm_sdk(t):
    s = Server(t)
    path = sdk(t, "npm", "@e2b/code-interpreter")
    place = t.fresh_dir("js")
    t.write(place, {"t.mjs": JS})
    os.symlink(os.path.join(path, "node_modules"), os.path.join(place, "node_modules"))
    r = t.run("node", "t.mjs", cwd=place, env=environment(s), timeout=100)
    t.equal((r.rc, r.out, r.err), (0, "all fine\n", ""))


def execute(box, code, **more):
    """The messages of an execution, without what depends on the time."""
    r = box.ask("POST", "/execute", {"code": code, **more}, port=49999)
    if r.status != 200:
        return r.status, r.body.decode()
    return [json.loads(line) for line in r.body.decode().splitlines()]


@timeout(200)
def test_serve_code_by_hand(t):
    """Who runs code needs the sandbox's token; what is wrong is refused; a program that has the
    port keeps it; a killed interpreter is started again."""
    s = Server(t)
    box = s.create("code-interpreter-v1")
    t.equal([m["type"] for m in execute(box, "1 + 1")],
            ["number_of_executions", "result", "end_of_execution"])
    for token in ({}, {"X-Access-Token": "0" * 64}):
        head = {"E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": "49999", **token}
        r = s.ask("POST", "/execute", {"code": "1"}, key=False, headers=head)
        t.equal(r.status, 401)
    for body, status in (({"code": 1}, 400), ({}, 400), ([], 400), ({"code": "1",
                         "language": "cobol"}, 400), ({"code": "1", "context_id": "x"}, 404),
                         ({"code": "1", "env_vars": {"a=b": "c"}}, 400),
                         ({"code": "1", "context_id": "x", "language": "python"}, 400)):
        t.equal(box.ask("POST", "/execute", body, port=49999).status, status, body)
    t.equal(box.ask("POST", "/execute", "{" * 1000, port=49999).status, 400)
    t.equal(box.ask("GET", "/nothing", port=49999).status, 404)
    t.equal(box.ask("POST", "/execute", {"code": "#" * (9 << 20)}, port=49999).status, 413)
    t.equal(box.sh("kill $(pgrep -f -- '--[i]nterpreter')")[0], 0)
    t.equal(execute(box, "2 + 2")[1]["text"], "4")
    # a forked child of the code, and code that writes into the kernel's own channel
    t.equal([m["type"] for m in execute(box, "import os\nos.fork()\nprint(1)\nos.getpid() and 0")
             if m["type"] in ("result", "end_of_execution")], ["result", "end_of_execution"])
    t.equal(execute(box, "os.write(get_ipython.__globals__['kernel'].channel.fd, "
                          "b'\\xff' * 8)")[-1]["type"], "unexpected_end_of_execution")
    t.equal(execute(box, "3 + 3")[1]["text"], "6")
    other = s.create()
    port = "import http.server as h; h.HTTPServer(('127.0.0.1', 49999), " \
           "h.BaseHTTPRequestHandler).serve_forever()"
    other.start("python3", "-c", port, stdin=False)
    listens = "until (exec 3<>/dev/tcp/127.0.0.1/49999) 2>/dev/null; do sleep 0.05; done"
    t.equal(other.sh(f"timeout 20 bash -c '{listens}'")[0], 0)
    t.equal(other.ask("POST", "/contexts", {}, port=49999).status, 501)


@timeout(200)
def test_serve_code_at_one_time(t):
    """Executions of one context wait for each other; of two they do not. A client that goes while
    it waits runs nothing."""
    s = Server(t)
    box = s.create("code-interpreter-v1")
    context = box.ask("POST", "/contexts", {}, port=49999).json["id"]
    slow = threading.Thread(target=execute, args=(box, "import time; time.sleep(2)"))
    slow.start()
    time.sleep(0.3)
    gone = s.connection(timeout=0.5)
    gone.request("POST", "/execute", json.dumps({"code": "ran = 1"}),
                 box.headers(49999, **{"Content-Type": "application/json"}))
    begin = time.monotonic()
    t.equal(execute(box, "5", context_id=context)[1]["text"], "5")
    t.check(time.monotonic() - begin < 1.5, "the contexts waited for each other")
    gone.close()
    t.equal(execute(box, "'ran' in globals()")[1]["text"], "False")
    slow.join()
