"""ward inside runc and podman containers: it works with every layer that the container leaves it,
says which are missing, or refuses with the option of the container that would let it."""
import contextlib
import glob
import os

from harness import needs, only_root, timeout
from harness.containers import ADMIN_CAPS, DEFAULT_CAPS, RUNC_CAPS, Container, default_filter

FILES = {"a": "hello\n", "secret.key": "secret", ".aiignore": "*.key\n", ".envrc": "old\n"}
SCRIPT = ("cat a; id -un; cat secret.key; echo evil > .envrc; echo new > b; cat /etc/shadow; "
          "hostname")
LANDLOCK = ["--set", "require.isolation=landlock", "--set", "require.limits=none"]
MUST = ["user namespace", "mount namespace", "pid namespace", "net namespace", "ipc namespace",
        "uts namespace", "rlimits",
        "no capabilities", "no_new_privs", "landlock", "seccomp"]


def layers_of(text):
    """{name: (in force, note)} of what --verbose prints."""
    found = {}
    for line in text.split("  layers:\n")[-1].splitlines():
        name, state = line[4:21].strip(), line[22:]
        if state.startswith(("in force", "absent")):
            found[name] = (state.startswith("in force"), state.partition(": ")[2])
    return found


def works(t, container, absent=(), notes=()):
    """The run is contained, and what it goes without is exactly what is said."""
    r = container.ward("run", "--verbose", "--", "/bin/sh", "-c", SCRIPT)
    t.equal(r.out.split()[:2], ["hello", "agent"], f"the command inside\n{r.err}")
    t.check("secret" not in r.out and "root:" not in r.out, f"read what is hidden: {r.out}")
    changed = t.read(container.bundle,
                     "upper/project/.envrc") or t.read(container.root, "project/.envrc")
    t.equal(changed, "old\n", "protected file")
    layers = layers_of(r.err)
    t.equal([name for name in MUST if not layers[name][0]], [], "layers that must be there")
    t.equal(sorted(n for n, (there, _) in layers.items() if not there), sorted(absent),
            "absent layers")
    for name, note in notes:
        t.contains(layers[name][1], note, f"the note of {name}")
    return r


def refuses(t, container, why, *remedies, args=()):
    """125, nothing ran, and the message names the way on."""
    r = container.ward("run", *args, "--", "/bin/echo", "ran")
    t.equal((r.rc, r.out), (125, ""), r.err)
    t.contains(r.err, why)
    for remedy in remedies:
        t.contains(r.err, remedy)


MASKED = ("masked proc", "masked")


@needs("runc", "cgroups")
def test_container_root(t):
    """Fourteen capabilities, a masked /proc, no filter."""
    r = works(t, Container(t, caps=DEFAULT_CAPS, files=FILES), ["cgroup", "idmap"], [MASKED])
    t.contains(r.err, "uid 0 without capabilities")


@needs("runc", "cgroups")
def test_container_root_with_sys_admin(t):
    """Then even id-mapped mounts work, unless the container is rootless."""
    absent = ["cgroup"] if t.as_user == "root" else ["cgroup", "idmap"]
    works(t, Container(t, caps=ADMIN_CAPS, files=FILES), absent, [MASKED])


@needs("runc", "cgroups")
def test_privileged_container(t):
    absent = ["cgroup"] if t.as_user == "root" else ["cgroup", "idmap"]
    r = works(t, Container(t, caps=ADMIN_CAPS, masked=False, files=FILES), absent)
    t.check("masked)" not in r.err, "a fresh /proc was to be had")


@only_root
@needs("runc", "cgroups")
def test_overlay_root(t):
    """An overlay refuses id-mapped mounts; no capability helps."""
    for caps in (DEFAULT_CAPS, ADMIN_CAPS):
        r = works(t, Container(t, caps=caps, overlay=True, files=FILES), ["cgroup", "idmap"],
                  [MASKED])
        t.contains(r.err, "no id-mapped mounts here")


@only_root
@needs("runc", "cgroups")
def test_ordinary_user_in_a_container(t):
    for options in ({}, {"masked": False}, {"overlay": True}):
        works(t, Container(t, uid=1000, files=FILES, **options), ["cgroup", "idmap"])


@needs("runc", "cgroups")
def test_require_idmap_is_refused_where_there_is_none(t):
    container = Container(t, caps=DEFAULT_CAPS, files=FILES)
    refuses(t, container, "require.idmap", args=["--set", "require.idmap=true"])


@needs("runc", "cgroups")
def test_filter_that_takes_namespaces_away(t):
    """As Docker's: refused, with the container's option and the weaker level named."""
    kinds = [{"caps": DEFAULT_CAPS}] + ([{"uid": 1000}] if t.as_user == "root" else [])
    for kind in kinds:
        container = Container(t, seccomp=default_filter(), files={"a": "hello\n"}, **kind)
        refuses(t, container, "user namespace", "--security-opt seccomp=unconfined",
                "require: {isolation: landlock")
        r = container.ward("run", *LANDLOCK, "--verbose", "--", "/bin/sh", "-c",
                           "cat a; cat /etc/shadow; echo b > b; echo c > /tmp/c")
        t.equal(r.out, "hello\n", r.err)
        there = sorted(n for n, (there, _) in layers_of(r.err).items() if there)
        t.equal(there, ["landlock", "no capabilities", "no_new_privs", "rlimits", "seccomp"],
                "layers in force")


@needs("runc", "cgroups")
def test_root_that_cannot_be_mapped(t):
    """The three capabilities of `runc spec`: no CAP_SETFCAP, so no user namespace for root."""
    container = Container(t, caps=RUNC_CAPS, files={"a": "hello\n"})
    refuses(t, container, "CAP_SETFCAP", "--cap-add SETFCAP", "ordinary user")
    r = container.ward("run", *LANDLOCK, "--", "/bin/sh", "-c", "cat a; cat /etc/shadow")
    t.equal(r.out, "hello\n", r.err)


@needs("runc", "cgroups")
def test_limits_hold_in_a_container(t):
    container = Container(t, caps=DEFAULT_CAPS, files=FILES)
    r = container.ward("run", "--timeout", "1", "--", "/bin/sleep", "30")
    t.equal(r.rc, 124, r.err)
    r = container.ward("run", "--memory", "100Mi", "--", "/usr/bin/python3", "-c",
                       "a = 'x' * 400000000; print(len(a))")
    t.check(r.rc != 0 and "400000000" not in r.out, f"the memory limit is not held: {r}")


@needs("runc", "cgroups")
def test_doctor_in_a_container(t):
    r = Container(t, caps=DEFAULT_CAPS).ward("doctor")
    t.contains(r.out, "A run uses isolation level namespaces")
    r = Container(t, caps=DEFAULT_CAPS, seccomp=default_filter()).ward("doctor")
    t.contains(r.out, "--security-opt seccomp=unconfined")
    t.check("A run uses isolation level namespaces" not in r.out, r.out)


PODMAN = r"""
if mountpoint -q /sys/fs/cgroup/unified; then umount /sys/fs/cgroup/unified; fi
cd "$0" && exec podman --root "$0/storage" --runroot "$0/runroot" --cgroup-manager cgroupfs --runtime runc --events-backend file \
    run --rm --log-driver none --network none --ulimit nofile=4096:4096 --ulimit nproc=1024:1024 -v /usr:/usr:ro -w /project "$@"
"""


def podman(t, container, options, *command):
    """One container of podman's over the same root."""
    argv = ["unshare", "-m", "/bin/sh", "-c", PODMAN, container.bundle, *options, "--rootfs",
            container.root, *command]
    return t.run(*argv, timeout=60)


def remove_parents():
    """Podman leaves the parent of its cgroups behind, empty."""
    for path in glob.glob("/sys/fs/cgroup/*/libpod_parent"):
        with contextlib.suppress(OSError):
            for child in filter(os.path.isdir, glob.glob(f"{path}/*")):
                os.rmdir(child)
            os.rmdir(path)


@only_root
@needs("podman", "runc")
@timeout(180)
def test_podman(t):
    """Podman's own filter leaves user namespaces: ward works in a container without any option."""
    t.defer(remove_parents)
    container = Container(t, caps=DEFAULT_CAPS, files=FILES)
    for options in ([], ["--security-opt", "seccomp=unconfined"], ["--cap-add", "SYS_ADMIN"],
                    ["--privileged"]):
        r = podman(t, container, options, "/opt/ward", "run", "--verbose", "--", "/bin/sh", "-c",
                   SCRIPT)
        t.equal(r.out.split()[:2], ["hello", "agent"], f"podman {options}\n{r.err}")
        t.check("secret" not in r.out, "read what is hidden")
        layers = layers_of(r.err)
        t.equal([n for n in MUST if not layers[n][0]], [], f"layers in podman {options}")
        if not options:
            t.contains(layers["uts namespace"][1], "sethostname")
    t.equal(t.read(container.root, "project/.envrc"), "old\n", "protected file")
