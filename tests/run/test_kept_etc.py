"""The sandboxes' /etc is made once and shown to all of them: the same as one that is made for each,
whatever happens while it is made."""
import json
import os
import subprocess
import time

from harness import host, needs, timeout

SETTLED_S = 3
LOOK = r"""
import hashlib, json, os, stat
rows = {}
for top, dirs, names in os.walk("/etc"):
    for path in [top] + [os.path.join(top, n) for n in names + dirs]:
        s = os.lstat(path)
        what = os.readlink(path) if stat.S_ISLNK(s.st_mode) else hashlib.sha256(
            open(path, "rb").read()).hexdigest() if stat.S_ISREG(s.st_mode) and os.access(
                path, os.R_OK) else ""
        rows[path] = [oct(s.st_mode), what]
with open("/proc/self/mountinfo") as f:
    points = [line.split()[4] for line in f]
print(json.dumps([rows, "/etc" in points, [p for p in points if p.startswith("/etc/")]]))
"""


def look(t, ws, *options, **more):
    """What there is of /etc, whether it is the kept one, what is mounted in it."""
    r = t.ward("run", "-w", ws, *options, "--", "/usr/bin/python3", "-c", LOOK, **more)
    t.equal(r.rc, 0, r.err)
    return json.loads(r.out)


def settle():
    """What has changed just now is not kept."""
    changed = max(max(os.stat(p).st_ctime, os.stat(p).st_mtime)
                  for p in ("/etc", "/etc/ssl", "/etc/ld.so.cache"))
    time.sleep(max(0, min(SETTLED_S, changed + SETTLED_S - time.time())))


def keep(t, ws):
    """Until there is a kept one: the first run only notes that there could be."""
    settle()
    for _ in range(2):
        t.equal(t.ward("run", "-w", ws, "--", "/bin/true").rc, 0)
    return os.path.join(t.state_dir, "kept-etc")


def kept(t):
    """The directories of kept ones."""
    return sorted(n for n in os.listdir(os.path.join(t.state_dir, "kept-etc"))
                  if n not in ("lock", "now"))


def make_stale(place):
    """As if the host's /etc had changed: another time is in the first check."""
    with open(os.path.join(place, "now", "list"), "r+b") as f:
        f.seek(160 + 32)
        byte = f.read(1)[0]
        f.seek(160 + 32)
        f.write(bytes([byte ^ 1]))


def test_is_the_same(t):
    ws = t.workspace()
    before, is_kept, _ = look(t, ws)
    t.check(not is_kept, "there is none yet")
    keep(t, ws)
    after, is_kept, mounted = look(t, ws)
    t.check(is_kept, "it is used")
    t.check("/etc/gitconfig" in before or after.pop("/etc/gitconfig")[1] == "/.ward/gitconfig",
            "a place for git's settings")
    t.equal(after, before)
    t.check(len(mounted) < 8, f"few things are mounted in it: {mounted}")
    plan = json.loads(t.ward("plan", "--json", "-w", ws).out)
    t.check({"/etc/passwd", "/etc/ld.so.cache", "/etc/mtab"}
            <= {m["target"] for m in plan["mounts"]}, "the plan still names each")


def test_git_and_mounts_in_it(t):
    ws = t.git_repo({"a": "1"})
    keep(t, ws)
    git = ("run", "-w", ws, "--", "/usr/bin/git", "config", "--system", "--get", "safe.directory")
    t.equal(t.ward(*git).out.strip(), "*")
    given = os.path.join(t.fresh_dir("given"), "INSIDE_THE_KEPT_ETC")
    t.write(os.path.dirname(given), {"INSIDE_THE_KEPT_ETC": "given\n"})
    policy = os.path.join(t.fresh_dir("p"), "policy.json")
    with open(policy, "w", encoding="utf-8") as f:
        json.dump({"version": 1,
                   "filesystem": {"host_mounts": [{"path": given,
                                                   "at": "/etc/INSIDE_THE_KEPT_ETC"}]}}, f)
    r = t.ward("run", "-p", policy, "-w", ws, "--", "/bin/cat", "/etc/INSIDE_THE_KEPT_ETC",
               "/etc/hostname")
    t.equal((r.rc, r.out), (0, "given\nward\n"), r.err)


def test_a_change_is_seen(t):
    """What is in the list is not what is on the host: as if the host had changed."""
    ws = t.workspace()
    place = keep(t, ws)
    t.check(look(t, ws)[1], "it is used")
    old = kept(t)
    make_stale(place)
    t.check(not look(t, ws)[1], "another time: it is not used, and made anew")
    t.check(look(t, ws)[1], "the new one is used")
    t.check(kept(t) != old and len(kept(t)) == 1, f"the old one is gone: {old} {kept(t)}")
    with open(os.path.join(place, "now", "list"), "r+b") as f:
        f.truncate(700)
    t.check(not look(t, ws)[1], "a list that was cut off is not believed")


def test_the_host_changes(t):
    """As root, in a mount namespace of the test's own with another /etc."""
    if t.as_user != "root":
        return
    ws = t.workspace()
    etc = t.fresh_dir("etc")
    os.chmod(etc, 0o755)
    subprocess.run(["cp", "-a", "/etc/ssl", "/etc/perl", "/etc/ld.so.cache", "/etc/timezone", etc],
                   check=True)
    script = f"""mount --bind {etc} /etc; echo one > /etc/timezone; sleep {SETTLED_S}
look() {{ {host.WARD} run -w {ws} -- /bin/sh -c 'cat /etc/timezone /etc/perl/FRESH_IN_PERL /etc/node.FRESH_IN_ETC 2>/dev/null; grep -c " /etc " /proc/self/mountinfo' | tr '\\n' ' '; echo; }}
look; look; look
echo two > /etc/timezone; look
echo three > /etc/perl/FRESH_IN_PERL; look
echo four > /etc/node.FRESH_IN_ETC; look
chmod 600 /etc/timezone; look"""
    r = t.run("unshare", "-m", "--propagation", "private", "sh", "-ec", script, timeout=60)
    t.equal(r.rc, 0, r.err)
    t.equal(r.out.splitlines(), ["one 0 ", "one 0 ", "one 1 ", "two 0 ", "two three 0 ",
                                 "two three four 0 ", "three four 0 "])


@timeout(90)
def test_many_at_once(t):
    ws = t.workspace()
    settle()
    for _ in range(2):
        runs = [t.ward_start("run", "-w", ws, "--", "/bin/cat", "/etc/hostname",
                             "/etc/debian_version") for _ in range(20)]
        for r in [t.finish_ward(p, timeout=60) for p in runs]:
            t.equal(r.rc, 0, r.err)
            t.check(r.out.startswith("ward\n") and len(r.out) > 6, r.out)
    t.check(look(t, ws)[1], "it was made")
    t.equal(len(kept(t)), 1, f"one: {kept(t)}")


def test_killed_while_it_is_made(t):
    """Half of one, as a kill leaves it, is never used and goes; so does what is in nobody's use."""
    ws = t.workspace()
    settle()
    t.equal(t.ward("run", "-w", ws, "--", "/bin/true").rc, 0)
    place = os.path.join(t.state_dir, "kept-etc")
    os.makedirs(os.path.join(place, "make-HALF", "root"))
    os.symlink("make-HALF", os.path.join(place, "now"))
    t.write(os.path.join(place, "make-HALF", "root"), {"passwd": "HALF_MADE_PASSWD\n"})
    os.makedirs(os.path.join(place, "abandoned", "root"))
    t.check(not look(t, ws)[1], "half of one is not used")
    t.check(look(t, ws)[1], "but the next is")
    t.equal(len(kept(t)), 1, f"the leftovers are gone: {kept(t)}")


def test_recover_takes_halves_away(t):
    """ward recover leaves what is complete, and nothing of one that somebody was killed at."""
    ws = t.workspace()
    place = keep(t, ws)
    os.makedirs(os.path.join(t.state_dir, "kept-etc", "make-HALF", "root"))
    t.equal(t.ward("recover").rc, 0)
    t.check(os.path.isdir(place)
            and not os.path.exists(os.path.join(t.state_dir, "kept-etc", "make-HALF")),
            f"{os.listdir(os.path.dirname(place))}")
    t.check(look(t, ws)[1], "it is still used")


def test_in_use_stays(t):
    """A change while sandboxes run: they keep what they have, and there are never many."""
    ws = t.workspace()
    place = keep(t, ws)
    running = []
    for i in range(5):
        running.append(t.ward_start("run", "-w", ws, "--", "/bin/sh", "-c",
                                    f"echo > up{i}; while ! test -e go; do sleep 0.05; done; cat "
                                    "/etc/hostname; ls /etc | wc -l"))
        t.wait_until(lambda i=i: os.path.exists(os.path.join(ws, f"up{i}")), 10)
        make_stale(place)
        t.equal(t.ward("run", "-w", ws, "--", "/bin/true").rc, 0)	# makes a new one
    t.check(len(kept(t)) <= 5, f"not one for each change: {kept(t)}")
    t.write(ws, {"go": ""})
    for r in [t.finish_ward(p) for p in running]:
        t.equal(r.rc, 0, r.err)
        t.check(r.out.startswith("ward\n") and int(r.out.split()[1]) > 10,
                f"/etc is still there: {r.out}")


def test_no_room(t):
    """In a state directory that is full everything goes on without it."""
    if t.as_user != "root":
        return
    ws = t.workspace()
    small = t.fresh_dir("small")
    script = f"""mount -t tmpfs -o size=128k,mode=0700 tmpfs {small}; export WARD_STATE_DIR={small}
for i in 1 2 3; do {host.WARD} run -w {ws} -- /bin/cat /etc/hostname; done; ls -a {small}/kept-etc | grep -vx 'lock\\|\\.\\|\\.\\.' | wc -l"""
    settle()
    r = t.run("unshare", "-m", "--propagation", "private", "sh", "-ec", script, timeout=60)
    t.equal((r.rc, r.out.split()), (0, ["ward", "ward", "ward", "0"]), r.err)


def test_out_of_reach(t):
    """Nothing inside can change it, neither through /etc nor by asking for the directory above
    it."""
    ws = t.workspace()
    place = keep(t, ws)
    attack = """for f in /etc/passwd /etc/OWN_IN_ETC /etc/ssl/OWN_IN_ETC /etc/perl/OWN_IN_ETC; do (echo OWNED_BY_SANDBOX > $f) 2>/dev/null && echo wrote $f; done
chmod 666 /etc/passwd 2>/dev/null && echo chmod; rm -f /etc/passwd 2>/dev/null && echo rm; mv /etc/passwd /etc/p 2>/dev/null && echo mv; touch /etc/passwd 2>/dev/null && echo touch; exit 0"""
    r = t.ward("run", "-w", ws, "--", "/bin/sh", "-c", attack)
    t.equal((r.rc, r.out), (0, ""), r.err)
    for above in (t.state_dir, os.path.dirname(t.state_dir), place):
        r = t.ward("run", "-w", ws, "--rw", above, "--", "/bin/sh", "-c",
                   f"echo OWNED_BY_SANDBOX > {place}/now/root/passwd")
        t.check(r.rc != 0, f"--rw {above}: {r.err}")
        t.check("OWNED_BY_SANDBOX" not in t.read(place, "now", "root", "passwd"),
                f"--rw {above}: it was written")


@timeout(90)
def test_the_early_child_is_thrown_away(t):
    """What began before the plan was there has mounted it, perhaps; whoever comes next mounts it,
    too."""
    if t.as_user != "root":
        return
    ws = t.workspace()
    keep(t, ws)
    slow = t.fresh_dir("ramfs")
    # no id-mapped mounts there: another id than expected
    t.run("mount", "-t", "ramfs", "ramfs", slow, root=True, check=True)
    t.defer(t.run, "umount", slow)
    for owner in (12345, 0):
        os.chown(slow, owner, owner)
        for _ in range(12):
            r = t.ward("run", "-w", slow, "--", "/bin/sh", "-c",
                       "cat /etc/hostname; grep -c ' /etc ' /proc/self/mountinfo")
            t.equal((r.rc, r.out), (0, "ward\n1\n"), f"as {owner}: {r.err}")
    options = ("--memory", "none", "--pids", "none", "--cpus", "0.5")
    for more in (options, (*options, "--pids", "64"),
                 ("--memory", "none", "--pids", "none", "--memory", "256M")):
        r = t.ward("run", "-w", slow, *more, "--", "/bin/cat", "/etc/hostname")
        t.equal((r.rc, r.out), (0, "ward\n"), f"{more}: {r.err}")


@needs("root")
@timeout(60)
def test_no_part_of_the_state_is_given(t):
    """Neither a directory nor a single file of ward's state can be given for writing, by whatever
    path."""
    ws = t.workspace()
    place = keep(t, ws)
    linked = os.path.join(t.fresh_dir("linked"), "state")
    os.symlink(t.state_dir, linked)
    passwd = os.path.join(place, "now", "root", "passwd")
    for name in ("live", "quarantine", "trusted", "audit", "applying", "boxes", "review", "vm",
                 "wasm", "images", "homes", "UNKNOWN_PART"):
        os.makedirs(os.path.join(t.state_dir, name, "DIR_IN_STATE"), exist_ok=True)
        t.write(os.path.join(t.state_dir, name), {"FILE_IN_STATE": "own\n"})
        t.run("chown", "-R", f"{os.stat(t.state_dir).st_uid}:{os.stat(t.state_dir).st_gid}",
              os.path.join(t.state_dir, name), root=True)
        for way in ("DIR_IN_STATE", "FILE_IN_STATE"):
            path = os.path.join(t.state_dir, name, way)
            r = t.ward("run", "-w", ws, "--rw", path, "--", "/bin/true")
            t.equal(r.rc, 125, f"--rw {path}: {r.err}")
            t.contains(r.err, "which the sandbox may write")
        os.unlink(path)
        os.rmdir(os.path.join(t.state_dir, name, "DIR_IN_STATE"))
    for path in (passwd, os.path.join(linked, "kept-etc", "now", "root", "passwd")):
        for env in ({}, {"WARD_STATE_DIR": linked}):
            r = t.ward("run", "-w", ws, "--rw", f"{path}:/mnt/f", "--", "/bin/sh", "-c",
                       "echo OWNED_BY_SANDBOX > /mnt/f", env=env)
            t.equal(r.rc, 125, f"--rw {path} {env}: {r.err}")
            t.contains(r.err, "which the sandbox may write")
    t.check("OWNED_BY_SANDBOX" not in t.read(place, "now", "root", "passwd"), "it was written")
    given = os.path.join(t.fresh_dir("given"), "f")
    t.write(os.path.dirname(given), {"f": ""})
    t.equal(t.ward("run", "-w", ws, "--rw", given, "--", "/bin/sh", "-c", f"echo x > {given}").rc,
            0, "a file elsewhere")


def test_a_time_to_come(t):
    """As root, in a mount namespace of the test's own: a file whose own time is in the future is
    kept like any other."""
    if t.as_user != "root":
        return
    ws = t.workspace()
    etc = t.fresh_dir("etc")
    os.chmod(etc, 0o755)
    subprocess.run(["cp", "-a", "/etc/ssl", "/etc/ld.so.cache", "/etc/timezone", etc], check=True)
    script = f"""mount --bind {etc} /etc; touch -d '+2 days' /etc/timezone; sleep {SETTLED_S}
for i in 1 2 3; do {host.WARD} run -w {ws} -- /bin/sh -c 'grep -c " /etc " /proc/self/mountinfo || true'; done"""
    r = t.run("unshare", "-m", "--propagation", "private", "sh", "-ec", script, timeout=60)
    t.equal((r.rc, r.out.split()), (0, ["0", "0", "1"]), r.err)


def test_where_nothing_can_be_executed(t):
    """As root: programs of /etc stay programs where the state directory's file system executes
    nothing."""
    if t.as_user != "root":
        return
    ws = t.workspace()
    etc, state = t.fresh_dir("etc"), t.fresh_dir("state")
    os.chmod(etc, 0o755)
    subprocess.run(["cp", "-a", "/etc/ssl", "/etc/ld.so.cache", "/etc/timezone", etc], check=True)
    os.mkdir(os.path.join(etc, "perl"), 0o755)
    script = f"""mount --bind {etc} /etc; mount -t tmpfs -o noexec,mode=0700 tmpfs {state}; export WARD_STATE_DIR={state}
printf '#!/bin/sh\\necho RAN_IN_ETC\\n' > /etc/perl/x; chmod 755 /etc/perl/x; sleep {SETTLED_S}
for i in 1 2 3; do {host.WARD} run -w {ws} -- /bin/sh -c '/etc/perl/x; grep -c " /etc " /proc/self/mountinfo || true'; done"""
    r = t.run("unshare", "-m", "--propagation", "private", "sh", "-ec", script, timeout=60)
    t.equal((r.rc, r.out.split()), (0, ["RAN_IN_ETC", "0", "RAN_IN_ETC", "0", "RAN_IN_ETC", "1"]),
            r.err)
