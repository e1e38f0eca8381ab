"""isolation: wasm: WASI modules on a runtime inside a native sandbox. Each group of tests runs once
by WasmEdge's library and once by node, which every Debian has.

What every engine does alike is in test_conformance.py; here is what this engine alone has:
directories, limits, messages, the store of compiled code.
"""
import errno
import hashlib
import json
import os
import re
import shutil
import signal
import threading
import time

from harness import by_turns, filters, leaks, needs, timeout, wasm
from harness.boxes import box
from harness.world import World, policy

SEAL = 120	# bytes that every entry of the store ends with
INTERPRETED = ("--set", "wasm.compile=false")


def run(t, ws, options, *words, rc=0, **more):
    """Runs a tool of the workspace."""
    more.setdefault("timeout", 60)
    r = t.ward("run", *options, "--", *map(str, words), cwd=ws, **more)
    if rc is not None:
        t.equal(r.rc, rc, f"{words}: {r.out} {r.err}")
    return r


def stored(t):
    """The code of modules in the store: name -> size without the seal."""
    with t.root():
        place = os.path.join(t.state_dir, "wasm")
        names = [n for n in os.listdir(place) if n != "empty"] if os.path.isdir(place) else ()
        return {n: os.stat(os.path.join(place, n)).st_size - SEAL for n in names}


def spoil(t, change, kind=""):
    """Changes every entry of the store whose name begins so: change(bytes) -> bytes."""
    with t.root():
        place = os.path.join(t.state_dir, "wasm")
        for name in os.listdir(place):
            if name == "empty" or not name.startswith(kind):
                continue
            path = os.path.join(place, name)
            os.chmod(path, 0o600)
            with open(path, "rb+") as f:
                spoiled = change(f.read())
                f.seek(0)
                f.truncate()
                f.write(spoiled)


def tiny(t, name="tiny.wasm", extra=""):
    """A workspace with a module that is compiled in no time."""
    with open(os.path.join(wasm.DATA, "tiny.c")) as f:
        return wasm.module(t, t.workspace(), name, f.read() + extra)


# -- files

def files(t, options):
    outside = os.path.join(t.fresh_dir("outside"), "outside-file")
    t.write("/", {outside.lstrip("/"): "SECRET-OF-THE-HOST"})
    shown, given = t.fresh_dir("shown"), t.fresh_dir("given")
    t.write(shown, {"data": "SHOWN-DATA\n"})
    ws = wasm.tools(t, {"a": "CONTENT-A\n", ".env": "SECRET-HIDDEN\n", "sub/deep/b": "CONTENT-B\n",
                        ".git/config": "[core]\n", ".git/HEAD": "ref: refs/heads/main\n",
                        ".git/objects/x": "", ".git/refs/x": ""})
    t.equal(run(t, ws, options, "wasi.wasm", "files").out, "8\n01234FIV\n")
    t.equal((t.read(ws, "moved"), os.path.exists(os.path.join(ws, "dir"))), ("01234FIV", False))
    t.equal(run(t, ws, (*options, "-C", os.path.join(ws, "sub")), "../conform.wasm", "read",
                "deep/b").out, "CONTENT-B\n", "from a directory below")
    for path in (outside, "/etc/passwd", "/usr/bin/env", "/proc/self/environ"):
        r = run(t, ws, options, "wasi.wasm", "reach", path, rc=None)
        t.check("SECRET" not in r.out and "root:" not in r.out and "ELF" not in r.out
                and "PATH=" not in r.out, f"{path}: {r.out}")
        t.contains(r.out, "done", "it went on to the end")
    t.equal(t.read(outside), "SECRET-OF-THE-HOST")
    r = run(t, ws, (*options, "--set", 'filesystem.hide=[".env"]'), "wasi.wasm", "reach",
            os.path.join(ws, ".env"), rc=None)
    t.check("SECRET" not in r.out, r.out)
    t.equal(run(t, ws, (*options, "--ro", shown, "--rw", given), "conform.wasm", "read",
                f"{shown}/data").out, "SHOWN-DATA\n")
    run(t, ws, (*options, "--ro", shown, "--rw", given), "conform.wasm", "write",
        f"{given}/new", "N")
    t.equal(t.read(given, "new"), "N")
    run(t, ws, (*options, "--ro", shown), "wasi.wasm", "spoil", f"{shown}/data",
        os.path.join(ws, ".git/config"))
    t.equal((t.read(shown, "data"), t.read(ws, ".git/config")), ("SHOWN-DATA\n", "[core]\n"))
    run(t, ws, (*options, "--set", "filesystem.mode=read_only"), "wasi.wasm", "spoil", "a")
    t.equal(t.read(ws, "a"), "CONTENT-A\n")
    run(t, ws, options, "conform.wasm", "write", "/tmp/t", "T")
    run(t, ws, options, "conform.wasm", "read", "/tmp/t", rc=1)


@needs("unsanitized")
@timeout(150)
def test_wasmedge_files(t):
    files(t, (*wasm.edge(t), *INTERPRETED))


@timeout(150)
def test_node_files(t):
    files(t, wasm.node(t))


def make_link(ws, seconds):
    """Puts a link to / in the place of sub, once."""
    time.sleep(seconds)
    os.rename(os.path.join(ws, "sub"), os.path.join(ws, "old"))
    os.symlink("/", os.path.join(ws, "sub"))


@needs("unsanitized")
@timeout(150)
def test_the_working_directory_is_not_looked_up_again(t):
    """What the module has as "." is where it was started, whatever lies at that path when the
    runtime opens it."""
    ws = wasm.tools(t, {"sub/etc/passwd": "MINE\n"})
    options = (*wasm.edge(t), *INTERPRETED, "-C", os.path.join(ws, "sub/etc"))
    for ms in range(5, 125, 5):
        swap = threading.Thread(target=make_link, args=(ws, ms / 1000))
        swap.start()
        out = run(t, ws, options, os.path.join(ws, "conform.wasm"), "read", "passwd", rc=None).out
        swap.join()
        t.check("root:" not in out, f"after {ms} ms: {out}")
        os.unlink(os.path.join(ws, "sub"))
        os.rename(os.path.join(ws, "old"), os.path.join(ws, "sub"))
    t.equal(run(t, ws, options, "../../conform.wasm", "read", "passwd").out, "MINE\n",
            "without a link")


# -- streams, exit codes, messages

LIBRARY = "__attribute__((export_name(\"other\"))) int other(void) { return 1; }"
IMPORTS = ("__attribute__((import_module(\"elsewhere\"), import_name(\"missing_one\"))) int "
           "missing(int);\nint main(void) { return missing(1); }")


def ends(t, options):
    ws = wasm.tools(t, {"text.wasm": "#!/bin/sh\necho STARTED\n", "empty.wasm": "",
                        "wat.wasm": "(module)", "cut.wasm": b"\0asm\1\0\0\0\1\x99",
                        "part.wasm": b"\0asm\x0d\0\1\0",
                        "native.wasm": b"\0asm\1\0\0\0\0\x0a\x08wasmedge\0"})
    wasm.module(t, ws, "imports.wasm", IMPORTS)
    with open(t.compile(LIBRARY, flags=("--target=wasm32-wasi", "-O2", "-mexec-model=reactor"),
                        compiler=wasm.engines.wasm_compiler(t)), "rb") as f:
        t.write(ws, {"library.wasm": f.read()})
    os.mkdir(os.path.join(ws, "dir.wasm"))
    blob = bytes(range(256)) * 3000
    t.check(run(t, ws, options, "conform.wasm", "cat", input=blob).out_bytes == blob, "bytes")
    t.equal(run(t, ws, options, "wasi.wasm", "clock").out, "1 1 1\n")
    for code in (0, 1, 7, 255):
        run(t, ws, options, "conform.wasm", "exit", code, rc=code)
    for name, code, word in (("none.wasm", 127, "not found"), ("no/none.wasm", 127, "not found"),
                             ("dir.wasm", 126, "regular file"),
                             ("text.wasm", 126, "not a WebAssembly module"),
                             ("empty.wasm", 126, "not a WebAssembly module"),
                             ("wat.wasm", 126, "wat2wasm"), ("part.wasm", 126, "component"),
                             ("cut.wasm", 126, "truncated"),
                             ("native.wasm", 126, "strip the section"),
                             ("imports.wasm", 126, "imports missing_one of elsewhere"),
                             ("library.wasm", 126, "no _start"),
                             ("/.ward/ward-wasm", 126, "not a WebAssembly module")):
        r = run(t, ws, options, name, rc=code)
        t.check(word in r.err and "STARTED" not in r.out, f"{name}: {r.err}")
    for word in ("trap", "outside", "deep"):
        r = run(t, ws, options, "wasi.wasm", word, rc=134)
        t.contains(r.err, "wasi.wasm: trap: ", word)


def sparse(ws, name, head, mib):
    """A large file of zeros behind a few bytes."""
    with open(os.path.join(ws, name), "wb") as f:
        f.write(head)
        f.truncate(mib << 20)


def large(t, options):
    """Large files of nothing, of types, of one function and of custom sections are refused before a
    runtime, which would fill the memory with some of them, sees them."""
    ws, head = t.workspace(), b"\0asm\1\0\0\0"
    sparse(ws, "none.wasm", b"\x7fELF", 900)
    # 300 MiB less these 14 bytes, 80 Mi of them
    sparse(ws, "types.wasm", head + b"\1\xf2\xff\xff\x95\1\x80\x80\x80\x28", 300)
    sparse(ws, "body.wasm", head + b"\x0a\xf3\xff\xff\7\1\xee\xff\xff\7", 16)
    sparse(ws, "cut.wasm", head + b"\x0a\xff\xff\xff\xff\1", 16)
    t.write(ws, {"customs.wasm": head + b"\0\1\0" * 1000000})
    for name, word in (("none.wasm", "not a WebAssembly module"), ("types.wasm", "exceeds a limit"),
                       ("body.wasm", "exceeds a limit"), ("customs.wasm", "exceeds a limit"),
                       ("cut.wasm", "truncated")):
        r = run(t, ws, (*options, "--timeout", "20"), name, rc=126)
        t.contains(r.err, word, name)


@needs("unsanitized")
def test_wasmedge_large(t):
    large(t, (*wasm.edge(t), *INTERPRETED))


def test_node_large(t):
    large(t, wasm.node(t))


@needs("unsanitized")
@timeout(150)
def test_wasmedge_ends(t):
    ends(t, (*wasm.edge(t), *INTERPRETED))


@timeout(150)
def test_node_ends(t):
    ends(t, wasm.node(t))


# -- limits, variables, signals

def limits(t, options):
    ws = wasm.tools(t)
    r = run(t, ws, (*options, "--timeout", "1"), "conform.wasm", "spin", rc=124, report=True)
    t.equal(r.report["limits"]["timeout"]["hit"], True)
    r = run(t, ws, (*options, "--env", "ONE=a=b c", "--env", "NODE_OPTIONS=--no-such-option"),
            "conform.wasm", "env", "ONE", env={"SECRET_OF_THE_HOST": "s"})
    t.equal(r.out, "a=b c\n")
    t.equal(run(t, ws, options, "conform.wasm", "env", "SECRET_OF_THE_HOST",
                env={"SECRET_OF_THE_HOST": "s"}).out, "(none)\n")
    t.equal(run(t, ws, options, "conform.wasm", "args", "", "--dir", "a b", "--").out,
            "[][--dir][a b][--]\n")
    process = t.ward_start("run", *options, "--", "conform.wasm", "sleep", "100", cwd=ws)
    t.equal(process.stdout.readline(), b"up\n")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    t.equal(process.returncode, 143)


@by_turns
@needs("unsanitized")
@timeout(150)
def test_wasmedge_limits(t):
    options = wasm.edge(t)
    limits(t, (*options, *INTERPRETED))
    ws = tiny(t)
    for more in (INTERPRETED, ()):
        r = run(t, ws, (*options, *more, "--set", "wasm.fuel=2000000"), "tiny.wasm", "spin", rc=137)
        t.contains(r.err, "wasm.fuel: 2000000", "out of fuel")
        t.equal(run(t, ws, (*options, *more, "--set", "wasm.fuel=2000000"), "tiny.wasm", "say",
                    "FINE").out, "FINE\n")
        t.equal(run(t, ws, (*options, *more, "--memory", "96Mi"), "tiny.wasm", "grow").out,
                "enough\n")
        t.contains(run(t, ws, (*options, *more), "tiny.wasm", "trap", rc=134).err,
                   "trap: unreachable", "trap")
        run(t, ws, (*options, *more), "tiny.wasm", "seven", rc=7)
        run(t, ws, (*options, *more, "--timeout", "1"), "tiny.wasm", "spin", rc=124)
    t.equal(len(stored(t)), 2, "code that counts, and code that does not")


@timeout(150)
def test_node_limits(t):
    limits(t, wasm.node(t))


# -- the store of compiled code

@timeout(150)
def test_compiled_once_and_never_brought(t):
    options = wasm.edge(t)
    ws, other = tiny(t), tiny(t, "other.wasm",
                              "\nint more = 5;\n__attribute__((export_name(\"more\"))) int "
                              "*give(void) { return &more; }\n")
    t.contains(t.ward("plan", "--full", *options, "--", "tiny.wasm", cwd=ws).out,
               "a start compiles the module first", "plan")
    t.equal(stored(t), {})
    t.equal(run(t, ws, options, "tiny.wasm", "say", "ONE").out, "ONE\n")
    first = stored(t)
    t.equal(len(first), 1, "entries")
    plan = json.loads(t.ward("plan", "--json", *options, "--", "./tiny.wasm", cwd=ws).out)
    t.check("--aot" in plan["started"], plan["started"])
    t.equal(run(t, ws, options, "./tiny.wasm", "say", "TWO").out, "TWO\n")
    t.equal(stored(t), first, "the same entry")
    # another module at the same place is another entry
    shutil.copy(os.path.join(other, "other.wasm"), os.path.join(ws, "tiny.wasm"))
    t.equal(run(t, ws, options, "tiny.wasm", "say", "THREE").out, "THREE\n")
    second = stored(t)
    t.check(len(second) == 2 and first.items() <= second.items(), second)
    # native code is never taken from where an agent writes: neither beside the module nor in its
    # place
    with t.root():
        with open(os.path.join(t.state_dir, "wasm", next(iter(first))), "rb") as f:
            code = f.read()
    t.write(ws, {"tiny.wasm.so": code, "tiny.so": code, "code.wasm": code})
    t.contains(run(t, ws, options, "code.wasm", rc=126).err, "not a WebAssembly module",
               "native code as a module")
    run(t, ws, (*options, *INTERPRETED), "tiny.wasm", "say", "FOUR")
    t.equal(stored(t), second, "wasm.compile: false compiles nothing")
    # what is cut short in the store is made again
    before = stored(t)
    for change in (lambda b: b[:len(b) // 2], lambda b: b""):
        spoil(t, change)
        t.equal(run(t, ws, options, "tiny.wasm", "say", "FIVE").out, "FIVE\n")
        t.equal(len([n for n, size in stored(t).items() if size == before[n]]), 1,
                "the one that was needed")


def runner_maps(t):
    """What the processes that run a module below this test have mapped; "": there are none yet."""
    found = ""
    for pid in leaks.descendants(os.getpid()):
        try:
            with t.root(), open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
            if words[0].endswith(b"/ward-wasm") and words[1] == b"run":
                with t.root(), open(f"/proc/{pid}/maps") as f:
                    found += f.read()
        except (OSError, IndexError):
            pass
    return found


@needs("unsanitized")
@timeout(150)
def test_the_runtime_is_the_library_of_the_system(t):
    """A run opens the system's own libwasmedge, whether its module is compiled or not, and no copy
    of it."""
    options = wasm.edge(t)
    ws = tiny(t)
    for more, compiled in (((), True), (INTERPRETED, False)):
        process = t.ward_start("run", *options, *more, "--", "tiny.wasm", "sleep", cwd=ws)
        t.wait_until(lambda: "spdlog" in runner_maps(t), 30, "no module runs")
        t.equal(process.stdout.readline(), b"up\n")
        maps = runner_maps(t)
        t.equal(("/libwasmedge.so" in maps, "/.ward/library" in maps, "/.ward/module-" in maps),
                (True, False, compiled), maps)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


@needs("unsanitized")
@timeout(150)
def test_the_store_is_bounded(t):
    options = wasm.edge(t)
    ws = tiny(t)
    run(t, ws, options, "tiny.wasm", "say", "ONE")
    (used,) = stored(t)
    with t.root():
        place = os.path.join(t.state_dir, "wasm")
        for i in range(600):
            path = os.path.join(place, f"{i:064x}.so")
            with open(path, "wb") as f:
                f.truncate(4 << 20)
            os.utime(path, (1000000 + i, 1000000))
        with open(os.path.join(place, "new-left-by-a-kill"), "wb"):
            os.utime(os.path.join(place, "new-left-by-a-kill"), (1000000, 1000000))
    t.write(ws,
            {
                "tiny.wasm": open(os.path.join(tiny(t, "b.wasm",
                                                    "\nint b = 6;\n"
                                                    "__attribute__((export_name(\"b\"))) int "
                                                    "*give(void) { return &b; }\n"), "b.wasm"),
                                  "rb").read()})
    run(t, ws, options, "tiny.wasm", "say", "TWO")
    left = stored(t)
    t.check(used in left and "new-left-by-a-kill" not in left and f"{599:064x}.so" in left
            and f"{0:064x}.so" not in left, sorted(left)[:3])
    t.check(len(left) <= 512 and sum(left.values()) < (1 << 30) + (8 << 20),
            (len(left), sum(left.values())))


def compiler_pids(t):
    """The compilers that run below this test."""
    pids = []
    for pid in leaks.descendants(os.getpid()):
        try:
            with t.root(), open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
            if words[0].endswith(b"/ward-wasm") and words[1] == b"compile":
                pids.append(pid)
        except (OSError, IndexError):
            pass
    return pids


@timeout(150)
def test_ward_ends_while_it_compiles(t):
    """Killed or asked to end: no compiler goes on (looked for after the test), nothing half lies in
    the store, and the next start compiles."""
    options = wasm.edge(t)
    ws = wasm.tools(t)
    for number in (signal.SIGKILL, signal.SIGTERM):
        process = t.ward_start("run", *options, "--", "conform.wasm", "args", "STARTED", cwd=ws)
        t.wait_until(lambda: compiler_pids(t), 30, "no compiler was seen")
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        t.check(process.returncode == (125 if number == signal.SIGTERM else -9)
                and b"STARTED" not in out, (process.returncode, out, err))
        t.wait_until(lambda: not compiler_pids(t), 10, "the compiler goes on")
        t.equal(stored(t), {}, "entries")
    t.equal(run(t, ws, options, "conform.wasm", "args", "FINE").out, "[FINE]\n")
    t.equal(len(stored(t)), 1)


@timeout(150)
def test_a_compile_that_was_killed_is_not_remembered(t):
    """As when memory or time ran out: this start interprets, the next one compiles."""
    options = wasm.edge(t)
    ws = wasm.tools(t)
    report = os.path.join(t.fresh_dir("report"), "r.json")
    process = t.ward_start("run", "--report", report, *options, "--", "conform.wasm", "args",
                           "FINE", cwd=ws)
    t.wait_until(lambda: compiler_pids(t), 30, "no compiler was seen")
    with t.root():
        for pid in compiler_pids(t):
            os.kill(pid, signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    t.equal((process.returncode, out), (0, b"[FINE]\n"), err)
    t.check(any("more memory than" in n for n in json.loads(t.read(report))["notes"]),
            t.read(report))
    t.equal(stored(t), {}, "nothing is remembered")
    t.contains(t.ward("plan", "--full", *options, "--", "conform.wasm", cwd=ws).out,
               "a start compiles the module first", "plan")


@timeout(150)
def test_a_full_disk_is_no_reason_not_to_run(t):
    options = wasm.edge(t)
    ws = tiny(t)
    with t.root():
        os.makedirs(os.path.join(t.state_dir, "wasm"), exist_ok=True)
        for path in (t.state_dir, os.path.join(t.state_dir, "wasm")):
            os.chown(path, t.person.pw_uid, t.person.pw_gid)
            os.chmod(path, 0o700)
    place = os.path.join(t.state_dir, "wasm")
    t.run("mount", "-t", "tmpfs", "-o",
          f"size=64k,mode=700,uid={t.person.pw_uid},gid={t.person.pw_gid}", "tmpfs", place,
          root=True, check=True)
    try:
        with t.root(), open(os.path.join(place, "new-fill"), "wb") as f:
            f.write(bytes(60 << 10))
        r = run(t, ws, options, "tiny.wasm", "say", "FINE", report=True)
        t.equal(r.out, "FINE\n")
        t.check(any("no space for the code" in n for n in r.report["notes"]), r.report["notes"])
        t.equal(list(stored(t)), ["new-fill"])
    finally:
        t.run("umount", place, root=True, check=True)


@timeout(150)
def test_the_store_is_listed_and_cleared(t):
    options = wasm.edge(t)
    ws = tiny(t)
    t.contains(t.ward("wasm", "ls").out, "no compiled modules", "an empty store")
    run(t, ws, options, "tiny.wasm", "say", "ONE")
    entries = json.loads(t.ward("wasm", "ls", "--json").out)["entries"]
    with open(os.path.join(ws, "tiny.wasm"), "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    t.equal([(e["kind"], e["module"], e["state"]) for e in entries], [("module", digest, "fine")])
    text = t.ward("wasm", "ls").out
    t.check(digest[:12] in text and entries[0]["name"][:12] in text
            and text.count("fine") == 1, text)
    spoil(t, lambda b: b[:200] + bytes([b[200] ^ 1]) + b[201:], entries[0]["name"])
    r = t.ward("wasm", "ls")
    t.check(r.rc == 1 and r.out.count("damaged") == 1, r.out)
    for words, code, why in ((("rm",), 2, "needs the name"), (("ls", "x"), 2, "takes no name"),
                             (("rm", "nope"), 125, "no such entry"),
                             (("rm", "../trust"), 125, "no such entry"),
                             (("rm", ""), 125, "no such entry"), (("gc",), 2, "neither")):
        r = t.ward("wasm", *words)
        t.check(r.rc == code and why in r.err, (words, r))
    t.equal(t.ward("wasm", "rm", entries[0]["name"][:9]).rc, 0)
    t.equal(json.loads(t.ward("wasm", "ls", "--json").out)["entries"], [])
    t.equal(run(t, ws, options, "tiny.wasm", "say", "AGAIN").out, "AGAIN\n",
            "the next start compiles")
    t.equal(json.loads(t.ward("wasm", "rm", "all", "--json").out)["removed"], [entries[0]["name"]])
    t.equal(json.loads(t.ward("wasm", "ls", "--json").out)["entries"], [])
    t.equal(run(t, ws, options, "tiny.wasm", "say", "TWO").out, "TWO\n", "the next start compiles")


@timeout(150)
def test_a_module_that_cannot_be_compiled(t):
    options = wasm.edge(t)
    # a function of type () -> () whose body leaves a value
    bad = (b"\0asm\1\0\0\0" + b"\1\4\1\x60\0\0" + b"\3\2\1\0" + b"\7\x0a\1\6_start\0\0"
           + b"\x0a\6\1\4\0\x41\1\x0b")
    ws = t.workspace({"bad.wasm": bad})
    for _ in range(2):
        t.contains(run(t, ws, options, "bad.wasm", rc=126).err, "bad.wasm: is not valid", "why")
        t.equal(list(stored(t).values()), [0], "it is known from then on")
    t.contains(t.ward("plan", "--full", *options, "--", "bad.wasm", cwd=ws).out,
               "an earlier attempt to compile the module failed", "plan")


@timeout(150)
def test_a_link_does_not_lead_the_compiler_out(t):
    options = wasm.edge(t)
    outside = tiny(t)
    ws = t.workspace()
    os.symlink(os.path.join(outside, "tiny.wasm"), os.path.join(ws, "link.wasm"))
    os.symlink(outside, os.path.join(ws, "dir"))
    for name in ("link.wasm", "dir/tiny.wasm", os.path.join(outside, "tiny.wasm")):
        run(t, ws, options, name, "say", "STARTED", rc=127)
    t.equal(stored(t), {})


# -- sandboxes that are left, and review

def left(t, options, swap):
    ws = wasm.tools(t, {"a": "CONTENT-A\n"})
    shutil.copy(os.path.join(tiny(t), "tiny.wasm"), os.path.join(ws, "tiny.wasm"))
    name = box(t, *options, "--", "tiny.wasm", "sleep", cwd=ws, timeout=60)
    t.equal(t.ward("exec", name, "--", "tiny.wasm", "say", "AGAIN", timeout=60).out, "AGAIN\n")
    t.equal(t.ward("exec", name, "--", "./conform.wasm", "read", "a", timeout=60).out,
            "CONTENT-A\n")
    r = t.ward("exec", name, "--", "wasi.wasm", "reach", "/etc/passwd", timeout=60)
    t.check("root:" not in r.out and "done" in r.out, r)
    t.equal(t.ward("exec", name, "--", "/.ward/ward-wasm", timeout=60).rc, 126, "no other programs")
    t.equal(t.ward("exec", name, "--", "none.wasm", timeout=60).rc, 127)
    if swap:	# the code that was compiled is of another module: it must not be run in its name
        shutil.copy(os.path.join(ws, "wasi.wasm"), os.path.join(ws, "tiny.wasm"))
        t.equal(t.ward("exec", name, "--", "tiny.wasm", "clock", timeout=60).out, "1 1 1\n")
    t.equal(t.ward("stop", "--timeout", "1", name, timeout=60).rc, 0)


@needs("unsanitized")
@timeout(150)
def test_wasmedge_left_running(t):
    left(t, wasm.edge(t), True)


@timeout(150)
def test_node_left_running(t):
    left(t, wasm.node(t), False)


@needs("unsanitized")
@timeout(150)
def test_wasmedge_review(t):
    options = (*wasm.edge(t), *INTERPRETED)
    ws = wasm.tools(t, {"a": "CONTENT-A\n"})
    r = run(t, ws, (*options, "--review"), "conform.wasm", "write", "a", "CHANGED", report=True)
    t.equal(t.read(ws, "a"), "CONTENT-A\n")
    t.contains(t.ward("audit", "show", r.report["run"], "--json").out, '"engine":"wasm"',
               "the journal")
    t.equal(t.ward("apply", r.report["run"]).rc, 0)
    t.equal(t.read(ws, "a"), "CHANGED")


# -- network

@timeout(150)
def test_wasmedge_sockets_end_at_the_gateway(t):
    options = (*wasm.edge(t), *INTERPRETED)
    ws = wasm.module(t, t.workspace(), "net.wasm", "wasi_net.c")
    t.contains(run(t, ws, options, "net.wasm", "198", "51", "100", "10", "7", rc=2).out,
               "no socket", "without a network")
    world = World(t)
    allowed = (*options, "--widen", "-p", policy(t))
    for address, code in (("198 51 100 10 7", 0), ("198 51 100 10 25", 1), ("203 0 113 5 7", 1),
                          ("127 0 0 1 22", 1), ("db.test 5432", 0), ("forbidden.example 7", 3)):
        r = world.ward("run", *allowed, "--", "net.wasm", *address.split(), cwd=ws, timeout=60)
        t.equal((r.rc, "got hello" in r.out), (code, code == 0), f"{address}: {r.out}{r.err}")
    t.check(not any("203.0.113.5" in line for line in world.log()), world.log())


# -- what is said, what is refused

def test_node_is_named_as_no_wall(t):
    options = wasm.node(t)
    ws = wasm.tools(t)
    word = "node adds no isolation"
    t.contains(run(t, ws, options, "conform.wasm", "args", report=True).report["wall"], word,
               "result")
    plan = t.ward("plan", "--full", *options, "--", "conform.wasm", cwd=ws).out
    t.contains(" ".join(plan.split()), word, "plan")
    engines = {e["name"]: e for e in json.loads(t.ward("doctor", "--json").out)["engines"]}
    t.check(engines["wasm"]["usable"] and ("WasmEdge" in engines["wasm"]["wall"]
                                           or word in engines["wasm"]["wall"]), engines["wasm"])
    for more, why in ((("--set", "wasm.fuel=1000"), "does not count instructions"),
                      (("--set", "resources.open_files=127"),
                       "--set resources.open_files=128 or more"),
                      (("--allow", "example.com"), "network"), (("--gpus", "all"), "GPUs")):
        r = run(t, ws, (*options, *more), "conform.wasm", "args", "STARTED", rc=125)
        t.check(why in r.err and "STARTED" not in r.out, r.err)


def test_no_runtime(t):
    ws = wasm.tools(t)
    r = run(t, ws, ("--isolation", "wasm", "--set", "wasm.runtime=iwasm"), "conform.wasm", "args",
            rc=125)
    t.check("no iwasm" in r.err and "install" in r.err, r.err)
    r = run(t, ws, ("--isolation", "[wasm, native]", "--set", "wasm.runtime=iwasm"), "true",
            report=True)
    t.check(r.report["engine"] == "native" and any("no iwasm" in n for n in r.report["notes"]),
            r.report["notes"])
    empty = t.workspace({"etc/x": ""})
    r = run(t, ws, ("--isolation", "wasm", "--image", empty), "conform.wasm", rc=125)
    t.contains(r.err, "GNU C library", "an image without anything")
    colon = os.path.join(ws, "a:b")
    os.mkdir(colon)
    shutil.copy(os.path.join(ws, "conform.wasm"), colon)
    r = run(t, colon, wasm.node(t), "conform.wasm", "args", "STARTED", rc=125)
    t.check("colon" in r.err and "STARTED" not in r.out, r)


def test_another_runtime_elsewhere(t):
    """A runtime outside /usr is shown as a program of the user's own is; here one that prints its
    words."""
    ws = wasm.tools(t)
    place = t.fresh_dir("bin")
    t.write(place, {"wasmtime": "#!/bin/sh\nprintf '<%s>' \"$@\"\nenv | grep -c SECRET_NAME\n"})
    os.chmod(os.path.join(place, "wasmtime"), 0o755)
    path = t.environment()["PATH"]
    r = run(t, ws, ("--isolation", "wasm", "--set", "wasm.runtime=wasmtime", "--set",
                    "wasm.fuel=77", "--memory", "64Mi", "--env", "SECRET_NAME=v"), "conform.wasm",
            "x", env={"PATH": f"{place}:{path}"}, rc=None)
    for word in ("<run>", "<.::.>", f"<{ws}::{ws}>", "<SECRET_NAME=v>",
                 "<-Wmax-memory-size=67108864>", "<-Wfuel=77>"):
        t.contains(r.out, word, "its words")
    t.check(re.search(r"</proc/self/fd/\d+><x>", r.out), r.out)
    t.equal(r.out.splitlines()[-1][-1], "0", "the module's variables are not the runtime's")
    r = t.ward("plan", "--full", "--isolation", "wasm", "--set", "wasm.runtime=wasmtime", "--",
               "conform.wasm", cwd=ws, env={"PATH": f"{place}:{path}"})
    t.contains(r.out, "wasmtime (untested)", "what is not known is said")


def test_what_was_looked_at_is_what_runs(t):
    """A program that runs modules gets the bytes that ward-wasm has read: whatever is put at that
    path, or written into that file, meanwhile, and it cannot write them itself."""
    ws = wasm.tools(t, {"other": b"\0asm\1\0\0\0SWAPPED-MODULE"})
    place, module = t.fresh_dir("bin"), os.path.join(ws, "conform.wasm")
    t.write(place,
            {"iwasm": "#!/bin/sh\nfor last; do :; done\n: > started\nuntil [ -e go ]; do sleep "
             "0.05; done\ncat \"$last\" | sha256sum\n(echo x >> \"$last\") 2> /dev/null && echo "
             "WRITTEN\n"})
    os.chmod(os.path.join(place, "iwasm"), 0o755)
    env = {"PATH": f"{place}:{t.environment()['PATH']}"}
    with open(module, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    for swap in (lambda: t.write(ws, {"conform.wasm": "SWAPPED-CONTENT"}),
                 lambda: os.rename(os.path.join(ws, "other"), module)):
        wasm.module(t, ws, "conform.wasm", "conform.c")
        for name in ("started", "go"):
            if os.path.exists(os.path.join(ws, name)):
                os.unlink(os.path.join(ws, name))
        out = os.path.join(t.fresh_dir("out"), "out")
        with open(out, "wb") as f:
            process = t.ward_start("run", "--isolation", "wasm", "--set", "wasm.runtime=iwasm",
                                   "--", "conform.wasm", cwd=ws, env=env, stdout=f)
        t.wait_until(lambda: os.path.exists(os.path.join(ws, "started")), 20, "the runtime starts")
        swap()
        t.write(ws, {"go": ""})
        t.equal(process.wait(20), 2, "the script ends with what its last command gave")
        with open(out) as f:
            t.equal(f.read(), f"{digest}  -\n")


# -- what ward-wasm gives up by itself

LANDLOCK = ("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self")


def test_a_kernel_without_landlock_is_named_or_refused(t):
    options = (*wasm.edge(t), *INTERPRETED)
    ws = wasm.tools(t)
    r = run(t, ws, (*options, "--set", "require.landlock=true"), "conform.wasm", "args", "FINE",
            report=True)
    t.equal((r.out, [n for n in r.report["notes"] if "Landlock" in n]), ("[FINE]\n", []), "with it")
    wrap = filters.without(t, errno.ENOSYS, *LANDLOCK)
    r = run(t, ws, options, "conform.wasm", "args", "FINE", report=True, wrap=wrap)
    t.check(r.out == "[FINE]\n" and any("reaches all files of the sandbox" in n
                                        for n in r.report["notes"]), r.report["notes"])
    for more in (options, wasm.node(t), ()):
        r = run(t, ws, (*more, "--set", "require.landlock=true"), "conform.wasm", "args", "STARTED",
                rc=125, wrap=wrap)
        t.check("require.landlock" in r.err and "lsm=" in r.err and "STARTED" not in r.out, r.err)


def test_strict_calls_are_named(t):
    options = (*wasm.edge(t), *INTERPRETED, "--set", "process.syscalls=strict")
    r = run(t, wasm.tools(t), options, "conform.wasm", "args", "FINE", report=True)
    t.check(r.out == "[FINE]\n" and any("strict" in n for n in r.report["notes"]),
            r.report["notes"])
