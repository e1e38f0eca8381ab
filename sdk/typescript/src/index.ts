/**
 * Sandboxes of ward: on this machine through the program `ward`, or on a server (ward serve), with
 * one interface.
 *
 *     import { create } from 'ward-sandbox'
 *
 *     const box = await create({ timeout: 300 })
 *     console.log((await box.run('echo hello')).stdout)
 *     await box.kill()
 *
 * WARD_HOST names a server and WARD_TOKEN a key of it; without WARD_HOST sandboxes are this
 * machine's own.
 */
import { LocalClient } from './local.js'
import { RemoteClient } from './remote.js'
import type { TransportOptions } from './transport.js'
import type { Client, CreateOptions, Sandbox } from './types.js'

export interface ConnectOptions extends TransportOptions {
  /** The server; else WARD_HOST, else this machine. */
  url?: string
  /** The path of `ward`, where it is not in PATH. */
  program?: string
}

export function connect(options: ConnectOptions = {}): Client {
  const url = options.url ?? process.env.WARD_HOST
  return url ? new RemoteClient(url, options) : new LocalClient(options.program)
}

/** connect().create() */
export function create(options: CreateOptions & ConnectOptions = {}): Promise<Sandbox> {
  const { url, key, caFile, program, ...how } = options
  return connect({ url, key, caFile, program }).create(how)
}

export * from './errors.js'
export * from './types.js'
export { LocalClient, LocalSandbox } from './local.js'
export { RemoteClient, RemoteSandbox } from './remote.js'
