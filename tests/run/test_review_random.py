"""Random work under review: after ward apply the workspace is what the run saw, and a partial apply
changes nothing of what a run sees."""
import json
import os
import random

INSIDE = r"""
import json, os, random, shutil, stat, sys

rng = random.Random(int(sys.argv[1]))


def paths(kind):
    found = []
    for top, dirs, files in os.walk("."):
        names = {"dir": [d for d in dirs if not os.path.islink(os.path.join(top, d))],
                 "file": [f for f in files if not os.path.islink(os.path.join(top, f))]}[kind]
        found += [os.path.normpath(os.path.join(top, n)) for n in names]
    return sorted(found)


def place():
    return os.path.join(rng.choice(["."] + paths("dir")), rng.choice("abcdefgh"))


def write(path):
    if not os.path.isdir(path):
        if os.path.islink(path):
            os.unlink(path)
        with open(path, "w") as f:
            f.write(str(rng.random()) * rng.randrange(1, 50))


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def step():
    what = rng.randrange(10)
    if what < 3:
        write(place())
    elif what == 3 and paths("file"):
        write(rng.choice(paths("file")))
    elif what == 4 and paths("file"):
        os.chmod(rng.choice(paths("file")), rng.choice([0o600, 0o644, 0o755]))
    elif what == 5:
        remove(place())
    elif what == 6:
        path = place()
        if not os.path.lexists(path):
            os.mkdir(path)
    elif what == 7 and paths("file") + paths("dir"):
        target = place()
        if not os.path.lexists(target):
            try:
                shutil.move(rng.choice(paths("file") + paths("dir")), target)
            except shutil.Error:
                pass
    elif what == 8:
        path = place()
        remove(path)
        os.symlink(rng.choice("abcdefgh"), path)
    elif what == 9 and paths("dir"):
        path = rng.choice(paths("dir"))
        shutil.rmtree(path)
        rng.choice([os.mkdir, write])(path)


for _ in range(int(sys.argv[2])):
    step()
view = {}
for top, dirs, files in os.walk("."):
    for name in dirs + files:
        path = os.path.join(top, name)
        st = os.lstat(path)
        link = stat.S_ISLNK(st.st_mode)
        text = os.readlink(path) if link else open(path).read() if stat.S_ISREG(
            st.st_mode) else None
        view[os.path.normpath(path)] = [stat.S_IFMT(st.st_mode),
                                        0 if link else st.st_mode & 0o777, text]
print(json.dumps(view))
"""


def work(t, ws, seed, steps, *options):
    """What the command sees at its end, after so many random steps."""
    r = t.ward("run", *options, "--", "python3", "-c", INSIDE, str(seed), str(steps), cwd=ws)
    t.equal(r.rc, 0, f"seed {seed}: {r.err}")
    return json.loads(r.out)


def outside(t, ws):
    r = t.run("python3", "-c", INSIDE, "0", "0", cwd=ws, check=True)
    return json.loads(r.out)


def same(t, got, wanted, message):
    wrong = sorted(p for p in set(got) | set(wanted) if got.get(p) != wanted.get(p))
    t.equal([(p, got.get(p), wanted.get(p)) for p in wrong[:3]], [], message)


def one(t, seed):
    rng = random.Random(seed)
    ws = t.workspace()
    t.run("python3", "-c", INSIDE, str(seed), "30", cwd=ws, check=True)
    view = work(t, ws, seed + 1, 25, "--review")
    changes = t.ward("diff", "--json", cwd=ws)
    if changes.rc == 0 and rng.random() < 0.7:
        listed = json.loads(changes.out)
        run = listed["run"]
        chosen = [c["path"] for c in listed["changes"] if rng.random() < 0.3]
        if chosen:
            r = t.ward("apply", *[os.path.join(ws, p) for p in chosen], cwd=ws)
            t.check(r.rc in (0, 1), f"seed {seed}: {r.err}")
        if t.ward("diff", cwd=ws).rc == 0:
            same(t, work(t, ws, 0, 0, "--continue", run), view,
                 f"seed {seed}: the view after applying {chosen}")
    if changes.rc == 0 and t.ward("diff", cwd=ws).rc == 0:
        if rng.random() < 0.5:
            run = json.loads(t.ward("diff", "--json", cwd=ws).out)["run"]
            view = work(t, ws, seed + 2, 15, "--continue", run)
        if t.ward("diff", cwd=ws).rc == 0:
            r = t.ward("apply", cwd=ws)
            t.equal(r.rc, 0, f"seed {seed}: {r.out}{r.err}")
    same(t, outside(t, ws), view, f"seed {seed}: the workspace after the apply")
    for name in ("review", "applying"):
        path = os.path.join(t.state_dir, name)
        t.equal(os.listdir(path) if os.path.isdir(path) else [], [], f"seed {seed}: left in {name}")


def test_random_work_that_failed_once(t):
    """Applied in part; the run that goes on deletes it in a directory made anew, or moves an older
    file over it: no conflict."""
    for seed in (314986734, 1000072):
        one(t, seed)


def test_random_work(t):
    for _ in range(6):
        one(t, random.randrange(1 << 30))


def test_much_random_work(t):
    for seed in range(150):
        one(t, seed)


test_much_random_work.slow = True
test_much_random_work.timeout = 900
