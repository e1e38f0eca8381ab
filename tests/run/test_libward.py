"""libward: the library as a program sees it, installed, found by pkg-config, shared and static."""
import json
import os
import re
import subprocess

from harness import libward


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
    t.equal(found, [f"{name}@@WARD_1.0" for name in names], "exported by libward.so")
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
    t.write(t.directory, {"a.cc": "#include <ward/ward.h>\nint main() { return ward_version() == nullptr; }\n"})
    compiler = next((c for c in ("c++", "clang++") if subprocess.run(["which", c], capture_output=True).returncode == 0), None)
    if not compiler:
        t.skip("no C++ compiler")
    t.run(compiler, "-Wall", "-Werror", "-fsyntax-only", f"-I{libward.TOP}/include", source, check=True)


def plan_with(t, static):
    workspace = t.workspace()
    program = libward.program(t, "tests/api/spec.c", static)
    env = {"PATH": f"{libward.tree(t)}/bin:{t.environment()['PATH']}"} if static else {}
    r = t.run(program, workspace, env=env, cwd=workspace)
    t.equal(r.rc, 0, "exit code")
    t.equal(r.err, "", "printed")
    ours = json.loads(r.out)
    r = t.ward("plan", "--json", "-w", workspace, "--pids", "77", "--env", "FRUIT=pear", "--ro", "/usr/share/man:/mnt/system", "--",
               "echo", "two words", "", cwd=workspace)
    theirs = json.loads(r.out)
    for plan in (ours, theirs):	# root's sandboxes have an id of their own each
        plan["ids"] = {key: value for key, value in plan["ids"].items() if not key.startswith("host_")}
    t.equal(ours.keys(), theirs.keys(), "parts of the plan")
    for part in ours:
        t.equal(ours[part], theirs[part], part)


def test_plan(t):
    """A plan through the library is the plan of the command line; the library is found, and finds ward, in a tree that was moved."""
    plan_with(t, static=False)


def test_plan_static(t):
    """The same linked statically; ward is found in PATH."""
    plan_with(t, static=True)


def test_box_program_by_hand(t):
    """Whoever starts ward under the name that the library uses, without its socket, gets an end and no harm."""
    for stdin in ("closed", "open"):
        r = t.run("bash", "-c", f'exec -a ward-box "$1" {"3<&-" if stdin == "closed" else "3</dev/null"}', "bash", t.ward_path)
        t.equal((r.rc, r.out, r.err), (125, "", ""), stdin)
