"""check, trust, plan and doctor."""
import json
import os
import re
import shutil

from harness import by_turns, gvisor, native_only, needs, only_root, timeout

BROKEN = """version: 1
filesystem:
  mod: read_only
resources:
  pids_limit: many
nonsense: 1
"""


def test_check(t):
    directory = t.workspace({"good.yaml": "version: 1\n", "bad.yaml": BROKEN,
                             "later.yaml": "tools: tools.yaml\n"})
    r = t.ward("check", "good.yaml", cwd=directory)
    t.equal(r.rc, 0, "exit code")
    r = t.ward("check", "bad.yaml", cwd=directory)
    t.equal(r.rc, 1, "exit code")
    for text in ("bad.yaml:3:3: ", "bad.yaml:5:", "bad.yaml:6:1: ", "mode", "3 errors"):
        t.contains(r.out, text, "findings")
    r = t.ward("check", "later.yaml", cwd=directory)
    t.equal(r.rc, 0, "exit code")
    t.contains(r.out, "not yet supported by this build", "notes")


def test_check_json(t):
    directory = t.workspace({"bad.yaml": BROKEN, "wide.yaml": "process: {syscalls: build}\n"})
    r = t.ward("check", "--json", "bad.yaml", cwd=directory)
    t.equal(r.rc, 1, "exit code")
    found = json.loads(r.out)
    t.equal(found["valid"], False, "valid")
    t.equal([e["line"] for e in found["errors"]], [3, 5, 6], "lines")
    found = json.loads(t.ward("check", "--json", "wide.yaml", cwd=directory).out)
    t.check(found["valid"] and len(found["widens"]) == 1, found)


def test_check_default_and_missing(t):
    directory = t.workspace({"ward.yaml": "version: 1\n"})
    t.equal(t.ward("check", cwd=directory).rc, 0, "exit code")
    r = t.ward("check", "missing.yaml", cwd=directory)
    t.equal(r.rc, 125, "exit code")
    t.contains(r.err, "missing.yaml", "standard error")
    r = t.ward("check", directory, cwd=directory)
    t.equal(r.rc, 125, "exit code of a directory")


def test_trust(t):
    workspace = t.workspace({"ward.yaml": "process: {syscalls: build}\n"})
    r = t.ward("run", "--", "/bin/true", cwd=workspace)
    t.equal(r.rc, 125, "exit code before")
    t.contains(r.err, "ward trust", "remedy")
    r = t.ward("trust", "--yes", cwd=workspace)
    t.equal(r.rc, 0, "exit code of trust")
    t.contains(r.out, "widens process.syscalls", "answer")
    t.equal(t.ward("run", "--", "/bin/true", cwd=workspace).rc, 0, "exit code after")
    t.write(workspace, {"ward.yaml": "process: {syscalls: build}\nresources: {pids_limit: 9999}\n"})
    t.equal(t.ward("run", "--", "/bin/true", cwd=workspace).rc, 125, "exit code after a change")
    t.equal(t.ward("run", "-p", "ward.yaml", "--", "/bin/true", cwd=workspace).rc, 0,
            "exit code with -p")


def test_trust_of_nonsense(t):
    workspace = t.workspace({"ward.yaml": BROKEN})
    r = t.ward("trust", "--yes", cwd=workspace)
    t.equal(r.rc, 125, "exit code")
    t.contains(r.err, "ward.yaml:3:3", "errors")


def test_plan(t):
    workspace = t.workspace({".env": "SECRET=1\n"})
    r = t.ward("plan", "--full", "--set", "filesystem.hide=[.env]", "--memory", "64Mi", "--env",
               "TOKEN=topsecret", "--", "make",
               "test", cwd=workspace)
    t.equal(r.rc, 0, "exit code")
    for text in ("engine     native", "isolation  namespaces", "64 MiB", "hidden       .env",
                 "stages", "seccomp", "TOKEN",
                 "command    make test", workspace):
        t.contains(r.out, text, "plan")
    t.check("topsecret" not in r.out, "the value of a variable is shown")
    t.equal(sorted(os.listdir(workspace)), [".env"], "workspace")


def test_plan_json(t):
    workspace = t.workspace()
    r = t.ward("plan", "--json", "--pids", "77", "--ro", "/etc/hostname:/opt/name", cwd=workspace)
    t.equal(r.rc, 0, "exit code")
    plan = json.loads(r.out)
    t.equal(plan["engine"], "native", "engine")
    t.equal(plan["workspace"], os.path.realpath(workspace), "workspace")
    t.equal(plan["limits"]["pids"]["value"], 77, "pids")
    t.equal(plan["command"], [], "command")
    t.equal(plan["policy"]["resources.pids_limit"], {"value": "77", "from": "command line"},
            "policy")
    t.check(any(m["target"] == "/opt/name" and not m["writable"] for m in plan["mounts"]),
            "the mount is not there")
    t.check(len(plan["stages"]) > 5, "stages are missing")


def test_plan_refuses_as_run_does(t):
    workspace = t.workspace()
    for words in (["-w", "/nonexistent"], ["--set", "network.record=r"], ["-p", "missing.yaml"],
                  ["--ro", "/nonexistent/path"]):
        plan = t.ward("plan", "--full", *words, cwd=workspace)
        run = t.ward("run", *words, "--", "/bin/true", cwd=workspace)
        t.equal(plan.rc, 125, f"exit code of plan {words}")
        t.equal(run.rc, 125, f"exit code of run {words}")
        t.equal(plan.err, run.err, "words")


def test_doctor(t):
    r = t.ward("doctor")
    t.check(r.rc in (0, 1), f"exit code {r.rc}")
    for name in ("user namespace", "landlock", "cgroup", "seccomp", "idmapped mounts", "overlayfs",
                 "nf_tables",
                 "isolation levels", "\n  namespaces ", "\n  landlock "):
        t.contains(r.out, name, "answer")
    found = json.loads(t.ward("doctor", "--json").out)
    t.equal(found["usable"], r.rc == 0, "usable")
    for layer in found["layers"]:
        t.check(layer["state"] in ("present", "absent", "not needed"), layer)
        t.check(layer["state"] != "absent" or layer["remedy"] or "already" in layer["why"],
                f"no remedy: {layer}")
    works = t.ward("run", "--", "/bin/true", cwd=t.workspace())
    t.equal(works.rc, 0 if r.rc == 0 else 125, "what a run does")


def doctor(t, *words, env=None, wrap=()):
    """What the doctor found: runtimes and engines by name."""
    r = t.ward("doctor", "--json", env=env, wrap=wrap, timeout=60)
    t.check(r.rc in (0, 1), r.err)
    found = json.loads(r.out)
    return {x["name"]: x for x in found["runtimes"]}, {x["name"]: x for x in found["engines"]}


@by_turns
@timeout(120)
def test_doctor_runs_runsc(t):
    """A program of that name is not enough: it must make a sandbox."""
    gvisor.usable(t)
    runtimes, engines = doctor(t)
    t.check(runtimes["runsc"]["state"] == "works" and engines["gvisor"]["usable"], str(runtimes))
    cases = (("exit 0", "report its version"),
             ("echo runsc version 0.0~20240729.0; [ $1 = --version ] || exit 3", "exit status"),
             ("[ $1 = --version ] && echo runsc version 0.0~20990101.0 || kill -SEGV $$", ""))
    for script, why in cases:
        broken = os.path.join(t.fresh_dir("bin"), "runsc")
        t.write(os.path.dirname(broken), {"runsc": f"#!/bin/sh\n{script}\n"})
        os.chmod(broken, 0o755)
        runtimes, engines = doctor(t, env={"WARD_RUNSC": broken})
        t.equal((runtimes["runsc"]["state"], runtimes["runsc"]["path"],
                 engines["gvisor"]["usable"]), ("fails", broken, False), script)
        t.check(why in runtimes["runsc"]["why"] and engines["gvisor"]["why"],
                f"{script}: {runtimes['runsc']} {engines['gvisor']}")


@only_root
@needs("root")
@native_only("it starts every engine that is installed")
@timeout(180)
def test_doctor_runs_what_is_installed(t):
    """A file of the right name that is no program, does nothing, fails or hangs is told from one
    that works."""
    scripts = {"runc": "#!/bin/sh\nexit 0\n", "crun": "#!/bin/sh\nexec sleep 1000\n",
               "qemu-system-x86_64": "#!/bin/sh\necho WHY-NOT >&2; exit 3\n",
               "skopeo": "no program\n", "node": "#!/bin/sh\nkill -SEGV $$\n"}
    places = {name: shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/bin")
              for name in scripts}
    if not all(places.values()):
        t.skip(f"not all are installed: {places}")
    top = t.fresh_dir("bin")
    t.write(top, scripts)
    for name in scripts:
        os.chmod(os.path.join(top, name), 0o755)
    mounts = " && ".join(f"mount --bind {top}/{name} {os.path.realpath(path)}"
                         for name, path in places.items())
    runtimes, engines = doctor(t, wrap=("unshare", "-m", "sh", "-c", f'{mounts} && exec "$@"',
                                        "sh"))
    t.equal({n: runtimes[n]["state"] for n in ("runc", "crun", "qemu", "skopeo", "node")},
            dict.fromkeys(("runc", "crun", "qemu", "skopeo", "node"), "fails"))
    t.equal(runtimes["qemu"]["why"], "exit status 3: WHY-NOT")
    t.check("runc" in engines["oci"]["why"] and not engines["oci"]["usable"]
            and not engines["wasm"]["usable"], str(engines))


def test_doctor_agrees_with_run_without_capabilities(t):
    """Root in a container has few of them: what the doctor says must be what a run does."""
    workspace = t.workspace()
    for taken in ("-all", "-sys_admin", "-setfcap", "-sys_admin,-setfcap"):
        wrap = ["setpriv", f"--bounding-set={taken}", "--inh-caps=-all"]
        doctor = t.run(*wrap, t.ward_path, "doctor", cwd=workspace)
        run = t.run(*wrap, t.ward_path, "run", "--", "/bin/true", cwd=workspace)
        t.check(doctor.rc in (0, 1), f"exit code {doctor.rc}")
        t.equal(run.rc, 0 if doctor.rc == 0 else 125, f"a run without {taken}: {run.err}")


test_doctor_agrees_with_run_without_capabilities.only = "root"	# a user has none anyway


def test_doctor_without_user_namespaces(t):
    wrap = ["unshare", "--user", "--map-root-user", "sh", "-c",
            'echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all '
            '--inh-caps=-all "$@"', "sh"]
    r = t.run(*wrap, t.ward_path, "doctor")
    t.equal(r.rc, 1, "exit code")
    t.contains(r.out, "user.max_user_namespaces is 0", "why")
    t.contains(r.out, "sudo sysctl -w user.max_user_namespaces=15000", "remedy")
    t.contains(r.out, "  namespaces        not usable", "isolation level")


# root has the right to make them all the same
test_doctor_without_user_namespaces.only = "user"


def test_plan_says_how_it_was_made(t):
    """ward plan --verbose prints the planner's steps in the order of tables/plan_steps.def; without
    it, it does not."""
    ws = t.workspace()
    long, short = (t.ward("plan", *words, "--", "true", cwd=ws) for words in (["-v"], ["--full"]))
    t.equal((long.rc, short.rc), (0, 0))
    steps = [line.split()[1] for line in long.out.split("steps of the planner\n")[1].splitlines()]
    table = t.read(os.path.dirname(__file__), "../../tables/plan_steps.def")
    t.equal(steps, re.findall(r'^STEP\("(\w+)"', table, re.M))
    t.check(steps.index("ids") < steps.index("guards") < steps.index("env"), steps)
    t.check("steps of the planner" not in short.out, "the short form has them")
