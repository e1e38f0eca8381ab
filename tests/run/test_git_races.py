"""Races in the private git directory: while the agent commits, and ward-git takes the commits over,
other processes of the agent's turn files of the view into links, pipes, directories and huge files
and back. Nothing of the agent's runs on the host or is written outside, what is there stays whole,
and the run ends."""
import os
import time

from harness import by_turns, git_battery as battery
from harness import needs, timeout

WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a",
       "GIT_COMMITTER_EMAIL": "a@example.com"}
PASSED = [word for name in WHO for word in ("--env", name)]

HAMMER = r'''
import os, random, shutil, subprocess, sys, time

git, victim, marker, seconds = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
end = time.monotonic() + seconds
HOOK = f"#!/bin/sh\ntouch {marker}\n".encode()
CONFIG = (
    f"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = touch {marker}\n".encode())
good = {n: open("good/" + n.replace("/", "-"), "rb").read()
        for n in ("HEAD", "index", "config", "logs/HEAD")}
NAMES = ["HEAD", "index", "config", "logs/HEAD", "refs/heads/main", "refs/heads/r", "packed-refs",
         "MERGE_MSG", "ORIG_HEAD", "refs/tags/t",
         "objects/aa/" + "b" * 38, "objects/pack/pack-" + "a" * 40 + ".pack", "worktrees/w/gitdir",
         "modules/m/config", "modules/m/HEAD"]


def put(path, data):
    with open(path + ".x", "wb") as f:
        f.write(data)
    os.rename(path + ".x", path)


def once(path):
    kind = random.randrange(8)
    if kind == 0:
        os.symlink(random.choice([victim, victim + "/file", "/etc/passwd", "../../hooks"]),
                   path + ".l")
        os.rename(path + ".l", path)
    elif kind == 1:
        os.mkfifo(path + ".f")
        os.rename(path + ".f", path)
    elif kind == 2:
        put(path,
            random.choice([CONFIG, HOOK, b"ref: refs/heads/x\n", b"a" * 40 + b"\n",
                           os.urandom(50)]))
    elif kind == 3:
        with open(path, "r+b") as f:
            f.truncate(random.choice([0, 5, 1 << 34]))
    elif kind == 4:
        parent = os.path.dirname(path)
        if parent != git:
            os.rename(parent, parent + ".moved")
            os.symlink(victim, parent)
            time.sleep(random.random() / 200)
            os.unlink(parent)
            os.rename(parent + ".moved", parent)
    elif kind == 5:
        open(path + ".lock", "w").close()
    elif kind == 6:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        put(path, good.get(os.path.relpath(path, git), b"a" * 40 + b"\n"))
    else:
        os.unlink(path)


while time.monotonic() < end:
    try:
        once(os.path.join(git, random.choice(NAMES)))
    except OSError:
        pass
for name, data in good.items():   # the last state is a repository again
    path = os.path.join(git, name)
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    put(path, data)
'''

COMMITS = r'''
end=$((SECONDS + 8)); i=0
while [ $SECONDS -lt $end ]; do
  i=$((i + 1)); echo $i > f$i
  timeout 2 git -c core.fsmonitor=false -c core.hooksPath=/dev/null add f$i
  timeout 2 git -c core.fsmonitor=false -c core.hooksPath=/dev/null commit -qm $i
  timeout 2 git -c core.fsmonitor=false -c core.hooksPath=/dev/null branch -f r
done >/dev/null 2>&1
wait
true
'''


@by_turns
@needs("git")
@timeout(240)
def test_hammered_view(t):
    """Files, links, pipes and sparse files take each other's place while commits are taken over."""
    ws, victim, marker = t.git_repo(), t.fresh_dir("victim"), os.path.join(
        t.fresh_dir("marker"), "ran")
    t.write(victim, {"file": "theirs\n", "config": "[core]\n\tbare = false\n",
                     "HEAD": "ref: refs/heads/theirs\n"})
    before, first = battery.snapshot(victim), t.run("git", "rev-parse", "HEAD", cwd=ws,
                                                    check=True).out.strip()
    t.write(ws, {"hammer.py": HAMMER})
    script = "mkdir good; cp .git/HEAD .git/index .git/config good; cp .git/logs/HEAD good/logs-HEAD; " \
             f"for k in 1 2 3; do python3 hammer.py .git {victim} {marker} 8 & done; {COMMITS}"
    start = time.monotonic()
    r = t.ward("run", *PASSED, "--", "bash", "-c", script, cwd=ws, env=WHO, timeout=180)
    t.check(time.monotonic() - start < 120, f"the run took {time.monotonic() - start:.0f} s")
    t.check("could not import" not in r.err, r.err[-600:])
    t.run("git", "cat-file", "-e", first, cwd=ws, check=True)
    fsck = t.run("git", "fsck", "--no-dangling", cwd=ws, env=WHO)
    t.equal(fsck.rc, 0, f"the host's repository: {fsck.out[-300:]} {fsck.err[-300:]}")
    t.equal([n for n in os.listdir(os.path.join(ws, ".git")) if n.endswith(".lock")], [],
            "locks that stay")
    r = t.run("bash", "-c", battery.script(battery.COMMANDS, ws), cwd=ws,
              env=dict(WHO, **battery.ENV), timeout=100)
    t.check("HANGS" not in r.out, r.out[-300:])
    t.check(not os.path.exists(marker), "code of the agent's ran on the host")
    t.equal(battery.snapshot(victim), before, "the directory of somebody else")
