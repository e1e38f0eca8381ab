"""Where the kernel, or a filter around ward, does not give everything: a fallback that is as good,
the weaker level if the policy accepts it, or a refusal that names the remedy. Never a run that
silently goes without a layer."""
import errno
import json
import os

from harness import needs, timeout
from harness.filters import without

LANDLOCK = ["--set", "require.isolation=landlock", "--set", "require.limits=none"]
FILES = {"a": "hello\n", "secret.key": "secret", "deep/secrets/real": "secret", ".env": None,
         ".aiignore": "*.key\n/link\n",
         ".envrc": "old\n", "sub/.envrc": "old\n"}
SCRIPT = ("cat a; cat secret.key link deep/secrets/real; echo evil > .envrc; echo evil > "
          "sub/.envrc; sleep 0.02")
LANDLOCK_LAYERS = ["landlock", "no capabilities", "no_new_privs", "rlimits", "seccomp"]

# taken away one by one: what comes of it with ENOSYS and with EPERM, "works" with every layer, or
# the stage that says no
FALLBACKS = ["clone3", "openat2", "pidfd_open", "pidfd_send_signal", "statx", "kcmp",
             "memfd_create", "execveat",
             "sethostname"]
REFUSALS = ["open_tree", "move_mount", "mount_setattr", "close_range", "mount", "umount2",
            "pivot_root", "unshare",
            "seccomp", "landlock_add_rule", "landlock_restrict_self", "prlimit64", "capset"]


def workspace(t):
    ws = t.workspace(FILES)
    os.symlink("sub/../deep/secrets/real", os.path.join(ws, "link"))
    return ws


def run_without(t, ws, error, name, *args):
    """ward under a filter; args are those of `ward run`."""
    path = os.path.join(t.directory, "report.json")
    r = t.run(*without(t, error, name), *t.ward_argv("run", "--report", path, *args), cwd=ws)
    r.report = json.loads(t.read(path))
    return r


def in_force(r):
    """The layers that were, by the report."""
    return sorted(name for name, layer in r.report["layers"].items() if layer["in_force"])


@timeout(120)
@needs("cc")
def test_calls_with_a_fallback(t):
    ws = workspace(t)
    plain = t.ward("run", "--", "/bin/sh", "-c", SCRIPT, cwd=ws, report=True)
    t.equal(plain.out, "hello\n", plain.err)
    for name in FALLBACKS:
        for error in (errno.ENOSYS, errno.EPERM):
            r = run_without(t, ws, error, name, "--", "/bin/sh", "-c", SCRIPT)
            t.equal(r.out, "hello\n", f"without {name}\n{r.err}")
            t.equal(in_force(r), in_force(plain), f"the layers without {name}")
    t.equal((t.read(ws, ".envrc"), t.read(ws, "sub/.envrc")), ("old\n", "old\n"), "protected files")


@timeout(120)
@needs("cc", "plain")
def test_calls_without_a_fallback(t):
    ws = workspace(t)
    for name in REFUSALS:
        for error in (errno.ENOSYS, errno.EPERM):
            r = run_without(t, ws, error, name, "--", "/bin/echo", "ran")
            t.equal((r.rc, r.out), (125, ""), f"without {name}")
            t.contains(r.err, "seccomp=unconfined", f"the remedy without {name}")
            t.check("refused" in r.report, f"the report without {name}")


@needs("cc")
def test_without_landlock(t):
    """Used when present, reported when absent."""
    ws = workspace(t)
    r = run_without(t, ws, errno.ENOSYS, "landlock_create_ruleset", "--", "/bin/sh", "-c", SCRIPT)
    t.equal(r.out, "hello\n", r.err)
    t.check(not r.report["layers"]["landlock"]["in_force"], "the report claims Landlock")


@needs("cc")
def test_time_limit_without_pidfd_signals(t):
    r = run_without(t, t.workspace(), errno.ENOSYS, "pidfd_send_signal", "--timeout", "1", "--",
                    "/bin/sleep", "30")
    t.equal(r.rc, 124, r.err)


def on_the_landlock_level(t, ws, prefix):
    """Refused by default, the weaker level where the policy accepts it, explicit wishes refused
    there."""
    def ward(*args):
        return t.run(*prefix, *t.ward_argv("run", *args), cwd=ws)
    r = ward("--", "/bin/echo", "ran")
    t.equal((r.rc, r.out), (125, ""), r.err)
    t.contains(r.err, "remedy")
    t.contains(r.err, "require: {isolation: landlock, limits: none}")
    t.equal(ward("--set", "require.isolation=landlock", "--", "/bin/echo", "ran").rc, 125,
            "limits are still required")
    r = ward(*LANDLOCK, "--verbose", "--", "/bin/sh", "-c",
             "cat a; cat ../outside; echo b > b; echo c > ../made; cat /etc/passwd")
    t.equal(r.out.splitlines()[0], "hello", r.err)
    t.check("secret" not in r.out and t.read(ws, "../made") is None,
            "the Landlock level does not confine files")
    for layer in LANDLOCK_LAYERS:
        t.check(any(line.strip().startswith(layer) and "in force" in line
                    for line in r.err.splitlines()), f"{layer}: {r.err}")
    t.contains(r.err, "absent: isolation level landlock has none")
    for wish in ("filesystem.hide=*.key", "filesystem.protect=a", "process.nesting=true"):
        r = ward(*LANDLOCK, "--set", wish, "--", "/bin/echo", "ran")
        t.equal((r.rc, r.out), (125, ""), f"{wish} on the Landlock level: {r.err}")
        t.contains(r.err, wish.partition("=")[0], "the refusal")
    return ward


@needs("cc", "landlock")
def test_filter_against_user_namespaces(t):
    ws = t.workspace({"a": "hello\n"})
    t.write(t.directory, {"outside": "secret"})
    ward = on_the_landlock_level(t, ws, without(t, errno.EPERM, "NEW_USER"))
    t.contains(ward("--", "/bin/true").err, "filter")


@needs("userns", "landlock")
def test_no_user_namespaces_by_setting(t):
    """user.max_user_namespaces is counted per user namespace: in one of ours it can be 0."""
    ws = t.workspace({"a": "hello\n"})
    t.write(t.directory, {"outside": "secret"})
    prefix = ["unshare", "-Ur", "/bin/sh", "-c",
              'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"', "sh"]
    ward = on_the_landlock_level(t, ws, prefix)
    t.contains(ward("--", "/bin/true").err, "sysctl -w user.max_user_namespaces")


@needs("cc", "landlock")
def test_files_to_hide_on_the_landlock_level(t):
    """.aiignore is a wish too."""
    ws = t.workspace({".aiignore": "*.key\n"})
    r = t.run(*without(t, errno.EPERM, "NEW_USER"),
              *t.ward_argv("run", *LANDLOCK, "--", "/bin/echo", "ran"), cwd=ws)
    t.equal((r.rc, r.out), (125, ""), r.err)
    t.contains(r.err, ".aiignore")


@needs("cc")
def test_doctor_knows_the_landlock_level(t):
    r = t.run(*without(t, errno.EPERM, "NEW_USER"), *t.ward_argv("doctor"))
    t.contains(r.out, "seccomp=unconfined")
    t.check("A run uses isolation level namespaces" not in r.out, r.out)
    r = t.run(*without(t, errno.ENOSYS, "mount_setattr"), *t.ward_argv("doctor"))
    t.check("A run uses isolation level namespaces" not in r.out, r.out)
