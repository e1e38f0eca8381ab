// What both kinds of sandboxes do in the same way.
import { CommandFailed, TimedOut } from './errors.js'
import type { Command, Output, Process, Result, RunOptions, Sandbox, StartOptions } from
  './types.js'

export const READ_MAX = 256 << 20

export function words(command: Command): string[] {
  return typeof command === 'string' ? ['/bin/sh', '-c', command] : [...command]
}

/** Collects output up to the end of a process. */
export class Collected {
  readonly out: Buffer[] = []
  readonly err: Buffer[] = []

  take(piece: Output): void {
    (piece.stream === 'stderr' ? this.err : this.out).push(piece.data)
  }

  result(code: number): Result {
    return { code, stdout: Buffer.concat(this.out).toString(),
      stderr: Buffer.concat(this.err).toString() }
  }
}

/** Pieces from a producer to one consumer. The producer is asked to pause while many wait. */
export class Pieces {
  private waiting: Output[] = []
  private wake?: () => void
  private over = false
  private problem?: Error

  constructor(private readonly flow: { pause(): void, resume(): void }) {}

  push(piece: Output): void {
    this.waiting.push(piece)
    if (this.waiting.length >= 64) this.flow.pause()
    this.wake?.()
  }

  end(problem?: Error): void {
    if (this.over) return
    this.over = true
    this.problem = problem
    this.wake?.()
  }

  /** undefined: the end. */
  async next(deadline?: number): Promise<Output | undefined> {
    while (!this.waiting.length) {
      if (this.problem) throw this.problem
      if (this.over) return undefined
      const left = deadline === undefined ? undefined : deadline - Date.now()
      if (left !== undefined && left <= 0) throw new TimedOut("the command's time is over")
      await new Promise<void>(resolve => {
        const timer = left === undefined ? undefined : setTimeout(resolve, left)
        this.wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
      this.wake = undefined
    }
    const piece = this.waiting.shift()
    if (!this.waiting.length) this.flow.resume()
    return piece
  }
}

/** What is left of a process, for at most so many seconds. */
export async function collect(next: (deadline?: number) => Promise<Output | undefined>,
  seconds: number | undefined, onOutput?: (piece: Output) => void): Promise<Collected> {
  const found = new Collected()
  const deadline = seconds === undefined ? undefined : Date.now() + 1000 * seconds
  try {
    for (let piece; (piece = await next(deadline));) {
      found.take(piece)
      onOutput?.(piece)
    }
  } catch (e) {
    if (e instanceof TimedOut) Object.assign(e, found.result(0), { code: 0 })
    throw e
  }
  return found
}

interface Running extends Process {
  next(deadline?: number): Promise<Output | undefined>
}

/** Sandbox.run() for both. */
export async function runIn(
  sandbox: { start(command: Command, options: StartOptions): Promise<Running> },
  command: Command, options: RunOptions): Promise<Result> {
  options.abort?.throwIfAborted()
  const process = await sandbox.start(command,
    { env: options.env, cwd: options.cwd, stdin: options.input !== undefined })
  const aborted = (): void => { process.kill().catch(() => {}) }
  options.abort?.addEventListener('abort', aborted)
  try {
    if (options.input !== undefined)
      process.write(options.input).then(() => process.closeStdin()).catch(() => {})
    const found = await collect(d => process.next(d), options.timeout, options.onOutput)
    options.abort?.throwIfAborted()
    const result = found.result(process.code ?? 255)
    if (options.check && result.code) throw new CommandFailed(result)
    return result
  } catch (e) {
    if (process.code === undefined) await process.kill().catch(() => {})
    throw e
  } finally {
    options.abort?.removeEventListener('abort', aborted)
    process.close()
  }
}

export type { Running, Sandbox }
