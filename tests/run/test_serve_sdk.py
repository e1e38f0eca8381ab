"""ward serve under the stock SDKs of E2B, npm's and PyPI's, as they come: nothing in them is
changed but where they look for their server. They are fetched once, by npm and pip; without a
registry these tests are skipped."""
import os

from harness import by_turns, serial, timeout
from harness.serve import environment, sdk, Server

NATIVE_ONLY = "the same calls run sanitized in test_serve.py; the SDKs bring their own programs"

JS = """
import { Sandbox, CommandExitError, FileNotFoundError, TimeoutError } from 'e2b'
import assert from 'node:assert'
const wait = ms => new Promise(r => setTimeout(r, ms))
const s = await Sandbox.create(
  { timeoutMs: 120000, metadata: { k: 'b c' }, envs: { FOO: 'bar' } })
const r = await s.commands.run('echo $FOO; echo bad >&2')
assert.deepEqual([r.exitCode, r.stdout, r.stderr], [0, 'bar\\n', 'bad\\n'])
await assert.rejects(s.commands.run('exit 3'),
  e => e instanceof CommandExitError && e.exitCode === 3)
await s.files.write('a/b.txt', 'hello')
assert.equal(await s.files.read('a/b.txt'), 'hello')
await s.files.write([{ path: 'm/1', data: 'one' }, { path: 'm/2', data: 'two' }])
assert.deepEqual((await s.files.list('m')).map(f => f.name).sort(), ['1', '2'])
assert.equal((await s.files.getInfo('a/b.txt')).size, 5)
assert.deepEqual([await s.files.makeDir('x/y'), await s.files.makeDir('x/y')], [true, false])
await s.files.rename('a/b.txt', 'a/c.txt')
await s.files.remove('a')
assert.equal(await s.files.exists('a'), false)
await assert.rejects(s.files.read('nope'), FileNotFoundError)
const seen = []
const w = await s.files.watchDir('x', e => seen.push(`${e.name} ${e.type}`))
await s.files.write('x/n.txt', '1')
while (seen.length < 2) await wait(20)
assert.deepEqual(seen.slice(0, 2), ['n.txt create', 'n.txt write'])
await w.stop()
let text = ''
const p = await s.commands.run('cat',
  { background: true, stdin: true, onStdout: d => { text += d } })
await s.commands.sendStdin(p.pid, 'typed\\n')
while (!text) await wait(20)
assert.equal((await s.commands.list()).length, 1)
const again = await s.commands.connect(p.pid)
await s.commands.closeStdin(p.pid)
assert.equal((await p.wait()).stdout, 'typed\\n')
await again.wait()
const k = await s.commands.run('sleep 60', { background: true })
assert.deepEqual([await s.commands.kill(k.pid), await s.commands.kill(k.pid)], [true, false])
await assert.rejects(k.wait(), CommandExitError)
await assert.rejects(s.commands.run('sleep 60', { timeoutMs: 500 }), TimeoutError)
let screen = ''
const pty = await s.pty.create({ cols: 80, rows: 24, timeoutMs: 0,
  onData: d => { screen += new TextDecoder().decode(d) } })
await s.pty.resize(pty.pid, { cols: 90, rows: 30 })
await s.pty.sendInput(pty.pid, new TextEncoder().encode('stty size; exit 4\\n'))
await assert.rejects(pty.wait(), e => e.exitCode === 4)
assert.match(screen, /30 90/)
assert.equal((await s.getInfo()).metadata.k, 'b c')
const page = Sandbox.list({ query: { metadata: { k: 'b c' } } })
assert.deepEqual((await page.nextItems()).map(x => x.sandboxId), [s.sandboxId])
await s.setTimeout(60000)
assert.equal((await s.getMetrics()).length, 1)
const url = await s.downloadUrl('m/1', { useSignatureExpiration: 1000 })
assert.equal(await (await fetch(url)).text(), 'one')
const up = await s.uploadUrl('m/3')
const form = new FormData()
form.append('file', new Blob(['three']), 'x')
assert.equal((await fetch(up, { method: 'POST', body: form })).status, 200)
assert.equal(await s.files.read('m/3'), 'three')
assert.equal(await s.pause(), true)
assert.equal(await s.isRunning(), false)
const back = await Sandbox.connect(s.sandboxId)
assert.equal((await back.commands.run('echo back')).stdout, 'back\\n')
await back.files.write('z', 'z'.repeat(100000), { gzip: true })
assert.equal((await back.files.read('z', { gzip: true })).length, 100000)
await back.updateNetwork({ denyOut: ['0.0.0.0/0'] })
const one = await back.commands.run('sleep 1000', { background: true })
assert.equal(await back.pause({ keepMemory: false }), true)
await assert.rejects(one.wait())
await Sandbox.connect(s.sandboxId)
assert.deepEqual([(await back.commands.list()).length, await back.files.exists('z')], [0, true])
const long = s.commands.run('sleep 60').catch(e => e)
await wait(500)
assert.equal(await s.kill(), true)
assert.equal((await long).constructor.name, 'TimeoutError')
assert.deepEqual([await s.isRunning(), await s.kill()], [false, false])
console.log('all fine')
"""

PYTHON = """
import time
from e2b import CommandExitException, NotFoundException, Sandbox, TimeoutException
s = Sandbox.create(timeout=100, metadata={"a": "1"}, envs={"FOO": "bar"})
r = s.commands.run("echo $FOO; echo bad >&2")
assert (r.exit_code, r.stdout, r.stderr) == (0, "bar\\n", "bad\\n")
try:
    s.commands.run("exit 3")
    assert False
except CommandExitException as e:
    assert e.exit_code == 3
s.files.write("f.bin", b"x" * 3000000)
assert len(s.files.read("f.bin", format="bytes")) == 3000000
assert [e.name for e in s.files.list(".")] == ["f.bin"]
try:
    s.files.read("nope")
    assert False
except NotFoundException:
    pass
w = s.files.watch_dir(".")
s.files.write("g.txt", "1")
time.sleep(0.3)
assert [e.name for e in w.get_new_events()] == ["g.txt", "g.txt"]
w.stop()
h = s.commands.run("for i in 1 2 3; do echo $i; done", background=True)
assert "".join(out or "" for out, err, pty in h) == "1\\n2\\n3\\n"
try:
    s.commands.run("sleep 10", timeout=1)
    assert False
except TimeoutException:
    pass
assert [b.sandbox_id for b in Sandbox.list().next_items()] == [s.sandbox_id]
assert s.is_running() and s.get_info().metadata == {"a": "1"}
s.set_timeout(50)
assert s.kill() and not s.is_running()
print("all fine")
"""

ASYNC = """
import asyncio
from e2b import AsyncSandbox
async def main():
    boxes = await asyncio.gather(*(AsyncSandbox.create(timeout=60) for _ in range(4)))
    outs = await asyncio.gather(*(b.commands.run(f"echo {i}") for i, b in enumerate(boxes)))
    assert [o.stdout for o in outs] == [f"{i}\\n" for i in range(4)]
    await asyncio.gather(*(b.kill() for b in boxes))
    print("all fine")
asyncio.run(main())
"""


SNAPSHOT_JS = """
import { Sandbox, SandboxNotFoundError } from 'e2b'
import assert from 'node:assert'
const s = await Sandbox.create({ timeoutMs: 120000, metadata: { k: 'v' } })
await s.files.write('/home/user/app/a.txt', 'first')
const snap = await s.createSnapshot({ name: 'mine' })
assert.equal(snap.names.some(n => n.includes('mine')), true)
await s.files.write('/home/user/app/a.txt', 'later')
const [one, two] = await Promise.all(
  [Sandbox.create(snap.snapshotId), Sandbox.create('mine')])
assert.equal(await one.files.read('/home/user/app/a.txt'), 'first')
await one.files.write('/home/user/app/a.txt', 'own')
assert.equal(await two.files.read('/home/user/app/a.txt'), 'first')
assert.equal(await s.files.read('/home/user/app/a.txt'), 'later')
const ids = async q => (await q.nextItems()).map(x => x.snapshotId)
assert.deepEqual(await ids(Sandbox.listSnapshots()), [snap.snapshotId])
assert.deepEqual(await ids(s.listSnapshots()), [snap.snapshotId])
assert.deepEqual(await ids(Sandbox.listSnapshots({ name: 'mine' })), [snap.snapshotId])
assert.deepEqual(await ids(Sandbox.listSnapshots({ name: 'other' })), [])
assert.deepEqual([await Sandbox.deleteSnapshot(snap.snapshotId),
  await Sandbox.deleteSnapshot(snap.snapshotId)], [true, false])
await assert.rejects(Sandbox.create(snap.snapshotId))
const forks = await s.fork({ count: 2, timeoutMs: 60000 })
assert.equal(new Set([s.sandboxId, ...forks.map(f => f.sandboxId)]).size, 3)
assert.deepEqual(await Promise.all(forks.map(f => f.files.read('/home/user/app/a.txt'))),
  ['later', 'later'])
await forks[0].files.write('/home/user/app/a.txt', 'fork')
assert.equal(await s.files.read('/home/user/app/a.txt'), 'later')
assert.equal((await forks[1].getInfo()).metadata.k, 'v')
assert.deepEqual(await ids(Sandbox.listSnapshots()), [])
await Promise.all([one, two, s, ...forks].map(x => x.kill()))
await assert.rejects(s.fork(), SandboxNotFoundError)
await assert.rejects(s.createSnapshot(), SandboxNotFoundError)
console.log('all fine')
"""

SNAPSHOT_PYTHON = """
from e2b import Sandbox, SandboxNotFoundException
s = Sandbox.create(timeout=100)
s.files.write("a/b.bin", b"x" * 300000)
snap = s.create_snapshot(mode="filesystem")
two = Sandbox.create(snap.snapshot_id)
assert len(two.files.read("a/b.bin", format="bytes")) == 300000
assert [x.snapshot_id for x in s.list_snapshots().next_items()] == [snap.snapshot_id]
assert Sandbox.delete_snapshot(snap.snapshot_id) and not Sandbox.delete_snapshot(snap.snapshot_id)
one, other = s.fork(count=2, timeout=60)
one.files.write("a/b.bin", "own")
assert len(other.files.read("a/b.bin")) == 300000
for b in (s, two, one, other):
    assert b.kill()
try:
    s.fork()
    assert False
except SandboxNotFoundException:
    pass
print("all fine")
"""


def run_js(t, text, env):
    path = sdk(t, "npm")
    place = t.fresh_dir("js")
    t.write(place, {"t.mjs": text})
    os.symlink(os.path.join(path, "node_modules"), os.path.join(place, "node_modules"))
    r = t.run("node", "t.mjs", cwd=place, env=env, timeout=100)
    t.equal((r.rc, r.out, r.err), (0, "all fine\n", ""))


def run_python(t, text, env):
    path = sdk(t, "pip")
    r = t.run("/usr/bin/python3", "-c", text, env={**env, "PYTHONPATH": path}, timeout=100)
    t.equal((r.rc, r.out), (0, "all fine\n"))


@by_turns
@timeout(400)
def test_serve_npm_sdk(t):
    s = Server(t)
    run_js(t, JS, environment(s))


@by_turns
@timeout(400)
def test_serve_python_sdk(t):
    s = Server(t)
    run_python(t, PYTHON, environment(s))
    run_python(t, ASYNC, environment(s))


@timeout(400)
def test_serve_npm_sdk_snapshots(t):
    s = Server(t)
    run_js(t, SNAPSHOT_JS, environment(s))


@timeout(400)
def test_serve_python_sdk_snapshots(t):
    s = Server(t)
    run_python(t, SNAPSHOT_PYTHON, environment(s))


@serial
@timeout(400)
def test_serve_debug_mode(t):
    """E2B_DEBUG=true and nothing else: port 49983 of the loopback."""
    s = Server(t, "--debug")
    s.wait_log("sandbox_started")
    run_python(t, "from e2b import Sandbox\n"
                  "s = Sandbox.create()\n"
                  "assert s.commands.run('echo hi').stdout == 'hi\\n'\n"
                  "s.files.write('f', '1')\nassert s.files.read('f') == '1'\n"
                  "print('all fine')\n", {"E2B_DEBUG": "true"})
