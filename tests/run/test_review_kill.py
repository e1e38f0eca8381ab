"""ward apply killed at any system call: each path is the old or the new one, the next command
completes it, nothing is left."""
import os
import random
import stat

from harness import by_turns

# Runs a program and kills it at its Nth stop at a system call (entries and exits both count);
# prints how many stops there were.
KILL_AT = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long limit = atol(argv[1]), stops = 0;
	pid_t pid = fork();
	int status, sig = 0;

	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		execv(argv[2], argv + 2);
		_exit(98);
	}
	waitpid(pid, &status, 0);
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	for (;;) {
		ptrace(PTRACE_SYSCALL, pid, 0, sig);
		if (waitpid(pid, &status, 0) < 0 || WIFEXITED(status) || WIFSIGNALED(status))
			break;
		sig = WSTOPSIG(status) & 0x7f;
		if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
			sig = sig == SIGTRAP ? 0 : sig;
			continue;
		}
		sig = 0;
		if (++stops == limit)
			kill(pid, SIGKILL);
	}
	printf("%ld\n", stops);
	return WIFSIGNALED(status) ? 77 : WEXITSTATUS(status);
}
"""

TRACED = {"LSAN_OPTIONS": "detect_leaks=0"}	# it does not work under a tracer
FILES = {"a": "old a\n", "b": "old b\n", "c": "old c\n", "gone": "gone\n", "dir/x": "x\n",
         "dir/y": "y\n", "todir": "file\n", "tofile/f": "f\n",
         "tofile/g": "g\n", "mode": "m\n", "mv": "content that moves\n"}
CHANGE = ("echo new a > a; echo new b > b; rm gone; rm -r dir; rm todir; mkdir todir; echo in > "
          "todir/in; rm -r tofile; echo now > tofile; chmod 755 mode; "
          "mv mv moved; mkdir -p n/e; echo w > n/e/w; ln -s a link; echo new > new; chmod 700 n")
WANTED = {"a": "new a\n", "b": "new b\n", "c": "old c\n", "todir/in": "in\n", "tofile": "now\n",
          "mode": "m\n", "moved": "content that moves\n",
          "n/e/w": "w\n", "link": "-> a", "new": "new\n"}


def content(directory):
    """path -> text, "-> target" for links."""
    found = {}
    for top, dirs, files in os.walk(directory):
        for name in files + [d for d in dirs if os.path.islink(os.path.join(top, d))]:
            path = os.path.join(top, name)
            name = os.path.relpath(path, directory)
            if os.path.islink(path):
                found[name] = "-> " + os.readlink(path)
            else:
                with open(path, encoding="utf-8") as f:
                    found[name] = f.read()
    return found


def prepare(t):
    ws = t.workspace(FILES)
    r = t.ward("run", "--review", "--", "/bin/sh", "-c", CHANGE, cwd=ws)
    t.equal(r.rc, 0, r.err)
    return ws


def one_point(t, program, point):
    ws = prepare(t)
    r = t.run(program, str(point), t.ward_path, "apply", cwd=ws, env=TRACED)
    for path, text in content(ws).items():
        name = os.path.basename(path)
        t.check(name.startswith(".ward-apply-") or text in (FILES.get(path), WANTED.get(path)),
                f"at {point}: {path} is {text!r}")
    after = t.ward("diff", cwd=ws)
    t.check(after.rc in (0, 125), after.err)
    if after.rc == 0 and after.out:	# it was killed before it had begun
        t.equal(content(ws), FILES, f"at {point}: neither begun nor completed")
        t.equal(t.ward("apply", cwd=ws).rc, 0)
    t.equal(content(ws), WANTED, f"killed at {point}, exit {r.rc}")
    t.equal(stat.S_IMODE(os.stat(ws + "/n").st_mode), 0o700)
    t.equal(stat.S_IMODE(os.stat(ws + "/mode").st_mode), 0o755)
    t.ward("discard", cwd=ws)	# one that has nothing left in it may stay until somebody looks
    for name in ("review", "applying"):
        path = os.path.join(t.state_dir, name)
        t.equal(os.listdir(path) if os.path.isdir(path) else [], [], f"at {point}: left in {name}")
    t.run("rm", "-rf", ws, check=True)


def kill_at(t, count):
    program = t.compile(KILL_AT)
    ws = prepare(t)
    r = t.run(program, "0", t.ward_path, "apply", cwd=ws, env=TRACED)
    t.equal(r.rc, 0, r.err)
    stops = int(r.out.split()[-1])
    t.check(stops > 300, f"{stops} stops")
    # both ends are dull: starting up, and freeing memory
    points = random.sample(range(60, stops + 1), min(count, stops - 60))
    for point in sorted(points):
        one_point(t, program, point)


@by_turns
def test_some_points(t):
    kill_at(t, 24)


test_some_points.needs = ("cc",)


def test_many_points(t):
    kill_at(t, 400)


test_many_points.needs = ("cc",)
test_many_points.slow = True
test_many_points.timeout = 600


def left(t):
    """What is in the directories of reviews and logs."""
    found = []
    for name in ("review", "applying"):
        path = os.path.join(t.state_dir, name)
        found += os.listdir(path) if os.path.isdir(path) else []
    return found


def test_killed_run(t):
    """ward run --review killed at any system call: a review that can be read, or none; nothing half
    made stays."""
    program = t.compile(KILL_AT)
    words = ("run", "--review", "--", "/bin/sh", "-c", "echo new > new; rm b")
    ws = t.workspace(FILES)
    r = t.run(program, "0", t.ward_path, *words, cwd=ws, env=TRACED)
    t.equal(r.rc, 0, r.err)
    t.ward("discard", cwd=ws)
    stops = int(r.out.split()[-1])
    for point in sorted(random.sample(range(40, stops + 1), 16)):
        t.run(program, str(point), t.ward_path, *words, cwd=ws, env=TRACED)
        t.equal(content(ws), FILES, f"at {point}: the workspace")
        after = t.ward("diff", "--json", cwd=ws)
        t.check(after.rc in (0, 125), f"at {point}: {after.err}")
        t.equal(t.ward("run", "--review", "--", "/bin/true", cwd=ws).rc, 0,
                f"at {point}: the next run")
        if after.rc == 0:
            t.equal(t.ward("discard", cwd=ws).rc, 0, f"at {point}: discard")
        t.equal(left(t), [], f"at {point}: left behind")


test_killed_run.needs = ("cc",)
