"""The process that helps to build a sandbox is killed, at each of the things that it does: the
start goes on without it or is refused, and nothing is left behind. A build with sanitizers (or
-Dhelper=always) has a helper in every start; elsewhere there is one where processors are idle."""
import json
import os
import resource
import time

from harness import host, timeout

SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "harness",
                      "kill_helper.py")
CALLS = {"its first call": -1, "mount": 165, "pivot_root": 155, "umount2": 166, "ioctl": 16,
         "unshare": 272, "exit_group": 231}
POLL = 7
TRIES = 20
OWED = ("mount", "pivot_root", "umount2")	# what no other process can do in its place any more


def start_and_kill(t, ws, call, *options, how=()):
    """What became of ward, of its helper, and of the command."""
    r = t.run("python3", SCRIPT, *how, str(call), host.WARD, "run", "-w", ws, *options, "--",
              "/bin/sh", "-c", "echo ran > out",
              env={"ASAN_OPTIONS": "detect_leaks=0"})	# which does not work under ptrace
    outcome = json.loads(r.out)
    out = os.path.join(ws, "out")
    ran = os.path.exists(out)
    if ran:
        os.unlink(out)
    return outcome, ran, r.err


@timeout(120)
def test_killed_helper(t):
    ws = t.workspace()
    helped = 0
    for name, call in CALLS.items():
        for options in ((),
                        ("--set",
                         'network.egress_allowlist=["helped.test"]')) if name == "umount2" else (
                             (),):
            outcome, ran, err = start_and_kill(t, ws, call, *options)
            helped += outcome["helper"]
            t.check(ran == (outcome["rc"] == 0),
                    f"{name}: exit {outcome['rc']}, but the command "
                    f"{'ran' if ran else 'did not run'}: {err}")
            t.check(outcome["rc"] == 0 or (outcome["rc"] == 125 and outcome["killed"]),
                    f"{name}: {outcome}: {err}")
            if outcome["rc"]:
                t.contains(err, "was killed", f"{name}: the message")
            if outcome["killed"] and name in OWED:
                t.equal(outcome["rc"], 125, f"{name}: {err}")
            if not outcome["killed"] or call == CALLS["exit_group"]:
                t.equal(outcome["rc"], 0, f"{name}: {err}")
    if host.always_helps():
        t.equal(helped, len(CALLS) + 1, "starts with a helper")
    t.equal(t.ward("run", "--", "/bin/true", cwd=ws).rc, 0, "the next start")


@timeout(120)
def test_reaper_is_slow_or_killed(t):
    """A start neither waits for the reaper nor needs it: whatever happens to it, the command runs,
    and ward ends soon."""
    ws = t.workspace()
    found = 0
    for call in (-1, POLL):
        for how in (("--reaper", "--slow", "60"), ("--reaper",)):
            # there is none where the child is not far enough when the supervisor is
            for _ in range(TRIES):
                began = time.monotonic()
                outcome, ran, err = start_and_kill(t, ws, call, how=how)
                took = time.monotonic() - began
                t.equal(outcome["rc"], 0, f"{how}: {err}")
                t.check(ran, f"{how}: the command did not run: {err}")
                t.check(took < 10, f"{how}: it took {took:.1f} s")
                if outcome["helper"]:
                    found += 1
                    break
    if host.always_helps():
        t.equal(found, 4, "starts with one")


@timeout(120)
def test_room_for_few_processes(t):
    """The helper and the reaper have no place of their own in a limit of processes: without room
    for them the start goes on, or the command finds no room."""
    ws = t.workspace()
    for options in ((), ("--set", "process.nesting=true")):
        for room in range(1, 12):
            r = t.ward("run", *options, "--", "/bin/true", cwd=ws,
                       prepare=lambda n=room: resource.setrlimit(resource.RLIMIT_NPROC, (n, n)))
            t.check(r.rc == 0 or "stage " not in r.err, f"{room} processes: exit {r.rc}: {r.err}")
            t.check(r.seconds < 10, f"{room} processes: it took {r.seconds:.1f} s")
