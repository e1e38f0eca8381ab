"""ward inside ward, and other sandboxes inside ward: by default the weaker level or a refusal, with
process.nesting more."""
import json
import os
import shutil

from harness import needs

NEST = ["--set", "process.nesting=true"]


def inner(t):
    """ward where the outer sandbox shows it: in the workspace."""
    ws = t.workspace()
    shutil.copy(t.ward_path, os.path.join(ws, "ward"))
    return ws


@needs("plain")
def test_inner_ward_says_what_it_needs(t):
    """Without nesting the inner one cannot have namespaces: a clear refusal, with the remedy."""
    ws = inner(t)
    os.mkdir(os.path.join(ws, "task"))
    r = t.ward("run", "--", "./ward", "run", "-w", "task", "--", "/bin/true", cwd=ws)
    t.equal(r.rc, 125)
    t.contains(r.err, "remedy")


@needs("plain")
def test_inner_ward_takes_the_landlock_level(t):
    """Without nesting, where the inner policy accepts the weaker level."""
    ws = inner(t)
    t.write(ws, {"task/a": "x", "other": "secret",
                 "inner.yaml": "version: 1\nrequire: {isolation: landlock, limits: none}\n"})
    script = "cat a; echo y > b; cat ../other; echo z > ../made; ls -A"
    r = t.ward("run", "--", "./ward", "run", "-p", "inner.yaml", "-w", "task", "--", "/bin/sh",
               "-c", script, cwd=ws)
    t.contains(r.out, "x", r.err)
    t.check("secret" not in r.out, "the inner sandbox reads outside its workspace")
    t.check(not os.path.exists(os.path.join(ws, "made")),
            "the inner sandbox writes outside its workspace")
    t.equal(t.read(ws, "task/b"), "y\n", "its own work")


@needs("plain")
def test_inner_ward_with_nesting(t):
    ws = inner(t)
    t.write(ws, {"task/a": "x", "other": "secret"})
    r = t.ward("run", *NEST, "--", "./ward", "run", "-w", "task", "--", "/bin/sh", "-c",
               "cat a; echo y > b; cat ../other; id -un", cwd=ws)
    t.equal((r.rc, r.out), (0, "xagent\n"), r.err)
    t.equal(t.read(ws, "task/b"), "y\n")


def test_nesting_is_shown_as_weaker(t):
    r = t.ward("run", *NEST, "--", "/bin/true", cwd=t.workspace(), report=True)
    t.equal(r.rc, 0, r.err)
    text = str(r.report["layers"]) + str(r.report.get("notes", ""))
    t.contains(text, "nesting", "the report")


@needs("bwrap")
def test_bubblewrap_inside(t):
    command = ["/usr/bin/bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--unshare-user",
               "--unshare-pid", "/bin/echo", "inside"]
    r = t.ward("run", *NEST, "--", *command, cwd=t.workspace())
    t.equal((r.rc, r.out), (0, "inside\n"), r.err)
    r = t.ward("run", "--", *command, cwd=t.workspace())
    t.check(r.rc != 0, "user namespaces work without nesting")


def test_nesting_still_contains(t):
    """More is allowed inside; the outside stays out of reach."""
    ws, outside = t.workspace({".envrc": "old\n", ".env": "secret",
                               ".aiignore": ".env\n"}), t.fresh_dir()
    t.write(outside, {"secret": "secret"})
    script = f"""unshare -Urm sh -c '
        umount .env; umount -l .env; mount -o remount,bind,rw .envrc; umount .envrc; umount -R "$PWD"
        cat .env {outside}/secret; echo evil > .envrc; mount -t tmpfs none /mnt && echo mounted'
        cat .env {outside}/secret /etc/shadow"""
    r = t.ward("run", *NEST, "--", "/bin/sh", "-c", script, cwd=ws)
    t.check("secret" not in r.out, f"read: {r.out}")
    t.equal(t.read(ws, ".envrc"), "old\n", "protected file")


@needs("root")
def test_inside_a_plain_container(t):
    """A mount, pid and net namespace around ward, as a container has them."""
    ws = t.workspace({"a": "x"})
    r = t.ward("run", "-w", ws, "--", "/bin/cat", "a", cwd=ws,
               wrap=["unshare", "--mount", "--pid", "--fork", "--net", "--ipc", "--uts",
                     "--mount-proc"])
    t.equal((r.rc, r.out), (0, "x"), r.err)


@needs("plain")
def test_twice_nested(t):
    ws = inner(t)
    t.write(ws, {"one/two/a": "deep"})
    shutil.copy(t.ward_path, os.path.join(ws, "one/ward"))
    r = t.ward("run", *NEST, "--", "./ward", "run", *NEST, "-w", "one", "--", "./ward", "run", "-w",
               "two", "--", "/bin/cat", "a",
               cwd=ws)
    t.equal((r.rc, r.out), (0, "deep"), r.err)


@needs("plain")
def test_inner_ward_by_a_mount(t):
    """Not in the workspace: shown by --ro."""
    tools = t.fresh_dir("tools")
    shutil.copy(t.ward_path, os.path.join(tools, "ward"))
    r = t.ward("run", *NEST, "--ro", tools, "--", f"{tools}/ward", "run", "--", "/bin/echo",
               "inner", cwd=t.workspace())
    t.equal((r.rc, r.out), (0, "inner\n"), r.err)


@needs("plain")
def test_inner_report_is_honest(t):
    """Every layer is there in the inner one too; what is weaker is said; the guardian runs."""
    ws = inner(t)
    r = t.ward("run", *NEST, "--", "./ward", "run", "--report", "r.json", "--", "/bin/sleep",
               "0.05", cwd=ws)
    t.equal(r.rc, 0, r.err)
    report = json.loads(t.read(ws, "r.json"))
    absent = sorted(name for name, layer in report["layers"].items() if not layer["in_force"])
    t.equal(absent, ["cgroup", "idmap"], "absent layers")
    t.contains(report["layers"]["masked proc"]["note"], "outer")
    t.contains(report["layers"]["seccomp"]["note"], "inside another sandbox")
    t.check("guardian" not in str(report["notes"]), f"no guardian: {report['notes']}")


@needs("plain")
def test_outer_processes_stay_out_of_reach(t):
    """The inner sandbox may have to show the outer /proc: nothing in it can be changed, no other
    process be read."""
    script = """for p in /proc/[0-9]*; do
        cat $p/environ; ls -l $p/root $p/cwd $p/fd; echo 1000 > $p/oom_score_adj && echo changed
        kill -9 ${p#/proc/}; done; echo 1000 > /proc/self/oom_score_adj && echo changed"""
    ws = inner(t)
    r = t.ward("run", *NEST, "--env", "OUTER=topsecret", "--", "./ward", "run", "--", "/bin/sh",
               "-c", script, cwd=ws)
    t.check("changed" not in r.out and "topsecret" not in r.out, r.out)
    r = t.ward("run", *NEST, "--env", "OUTER=topsecret", "--", "/bin/sh", "-c",
               "./ward run -- /bin/sh -c 'kill -9 -1'; echo alive", cwd=ws)
    t.contains(r.out, "alive", r.err)


@needs("plain")
def test_inner_limits_and_guards(t):
    """Held in the inner one: time, memory, hidden and protected files, also behind links."""
    ws = inner(t)
    t.write(ws, {"task/.envrc": "old\n", "task/real/key": "secret", "task/.aiignore": "/link\n"})
    os.symlink("real/key", os.path.join(ws, "task/link"))
    run = ["run", *NEST, "--", "./ward", "run", "-w", "task"]
    r = t.ward(*run, "--", "/bin/sh", "-c", "cat link real/key; echo evil > .envrc", cwd=ws)
    t.check("secret" not in r.out, r.out)
    t.equal(t.read(ws, "task/.envrc"), "old\n", "protected file")
    t.equal(t.ward(*run, "--timeout", "1", "--", "/bin/sleep", "30", cwd=ws).rc, 124, "time")
    r = t.ward(*run, "--memory", "100Mi", "--", "/usr/bin/python3", "-c",
               "a = 'x' * 400000000; print(len(a))", cwd=ws)
    t.check(r.rc != 0 and "400000000" not in r.out, f"memory: {r}")


@needs("plain")
def test_inner_landlock_level_in_the_same(t):
    """On the Landlock level there is nothing to nest: a clear refusal, or the same level again."""
    landlock = ["--set", "require.isolation=landlock", "--set", "require.limits=none"]
    ws = inner(t)
    r = t.ward("run", "--", "./ward", "run", *landlock, "--", "./ward", "run", "--", "/bin/echo",
               "ran", cwd=ws)
    t.equal((r.rc, r.out), (125, ""), r.err)
    t.contains(r.err, "ward: ")


@needs("plain")
def test_kill_of_the_inner_ward(t):
    """The inner supervisor is killed: its sandbox ends, the outer one goes on."""
    ws = inner(t)
    script = "./ward run -- /bin/sh -c 'echo up; sleep 30; echo late > late' > log & p=$!; "\
             "until grep -q up log; do sleep 0.01; done; kill -9 $p; "\
             "for i in $(seq 200); do n=$(ps -A -o comm= | grep -c '^sleep'); [ $n = 0 ] && break; sleep 0.05; done; echo $n; echo goes on"
    r = t.ward("run", *NEST, "--", "/bin/sh", "-c", script, cwd=ws)
    t.equal(r.out, "0\ngoes on\n", r.err)
    t.equal(t.read(ws, "late"), None, "the inner command")
