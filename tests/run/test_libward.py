"""libward: the library as a program sees it, installed, found by pkg-config, shared and static."""
import json
import os
import re
import subprocess

from harness import by_turns, libward


def declared():
    """Every function of the header."""
    with open(os.path.join(libward.TOP, "include/ward/ward.h")) as f:
        return sorted(re.findall(r"^WARD_API [^;]*?\b(ward_\w+)\(", f.read(), re.M))


def test_symbols(t):
    """Exactly the header's functions are there, with their version; nothing but libc is needed."""
    names = declared()
    t.check(len(names) > 10 and len(names) == len(set(names)), names)
    out = t.run("nm", "-D", "--defined-only", libward.library(t), check=True).out
    found = sorted(line.split()[-1] for line in out.splitlines() if " A " not in line)
    later = {"ward_net_allow": 1, "ward_net_deny": 1, "ward_net_show": 1, "ward_decide": 2}
    t.equal(found, [f"{name}@@WARD_1.{later.get(name, 0)}" for name in names],
            "exported by libward.so")
    archive = os.path.join(os.path.dirname(libward.library(t)), "libward.a")
    out = t.run("nm", "-g", "--defined-only", archive, check=True).out
    t.equal(sorted(re.findall(r"^[0-9a-f]+ \w (\S+)$", out, re.M)), names, "global in libward.a")
    out = t.run("readelf", "-dW", libward.library(t), check=True).out
    t.contains(out, "soname: [libward.so.1]", "dynamic section")
    needed = [n for n in re.findall(r"NEEDED.*\[(.*)\]", out) if not re.match("lib(asan|ubsan)", n)]
    t.equal(needed, ["libc.so.6"], "needed by libward.so")


def test_header_in_cxx(t):
    """The header is C++ too."""
    source = os.path.join(t.directory, "a.cc")
    t.write(t.directory,
            {"a.cc": "#include <ward/ward.h>\nint main() { return ward_version() == nullptr; }\n"})
    compiler = next((c for c in ("c++", "clang++")
                     if subprocess.run(["which", c], capture_output=True).returncode == 0), None)
    if not compiler:
        t.skip("no C++ compiler")
    t.run(compiler, "-Wall", "-Werror", "-fsyntax-only", f"-I{libward.TOP}/include", source,
          check=True)


def plan_with(t, static):
    workspace = t.workspace()
    program = libward.program(t, "tests/api/spec.c", static)
    env = {"PATH": f"{libward.tree(t)}/bin:{t.environment()['PATH']}"} if static else {}
    r = t.run(program, workspace, env=env, cwd=workspace)
    t.equal(r.rc, 0, "exit code")
    t.equal(r.err, "", "printed")
    ours = json.loads(r.out)
    r = t.ward("plan", "--json", "-w", workspace, "--pids", "77", "--env", "FRUIT=pear", "--ro",
               "/usr/share/man:/mnt/system", "--",
               "echo", "two words", "", cwd=workspace)
    theirs = json.loads(r.out)
    for plan in (ours, theirs):	# root's sandboxes have an id of their own each
        plan["ids"] = {key: value for key, value in plan["ids"].items()
                       if not key.startswith("host_")}
    t.equal(ours.keys(), theirs.keys(), "parts of the plan")
    for part in ours:
        t.equal(ours[part], theirs[part], part)


def test_plan(t):
    """A plan through the library is the plan of the command line; the library is found, and finds
    ward, in a tree that was moved."""
    plan_with(t, static=False)


def test_plan_static(t):
    """The same linked statically; ward is found in PATH."""
    plan_with(t, static=True)


def test_add_option(t):
    """--add, which the library says entries of lists with."""
    workspace = t.workspace()
    plan = json.loads(t.ward("plan", "--json", "--add", "process.env=FRUIT=pear",
                             cwd=workspace).out)
    t.check("FRUIT" in plan["env"], plan["env"])
    for value, text in (("process.syscalls=build", "is not a list"),
                        ("proces.env=x", "no such field"), ("process.env", "FIELD=VALUE")):
        r = t.ward("plan", "--add", value, cwd=workspace)
        t.check(r.rc != 0, value)
        t.contains(r.err, text, value)


def test_box_program_by_hand(t):
    """Whoever starts ward under the name that the library uses, without its socket, gets an end and
    no harm."""
    for stdin in ("closed", "open"):
        r = t.run("bash", "-c",
                  f'exec -a ward-box "$1" {"3<&-" if stdin == "closed" else "3</dev/null"}', "bash",
                  t.ward_path)
        t.equal((r.rc, r.out, r.err), (125, "", ""), stdin)


def run_program(t, source, *words, static=False, input=None, timeout=60):
    """A program of tests/api or examples/c with a fresh workspace; ward is found beside the
    library, or in PATH."""
    program = libward.program(t, source, static)
    env = {"PATH": f"{libward.tree(t)}/bin:{t.environment()['PATH']}"} if static else {}
    return t.run(program, t.workspace(), *words, env=env, input=input, timeout=timeout)


def test_box(t):
    """Everything that can be done with a box and its commands; nothing is printed and nothing is
    left."""
    r = run_program(t, "tests/api/box.c")
    t.equal((r.rc, r.out, r.err), (0, "", ""), "the program")


def test_box_static(t):
    """The same, linked statically."""
    r = run_program(t, "tests/api/box.c", static=True)
    t.equal((r.rc, r.out, r.err), (0, "", ""), "the program")


@by_turns
def test_decide(t):
    """A callback answers in place of a person, and no answer of it is a yes by accident."""
    d = t.fresh_dir("asked")
    t.write(d, {"file": "data\n"})
    r = run_program(t, "tests/api/decide.c", os.path.join(os.path.realpath(d), "file"))
    t.equal((r.rc, r.out, r.err), (0, "", ""), "the program")


def test_faults(t):
    """Few descriptors, many signals, killed supervisors."""
    r = run_program(t, "tests/api/faults.c")
    t.equal((r.rc, r.out, r.err), (0, "", ""), "the program")


def test_threads(t):
    """Threads start, use, wait for and end boxes at the same time."""
    r = run_program(t, "tests/api/threads.c")
    t.equal((r.rc, r.out, r.err), (0, "", ""), "the program")


def test_examples(t):
    """The examples do what they say, shared and static."""
    for static in (False, True):
        r = run_program(t, "examples/c/run.c", "sh", "-c", "echo out; echo err >&2; exit 4",
                        static=static)
        t.equal((r.rc, r.out), (4, "out\n"), "run")
        err, report = r.err.splitlines()
        t.equal((err, json.loads(report)["exit"]["code"]), ("err", 4), "run")
        r = run_program(t, "examples/c/exec_many.c", input="echo a $FROM\nexit 3\n", static=static)
        t.equal((r.rc, r.out), (0, "a exec_many\n[0] echo a $FROM\n[3] exit 3\n"), "exec_many")
        r = run_program(t, "examples/c/pool.c", "3", "12", static=static)
        t.equal((r.rc, r.out), (0, "12 jobs, 0 failed\n"), "pool")
    r = run_program(t, "examples/c/run.c", "/nonexistent")
    t.equal(r.rc, 127, "a command that is not there")


def test_no_ward(t):
    """A program that finds no ward is told so, and how to name it."""
    if os.path.exists("/bin/ward"):
        t.skip("there is a /bin/ward")
    program = libward.program(t, "examples/c/run.c", static=True)
    r = t.run(program, t.workspace(), "true", env={"PATH": f"bin:/nonexistent:{t.directory}"})
    t.equal(r.rc, 125, "exit code")
    t.contains(r.err, "was found neither", "reason")
    t.contains(r.err, "ward_spec_program()", "remedy")


PYTHON = """
import select, sys, threading, time, ward
workspace = sys.argv[1]

done = ward.run(["sh", "-c", "cat; echo $A >&2; exit 4"], input=b"x" * 300000, workspace=workspace, env={"A": "1"})
assert (done.code, len(done.out), done.err, done.report["exit"]["code"]) == (4, 300000, b"1\\n", 4), done.__dict__
assert ward.run(["sleep", "1000"], workspace=workspace, timeout=0.2).code == 137
assert ward.plan(["true"], workspace=workspace, fields={"resources.pids_limit": 9})["limits"]["pids"]["value"] == 9
try:
    ward.run(["true"], workspace=workspace, fields={"resources.pids_limi": 9})
    raise SystemExit("no error")
except ward.Error as e:
    assert e.code == 22 and "pids_limit" in e.remedy, e

with ward.Box(workspace=workspace, name="py", mounts=[("/usr/share/man", False, "/mnt/man")]) as box:
    assert box.exec(["ls", "/mnt"]).communicate() == (0, b"man\\n", b"")
    with box.exec(["sh"], env={"A": "2"}, directory="/tmp") as process:
        process.stdin.write(b"echo $A; pwd; sleep 1000\\n")
        assert [process.stdout.readline() for _ in range(2)] == [b"2\\n", b"/tmp\\n"]
        assert process.wait(0.01) is None
        process.signal(9)
        assert select.select([process], [], [], 20)[0] and process.wait() == 137
    waits = []
    threads = [threading.Thread(target=lambda n=n: waits.append(box.exec(["sh", "-c", f"exit {n}"]).wait())) for n in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(waits) == list(range(8)), waits
    box.pause()
    box.resume()
    assert "pids" in box.stats()
    assert [b["name"] for b in ward.boxes()["sandboxes"]] == ["py"]
    other = ward.Box.open("py")
    box.stop()
    assert select.select([other], [], [], 20)[0]
    assert box.wait() == 0 and box.result()["exit"]["code"] == 0
assert ward.boxes() == {"sandboxes": []}

box = ward.Box(["sh", "-c", "echo logged; exit 3"], workspace=workspace, detached=True)
box_id = box.id
box.close()
with ward.Box.open(box_id) as box:
    assert box.wait(20) == 3 and box.result()["exit"]["code"] == 3
    assert box.log() == b"logged\\n", box.log()
    box.remove()
print("fine", ward.version())
"""


def test_python(t):
    """The Python module, as it is installed."""
    module = os.path.join(libward.tree(t), "share/doc/ward/examples/python")
    t.check(os.path.exists(os.path.join(module, "ward.py")), "ward.py is not installed")
    env = {"PYTHONPATH": module, "PYTHONDONTWRITEBYTECODE": "1"}
    if libward.sanitizers(t):	# the program is not built with them
        env.update(LD_PRELOAD=t.run("cc", "-print-file-name=libasan.so", check=True).out.strip(),
                   ASAN_OPTIONS="detect_leaks=0")
    r = t.run("python3", "-c", PYTHON, t.workspace(), env=env, timeout=60)
    t.equal((r.rc, r.err), (0, ""), "the program")
    t.contains(r.out, "fine 0.", "the program")
