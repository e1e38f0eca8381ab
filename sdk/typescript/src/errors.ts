// Exceptions: what was refused, why, and what to do about it.

/** The text without what a terminal would act on: a server's or sandbox's words are not ours. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu,
    c => `\\u${c.codePointAt(0)!.toString(16).padStart(4, '0')}`)
}

export class WardError extends Error {
  readonly reason: string
  readonly remedy: string
  /** The HTTP status, or the exit status of ward; 0: there is none. */
  readonly code: number

  constructor(reason: string, more: { code?: number, remedy?: string } = {}) {
    const remedy = printable(more.remedy ?? '')
    super(printable(reason) + (remedy ? ` (${remedy})` : ''))
    this.name = new.target.name
    this.reason = printable(reason)
    this.remedy = remedy
    this.code = more.code ?? 0
  }
}

/** A value that ward does not take. */
export class InvalidArgument extends WardError {}
/** The server does not know the key or token. */
export class Unauthorized extends WardError {}
/** The policy, or the role of the key, does not allow it. */
export class Forbidden extends WardError {}
/** No such sandbox, snapshot, file or process. */
export class NotFound extends WardError {}
/** The state does not allow it: paused already, answered already, a name that is taken. */
export class Conflict extends WardError {}
/** The sandbox has ended, or is paused. */
export class SandboxGone extends WardError {}
/** The server cannot be reached, or the connection broke. */
export class Unreachable extends WardError {}
/** This place (local or remote) has no such thing. */
export class Unsupported extends WardError {}

/** A quota or rate limit; try again after so many seconds, where the server says that. */
export class Busy extends WardError {
  retryAfter?: number
}

/** The time is up; of a command, stdout and stderr are what it had written. */
export class TimedOut extends WardError {
  stdout = ''
  stderr = ''
}

/** run(..., { check: true }): the exit status was not 0. */
export class CommandFailed extends WardError {
  readonly result: { code: number, stdout: string, stderr: string }

  constructor(result: { code: number, stdout: string, stderr: string }) {
    const last = result.stderr.trim().split('\n').pop()
    super(`exit status ${result.code}${last ? `: ${last}` : ''}`, { code: result.code })
    this.result = result
  }
}

type Kind = new (reason: string, more?: { code?: number, remedy?: string }) => WardError

const BY_STATUS: Record<number, [Kind, string]> = {
  400: [InvalidArgument, ''],
  401: [Unauthorized, 'set WARD_TOKEN to a key or token of this server; ' +
    'ward serve --add-key NAME makes a key'],
  403: [Forbidden, 'ask for a key with another role; docs/serve.md lists what each role may do'],
  404: [NotFound, ''],
  405: [Unsupported, 'use a newer server'],
  409: [Conflict, ''],
  413: [InvalidArgument, 'send less at once'],
  429: [Busy, 'end sandboxes that are not needed, or try again later'],
  502: [SandboxGone,
    'it was killed, is paused, or its time is over; resume() or start another'],
  503: [Busy, 'try again later'],
  504: [TimedOut, 'try again'],
  507: [WardError, 'remove files in the sandbox, or use a template with a larger disk_limit'],
}

export function ofStatus(status: number, reason: string, retryAfter?: number): WardError {
  const [kind, remedy] = BY_STATUS[status] ?? [WardError, '']
  const error = new kind(reason, { code: status, remedy })
  if (error instanceof Busy) error.retryAfter = retryAfter
  return error
}

const STATUS_OF_CODE: Record<string, number> = {
  invalid_argument: 400, unauthenticated: 401, permission_denied: 403, not_found: 404,
  already_exists: 409, failed_precondition: 409, aborted: 409, resource_exhausted: 429,
  unavailable: 502, deadline_exceeded: 504, canceled: 504, out_of_range: 400, unimplemented: 405,
}

/** The exception for an error at the end of a stream. */
export function ofConnect(code: unknown, reason: string): WardError {
  return ofStatus(STATUS_OF_CODE[String(code)] ?? 500, reason)
}
