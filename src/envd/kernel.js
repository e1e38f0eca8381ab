'use strict'
/* The JavaScript of a sandbox's code interpreter: as kernel.py, a process for each context. Frames
 * come on descriptor 3; 1 and 2 are pipes, whose other ends are 5 and 6: what subprocesses print.
 * Top-level declarations stay for the next execution and may be made again, await and import are
 * understood: the code is changed for that with the parser that node brings along. */
const fs = require('fs'), vm = require('vm'), util = require('util'), path = require('path')
const { createRequire } = require('module')

const KEYS = { 'text/plain': 'text', 'text/html': 'html', 'text/markdown': 'markdown',
  'image/svg+xml': 'svg', 'image/png': 'png', 'image/jpeg': 'jpeg', 'application/pdf': 'pdf',
  'text/latex': 'latex', 'application/json': 'json', 'application/javascript': 'javascript',
  'e2b/data': 'data', 'e2b/chart': 'chart' }
const SHOW = Symbol.for('Jupyter.display')
const acorn = (() => {
  try {
    return require('internal/deps/acorn/acorn/dist/acorn')
  } catch {
    return null // another build of node: then plain scripts are all there is
  }
})()
let count = 0, running = false, base = {}, interrupted = null, typescript = false

// -- frames

function writeAll(bytes) {
  for (let at = 0; at < bytes.length;) {
    try {
      at += fs.writeSync(3, bytes, at)
    } catch (e) {
      if (e.code !== 'EAGAIN') process.reallyExit(0)
    }
  }
}

function send(message) {
  const line = Buffer.from(JSON.stringify(message) + '\n'), head = Buffer.alloc(4)
  head.writeUInt32LE(line.length)
  writeAll(Buffer.concat([head, line]))
}

function readExactly(n, done, parts = [], have = 0) {
  if (have === n) return done(Buffer.concat(parts))
  const bytes = Buffer.alloc(n - have)
  fs.read(3, bytes, 0, bytes.length, null, (e, got) => {
    if (e && (e.code === 'EINTR' || e.code === 'EAGAIN')) got = 0
    else if (e || !got) process.reallyExit(0)
    readExactly(n, done, got ? [...parts, bytes.subarray(0, got)] : parts, have + got)
  })
}

function receive(done) {
  readExactly(4, head => readExactly(head.readUInt32LE(0), b => done(JSON.parse(b.toString()))))
}

// -- what is printed

function printed(type, text) {
  if (running && text) send({ type, text, timestamp: Date.now() * 1e6 })
}

const decoders = { stdout: new util.TextDecoder(), stderr: new util.TextDecoder() }
const chunk = Buffer.alloc(65536)

function drain() {
  for (const [fd, name] of [[5, 'stdout'], [6, 'stderr']])
    for (;;) {
      let n = 0
      try {
        n = fs.readSync(fd, chunk, 0, chunk.length, null)
      } catch {} // EAGAIN: it is empty
      if (!n) break
      printed(name, decoders[name].decode(chunk.subarray(0, n), { stream: true }))
    }
}

for (const name of ['stdout', 'stderr'])
  process[name].write = (data, encoding, done) => {
    printed(name, typeof data === 'string' ? data : Buffer.from(data).toString())
    done = typeof encoding === 'function' ? encoding : done
    if (done) process.nextTick(done)
    return true
  }
let timer = setInterval(drain, 1000)
timer.unref()

// -- what is displayed

function textOf(value) {
  return typeof value === 'string' ? value : util.inspect(value)
}

function sendBundle(bundle, main) {
  const message = { type: 'result', is_main_result: main }, extra = {}
  for (let [mime, value] of Object.entries(bundle)) {
    if (value instanceof Uint8Array) value = Buffer.from(value).toString('base64')
    if (mime in KEYS) message[KEYS[mime]] = value
    else extra[mime] = value
  }
  if (Object.keys(extra).length) message.extra = extra
  drain()
  if (running) send(message)
}

async function bundleOf(value) {
  const own = value != null && typeof value[SHOW] === 'function' ? await value[SHOW]() : null
  return own ? { 'text/plain': textOf(value), ...own } : { 'text/plain': textOf(value) }
}

function display(value, { raw = false } = {}) {
  if (raw) return sendBundle(value, false)
  return bundleOf(value).then(b => sendBundle(b, false))
}

for (const [mime, key] of Object.entries(KEYS))
  display[key] = value => sendBundle({ [mime]: value }, false)

// -- code

function namesOf(pattern, out) {
  switch (pattern && pattern.type) {
    case 'Identifier': out.push(pattern.name); break
    case 'ObjectPattern': pattern.properties.forEach(p => namesOf(p.value || p.argument, out)); break
    case 'ArrayPattern': pattern.elements.forEach(p => namesOf(p, out)); break
    case 'AssignmentPattern': namesOf(pattern.left, out); break
    case 'RestElement': namesOf(pattern.argument, out)
  }
  return out
}

function importOf(node, code, names) {
  const from = JSON.stringify(node.source.value.replace(/^npm:/, ''))
  const parts = node.specifiers.map(s => {
    names.push(s.local.name)
    if (s.type === 'ImportNamespaceSpecifier') return `${s.local.name} = m;`
    const key = s.type === 'ImportDefaultSpecifier' ? 'default' : s.imported.name || s.imported.value
    return `${s.local.name} = m[${JSON.stringify(key)}];`
  })
  return `{ const m = await import(${from}); ${parts.join(' ')} }`
}

function declarationOf(node, code, names) {
  const parts = node.declarations.map(d => {
    namesOf(d.id, names)
    const value = d.init ? code.slice(d.init.start, d.init.end) : 'undefined'
    return d.init || node.kind !== 'var' ? `(${code.slice(d.id.start, d.id.end)} = ${value})` : ''
  })
  return `void (${parts.filter(Boolean).join(', ') || '0'});`
}

/* {code, names that become global, whether it is asynchronous}. */
function change(code) {
  if (!acorn) return { code, names: [], waits: false }
  const tree = acorn.parse(code, { ecmaVersion: 'latest', sourceType: 'module',
    allowAwaitOutsideFunction: true, allowHashBang: true })
  const names = [], functions = [], changes = []
  let waits = false
  for (const node of tree.body) {
    if (node.type === 'ImportDeclaration') {
      waits = true
      changes.push([node, importOf(node, code, names)])
    } else if (node.type === 'VariableDeclaration') {
      changes.push([node, declarationOf(node, code, names)])
    } else if (node.type === 'ClassDeclaration') {
      names.push(node.id.name)
      changes.push([node, `void (${node.id.name} = ${code.slice(node.start, node.end)});`])
    } else if (node.type === 'FunctionDeclaration') {
      functions.push(node.id.name)
    }
  }
  waits = waits || hasAwait(tree)
  const last = tree.body[tree.body.length - 1]
  if (waits && last && last.type === 'ExpressionStatement')
    changes.push([last, `return (${code.slice(last.expression.start, last.expression.end)})`])
  for (const [node, text] of changes.reverse())
    code = code.slice(0, node.start) + text + code.slice(node.end)
  if (waits)
    code = `(async () => { ${functions.map(f => `globalThis.${f} = ${f};`).join(' ')} ${code}\n})()`
  return { code, names, waits }
}

/* An await that belongs to no function. */
function hasAwait(node) {
  if (!node || typeof node !== 'object') return false
  if (Array.isArray(node)) return node.some(hasAwait)
  if (node.type === 'AwaitExpression' || (node.type === 'ForOfStatement' && node.await)) return true
  if (/Function/.test(node.type || '')) return false
  return Object.values(node).some(v => typeof v === 'object' && hasAwait(v))
}

function strip(code) {
  const { stripTypeScriptTypes } = require('module')
  if (!stripTypeScriptTypes)
    throw new Error(`TypeScript needs node 22.13; this is ${process.version}`)
  return stripTypeScriptTypes(code, { mode: 'transform' })
}

async function evaluate(code) {
  const made = change(typescript ? strip(code) : code)
  const options = { filename: `<cell ${count}>`, breakOnSigint: true,
    importModuleDynamically: vm.constants && vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER }
  if (made.names.length) vm.runInThisContext(`var ${made.names.join(', ')}`)
  const value = vm.runInThisContext(made.code, options)
  if (!made.waits) return value
  return await Promise.race([value, new Promise((_, no) => { interrupted = no })])
}

function report(error) {
  const is = error instanceof Error || util.types.isNativeError(error)
  // its frames in the cells, and none of those that called them
  const lines = is && error.stack ? error.stack.split('\n') : []
  const stack = lines.filter(l => !/^ +at /.test(l) || l.includes('<cell ')).join('\n')
  drain()
  send({ type: 'error', name: is ? error.name : typeof error,
    value: is ? error.message : textOf(error), traceback: stack })
}

async function guarded(code) {
  try {
    const value = await evaluate(code)
    if (value !== undefined) sendBundle(await bundleOf(value), true)
  } catch (error) {
    report(error)
  }
}

function setBase(env) {
  for (const name of Object.keys(base)) if (!(name in env)) delete process.env[name]
  Object.assign(process.env, env)
  base = env
}

async function execute(request) {
  if (request.base) setBase(request.base)
  const env = request.env || {}, before = {}
  for (const name of Object.keys(env)) before[name] = process.env[name]
  Object.assign(process.env, env)
  running = true
  send({ type: 'number_of_executions', execution_count: ++count })
  if (warning) printed('stderr', warning)
  warning = ''
  clearInterval(timer)
  timer = setInterval(drain, 20)
  await guarded(request.code)
  interrupted = null
  drain()
  clearInterval(timer)
  timer = setInterval(drain, 1000)
  timer.unref()
  running = false
  for (const [name, value] of Object.entries(before))
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
  send({ type: 'end_of_execution' })
  writeAll(Buffer.alloc(4))
}

// -- the kernel

let warning = ''

process.on('SIGINT', () => {
  if (interrupted) interrupted(Object.assign(new Error('interrupted'), { name: 'Interrupted' }))
})
const warn = process.emitWarning
process.emitWarning = (what, ...more) => // of what this kernel itself uses
  /USE_MAIN_CONTEXT/.test(what) ? undefined : warn.call(process, what, ...more)
process.on('uncaughtException', error => printed('stderr', `Uncaught ${textOf(error)}\n`))
process.on('unhandledRejection', error => printed('stderr', `Uncaught (in promise) ${textOf(error)}\n`))

function next() {
  receive(request => execute(request).then(next))
}

function begin(modules) {
  const require = createRequire(path.join(process.cwd(), 'cell.js'))
  Object.assign(globalThis, { require, display })
  for (const name of modules.split(',').filter(Boolean))
    try {
      require(name)
    } catch (e) {
      warning += `cannot preload ${name}: ${e.message.split('\n')[0]}\n`
    }
  receive(request => { // the first message says where and with what
    typescript = request.language === 'typescript'
    setBase(request.env || {})
    try {
      process.chdir(request.cwd)
    } catch (e) {
      warning += `cannot enter ${request.cwd}: ${e.code}\n`
    }
    globalThis.require = createRequire(path.join(process.cwd(), 'cell.js'))
    next()
  })
}

begin(KERNEL_MODULES)
