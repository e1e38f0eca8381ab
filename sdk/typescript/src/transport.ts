// HTTP/1.1 to a server: connections that are kept, TLS that is verified, no redirects, errors as
// exceptions. http:// only reaches this machine: a key never crosses a network in the clear.
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import * as http from 'node:http'
import * as https from 'node:https'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { InvalidArgument, ofStatus, Unauthorized, Unreachable, WardError } from './errors.js'
import { text, type Found } from './wire.js'

const ANSWER_MAX = 64 << 20

function isThisMachine(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host)
}

/** WARD_TOKEN, or the file ward/token in the user's configuration, which only they may read. */
export function findToken(): string {
  if (process.env.WARD_TOKEN) return process.env.WARD_TOKEN
  const path = join(process.env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'ward', 'token')
  let fd: number
  try {
    fd = openSync(path, 'r')
  } catch {
    throw new Unauthorized('no key for the server was given', { remedy:
      `set WARD_TOKEN, pass key, or write it to ${path} (chmod 600)` })
  }
  try {
    const st = fstatSync(fd)
    if (!st.isFile() || st.uid !== process.geteuid?.() || st.mode & 0o077)
      throw new Unauthorized(`${path} is not a file that only you can read`,
        { remedy: `chmod 600 ${path}` })
    return readFileSync(fd, 'latin1').slice(0, 4096).trim()
  } finally {
    closeSync(fd)
  }
}

export interface TransportOptions {
  key?: string
  /** A file with the certificate of the authority that signed the server's. */
  caFile?: string
  /** Seconds that the server may be silent. */
  timeout?: number
}

export class Transport {
  readonly key: string
  private readonly url: URL
  private readonly agent: http.Agent
  private readonly timeoutMs: number

  constructor(url: string, options: TransportOptions) {
    try {
      this.url = new URL(url)
    } catch {
      this.url = new URL('none:')
    }
    const { protocol, hostname, pathname, search, username } = this.url
    if (!['http:', 'https:'].includes(protocol) || pathname !== '/' || search || username)
      throw new InvalidArgument(`not the address of a server: ${url}`,
        { remedy: 'for instance https://sandboxes.example:3000' })
    if (protocol === 'http:' && !isThisMachine(hostname))
      throw new InvalidArgument(`${url} would send the key in the clear`,
        { remedy: 'use https://, or a tunnel to this machine' })
    this.key = options.key ?? findToken()
    this.timeoutMs = 1000 * (options.timeout ?? 60)
    const caFile = options.caFile ?? process.env.WARD_CA_FILE
    this.agent = protocol === 'http:' ? new http.Agent({ keepAlive: true })
      : new https.Agent({ keepAlive: true, ca: caFile ? readFileSync(caFile) : undefined,
        rejectUnauthorized: true })
  }

  private fail(e: Error): WardError {
    return e instanceof WardError ? e : new Unreachable(`${this.url.host}: ${e.message}`,
      { remedy: /certificate/i.test(e.message)
        ? "WARD_CA_FILE names the authority's certificate" : 'is ward serve running there?' })
  }

  /** One request; its answer is not read yet. Errors of the server are exceptions. */
  async send(method: string, path: string, body: Uint8Array | string | undefined,
    headers: Record<string, string>, silentMs?: number): Promise<http.IncomingMessage> {
    const module = this.url.protocol === 'https:' ? https : http
    const answer = await new Promise<http.IncomingMessage>((resolve, reject) => {
      const request = module.request(new URL(path, this.url), {
        method, agent: this.agent, timeout: silentMs ?? this.timeoutMs,
        headers: { ...headers, ...(body !== undefined || method === 'POST'
          ? { 'Content-Length': String(Buffer.byteLength(body ?? '')) } : {}) },
      }, resolve)
      request.on('timeout', () => request.destroy(new Error('the server does not answer')))
      request.on('error', e => reject(this.fail(e)))
      request.end(body)
    })
    const status = answer.statusCode ?? 0
    if (status < 300) return answer
    let reason = `status ${status}`
    try {
      reason = text(JSON.parse(String(await this.read(answer, 1 << 20))) as Found, 'message') ||
        reason
    } catch { /* no JSON: the status says it */ }
    const after = Number(answer.headers['retry-after'])
    throw ofStatus(status, reason, Number.isFinite(after) ? after : undefined)
  }

  async read(answer: http.IncomingMessage, most: number): Promise<Buffer> {
    const parts: Buffer[] = []
    let size = 0
    try {
      for await (const part of answer) {
        size += (part as Buffer).length
        if (size > most)
          throw new InvalidArgument(`the answer has more than ${most} bytes`,
            { remedy: 'read less at once, or give a higher limit' })
        parts.push(part as Buffer)
      }
    } catch (e) {
      throw this.fail(e as Error)
    }
    return Buffer.concat(parts)
  }

  /** One request with a JSON answer; undefined: the answer was empty. */
  async call(method: string, path: string, message?: object,
    headers?: Record<string, string>): Promise<unknown> {
    const fields = { ...(headers ?? { 'X-API-Key': this.key }),
      ...(message ? { 'Content-Type': 'application/json' } : {}) }
    const answer = await this.send(method, path, message && JSON.stringify(message), fields)
    const body = await this.read(answer, ANSWER_MAX)
    if (!body.length) return undefined
    try {
      return JSON.parse(String(body))
    } catch {
      throw new Unreachable("the server's answer is not JSON",
        { remedy: 'is it ward serve that answers there?' })
    }
  }

  close(): void {
    this.agent.destroy()
  }
}
