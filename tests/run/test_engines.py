"""The engines: chosen by the policy's list, shown by doctor, refused where they cannot do what the policy wants; and oci, which must behave as native does."""
import json
import os
import signal
import time

from harness import images, only_root, only_user, timeout
from harness.boxes import box
from harness.images import docker, imported, link, put, tar

OCI = ("--isolation", "oci")


def owned(t, files=None):
    """A workspace that belongs to an ordinary user: the agent's id on the host."""
    ws = t.workspace(files)
    for top, dirs, names in os.walk(ws):
        for path in [top] + [os.path.join(top, n) for n in dirs + names]:
            os.chown(path, 12345, 12345)
    return ws


def sh(t, ws, script, *options, rc=0, **more):
    """Runs a shell script in a container."""
    r = t.ward("run", *OCI, *options, "--", "sh", "-c", script, cwd=ws, **more)
    t.equal(r.rc, rc, f"{script}: {r.err}")
    return r


def leftovers(run):
    """Control groups of that run or container."""
    found = []
    for top, dirs, _ in os.walk("/sys/fs/cgroup"):
        found += [os.path.join(top, d) for d in dirs if d == "ward-" + run]
    return found


def test_the_first_engine_that_can_be_used_is_taken(t):
    ws = t.workspace()
    r = t.ward("run", "--isolation", "[vm, native]", "--", "true", cwd=ws, report=True)
    t.equal((r.rc, r.report["engine"]), (0, "native"), r.err)
    t.check(any("vm is not yet supported" in n for n in r.report["notes"]), r.report["notes"])
    r = t.ward("run", "--isolation", "[gvisor, wasm]", "--", "true", cwd=ws)
    t.check(r.rc == 125 and "isolation: gvisor is not yet supported by this build; isolation: wasm is not yet" in r.err, r)
    engines = {e["name"]: e for e in json.loads(t.ward("doctor", "--json").out)["engines"]}
    t.equal(sorted(engines), ["gvisor", "native", "oci", "vm", "wasm"])
    t.check(engines["native"]["usable"] and not engines["vm"]["usable"] and engines["vm"]["why"], engines)
    t.check("engine vm         not usable: vm is not yet supported" in t.ward("doctor").out, "doctor")


@only_user
def test_oci_is_roots(t):
    ws = t.workspace()
    r = t.ward("run", *OCI, "--", "true", cwd=ws)
    t.check(r.rc == 125 and "for root" in r.err and "isolation: native" in r.err, r)
    t.equal(t.ward("run", "--isolation", "[oci, native]", "--", "true", cwd=ws).rc, 0)


@only_root
def test_oci_runs_as_native_does(t):
    ws = owned(t, {"a": "A\n", ".env": "HIDDEN-SECRET\n", ".git/hooks/pre-commit": "#!/bin/sh\n", ".git/config": "[core]\n"})
    hide = ("--set", 'filesystem.hide=[".env"]')
    r = sh(t, ws, "cat a; id -u; cat .env; echo x > .git/hooks/pre-commit; echo n > new; pwd; echo $HOME; hostname", *hide, report=True)
    t.equal(r.out.split(), ["A", "1000", ws, "/home/agent", "ward"], r.err)
    t.equal((t.read(ws, "new"), t.read(ws, ".git/hooks/pre-commit")), ("n\n", "#!/bin/sh\n"))
    t.equal(r.report["engine"], "oci")
    layers = {name for name, state in r.report["layers"].items() if state is True or (isinstance(state, dict) and state.get("in_force"))} if isinstance(r.report["layers"], dict) else \
        {row["name"] for row in r.report["layers"] if row.get("in_force") or row.get("state") in ("in force", True)}
    t.check({"seccomp", "no capabilities", "user namespace", "pid namespace"} <= layers, r.report["layers"])
    for code in (0, 7, 126 - 1):
        sh(t, ws, f"exit {code}", rc=code)
    t.equal(t.ward("run", *OCI, "--", "no-such-program-here", cwd=ws).rc, 127)
    sh(t, ws, "kill -9 $$", rc=137)
    t.equal(t.ward("run", *OCI, "--", "cat", cwd=ws, input="through a pipe\n").out, "through a pipe\n")
    t.equal(leftovers(r.report["run"]), [], "control groups")


@only_root
def test_oci_holds_files_and_calls(t):
    ws = owned(t)
    outside = t.fresh_dir("outside")
    r = sh(t, ws, f"ls {outside} /root /var/lib /sys 2>&1; touch /etc/x /usr/x 2>&1; cat /proc/kallsyms /proc/self/status; echo 1 > /proc/sys/kernel/hostname; ls /proc | grep -c '^[0-9]'; unshare -r true; mount -t tmpfs x /tmp; exit 1", rc=1, report=True)
    t.check("CapEff:\t0000000000000000" in r.out and "NoNewPrivs:\t1" in r.out and "Seccomp:\t2" in r.out, r.out)
    t.check(r.out.count("Read-only file system") == 2 and r.out.count("No such file") == 4, r.out)
    denied = json.dumps(r.report["denials"])
    t.check("unshare" in denied or "mount" in denied, f"denials are told: {denied}")
    chmod = sh(t, ws, "cp /bin/true t; chmod 4755 t", rc=1)
    t.check("not permitted" in chmod.err, chmod.err)


@only_root
@timeout(90)
def test_oci_holds_limits(t):
    ws = owned(t)
    r = t.ward("run", *OCI, "--timeout", "0.5", "--", "sleep", "30", cwd=ws, report=True)
    t.equal((r.rc, r.report["limits"]["timeout"]["hit"]), (124, True))
    r = t.ward("run", *OCI, "--memory", "64Mi", "--", "python3", "-c", "x = bytearray(300 << 20)", cwd=ws, report=True)
    t.equal((r.rc, r.report["limits"]["memory"]["hit"]), (137, True), r.err)
    r = t.ward("run", *OCI, "--pids", "20", "--", "python3", "-c",
               "import os, time\nn = 0\ntry:\n    while n < 100:\n        n += 1\n        if not os.fork(): time.sleep(5); os._exit(0)\nexcept OSError: pass\nprint(n)", cwd=ws, report=True)
    t.check(r.rc in (0, 137) and (not r.out.strip() or int(r.out) < 30), r)
    t.equal(leftovers(r.report["run"]), [], "control groups")


@only_root
def test_oci_with_an_image_and_left_running(t):
    outside = t.fresh_dir("outside")
    layer = tar(*images.busybox_root(), ("var/run", link(outside)))
    imported(t, put(t, "i.tar", docker([layer], wish={"Entrypoint": ["cat", "/etc/image-name"]})), "--name", "base")
    ws = owned(t)
    t.equal(t.ward("run", *OCI, "--image", "base", cwd=ws).out, "MADE-OF-BUSYBOX\n")
    name = box(t, *OCI, "--image", "base", cwd=ws)
    t.equal(t.ward("exec", name, "sh", "-c", "cat /etc/image-name; id -u; touch /etc/x || echo closed").out.split(), ["MADE-OF-BUSYBOX", "1000", "closed"])
    t.equal(t.ward("cp", f"{name}:/etc/image-name", os.path.join(t.directory, "copied")).rc, 0)
    t.equal(t.ward("pause", name).rc, 0)
    t.equal(t.ward("resume", name).rc, 0)
    t.equal(t.ward("stop", "--timeout", "0.2", name).rc, 0)
    t.equal((os.listdir(outside), leftovers(name)), ([], []), "left behind")


@only_root
@timeout(90)
def test_oci_dies_with_ward(t):
    """kill -9 of ward at any moment: the container ends, and nothing of it stays."""
    ws = owned(t)
    for wait in (0.02, 0.05, 0.08, 0.12, None):
        process = t.ward_start("run", *OCI, "--", "sh", "-c", "echo up; echo $$ > pid; sleep 1000", cwd=ws)
        if wait is None:
            t.equal(process.stdout.readline(), b"up\n")
        time.sleep(wait or 0.1)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    t.equal(t.ward("run", "--", "true", cwd=ws).rc, 0, "a run cleans up after runs that had no guardian yet")
    # processes, mounts and control groups are looked for after every test


@only_root
def test_oci_refuses_what_it_cannot(t):
    ws = owned(t)
    for options, what in ((("--allow", "example.com"), "network"), (("--review",), "review"), (("--set", "process.nesting=true"), "nesting")):
        for verb in ("run", "plan"):
            r = t.ward(verb, *OCI, *options, "--", "true", cwd=ws)
            t.check(r.rc == 125 and f"{what}" in r.err and "oci engine" in r.err, f"{options}: {r}")
    plan = json.loads(t.ward("plan", "--json", *OCI, "--", "true", cwd=ws).out)
    t.equal((plan["engine"], [s["name"] for s in plan["stages"]][-1]), ("oci", "exec"))


@only_root
def test_oci_agents_are_never_the_hosts_root(t):
    """The host's devices are bound as they are: their owner could change their modes for everybody."""
    r = t.ward("run", *OCI, "--", "true", cwd=t.workspace())
    t.check(r.rc == 125 and "belongs to root" in r.err and "chown" in r.err, r)
    t.equal(t.ward("run", "--isolation", "[oci]", "--", "true", cwd=owned(t)).rc, 0)
    before = [os.stat(p) for p in ("/dev/null", "/dev/zero", "/dev/full")]
    r = sh(t, owned(t), "chmod 666 /dev/null; chmod 666 /dev/zero; touch -d 2001-01-01 /dev/full; chmod 666 /proc/keys; cut -c11-22 /proc/self/uid_map | grep -c ' 0 '", rc=1)
    t.check(r.err.count("not permitted") + r.err.count("Permission denied") == 4 and r.out.strip() == "0", r)
    for was, path in zip(before, ("/dev/null", "/dev/zero", "/dev/full")):
        now = os.stat(path)
        t.equal((now.st_mode, now.st_uid, now.st_gid, now.st_mtime_ns), (was.st_mode, was.st_uid, was.st_gid, was.st_mtime_ns), path)
