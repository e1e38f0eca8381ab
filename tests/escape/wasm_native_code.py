"""A module contains native code of its own: a custom section `wasmedge`, as `wasmedge compile`
writes it, with the code of another module. WasmEdge executes such code instead of what the module
says.

layer: ward-wasm refuses such a module before a runtime reads it, and has its runtime interpret
whatever ward did not compile
control: wasmedge itself executes the code
"""
import os

from harness import wasm

SAID, BROUGHT = 7, 8
# interpreted; compiled first; with code that counts
WAYS = (("--set", "wasm.compile=false"), (), ("--set", "wasm.fuel=2000000"))


def module(code):
    """Ends with that exit code: (module (import "wasi_snapshot_preview1" "proc_exit" (func (param
    i32))) (memory (export "memory") 1) (func (export "_start") (call 0 (i32.const CODE))))"""
    return (b"\0asm\1\0\0\0" b"\1\x08\2\x60\1\x7f\0\x60\0\0"
            b"\2\x24\1\x16wasi_snapshot_preview1\x09proc_exit\0\0" b"\3\2\1\1" b"\5\3\1\0\1"
            b"\7\x13\2\6memory\2\0\6_start\0\1" b"\x0a\x08\1\6\0\x41" + bytes([code])
            + b"\x10\0\x0b")


def native_section(compiled):
    """The custom section of that name, whole."""
    at = 8
    while at < len(compiled):
        start, size, shift = at, 0, 0
        while True:
            at += 1
            size |= (compiled[at] & 0x7f) << shift
            shift += 7
            if not compiled[at] & 0x80:
                break
        at += 1 + size
        if compiled[start] == 0 and b"\x08wasmedge" in compiled[start:start + 16]:
            return compiled[start:at]
    raise AssertionError("wasmedge compile has written no such section")


def run(s):
    options = wasm.edge(s.t)
    native = ("run", "--isolation", "native", *wasm.image(), "--")
    s.t.write(s.ws, {"other.wasm": module(BROUGHT)})
    r = s.t.ward(*native, "wasmedge", "compile", "other.wasm", "compiled.wasm", cwd=s.ws,
                 timeout=60)
    s.t.equal(r.rc, 0, f"wasmedge compile: {r.err}")
    with open(os.path.join(s.ws, "compiled.wasm"), "rb") as f:
        section = native_section(f.read())
    s.t.write(s.ws, {"attack.wasm": module(SAID) + section, "honest.wasm": module(SAID)})
    if s.control:
        return s.t.ward(*native, "wasmedge", "attack.wasm", cwd=s.ws, timeout=60).rc == BROUGHT
    codes = []
    for way in WAYS:
        s.t.equal(s.t.ward("run", *options, *way, "--", "honest.wasm", cwd=s.ws, timeout=60).rc,
                  SAID, "without the section")
        r = s.t.ward("run", *options, *way, "--", "attack.wasm", cwd=s.ws, timeout=60)
        s.t.check(r.rc in (SAID, BROUGHT) or "contains native code" in r.err, r)
        codes.append(r.rc)
    s.t.say(f"ended with {codes}")
    return BROUGHT in codes


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
