"""What a run says about itself: --json, --report, the summary, the line about a limit."""
import json
import os
import re
import stat

KEYS = ["run", "engine", "wall", "exit", "duration_ms", "memory_peak_bytes", "cpu_ms", "limits",
        "layers", "denials", "changes",
        "quarantine", "steers", "links_out", "notes"]
LIMITS = ["memory", "cpu", "pids", "disk", "inodes", "open_files", "output", "timeout"]
HELD_BY = ["none", "cgroup1", "cgroup2", "rlimit", "tmpfs", "watch"]


def check_report(t, report, code):
    t.equal(list(report)[:len(KEYS)], KEYS, "keys")
    t.equal(report["exit"]["code"], code, "exit code in the report")
    t.equal(report["engine"], "native", "engine")
    t.equal(list(report["limits"]), LIMITS, "limits")
    for name, limit in report["limits"].items():
        t.check(limit["held_by"] in HELD_BY, f"{name} is held by {limit['held_by']}")
        t.check(isinstance(limit["hit"], bool), name)
    t.check(report["layers"]["seccomp"]["in_force"], "seccomp is not in force")


def test_report(t):
    r = t.ward("run", "--timeout", "20", "--", "/bin/sh", "-c", "exit 5", cwd=t.workspace(),
               report=True)
    t.equal(r.rc, 5, "exit code")
    t.equal(r.err, "", "standard error")
    check_report(t, r.report, 5)
    t.equal(r.report["exit"]["signal"], None, "signal")
    t.equal(r.report["limits"]["timeout"]["value"], 20000, "timeout")
    t.equal(r.report["limits"]["output"]["value"], None, "output")


def test_report_file(t):
    workspace, place = t.workspace(), t.fresh_dir()
    path = os.path.join(place, "report.json")
    t.write(place, {"report.json": "old"})
    os.chmod(path, 0o644)
    r = t.ward("run", "--report", path, "--", "/bin/true", cwd=workspace)
    t.equal(r.rc, 0, "exit code")
    t.equal(stat.S_IMODE(os.stat(path).st_mode), 0o600, "mode")
    check_report(t, json.loads(t.read(path)), 0)
    t.equal(os.listdir(place), ["report.json"], "directory")
    t.equal(os.listdir(workspace), [], "workspace")


def test_report_that_cannot_be(t):
    workspace = t.workspace()
    place = t.fresh_dir()
    os.symlink("/etc/passwd", os.path.join(place, "link"))
    os.mkfifo(os.path.join(place, "fifo"))
    for path in ("/nonexistent/dir/r.json", place, place + "/", "/dev/null",
                 os.path.join(place, "link"),
                 os.path.join(place, "fifo"), "/proc/r.json"):
        r = t.ward("run", "--report", path, "--", "/bin/touch", "ran", cwd=workspace)
        t.equal(r.rc, 125, f"exit code with {path}")
        t.contains(r.err, "--report", "standard error")
        t.equal(os.listdir(workspace), [], "it ran")


def test_report_in_the_workspace_replaces_a_link(t):
    workspace, outside = t.workspace(), t.fresh_dir()
    t.write(outside, {"victim": "untouched"})
    r = t.ward("run", "--report", "r.json", "--", "/bin/ln", "-s", os.path.join(outside, "victim"),
               "r.json",
               cwd=workspace)
    t.equal(r.rc, 0, "exit code")
    t.equal(t.read(outside, "victim"), "untouched", "the file behind the link")
    t.check(not os.path.islink(os.path.join(workspace, "r.json")), "the link is still there")
    check_report(t, json.loads(t.read(workspace, "r.json")), 0)


def test_report_replaced_by_a_directory(t):
    workspace = t.workspace()
    r = t.ward("run", "--report", "r.json", "--", "/bin/mkdir", "r.json", cwd=workspace)
    t.equal(r.rc, 125, "exit code")
    t.contains(r.err, "cannot write the report", "standard error")
    t.equal(os.listdir(workspace), ["r.json"], "workspace")


def test_report_of_a_refusal(t):
    r = t.ward("run", "-w", "/nonexistent", "--", "/bin/true", report=True)
    t.equal(r.rc, 125, "exit code")
    t.equal(list(r.report), ["refused"], "keys")
    t.equal(sorted(r.report["refused"]), ["remedy", "what", "why"], "keys")


def test_json(t):
    r = t.ward("run", "--json", "--", "/bin/sh", "-c", "echo out; printf open >&2; exit 3",
               cwd=t.workspace())
    t.equal(r.rc, 3, "exit code")
    t.equal(r.out, "out\n", "standard output")
    check_report(t, json.loads(r.err.splitlines()[-1]), 3)


def test_quiet(t):
    r = t.ward("run", "--", "/bin/sh", "-c", "echo out; echo err >&2", cwd=t.workspace())
    t.equal((r.out, r.err), ("out\n", "err\n"), "output")


def test_verbose(t):
    r = t.ward("run", "--verbose", "--", "/bin/true", cwd=t.workspace())
    for text in ("ward: exit 0", "layers:", "seccomp", "in force", "limits:", "held by"):
        t.contains(r.err, text, "summary")
    t.check("\x1b" not in r.err, "colour where nobody looks")
    for step in ("ward .* policy and plan", "in the sandbox .* mounts", "in the sandbox .* seccomp",
                 "ward .* the command"):
        t.check(re.search(rf"^ +{step}$", r.err, re.M), f"no time of step {step!r} in {r.err!r}")


def test_steps_in_the_report(t):
    report = json.loads(t.ward("run", "-v", "--json", "--", "/bin/sleep", "0.5",
                               cwd=t.workspace()).err.splitlines()[-1])
    steps = {s["name"]: s for s in report["steps"]}
    t.check(10000 <= steps["the command"]["took_us"] < 60000000,
            f"the command took {steps['the command']}")
    t.check(steps["mounts"]["by"] == "sandbox" and steps["policy and plan"]["by"] == "ward",
            f"who did what: {steps}")
    begins = [s["at_us"] for s in report["steps"]]
    t.equal(begins, sorted(begins), "the order of the steps")
    report = json.loads(t.ward("run", "--json", "--", "/bin/true",
                               cwd=t.workspace()).err.splitlines()[-1])
    t.check("steps" not in report, "steps that nobody asked for")


def test_summary_on_a_terminal(t):
    r = t.ward_tty("run", "--", "/bin/sh", "-c", "echo hello; exit 2", cwd=t.workspace())
    t.equal(r.rc, 2, "exit code")
    t.contains(r.out, "hello", "output")
    t.contains(r.out, "exit 2", "summary")
    t.contains(r.out, " of 15 layers", "summary")
    t.check("layers:\r\n" not in r.out, "too much is said")
    r = t.ward_tty("run", "--", "/bin/true", cwd=t.workspace(), env={"NO_COLOR": "1"})
    t.check("\x1b[3" not in r.out, "colour in spite of NO_COLOR")


def test_limit_is_named(t):
    r = t.ward("run", "--timeout", "0.3", "--", "/bin/sleep", "20", cwd=t.workspace(), report=True)
    t.equal(r.rc, 124, "exit code")
    t.contains(r.err, "ward: stopped: the sandbox ran longer than allowed (limit 300 ms, held by ",
               "standard error")
    t.contains(r.err, "remedy: --timeout 0.6\n", "standard error")
    t.check(r.report["limits"]["timeout"]["hit"], "not in the report")


def test_signal(t):
    r = t.ward("run", "--", "/bin/sh", "-c", "kill -SEGV $$", cwd=t.workspace(), report=True)
    t.equal(r.rc, 139, "exit code")
    t.equal(r.report["exit"], {"code": 139, "signal": 11}, "exit")


def test_command_that_is_not_there(t):
    r = t.ward("run", "--", "nonexistent-command", cwd=t.workspace())
    t.equal(r.rc, 127, "exit code")
    t.contains(r.err, "nonexistent-command", "standard error")
    workspace = t.workspace({"plain": "text"})
    r = t.ward("run", "--", "./plain", cwd=workspace)
    t.equal(r.rc, 126, "exit code")


def test_command_names_are_escaped(t):
    r = t.ward("run", "--", "no\x1b[31msuch\ncommand", cwd=t.workspace())
    t.equal(r.rc, 127, "exit code")
    t.check("\x1b" not in r.err, "an escape got through")
