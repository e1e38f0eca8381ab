// The interface that sandboxes on this machine and on a server share. What one of them does not
// have throws Unsupported.

/** A text is a line for the shell, a list is a program and its arguments. */
export type Command = string | readonly string[]
export type Data = string | Uint8Array
/** null leaves a question to others. */
export type Answer = 'once' | 'run' | 'deny' | { time: number } | null

/** A piece of output as it comes. */
export interface Output { stream: 'stdout' | 'stderr' | 'pty', data: Buffer }
/** How a command ended; code: 128+N if signal N killed it. */
export interface Result { code: number, stdout: string, stderr: string }

export interface Entry {
  name: string
  path: string
  kind: 'file' | 'directory' | 'link' | 'other'
  size: number
  mode: number
  owner: string
  group: string
  modified: Date
  link?: string
}

export interface SandboxInfo {
  id: string
  state: string
  template: string
  name: string
  started: Date
  ends?: Date
  metadata: Record<string, string>
}

/** What a sandbox uses now; undefined: not measured there. */
export interface Usage {
  memoryBytes: number
  diskBytes: number
  cpuPercent?: number
  cpuMs?: number
  processes?: number
}

export interface Snapshot { id: string, name: string, sandbox: string, sizeBytes: number }

/** What a sandbox waits for. Texts come escaped; details begin with warnings. */
export interface Question {
  id: string
  sandbox: string
  kind: string
  subject: string
  host: string
  port: number
  rule: string
  process: string
  details: string[]
  waiting: number
  secondsLeft: number
}

export interface WardEvent {
  kind: string
  sandbox: string
  template: string
  time: string
  why: string
}

/** A key or token of the server; secret is there only when it was just made. */
export interface Token {
  id: string
  role: string
  kind: string
  secret: string
  name: string
  expires: string
}

export interface StartOptions {
  env?: Record<string, string>
  cwd?: string
  stdin?: boolean
  terminal?: { rows: number, columns: number }
}

export interface RunOptions {
  env?: Record<string, string>
  cwd?: string
  input?: Data
  /** Seconds; then the command is killed and TimedOut thrown. */
  timeout?: number
  /** Throw CommandFailed if the exit status is not 0. */
  check?: boolean
  onOutput?: (piece: Output) => void
  /** Its abort kills the command. */
  abort?: AbortSignal
}

export interface CreateOptions {
  /** Of the server, or a profile of this machine. */
  template?: string
  /** Seconds until the sandbox ends. */
  timeout?: number
  env?: Record<string, string>
  metadata?: Record<string, string>
  snapshot?: Snapshot | string
  /** false takes away what the policy grants. */
  network?: boolean
  /** Of this machine alone, as the options of `ward run`. */
  workspace?: string
  policy?: string
  name?: string
  fields?: Record<string, string | number | boolean | readonly string[]>
}

export interface Files {
  read(path: string, options?: { limit?: number }): Promise<Buffer>
  readText(path: string, options?: { limit?: number }): Promise<string>
  /** Makes or replaces a file, and the directories above it. A half file is never seen. */
  write(path: string, data: Data): Promise<void>
  list(path?: string, options?: { depth?: number }): Promise<Entry[]>
  stat(path: string): Promise<Entry>
  exists(path: string): Promise<boolean>
  /** false: it was there. */
  makeDir(path: string): Promise<boolean>
  rename(path: string, to: string): Promise<void>
  remove(path: string): Promise<void>
}

/** A command that runs in a sandbox; `for await` gives its output. */
export interface Process extends AsyncIterable<Output> {
  /** Once it has ended. */
  readonly code: number | undefined
  /** Reads what output is left, and returns it with the exit code. */
  wait(timeout?: number): Promise<Result>
  write(data: Data): Promise<void>
  closeStdin(): Promise<void>
  signal(which: 'TERM' | 'KILL'): Promise<void>
  kill(): Promise<void>
  resize(rows: number, columns: number): Promise<void>
  close(): void
}

export interface Sandbox {
  readonly id: string
  readonly files: Files
  run(command: Command, options?: RunOptions): Promise<Result>
  start(command: Command, options?: StartOptions): Promise<Process>
  info(): Promise<SandboxInfo>
  usage(): Promise<Usage>
  setTimeout(seconds: number): Promise<void>
  pause(): Promise<void>
  resume(): Promise<void>
  /** false: it had ended. */
  kill(): Promise<boolean>
  snapshot(name?: string): Promise<Snapshot>
  fork(count?: number): Promise<Sandbox[]>
  /** Hands questions to the handler for so many seconds (none: until the sandbox ends) and gives
   * its answers. Returns how many answers counted, as soon as there is one. */
  decide(handler: (question: Question) => Answer | Promise<Answer>, timeout?: number):
    Promise<number>
}

export interface Client {
  readonly remote: boolean
  create(options?: CreateOptions): Promise<Sandbox>
  open(id: string): Promise<Sandbox>
  list(): Promise<SandboxInfo[]>
  snapshots(): Promise<Snapshot[]>
  deleteSnapshot(snapshot: Snapshot | string): Promise<boolean>
  events(sandbox?: string): AsyncIterable<WardEvent>
  questions(sandbox?: string): Promise<Question[]>
  /** Throws Conflict if another answer came first. */
  answer(question: Question | string, answer: Exclude<Answer, null>): Promise<void>
  close(): void
}
