// The bytes of the wire, as pure functions. What a server or sandbox sends is not trusted: each
// length has a limit, and a wrong form is an error.
import { constants } from 'node:os'
import { Unreachable } from './errors.js'

export const ENVELOPE_MAX = 16 << 20
const EVENT_MAX = 1 << 20
const END = 2

export type Found = Record<string, unknown>

export function envelope(message: object): Buffer {
  const body = Buffer.from(JSON.stringify(message))
  const head = Buffer.alloc(5)
  head.writeUInt32BE(body.length, 1)
  return Buffer.concat([head, body])
}

export function readObject(body: Buffer | string): Found {
  let found: unknown
  try {
    found = JSON.parse(String(body) || '{}')
  } catch {
    found = undefined
  }
  if (typeof found !== 'object' || found === null || Array.isArray(found))
    throw new Unreachable('the server sent what is no JSON object',
      { remedy: 'is it ward serve that answers there?' })
  return found as Found
}

/** Cuts a stream into messages. */
export class Envelopes {
  private kept: Buffer = Buffer.alloc(0);

  * feed(data: Buffer): Generator<{ end: boolean, message: Found }> {
    this.kept = this.kept.length ? Buffer.concat([this.kept, data]) : data
    while (this.kept.length >= 5) {
      const flags = this.kept[0]!
      const size = this.kept.readUInt32BE(1)
      if (flags & ~END || size > ENVELOPE_MAX)
        throw new Unreachable('the server sent a stream of a form that is not known',
          { remedy: 'is it ward serve that answers there?' })
      if (this.kept.length < 5 + size) return
      const body = this.kept.subarray(5, 5 + size)
      this.kept = this.kept.subarray(5 + size)
      yield { end: (flags & END) !== 0, message: readObject(body) }
    }
  }
}

/** Cuts server-sent events: the data of each. */
export class Events {
  private kept = ''
  private data: string[] = [];

  * feed(data: string): Generator<Found> {
    this.kept += data
    if (this.kept.length > EVENT_MAX || this.data.length > 1000)
      throw new Unreachable('the server sent an event that is too long')
    const lines = this.kept.split('\n')
    this.kept = lines.pop()!
    for (const line of lines) {
      if (line.startsWith('data:')) {
        this.data.push(line.slice(5).trim())
      } else if (!line.trim() && this.data.length) {
        const body = this.data.join('\n')
        this.data = []
        yield readObject(body)
      }
    }
  }
}

export function text(found: Found | undefined, key: string): string {
  const value = found?.[key]
  return typeof value === 'string' ? value : ''
}

export function number(found: Found | undefined, key: string): number {
  const value = Number(found?.[key] ?? 0)
  return Number.isFinite(value) ? value : 0
}

export function list(found: unknown): Found[] {
  return Array.isArray(found) ? found.filter(f => typeof f === 'object' && f !== null) : []
}

export function object(found: Found | undefined, key: string): Found | undefined {
  const value = found?.[key]
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? value as Found : undefined
}

const NAMES: Record<string, number> = {
  killed: 9, terminated: 15, Hangup: 1, Interrupt: 2, Quit: 3, 'Illegal instruction': 4,
  Aborted: 6, 'Bus error': 7, 'Floating point exception': 8, 'User defined signal 1': 10,
  'Segmentation fault': 11, 'User defined signal 2': 12, 'Broken pipe': 13, 'Alarm clock': 14,
}

/** The end of a process: its exit status, 128+N if signal N killed it. */
export function exitCode(end: Found): number {
  if (end.exited) return number(end, 'exitCode')
  return 128 + (NAMES[text(end, 'status').replace('signal: ', '')] ?? 9)
}

export function codeOfSignal(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal]
}
