// Sandboxes of a server: E2B's calls and those under /ward/v1 (docs/serve.md), by HTTP.
import type { IncomingMessage } from 'node:http'
import { collect, Pieces, READ_MAX, runIn, words, type Running } from './common.js'
import { Conflict, InvalidArgument, NotFound, ofConnect, SandboxGone, Unreachable, Unsupported,
  WardError } from './errors.js'
import { Transport, type TransportOptions } from './transport.js'
import type { Answer, Client, Command, CreateOptions, Data, Entry, Files, Output, Question, Result,
  RunOptions, Sandbox, SandboxInfo, Snapshot, StartOptions, Token, Usage, WardEvent } from
  './types.js'
import { envelope, Envelopes, Events, exitCode, list, number, object, text, type Found } from
  './wire.js'

const ENVD_PORT = '49983'
const SILENCE_MS = 120_000 // the server says something each 50 seconds
const INPUT_PIECE = 256 << 10
const POLL_MS = 250 // between two looks at the questions
const quote = encodeURIComponent

function info(found: Found): SandboxInfo {
  const ends = text(found, 'endAt')
  return { id: text(found, 'sandboxID'), state: text(found, 'state') || 'running',
    template: text(found, 'templateID'), name: '', started: new Date(text(found, 'startedAt')),
    ends: ends ? new Date(ends) : undefined,
    metadata: (object(found, 'metadata') ?? {}) as Record<string, string> }
}

function entry(found: Found | undefined): Entry {
  const kinds: Record<string, Entry['kind']> = { FILE_TYPE_FILE: 'file',
    FILE_TYPE_DIRECTORY: 'directory' }
  const link = text(found, 'symlinkTarget')
  return { name: text(found, 'name'), path: text(found, 'path'),
    kind: kinds[text(found, 'type')] ??
      (text(found, 'permissions').startsWith('L') ? 'link' : 'other'),
    size: number(found, 'size'), mode: number(found, 'mode'), owner: text(found, 'owner'),
    group: text(found, 'group'), modified: new Date(text(found, 'modifiedTime')),
    ...(link ? { link } : {}) }
}

function question(found: Found): Question {
  return { id: text(found, 'id'), sandbox: text(found, 'sandboxID'), kind: text(found, 'kind'),
    subject: text(found, 'subject'), host: text(found, 'host'), port: number(found, 'port'),
    rule: text(found, 'rule'), process: text(found, 'process'),
    details: Array.isArray(found.details) ? found.details.map(String) : [],
    waiting: number(found, 'waiting'), secondsLeft: number(found, 'secondsLeft') }
}

function snapshot(found: Found | undefined): Snapshot {
  const names = Array.isArray(found?.names) ? found.names : []
  return { id: text(found, 'snapshotID'), name: String(names[0] ?? '').split(':')[0]!,
    sandbox: text(found, 'sandboxID'), sizeBytes: number(found, 'sizeBytes') }
}

function token(found: Found): Token {
  return { id: text(found, 'id'), role: text(found, 'role'), kind: text(found, 'kind'),
    secret: text(found, 'token'), name: text(found, 'name'), expires: text(found, 'expiresAt') }
}

class RemoteProcess implements Running {
  code: number | undefined
  pid = 0
  private readonly pieces: Pieces
  private started!: (problem?: Error) => void
  readonly ready: Promise<void>

  constructor(private readonly sandbox: RemoteSandbox, private readonly answer: IncomingMessage,
    private readonly terminal: boolean) {
    this.pieces = new Pieces(answer)
    this.ready = new Promise((resolve, reject) => {
      this.started = problem => problem ? reject(problem) : resolve()
    })
    const cut = new Envelopes()
    const stop = (problem?: Error): void => {
      this.started(problem)
      this.pieces.end(problem)
    }
    answer.on('data', (data: Buffer) => {
      try {
        for (const { end, message } of cut.feed(data)) {
          const error = object(message, 'error')
          if (end && error) stop(ofConnect(error.code, text(error, 'message')))
          else if (end) stop(this.code === undefined
            ? new Unreachable('the connection broke while the command ran') : undefined)
          else this.take(object(message, 'event'))
        }
      } catch (e) {
        stop(e as Error)
        answer.destroy()
      }
    })
    const broke = (): void =>
      stop(new SandboxGone('the sandbox ended, or was paused, while the command ran'))
    answer.on('error', broke)
    answer.on('close', broke)
  }

  private take(event: Found | undefined): void {
    const data = object(event, 'data')
    const end = object(event, 'end')
    if (object(event, 'start')) {
      this.pid = number(object(event, 'start'), 'pid')
      this.started()
    }
    for (const stream of ['stdout', 'stderr', 'pty'] as const)
      if (text(data, stream))
        this.pieces.push({ stream, data: Buffer.from(text(data, stream), 'base64') })
    if (end) this.code = exitCode(end)
  }

  next(deadline?: number): Promise<Output | undefined> {
    return this.pieces.next(deadline)
  }

  async * [Symbol.asyncIterator](): AsyncGenerator<Output> {
    for (let piece; (piece = await this.next());) yield piece
  }

  async wait(timeout?: number): Promise<Result> {
    const found = await collect(d => this.next(d), timeout)
    return found.result(this.code ?? 255)
  }

  private async rpc(method: string, message: object): Promise<void> {
    await this.sandbox.rpc(`process.Process/${method}`, { process: { pid: this.pid }, ...message })
  }

  async write(data: Data): Promise<void> {
    const raw = Buffer.from(data as Uint8Array)
    const kind = this.terminal ? 'pty' : 'stdin'
    for (let at = 0; at < raw.length; at += INPUT_PIECE)
      await this.rpc('SendInput',
        { input: { [kind]: raw.subarray(at, at + INPUT_PIECE).toString('base64') } })
  }

  closeStdin(): Promise<void> { return this.rpc('CloseStdin', {}) }

  signal(which: 'TERM' | 'KILL'): Promise<void> {
    return this.rpc('SendSignal', { signal: `SIGNAL_SIG${which}` })
  }

  kill(): Promise<void> { return this.signal('KILL') }

  resize(rows: number, columns: number): Promise<void> {
    return this.rpc('Update', { pty: { size: { rows, cols: columns } } })
  }

  close(): void {
    if (!this.answer.complete) this.answer.destroy()
  }
}

class RemoteFiles implements Files {
  constructor(private readonly sandbox: RemoteSandbox) {}

  private rpc(method: string, message: object): Promise<Found> {
    return this.sandbox.rpc(`filesystem.Filesystem/${method}`, message)
  }

  read(path: string, options: { limit?: number } = {}): Promise<Buffer> {
    return this.sandbox.exchange('GET', `/files?path=${quote(path)}`, options.limit ?? READ_MAX)
  }

  async readText(path: string, options: { limit?: number } = {}): Promise<string> {
    return (await this.read(path, options)).toString()
  }

  async write(path: string, data: Data): Promise<void> {
    await this.sandbox.exchange('POST', `/files?path=${quote(path)}`, 1 << 20,
      Buffer.from(data as Uint8Array), { 'Content-Type': 'application/octet-stream' })
  }

  async list(path = '.', options: { depth?: number } = {}): Promise<Entry[]> {
    return list((await this.rpc('ListDir', { path, depth: options.depth ?? 1 })).entries)
      .map(entry)
  }

  async stat(path: string): Promise<Entry> {
    return entry(object(await this.rpc('Stat', { path }), 'entry'))
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
      await this.rpc('MakeDir', { path })
      return true
    } catch (e) {
      if (e instanceof Conflict) return false
      throw e
    }
  }

  async rename(path: string, to: string): Promise<void> {
    await this.rpc('Move', { source: path, destination: to })
  }

  async remove(path: string): Promise<void> { await this.rpc('Remove', { path }) }
}

/** Stays on the server until kill() or until its time is over. */
export class RemoteSandbox implements Sandbox {
  readonly id: string
  readonly files: Files = new RemoteFiles(this)
  private accessToken: string

  constructor(private readonly client: RemoteClient, found: Found) {
    this.id = text(found, 'sandboxID')
    this.accessToken = text(found, 'envdAccessToken')
    if (!/^[a-z0-9]+$/.test(this.id))
      throw new Unreachable('the server named no sandbox',
        { remedy: 'is it ward serve that answers there?' })
  }

  private get fields(): Record<string, string> {
    return { 'E2b-Sandbox-Id': this.id, 'E2b-Sandbox-Port': ENVD_PORT,
      'X-Access-Token': this.accessToken }
  }

  async exchange(method: string, path: string, most: number, body?: Buffer,
    headers: Record<string, string> = {}): Promise<Buffer> {
    const t = this.client.transport
    return t.read(await t.send(method, path, body, { ...this.fields, ...headers }), most)
  }

  async rpc(method: string, message: object): Promise<Found> {
    return (await this.client.transport.call('POST', `/${method}`, message, this.fields) ??
      {}) as Found
  }

  private call(method: string, path: string, message?: object): Promise<unknown> {
    return this.client.transport.call(method, `/sandboxes/${this.id}${path}`, message)
  }

  async start(command: Command, options: StartOptions = {}): Promise<RemoteProcess> {
    const [cmd, ...args] = words(command)
    const size = options.terminal
    const message = { process: { cmd, args, envs: options.env ?? {},
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }) },
    stdin: options.stdin ?? false,
    ...(size ? { pty: { size: { rows: size.rows, cols: size.columns } } } : {}) }
    const answer = await this.client.transport.send('POST', '/process.Process/Start',
      envelope(message), { ...this.fields, 'Content-Type': 'application/connect+json',
        'Connect-Protocol-Version': '1', 'Keepalive-Ping-Interval': '50' }, SILENCE_MS)
    const process = new RemoteProcess(this, answer, size !== undefined)
    await process.ready
    return process
  }

  run(command: Command, options: RunOptions = {}): Promise<Result> {
    return runIn(this, command, options)
  }

  async info(): Promise<SandboxInfo> { return info(await this.call('GET', '') as Found) }

  async usage(): Promise<Usage> {
    const last = list(await this.call('GET', '/metrics')).pop()
    return { memoryBytes: number(last, 'memUsed'), diskBytes: number(last, 'diskUsed'),
      cpuPercent: number(last, 'cpuUsedPct') }
  }

  async setTimeout(seconds: number): Promise<void> {
    await this.call('POST', '/timeout', { timeout: Math.trunc(seconds) })
  }

  async pause(): Promise<void> { await this.call('POST', '/pause', {}) }

  async resume(): Promise<void> {
    this.accessToken = text(await this.call('POST', '/connect', {}) as Found, 'envdAccessToken') ||
      this.accessToken
  }

  async kill(): Promise<boolean> {
    try {
      await this.call('DELETE', '')
      return true
    } catch (e) {
      if (e instanceof NotFound) return false
      throw e
    }
  }

  async snapshot(name = ''): Promise<Snapshot> {
    return snapshot(await this.call('POST', '/snapshots', name ? { name } : {}) as Found)
  }

  async fork(count = 1): Promise<RemoteSandbox[]> {
    const made: RemoteSandbox[] = []
    let problem: string | undefined
    for (const found of list(await this.call('POST', '/fork', { count }))) {
      const sandbox = object(found, 'sandbox')
      if (sandbox) made.push(new RemoteSandbox(this.client, sandbox))
      else problem = text(object(found, 'error'), 'message') || 'no reason given'
    }
    if (problem === undefined) return made
    await Promise.all(made.map(s => s.kill()))
    throw new WardError(`not all forks could be started: ${problem}`,
      { remedy: 'try with fewer' })
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
        try {
          await this.client.answer(q, answer)
          counted++
        } catch (e) {
          if (!(e instanceof Conflict)) throw e // another call was faster
        }
      }
      if (counted) return counted
      if (Date.now() + POLL_MS > end) return 0
      await new Promise(resolve => setTimeout(resolve, POLL_MS))
      if (timeout === undefined) await this.info() // NotFound: it has ended
    }
  }
}

/** A server. key: a key or token of it; else WARD_TOKEN, or ~/.config/ward/token. */
export class RemoteClient implements Client {
  readonly remote = true
  readonly transport: Transport

  constructor(url: string, options: TransportOptions = {}) {
    this.transport = new Transport(url, options)
  }

  async create(options: CreateOptions = {}): Promise<RemoteSandbox> {
    for (const name of ['workspace', 'policy', 'name', 'fields'] as const)
      if (options[name] !== undefined)
        throw new Unsupported(`a server takes no ${name}`,
          { remedy: 'put it into a template of the server' })
    const { snapshot: source, template } = options
    if (source && template)
      throw new InvalidArgument('a snapshot has its own template',
        { remedy: 'leave one of them out' })
    const found = await this.transport.call('POST', '/v2/sandboxes', {
      templateID: (typeof source === 'object' ? source.id : source) ?? template ?? 'base',
      timeout: options.timeout === undefined ? undefined : Math.trunc(options.timeout),
      envVars: options.env, metadata: options.metadata,
      allow_internet_access: options.network === false ? false : undefined })
    return new RemoteSandbox(this, (found ?? {}) as Found)
  }

  async open(id: string): Promise<RemoteSandbox> {
    const found = await this.transport.call('POST', `/v2/sandboxes/${quote(id)}/connect`, {})
    return new RemoteSandbox(this, (found ?? {}) as Found)
  }

  private async pages(path: string): Promise<Found[]> {
    const all: Found[] = []
    let next = ''
    for (let page = 0; page < 1000; page++) {
      const answer = await this.transport.send('GET',
        `${path}?limit=100${next && `&nextToken=${quote(next)}`}`, undefined,
        { 'X-API-Key': this.transport.key })
      all.push(...list(JSON.parse(String(await this.transport.read(answer, 64 << 20)))))
      next = String(answer.headers['x-next-token'] ?? '')
      if (!next) break
    }
    return all
  }

  async list(): Promise<SandboxInfo[]> { return (await this.pages('/v2/sandboxes')).map(info) }

  async snapshots(): Promise<Snapshot[]> { return (await this.pages('/snapshots')).map(snapshot) }

  private async drop(path: string): Promise<boolean> {
    try {
      await this.transport.call('DELETE', path)
      return true
    } catch (e) {
      if (e instanceof NotFound) return false
      throw e
    }
  }

  deleteSnapshot(which: Snapshot | string): Promise<boolean> {
    return this.drop(`/templates/${quote(typeof which === 'string' ? which : which.id)}`)
  }

  /** The server's templates, with engine and limits. */
  async templates(): Promise<Found[]> {
    return list(await this.transport.call('GET', '/ward/v1/templates'))
  }

  async * events(sandbox?: string): AsyncGenerator<WardEvent> {
    const answer = await this.transport.send('GET',
      `/ward/v1/events${sandbox ? `?sandboxID=${quote(sandbox)}` : ''}`, undefined,
      { 'X-API-Key': this.transport.key }, SILENCE_MS)
    const cut = new Events()
    answer.setEncoding('utf8')
    try {
      for await (const data of answer)
        for (const found of cut.feed(data as string))
          yield { kind: text(found, 'kind'), sandbox: text(found, 'sandboxID'),
            template: text(found, 'templateID'), time: text(found, 'time'),
            why: text(found, 'why') }
    } catch (e) {
      throw e instanceof WardError ? e : new Unreachable(`events: ${(e as Error).message}`)
    } finally {
      answer.destroy()
    }
  }

  async questions(sandbox?: string): Promise<Question[]> {
    const query = sandbox ? `?sandboxID=${quote(sandbox)}` : ''
    return list(await this.transport.call('GET', `/ward/v1/approvals${query}`)).map(question)
  }

  async answer(which: Question | string, answer: Exclude<Answer, null>): Promise<void> {
    const id = typeof which === 'string' ? which : which.id
    const message = typeof answer === 'object' ? { answer: 'time', seconds: answer.time }
      : { answer: answer === 'once' || answer === 'run' ? answer : 'deny' }
    await this.transport.call('POST', `/ward/v1/approvals/${quote(id)}`, message)
  }

  /** A short-lived token; its secret is shown this once. */
  async createToken(role: string, ttl: number, limits: object = {}): Promise<Token> {
    return token(await this.transport.call('POST', '/ward/v1/tokens',
      { role, ttl, ...limits }) as Found)
  }

  async tokens(): Promise<Token[]> {
    return list(await this.transport.call('GET', '/ward/v1/tokens')).map(token)
  }

  revokeToken(which: Token | string): Promise<boolean> {
    return this.drop(`/ward/v1/tokens/${quote(typeof which === 'string' ? which : which.id)}`)
  }

  close(): void { this.transport.close() }
}
