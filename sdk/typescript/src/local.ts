// Sandboxes of this machine, through the program `ward`. Files are read and written by programs
// inside, with the sandbox's rights: no path of a sandbox is looked up outside.
import { execFile, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { collect, Pieces, READ_MAX, runIn, words, type Running } from './common.js'
import { Conflict, InvalidArgument, NotFound, SandboxGone, Unsupported, WardError } from
  './errors.js'
import type { Answer, Client, Command, CreateOptions, Data, Entry, Files, Output, Question, Result,
  RunOptions, Sandbox, SandboxInfo, Snapshot, StartOptions, Usage, WardEvent } from './types.js'
import { codeOfSignal, list, number, readObject, text, type Found } from './wire.js'

const DEFAULT_SECONDS = 3600
const POLL_MS = 250

/** Runs a verb of ward to its end and returns what it printed. */
function ward(program: string, ...line: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(program, line, { maxBuffer: 64 << 20 }, (e, out, err) => {
      if (!e) return resolve(out)
      if ((e as NodeJS.ErrnoException).code === 'ENOENT')
        return reject(new Unsupported(`${program} was not found`,
          { remedy: 'install ward, or set WARD_HOST to use a server' }))
      reject(said(err, typeof e.code === 'number' ? e.code : 125))
    })
  })
}

/** "ward: REASON\n  remedy: REMEDY", or what --json prints. */
function said(err: string, code: number): WardError {
  let [, reason = err.trim() || 'ward failed'] = /^(?:ward: )?(.*)/.exec(err.trim()) ?? []
  let remedy = /^\s*remedy: (.*)/m.exec(err)?.[1] ?? ''
  const json = err.split('\n').find(line => line.startsWith('{'))
  if (json) {
    try {
      const found = readObject(json)
      const error = (found.refused ?? found) as Found
      reason = [text(error, 'what'), text(error, 'why')]
        .filter(Boolean).join(': ') || reason
      remedy = text(error, 'remedy') || remedy
    } catch { /* not JSON after all */ }
  }
  const kind = /no (running )?sandbox|not (running|found)|has ended/.test(reason) ? SandboxGone
    : WardError
  return new kind(reason, { code, remedy })
}

class LocalProcess implements Running {
  code: number | undefined
  private readonly pieces: Pieces
  private last: Buffer = Buffer.alloc(0)

  constructor(private readonly child: ChildProcess) {
    const streams = [child.stdout!, child.stderr!]
    this.pieces = new Pieces({ pause: () => streams.forEach(s => s.pause()),
      resume: () => streams.forEach(s => s.resume()) })
    child.stdout!.on('data', (data: Buffer) => this.pieces.push({ stream: 'stdout', data }))
    child.stderr!.on('data', (data: Buffer) => this.pieces.push({ stream: 'stderr', data }))
    child.stdin?.on('error', () => {}) // it reads no more
    child.on('error', e => this.pieces.end(new Unsupported(`ward: ${e.message}`,
      { remedy: 'install ward, or set WARD_HOST to use a server' })))
    child.on('close', (code, signal) => {
      this.code = code ?? (signal ? codeOfSignal(signal) : 255)
      this.pieces.end()
    })
  }

  /** With --json ward says why it refused in the last line of standard error. */
  async next(deadline?: number): Promise<Output | undefined> {
    const piece = await this.pieces.next(deadline)
    if (piece?.stream === 'stderr')
      this.last = Buffer.concat([this.last, piece.data]).subarray(-4096)
    if (!piece && this.code === 125) {
      const line = this.last.toString().trim().split('\n').pop()!
      if (line.startsWith('{"refused":')) throw said(line, 125)
    }
    return piece
  }

  async * [Symbol.asyncIterator](): AsyncGenerator<Output> {
    for (let piece; (piece = await this.next());) yield piece
  }

  async wait(timeout?: number): Promise<Result> {
    const found = await collect(d => this.next(d), timeout)
    return found.result(this.code ?? 255)
  }

  write(data: Data): Promise<void> {
    const stdin = this.child.stdin
    if (!stdin?.writable)
      return Promise.reject(new SandboxGone('the input of the command is closed'))
    return new Promise((resolve, reject) => stdin.write(data, e => e
      ? reject(new SandboxGone(`the command reads no more: ${e.message}`)) : resolve()))
  }

  async closeStdin(): Promise<void> { this.child.stdin?.end() }

  /** KILL: the command gets a hangup, as its `ward exec` ends. */
  async signal(which: 'TERM' | 'KILL'): Promise<void> { this.child.kill(`SIG${which}`) }

  kill(): Promise<void> { return this.signal('KILL') }

  async resize(): Promise<void> {
    throw new Unsupported('local commands have no terminal here', { remedy: 'ward exec -t' })
  }

  close(): void {
    if (this.code === undefined) this.child.kill('SIGKILL')
  }
}

// Scripts of /bin/sh inside; their exit status 40 + N says what was wrong.
const PROBLEMS: Record<number, [new (reason: string) => WardError, string]> = {
  41: [NotFound, 'there is no such file'], 42: [InvalidArgument, 'it is a directory'],
  43: [InvalidArgument, 'it is no directory'], 44: [Conflict, 'it exists'],
  45: [WardError, 'it could not be written'],
}
const FIND = String.raw`-printf '%Y\0%s\0%m\0%u\0%g\0%T@\0%l\0%p\0'`
const SCRIPTS = {
  read: '[ -e "$1" ] || exit 41; [ -d "$1" ] && exit 42; exec cat < "$1"',
  write: '[ -d "$1" ] && exit 42; t=$(readlink -f -- "$1") || t=$1; d=$(dirname -- "$t"); ' +
    'mkdir -p -- "$d" || exit 45; n=$(mktemp -- "$d/.ward-XXXXXX") || exit 45; ' +
    'trap \'rm -f -- "$n"\' EXIT; cat > "$n" || exit 45; ' +
    '[ "$(wc -c < "$n")" -eq "$2" ] || exit 45; ' +
    'if [ -e "$t" ]; then chmod --reference="$t" -- "$n"; ' +
    'else chmod =rw -- "$n"; fi; mv -fT -- "$n" "$t" || exit 45',
  list: '[ -e "$1" ] || exit 41; [ -d "$1" ] || exit 43; ' +
    `exec find -H "$1" -mindepth 1 -maxdepth "$2" ${FIND}`,
  stat: `[ -e "$1" ] || [ -L "$1" ] || exit 41; exec find -H "$1" -maxdepth 0 ${FIND}`,
  makeDir: '[ -d "$1" ] && exit 44; [ -e "$1" ] && exit 43; exec mkdir -p -- "$1"',
  rename: '[ -e "$1" ] || [ -L "$1" ] || exit 41; mkdir -p -- "$(dirname -- "$2")"; ' +
    'exec mv -fT -- "$1" "$2"',
  remove: 'exec rm -rf -- "$1"',
}

function entries(data: Buffer): Entry[] {
  const fields = data.toString().split('\0')
  const kinds: Record<string, Entry['kind']> = { f: 'file', d: 'directory', N: 'link', L: 'link' }
  const found: Entry[] = []
  for (let at = 0; at + 8 < fields.length; at += 8) {
    const [kind, size, mode, owner, group, modified, link, path] = fields.slice(at, at + 8)
    found.push({ name: basename(path!) || path!, path: path!, kind: kinds[kind!] ?? 'other',
      size: Number(size), mode: parseInt(mode!, 8), owner: owner!, group: group!,
      modified: new Date(1000 * Number(modified)), ...(link ? { link } : {}) })
  }
  return found
}

class LocalFiles implements Files {
  constructor(private readonly sandbox: LocalSandbox) {}

  private async do(script: keyof typeof SCRIPTS, path: string, more: string[] = [],
    data: Data = '', limit = READ_MAX): Promise<Buffer> {
    const named = [path, ...(script === 'rename' ? more : [])]
      .map(p => /^(\/|\.\/|$)/.test(p) ? p : `./${p}`)
    const process = await this.sandbox.start(['/bin/sh', '-c', SCRIPTS[script], 'sh', ...named,
      ...(script === 'rename' ? [] : more)], { stdin: true })
    try {
      process.write(data).then(() => process.closeStdin()).catch(() => {})
      let size = 0
      const found = await collect(d => process.next(d), undefined, piece => {
        size += piece.data.length
        if (size > limit)
          throw new InvalidArgument(`${path} has more than ${limit} bytes`,
            { remedy: 'give a higher limit' })
      })
      if (!process.code) return Buffer.concat(found.out)
      const [kind, reason] = PROBLEMS[process.code] ?? [WardError, 'it cannot be done']
      const last = Buffer.concat(found.err).toString().trim().split('\n').pop()
      throw new kind(`${path}: ${reason}${last ? `: ${last}` : ''}`)
    } finally {
      process.close()
    }
  }

  read(path: string, options: { limit?: number } = {}): Promise<Buffer> {
    return this.do('read', path, [], '', options.limit)
  }

  async readText(path: string, options: { limit?: number } = {}): Promise<string> {
    return (await this.read(path, options)).toString()
  }

  async write(path: string, data: Data): Promise<void> {
    await this.do('write', path, [String(Buffer.byteLength(data))], data)
  }

  async list(path = '.', options: { depth?: number } = {}): Promise<Entry[]> {
    return entries(await this.do('list', path, [String(options.depth ?? 1)]))
  }

  async stat(path: string): Promise<Entry> {
    const [found] = entries(await this.do('stat', path))
    if (!found) throw new NotFound(`${path}: there is no such file`)
    return found
  }

  async exists(path: string): Promise<boolean> {
    try {
      await this.stat(path)
      return true
    } catch (e) {
      if (e instanceof NotFound) return false
      throw e
    }
  }

  async makeDir(path: string): Promise<boolean> {
    try {
      await this.do('makeDir', path)
      return true
    } catch (e) {
      if (e instanceof Conflict) return false
      throw e
    }
  }

  async rename(path: string, to: string): Promise<void> { await this.do('rename', path, [to]) }

  async remove(path: string): Promise<void> { await this.do('remove', path) }
}

/** Ends with this program, or when its time is over: an hour, unless it was given another. */
export class LocalSandbox implements Sandbox {
  readonly files: Files = new LocalFiles(this)
  private readonly atExit?: () => void

  constructor(private readonly client: LocalClient, readonly id: string, own: boolean,
    private readonly workspace?: string) {
    if (!own) return
    this.atExit = () => {
      spawnSync(client.program, ['rm', '--force', id], { stdio: 'ignore' })
      if (workspace) rmSync(workspace, { recursive: true, force: true })
    }
    process.once('exit', this.atExit)
  }

  async start(command: Command, options: StartOptions = {}): Promise<LocalProcess> {
    if (options.terminal)
      throw new Unsupported('local commands have no terminal here', { remedy: 'ward exec -t' })
    const cwd = options.cwd ?? (this.workspace ? this.client.home : undefined)
    const line = ['exec', '--json', ...(options.stdin ? ['-i'] : []),
      ...Object.entries(options.env ?? {}).map(([k, v]) => `--env=${k}=${v}`),
      ...(cwd === undefined ? [] : ['--chdir', cwd]), this.id, '--', ...words(command)]
    return new LocalProcess(spawn(this.client.program, line,
      { stdio: [options.stdin ? 'pipe' : 'ignore', 'pipe', 'pipe'] }))
  }

  run(command: Command, options: RunOptions = {}): Promise<Result> {
    return runIn(this, command, options)
  }

  async info(): Promise<SandboxInfo> {
    return (await this.client.list()).find(i => i.id === this.id) ??
      { id: this.id, state: 'ended', template: '', name: '', started: new Date(0), metadata: {} }
  }

  async usage(): Promise<Usage> {
    const out = await ward(this.client.program, 'stats', '--json', this.id)
    const [found] = list(readObject(out).sandboxes)
    return { memoryBytes: number(found, 'memory_bytes'), diskBytes: number(found, 'disk_bytes'),
      cpuMs: number(found, 'cpu_ms'), processes: number(found, 'pids') }
  }

  async setTimeout(): Promise<void> {
    throw new Unsupported("a local sandbox's time is set when it starts",
      { remedy: 'create({ timeout })' })
  }

  async pause(): Promise<void> { await ward(this.client.program, 'pause', this.id) }

  async resume(): Promise<void> { await ward(this.client.program, 'resume', this.id) }

  async kill(): Promise<boolean> {
    if (this.atExit) process.removeListener('exit', this.atExit)
    const alive = ['running', 'paused'].includes((await this.info()).state)
    await ward(this.client.program, 'rm', '--force', this.id).catch(() => {})
    if (this.workspace) await rm(this.workspace, { recursive: true, force: true })
    return alive
  }

  async snapshot(): Promise<Snapshot> {
    throw new Unsupported('local sandboxes have no snapshots here',
      { remedy: 'use a server, the Python package, or ward checkpoint' })
  }

  async fork(): Promise<Sandbox[]> {
    throw new Unsupported('local sandboxes are not forked here',
      { remedy: 'use a server, or the Python package' })
  }

  async decide(handler: (question: Question) => Answer | Promise<Answer>, timeout?: number):
    Promise<number> {
    const end = timeout === undefined ? Infinity : Date.now() + 1000 * timeout
    const seen = new Set<string>()
    for (;;) {
      let counted = 0
      for (const q of await this.client.questions(this.id)) {
        if (seen.has(q.id)) continue
        seen.add(q.id)
        const answer = await handler(q)
        if (answer === null) continue
        await this.client.answer(q, answer).then(() => { counted++ }, () => {})
      }
      if (counted) return counted
      if (Date.now() + POLL_MS > end) return 0
      await new Promise(resolve => setTimeout(resolve, POLL_MS))
      if (timeout === undefined && (await this.info()).state === 'ended')
        throw new SandboxGone('the sandbox has ended')
    }
  }
}

/** This machine. */
export class LocalClient implements Client {
  readonly remote = false
  readonly home = '/home/agent'

  constructor(readonly program: string = 'ward') {}

  async create(options: CreateOptions = {}): Promise<LocalSandbox> {
    if (options.metadata)
      throw new Unsupported('local sandboxes have no metadata', { remedy: 'use name' })
    if (options.snapshot)
      throw new Unsupported('local sandboxes have no snapshots here', { remedy: 'use a server' })
    const own = options.workspace === undefined ? await mkdtemp(join(tmpdir(), 'ward-')) : undefined
    const seconds = options.timeout ?? DEFAULT_SECONDS
    const fields = { 'resources.timeout_seconds': seconds, ...options.fields,
      ...(options.network === false ? { 'network.mode': 'none' } : {}) }
    const line = ['run', '-d', '--workspace', own ?? options.workspace!,
      ...(options.policy === undefined ? [] : ['--policy', options.policy]),
      ...(options.template === undefined ? [] : ['--profile', options.template]),
      ...(options.name === undefined ? [] : ['--name', options.name]),
      ...Object.entries(options.env ?? {}).map(([k, v]) => `--env=${k}=${v}`),
      ...Object.entries(fields).flatMap(([k, v]) => Array.isArray(v)
        ? v.map(one => `--add=${k}=${one}`) : [`--set=${k}=${v}`]),
      '--', '/bin/sleep', String(Math.ceil(seconds) + 60)]
    try {
      const id = (await ward(this.program, ...line)).trim().split('\n').pop()!
      return new LocalSandbox(this, id, true, own)
    } catch (e) {
      if (own) await rm(own, { recursive: true, force: true })
      throw e
    }
  }

  async open(id: string): Promise<LocalSandbox> {
    const found = (await this.list()).find(i => i.id === id || i.name === id)
    if (!found || found.state === 'ended')
      throw new NotFound(`there is no running sandbox ${id}`, { remedy: 'ward ps lists them' })
    return new LocalSandbox(this, found.id, false)
  }

  async list(): Promise<SandboxInfo[]> {
    const out = await ward(this.program, 'ps', '-a', '--json')
    return list(readObject(out).sandboxes).map(b => ({ id: text(b, 'id'), state: text(b, 'state'),
      name: text(b, 'name'), template: '', started: new Date(number(b, 'started_ms')),
      metadata: {} }))
  }

  async snapshots(): Promise<Snapshot[]> { return [] }

  async deleteSnapshot(): Promise<boolean> { return false }

  // eslint-disable-next-line require-yield
  async * events(): AsyncGenerator<WardEvent> {
    throw new Unsupported("this machine's sandboxes have no stream of events",
      { remedy: 'ward audit show prints the journal of each' })
  }

  async questions(sandbox?: string): Promise<Question[]> {
    const out = await ward(this.program, 'approve', '--json')
    return list(readObject(out).questions).map(q => ({ id: text(q, 'id'),
      sandbox: text(q, 'sandbox'), kind: text(q, 'kind'), subject: text(q, 'subject'),
      host: text(q, 'host'), port: number(q, 'port'), rule: text(q, 'rule'), process: '',
      details: Array.isArray(q.details) ? q.details.map(String) : [],
      waiting: number(q, 'count'), secondsLeft: number(q, 'left_ms') / 1000 }))
      .filter(q => sandbox === undefined || q.sandbox === sandbox)
  }

  async answer(which: Question | string, answer: Exclude<Answer, null>): Promise<void> {
    const id = typeof which === 'string' ? which : which.id
    const how = typeof answer === 'object' ? [`--for=${answer.time}`]
      : [{ once: '--once', run: '--run' }[answer as string] ?? '--deny']
    await ward(this.program, 'approve', id, ...how)
  }

  close(): void { /* nothing is kept */ }
}
