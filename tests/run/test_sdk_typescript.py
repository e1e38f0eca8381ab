"""sdk/typescript: the package ward-sandbox as npm packs it. One program drives sandboxes of this
machine (the program ward) and of a server (ward serve) through the same interface."""
import json
import os
import shutil

from harness import by_turns, libward, timeout
from harness.serve import Server, fetch_once
from run.test_sdk_python import secret_file
from run.test_serve_v1 import ASKING

NATIVE_ONLY = "what it calls runs sanitized in test_serve.py, test_commands.py and test_approve.py"

# what holds in both places
BOTH = r"""
import assert from 'node:assert'
import * as ward from 'ward-sandbox'

const client = ward.connect({ program: process.env.WARD })
assert.equal(client.remote, process.argv[2] === 'remote')
const box = await client.create({ env: { FRUIT: 'pear' }, timeout: 100 })
assert.deepEqual(await box.run('echo $FRUIT; echo bad >&2; exit 3'),
  { code: 3, stdout: 'pear\n', stderr: 'bad\n' })
assert.equal((await box.run(['printf', '%s|', 'two words', ''])).stdout, 'two words||')
const r = await box.run('cat; echo $A; pwd',
  { input: 'x'.repeat(700000), env: { A: '1' }, cwd: '/tmp' })
assert.equal(r.stdout, 'x'.repeat(700000) + '1\n/tmp\n')
assert.equal((await box.run('kill -9 $$')).code, 137)
await assert.rejects(box.run('echo some; exit 7', { check: true }),
  e => e instanceof ward.CommandFailed && e.result.code === 7 && e.result.stdout === 'some\n')
await assert.rejects(box.run('echo partly; sleep 100', { timeout: 1 }),
  e => e instanceof ward.TimedOut && e.stdout === 'partly\n')
let seen = ''
await box.run('for i in 1 2 3; do echo $i; done', { onOutput: p => { seen += p.data } })
assert.equal(seen, '1\n2\n3\n')
const abort = new AbortController()
const long = box.run('echo began; sleep 1000',
  { abort: abort.signal, onOutput: () => abort.abort() })
await assert.rejects(long)

const p = await box.start(['cat'], { stdin: true })
await p.write('typed\n')
const stream = p[Symbol.asyncIterator]()
assert.equal(String((await stream.next()).value.data), 'typed\n')
await assert.rejects(p.wait(0.05), ward.TimedOut)
await p.write('more')
await p.closeStdin()
assert.deepEqual(await p.wait(), { code: 0, stdout: 'more', stderr: '' })
assert.equal(p.code, 0)
const sleeping = await box.start(['sleep', '100'])
await sleeping.signal('TERM')
assert.equal((await sleeping.wait(20)).code, 143)

const f = box.files
await f.write('a/b c.txt', 'one\n')
await f.write('a/b c.txt', Buffer.from([0, 255, 10]))
assert.deepEqual([...await f.read('a/b c.txt')], [0, 255, 10])
await f.write('-n', 'dashed')
assert.equal(await f.readText('-n'), 'dashed')
await f.write('a/empty', '')
assert.deepEqual((await f.list('a')).map(e => e.name).sort(), ['b c.txt', 'empty'])
const { kind, size, modified } = await f.stat('a/b c.txt')
assert.deepEqual([kind, size, Math.abs(modified - new Date()) < 1e5], ['file', 3, true])
assert.deepEqual([await f.makeDir('x/y'), await f.makeDir('x/y')], [true, false])
await f.rename('a/empty', 'x/full')
assert.deepEqual([await f.exists('x/full'), await f.exists('a/empty')], [true, false])
await f.remove('a')
assert.equal(await f.exists('a'), false)
await assert.rejects(f.read('nope'), ward.NotFound)
await assert.rejects(f.list('nope'), ward.NotFound)
await assert.rejects(f.read('-n', { limit: 2 }), ward.InvalidArgument)
await assert.rejects(f.write('/etc/passwd', 'root::0:0::/:/bin/sh\n'), ward.WardError)

await box.pause()
await box.resume()
assert.equal((await box.run('echo back')).stdout, 'back\n')
assert.equal((await box.usage()).memoryBytes >= 0, true)
assert.equal((await box.info()).state, 'running')
assert.equal((await client.list()).some(i => i.id === box.id), true)
assert.equal((await (await client.open(box.id)).run('echo other')).stdout, 'other\n')
const codes = await Promise.all([...Array(8).keys()].map(n => box.run(`exit ${n}`)))
assert.deepEqual(codes.map(c => c.code), [...Array(8).keys()])
assert.deepEqual([await box.kill(), await box.kill()], [true, false])
await assert.rejects(client.create({ template: 'no-such-template' }), ward.WardError)
await assert.rejects(client.open('nosuchsandbox00000000'), ward.WardError)
await assert.rejects(box.run('true'), ward.WardError)
client.close()
console.log('all fine')
"""

REMOTE = r"""
import assert from 'node:assert'
import * as ward from 'ward-sandbox'

const client = ward.connect()
const box = await ward.create({ metadata: { team: 'red' } })
const stream = client.events(box.id)
const first = stream.next()
await box.setTimeout(40)
assert.deepEqual((await box.info()).metadata, { team: 'red' })
await box.files.write('kept.txt', 'first')
const kept = await box.snapshot('mine')
await box.files.write('kept.txt', 'later')
assert.deepEqual((await client.snapshots()).map(s => [s.id, s.name]), [[kept.id, 'mine']])
const other = await client.create({ snapshot: kept })
assert.equal(await other.files.readText('kept.txt'), 'first')
assert.deepEqual([await client.deleteSnapshot(kept), await client.deleteSnapshot(kept)],
  [true, false])
const forks = await box.fork(2)
assert.equal(await forks[1].files.readText('kept.txt'), 'later')
await Promise.all([other, ...forks].map(s => s.kill()))
const t = await box.start('until stty size | grep "30 90"; do :; done; exit 4',
  { terminal: { rows: 30, columns: 90 } })
const done = await t.wait(20)
assert.deepEqual([done.code, /30 90/.test(done.stdout)], [4, true])
await box.pause()
assert.match((await first).value.kind, /^sandbox_/)
await assert.rejects(box.run('true'), e => e instanceof ward.SandboxGone && /resume/.test(e.remedy))
await box.resume()
const broken = assert.rejects(box.run('sleep 1000'), ward.SandboxGone)
while (!(await box.run('cat /proc/[0-9]*/comm')).stdout.includes('sleep'));
await box.kill()
await broken
await stream.return()

const made = await client.createToken('viewer', 60, { name: 'seen' })
const viewer = ward.connect({ key: made.secret })
await assert.rejects(viewer.create(), e => e instanceof ward.Forbidden && /role/.test(e.reason))
assert.equal(await client.revokeToken(made), true)
await assert.rejects(viewer.list(), e => e instanceof ward.Unauthorized && e.remedy !== '')
for (const url of ['http://192.0.2.1:3000', 'ftp://localhost', 'https://a/b', 'localhost:3000'])
  assert.throws(() => ward.connect({ url, key: 'k' }), ward.InvalidArgument)
await assert.rejects(ward.connect({ url: 'http://127.0.0.1:1', key: 'k' }).list(),
  ward.Unreachable)

const secret = process.argv[2]
const asking = await client.create({ template: 'asking' })
const cat = asking.run(['cat', secret])
const asked = []
assert.equal(await asking.decide(q => { asked.push(q); return 'once' }, 20), 1)
assert.equal((await cat).stdout, 'the plan\n')
assert.deepEqual([asked[0].kind, asked[0].sandbox], ['file', asking.id])
await asking.kill()
client.close()
viewer.close()
console.log('all fine')
"""

LOCAL = r"""
import assert from 'node:assert'
import { readdirSync } from 'node:fs'
import * as ward from 'ward-sandbox'

const [secret, workspace] = process.argv.slice(2)
const client = ward.connect({ program: process.env.WARD })
const box = await client.create({ workspace, name: 'mine', fields: {
  'filesystem.ask': [secret], 'approvals.mode': 'ask', 'resources.pids_limit': 64 },
  policy: process.env.POLICY })
const cat = box.run(['cat', secret + '/plan.txt'])
assert.equal(await box.decide(() => 'once', 20), 1)
assert.equal((await cat).stdout, 'the plan\n')
await box.run('touch made')
assert.equal(readdirSync(workspace).includes('made'), true)
await assert.rejects(box.snapshot(), e => e instanceof ward.Unsupported && e.remedy !== '')
await assert.rejects(client.create({ metadata: { a: 'b' } }), ward.Unsupported)
await assert.rejects(client.create({ fields: { 'resources.pids_limi': 9 } }),
  e => /pids_limit/.test(e.remedy))
await assert.rejects(new ward.LocalClient('/nonexistent/ward').list(), ward.Unsupported)
await client.create()  // ends with this program
console.log('all fine')
"""


def package(t):
    """What `npm pack` makes, installed, once."""
    source = os.path.join(libward.TOP, "sdk/typescript")

    def prepare(work):
        shutil.copytree(source, os.path.join(work, "source"),
                        ignore=shutil.ignore_patterns("node_modules", "dist"))
        return ["sh", "-e", "-c", "cd source; npm install --no-audit --no-fund; "
                "npm pack --pack-destination ..; cd ..; "
                "npm install --no-audit --no-fund --prefix . ./ward-sandbox-0.1.0.tgz; "
                "rm -r source"]
    return os.path.join(fetch_once(t, "ward-sandbox-npm", prepare), "node_modules")


def drive(t, text, env, *words):
    place = t.fresh_dir("js")
    t.write(place, {"t.mjs": text})
    os.symlink(package(t), os.path.join(place, "node_modules"))
    r = t.run("node", "t.mjs", *words, cwd=place, env=env, timeout=100)
    t.equal((r.rc, r.out, r.err), (0, "all fine\n", ""))


def remote(s):
    return {"WARD_HOST": f"http://127.0.0.1:{s.port}", "WARD_TOKEN": s.key}


def test_sdk_typescript_package(t):
    """It has its types and needs no other package."""
    path = package(t)
    t.equal([n for n in os.listdir(path) if not n.startswith(".")], ["ward-sandbox"])
    with open(os.path.join(path, "ward-sandbox/package.json")) as f:
        found = json.load(f)
    t.equal(found.get("dependencies", {}), {})
    for name in (found["main"], found["types"], "README.md"):
        t.check(os.path.exists(os.path.join(path, "ward-sandbox", name)), name)


@by_turns
@timeout(120)
def test_sdk_typescript_remote(t):
    secret, templates = secret_file(t), t.fresh_dir("templates")
    t.write(templates, {"asking.yaml": ASKING % secret})
    s = Server(t, "--templates", templates)
    drive(t, BOTH, remote(s), "remote")
    drive(t, REMOTE, remote(s), f"{secret}/plan.txt")


@by_turns
@timeout(120)
def test_sdk_typescript_local(t):
    secret = secret_file(t)
    policy = t.fresh_dir("policy")
    t.write(policy, {"p.yaml": f"version: 1\nfilesystem: {{ask: [{secret}]}}\n"
                               "approvals: {mode: ask}\n"})
    env = {"WARD": t.ward_path, "POLICY": f"{policy}/p.yaml"}
    drive(t, BOTH, env, "local")
    drive(t, LOCAL, env, secret, t.workspace())
    # what the program did not end has ended with it
    names = [b["name"] for b in json.loads(t.ward("ps", "--json").out)["sandboxes"]]
    t.equal(names, [])
    t.ward("rm", "--all", "--force")
