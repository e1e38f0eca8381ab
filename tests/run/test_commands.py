"""process.commands: which programs may run."""
import os

ALLOW = ["--set", "process.commands={allow: [sh, ls, python3]}"]
SHELL = ["--set", "process.commands={allow: [sh, ls, cp, chmod, ln]}"]
LOADER = "/lib64/ld-linux-x86-64.so.2"


def run(t, *args):
    return t.ward("run", *args, cwd=t.workspace())


def test_allowed_runs_others_do_not(t):
    r = run(t, *SHELL, "--", "sh", "-c", "ls -d /usr && sh -c 'sh -c \"ls -d /etc\"'; id; echo $?")
    t.equal(r.out, "/usr\n/etc\n126\n", "output")
    t.contains(r.err, "id: Permission denied", "error")


def test_no_way_around(t):
    ways = [
        "cp /usr/bin/ls ./x && chmod 755 ./x && ./x",
        "cp /usr/bin/ls /tmp/x && chmod 755 /tmp/x && /tmp/x",
        "cp /usr/bin/ls $HOME/x && chmod 755 $HOME/x && $HOME/x",
        "cp /usr/bin/ls /dev/shm/x && chmod 755 /dev/shm/x && /dev/shm/x",
        "ln /usr/bin/id ./y && ./y",
        "ln -s /usr/bin/id ./z && ./z",
        "printf '#!/bin/sh\\necho ran\\n' > s && chmod 755 s && ./s",
        "/usr/bin/id",
        LOADER + " /usr/bin/id",
        LOADER + " ./x",
        "/.ward/loader /usr/bin/id",
        "/.ward/stand-in /usr/bin/id",
    ]
    script = "".join(f"( {w} ) >/dev/null 2>&1 && echo 'ran: way {i}'\n"
                     for i, w in enumerate(ways))
    r = run(t, *SHELL, "--", "sh", "-c", script + "echo end")
    t.equal(r.out, "end\n", "output")
    plain = run(t, "--", "sh", "-c", script + "echo end")
    t.equal(plain.out.count("ran: way"), len(ways) - 4, "ways that are open without the list")


def test_memory_and_libraries(t):
    code = ("import ctypes, os, sqlite3, subprocess\n"
            "try:\n    os.memfd_create('x'); print('memfd')\n"
            "except OSError as e: print(e.strerror)\n"
            "try:\n    subprocess.run(['/usr/bin/id']); print('ran')\n"
            "except PermissionError: print('refused')\n"
            "print(subprocess.run(['ls', '-d', '/'], capture_output=True, text=True).stdout)\n"
            "import shutil\n"
            "shutil.copy('/lib/x86_64-linux-gnu/libz.so.1', 'lib.so')\n"
            "try:\n    ctypes.CDLL('./lib.so'); print('loaded')\n"
            "except OSError as e: print('not loaded')\n")
    r = run(t, *ALLOW, "--", "python3", "-c", code)
    t.equal(r.out, "Function not implemented\nrefused\n/\n\nnot loaded\n", "output")


def test_denied_by_every_name(t):
    r = run(t, "--set", "process.commands={deny: [perl]}", "--", "sh", "-c",
              "perl -e 1 || echo no; for p in /usr/bin/perl5.*.*; do [ -e $p ] || continue; "
              f"$p -e 1 2>/dev/null && echo ran; done; {LOADER} /usr/bin/perl -e 1 && echo ran; "
              "ls -d /usr")
    t.equal(r.out, "no\n/usr\n", "output")


def test_refusals(t):
    for value, extra, words in [
            ("{allow: [nosuchprogram]}", [], "there is no program nosuchprogram"),
            ("{allow: [ls]}", [], "does not allow the command true"),
            ("{deny: ['true']}", [], "does not allow the command true"),
            ("{allow: ['true', ld.so]}", [], "the dynamic loader runs any file"),
            ("{allow: ['true', 'ls  -l']}", [], "not a pattern of words"),
            ("{allow: ['true', ./x]}", [], "relative path"),
            ("{allow: ['true']}", ["--set", "process.nesting=true"], "exclude each other"),
            ("{allow: ['true']}", ["--set", "isolation=oci"], "only isolation native")]:
        r = run(t, "--set", "process.commands=" + value, *extra, "--", "true")
        t.equal(r.rc, 125, f"exit code with {value}")
        t.contains(r.err, words, "error")


def test_script_needs_its_interpreter(t):
    tool = os.path.join(t.workspace(), "tool")
    with open(tool, "w", encoding="ascii") as f:
        f.write("#!/usr/bin/env python3\nprint('tool')\n")
    os.chmod(tool, 0o755)
    tool = os.path.realpath(tool)
    both = f"process.commands={{allow: [{tool}, env, python3]}}"
    r = run(t, "--ro", tool, "--set", both, "--", tool)
    t.equal(r.out, "tool\n", "output")
    r = run(t, "--ro", tool, "--set", f"process.commands={{allow: [{tool}, env]}}", "--", tool)
    t.equal(r.rc, 125, "exit code")
    t.contains(r.err, "a script for python3", "error")


def test_plan_names_interpreters(t):
    r = t.ward("plan", *ALLOW, "--", "ls", cwd=t.workspace())
    t.contains(r.out, "nothing else is executable", "plan")
    t.contains(r.out, "machine code of its own making", "plan")
