"""How a run ends: exit codes, deadlines, many at once."""
import json
import os
import time

from harness import host, needs, serial, timeout


def test_exit_code_is_the_commands(t):
    for code in (0, 1, 7, 255):
        r = t.ward("run", "--", "/bin/sh", "-c", f"exit {code}", cwd=t.workspace())
        t.equal(r.rc, code, "exit code")


def test_not_found_and_not_executable(t):
    ws = t.workspace({"data": "x"})
    os.chmod(os.path.join(ws, "data"), 0o644)
    for argv, code in ((["no-such-command"], 127), (["/no/such/file"], 127), (["./data"], 126),
                       (["/usr"], 126),
                       (["./data/x"], 127)):
        r = t.ward("run", "--", *argv, cwd=ws)
        t.check(r.rc == code or (argv == ["./data/x"] and r.rc == 126),
                f"{argv}: exit {r.rc}, wanted {code}")
        t.contains(r.err, argv[0], "the message")


def test_command_that_only_the_host_has(t):
    """127, and the option that would show it."""
    directory = t.fresh_dir("tools")
    t.write(directory, {"mytool": "#!/bin/sh\necho here\n"})
    os.chmod(os.path.join(directory, "mytool"), 0o755)
    env = {"PATH": f"{directory}:/usr/bin:/bin"}
    r = t.ward("run", "--", "mytool", cwd=t.workspace(), env=env)
    t.equal(r.rc, 127)
    t.contains(r.err, "--ro", "the remedy")


ALONE = """
import ctypes, os, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)	# whoever loses its parent becomes our child
for _ in range(10):
    subprocess.run(sys.argv[1:], check=True)
    try:
        print("left behind", os.waitpid(-1, os.WNOHANG))
    except ChildProcessError:
        print("alone")
"""


def test_nobody_is_left_behind(t):
    """Whoever waited for ward has waited for every process of it: what takes the mounts apart
    beside it, too."""
    r = t.run("python3", "-c", ALONE, host.WARD, "run", "-w", t.workspace(), "--", "/bin/true",
              check=True)
    t.equal(r.out.split("\n")[:-1], ["alone"] * 10, "after each run")


@serial
def test_timeout(t):
    began = time.monotonic()
    r = t.ward("run", "--timeout", "0.4", "--", "/bin/sleep", "30", cwd=t.workspace(), report=True)
    t.equal(r.rc, 124)
    t.check(time.monotonic() - began < 3, "too late")
    t.check(r.report["limits"]["timeout"]["hit"], "the report does not name the limit")
    t.contains(r.err, "--timeout")


@timeout(120)
def test_twenty_at_once_in_one_directory(t):
    ws = t.workspace({"a.txt": "x"})
    running = [t.ward_start("run", "--", "/bin/sh", "-c", f"echo {i} > out{i}; cat a.txt", cwd=ws)
               for i in range(20)]
    for i, process in enumerate(running):
        r = t.finish_ward(process, 60)
        t.equal((r.rc, r.out), (0, "x"), f"run {i}")
        t.equal(t.read(ws, f"out{i}"), f"{i}\n")
    t.equal(len(os.listdir(ws)), 21, "files in the workspace")


def test_nothing_of_wards_own_in_the_workspace(t):
    ws = t.workspace({"a.txt": "x", ".env": "secret", ".envrc": "x", ".vscode/tasks.json": "{}"})
    before = sorted(os.path.join(top, n) for top, d, f in os.walk(ws) for n in d + f)
    during = t.ward("run", "--set", 'filesystem.hide=[".env", "missing"]', "--", "/usr/bin/find",
                    ".", cwd=ws).out
    t.equal(sorted(os.path.join(top, n) for top, d, f in os.walk(ws) for n in d + f), before)
    t.equal(sorted(os.path.normpath(os.path.join(ws, line)) for line in during.split("\n")
                   if line not in ("", ".")), before,
            "seen inside")


def test_what_a_crash_left_is_swept_at_the_next_start(t):
    """The guardian is killed too, as by a power failure; the next run finishes the dead one."""
    import signal
    from harness import leaks
    ws = t.workspace()
    process = t.ward_start("run", "--", "/bin/sh", "-c",
                           "echo evil > .envrc; touch ready; sleep 60", cwd=ws)
    t.wait_until(lambda: os.path.exists(os.path.join(ws, "ready")), 10)
    time.sleep(0.2)
    everything = leaks.with_rights(leaks.descendants, process.pid) | {process.pid}
    for pid in everything:
        try:
            leaks.with_rights(os.kill, pid, signal.SIGSTOP)
        except ProcessLookupError:
            pass
    for pid in sorted(everything):
        try:
            leaks.with_rights(os.kill, pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait(10)
    t.check(os.path.exists(os.path.join(ws, ".envrc")), "nothing was left to sweep")
    t.ward("run", "--", "/bin/true", cwd=t.workspace())
    t.check(not os.path.exists(os.path.join(ws, ".envrc")), "the planted file is still there")
    t.contains(t.ward("quarantine", "ls", cwd=ws).out, ".envrc")


def test_report_has_the_documented_keys(t):
    r = t.ward("run", "--", "/bin/true", cwd=t.workspace(), report=True)
    for key in ("run", "exit", "duration_ms", "memory_peak_bytes", "cpu_ms", "limits", "layers",
                "denials", "changes",
                "quarantine", "engine"):
        t.check(key in r.report, f"no {key} in {json.dumps(r.report)[:500]}")
    for name, limit in r.report["limits"].items():
        t.check(limit["held_by"] in ("cgroup1", "cgroup2", "rlimit", "tmpfs", "watch", "none"),
                f"{name}: {limit}")


def test_denials_are_reported(t):
    """What the filter refused stands in the report with what, why and remedy."""
    r = t.ward("run", "--", "/usr/bin/python3", "-c",
               "import ctypes; ctypes.CDLL(None).unshare(0x10000000)",
               cwd=t.workspace(), report=True)
    t.check(r.report["denials"], "no denial was reported")
    for denial in r.report["denials"]:
        t.check(denial["what"] and denial["why"] and "remedy" in denial, f"incomplete: {denial}")


@needs("root")
def test_moved_name_of_the_machine(t):
    """The machine's name and the user's name do not go inside."""
    r = t.ward("run", "--", "/bin/sh", "-c", "uname -n; id -un; echo $HOME $USER",
               cwd=t.workspace())
    t.check(os.uname().nodename not in r.out.split(), f"the host's name is inside: {r.out}")
    t.contains(r.out, "agent")
