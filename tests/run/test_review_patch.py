"""ward diff --patch with git as the judge: whatever a run does, `git apply` makes the sandbox's
tree of the workspace."""

import os
import random
import stat

from harness import by_turns

INSIDE = r"""
import os, random, shutil, sys

rng = random.Random(int(sys.argv[1]))
NAMES = ["a", "b.txt", "with space", "tab\there", "new\nline", 'quo"te', "back\\slash",
         "\u00fcml\u00e4ut", b"\xff\xfe".decode("utf-8", "surrogateescape"), " lead", "trail ",
         "-dash", "d", "e", "a b c", "\u202eturned", "x" * 200, "\x1b[31mred", "CR\r", "sub",
         "$(id)", ".gitignored", "..."]


def paths(kind):
    found = []
    for top, dirs, files in os.walk("."):
        if ".git" in dirs:
            dirs.remove(".git")
        names = {"dir": [d for d in dirs if not os.path.islink(os.path.join(top, d))],
                 "file": [f for f in files if not os.path.islink(os.path.join(top, f))]}[kind]
        found += [os.path.normpath(os.path.join(top, n)) for n in names]
    return sorted(found)


def place():
    return os.path.normpath(os.path.join(rng.choice(["."] + paths("dir")), rng.choice(NAMES)))


def lines():
    ends = rng.choice([b"\n", b"\n", b"\n", b"\r\n"])
    out = [b"line %d %d" % (i, rng.randrange(5)) for i in range(rng.randrange(0, 60))]
    return ends.join(out) + rng.choice([b"", ends])


def content():
    kind = rng.randrange(8)
    if kind == 0:
        return bytes(rng.randrange(256) for _ in range(rng.choice([1, 51, 52, 53, 104, 4000])))
    if kind == 1:
        return b"\0" * rng.choice([1, 70000, 65535, 65536, 131070])
    if kind == 2:
        return b""
    if kind == 3:
        return rng.choice([b"\n", b"\n\n", b"x", b"\\ No newline at end of file\n",
                           b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n", b"\xff\xfe text \x1b[2J\n"])
    return lines()


def write(path, data):
    if not os.path.isdir(path):
        if os.path.islink(path):
            os.unlink(path)
        with open(path, "wb") as f:
            f.write(data)


def edit(path):
    with open(path, "rb") as f:
        data = f.read()
    rows = data.split(b"\n")
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(rows) + 1)
        what = rng.randrange(3)
        if what == 0:
            rows.insert(at, b"inserted %d" % rng.randrange(100))
        elif at < len(rows) and what == 1:
            del rows[at]
        elif at < len(rows):
            rows[at] += b" edited"
    write(path, b"\n".join(rows))


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def step():
    what = rng.randrange(11)
    files = paths("file")
    if what < 2:
        write(place(), content())
    elif what < 5 and files:
        edit(rng.choice(files))
    elif what == 5 and files:
        os.chmod(rng.choice(files), rng.choice([0o600, 0o644, 0o755, 0o700]))
    elif what == 6:
        remove(place())
    elif what == 7:
        path = place()
        if not os.path.lexists(path):
            os.mkdir(path)
            write(os.path.join(path, "in"), content())
    elif what == 8 and files:
        target = place()
        if not os.path.lexists(target):
            os.rename(rng.choice(files), target)
    elif what == 9:
        path = place()
        remove(path)
        # git apply cannot replace a link that leads to itself by a directory: none of these does
        os.symlink(rng.choice(["no where", "two\nlines", "x/y", "gone"]), path)
    elif what == 10 and paths("dir"):
        path = rng.choice(paths("dir"))
        shutil.rmtree(path)
        write(path, content())


for _ in range(int(sys.argv[2])):
    step()
"""


def tree(directory):
    """What git knows of a tree: path -> (kind, content)."""
    found = {}
    for top, dirs, files in os.walk(os.fsencode(directory)):
        if b".git" in dirs:
            dirs.remove(b".git")
        for name in list(dirs) + files:
            path = os.path.join(top, name)
            st = os.lstat(path)
            where = os.path.relpath(path, os.fsencode(directory))
            if stat.S_ISLNK(st.st_mode):
                found[where] = ("link", os.readlink(path))
            elif stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    found[where] = ("program" if st.st_mode & 0o100 else "file", f.read())
    return found


def git(t, *words, cwd, data=None):
    r = t.run(
        "git",
        "-c",
        "init.defaultBranch=main",
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@t",
        *words,
        cwd=cwd,
        input=data,
    )
    t.equal(r.rc, 0, f"git {words[0]}: {r.err}")
    return r.out


def judge(t, seed, sha256=False):
    """One tree, one run, one patch: git apply on a copy gives what ward apply gives."""
    ws = t.workspace()
    copy = t.workspace()
    kind = ["--object-format=sha256"] if sha256 else []
    for where in (ws, copy):
        git(t, "init", "-q", *kind, ".", cwd=where)
        t.run("python3", "-c", INSIDE, str(seed), "40", cwd=where, check=True)
        # git does not know empty directories, and cannot put a file in the place of one
        t.run("find", ".", "-type", "d", "-empty", "-not", "-path", "./.git*", "-delete",
              cwd=where, check=True)
    t.equal(tree(ws), tree(copy), "the same beginning")
    r = t.ward("run", "--review", "--", "python3", "-c", INSIDE, str(seed + 1), "25", cwd=ws)
    t.equal(r.rc, 0, r.err)
    if t.ward("diff", cwd=ws).rc == 125:
        return 0  # nothing was done
    patch = os.path.join(copy, ".git", "patch")
    r = t.run("sh", "-c", f"{t.ward_path} diff -p --all > {patch}", cwd=ws)
    t.equal(r.rc, 0, f"seed {seed}: {r.err}")
    if os.path.getsize(patch):
        git(t, "apply", "--check", patch, cwd=copy)
        before = tree(copy)
        git(t, "apply", "--whitespace=nowarn", patch, cwd=copy)
        after = tree(copy)
        git(t, "apply", "--whitespace=nowarn", "-R", patch, cwd=copy)
        t.check(tree(copy) == before, f"seed {seed}: the reversed patch leads back")
    else:
        after = tree(copy)
    r = t.ward("apply", "--protected", cwd=ws)
    t.check(r.rc in (0, 1), r.err)
    wanted = tree(ws)
    wrong = sorted(p for p in set(after) | set(wanted) if after.get(p) != wanted.get(p))
    t.equal([(p, after.get(p), wanted.get(p)) for p in wrong[:2]], [], f"seed {seed}")
    return 1


@by_turns
def test_git_apply_makes_the_tree_of_the_run(t):
    """A part of the battery; test_battery_of_patches has all of it."""
    start = random.randrange(1 << 30)
    for seed in range(start, start + 5):
        judge(t, seed)
    judge(t, start + 100, sha256=True)


def test_battery_of_patches(t):
    t.check(sum(judge(t, 10 * seed) for seed in range(130)) >= 100, "at least a hundred patches")


test_battery_of_patches.slow = True
test_battery_of_patches.timeout = 900
test_git_apply_makes_the_tree_of_the_run.timeout = 180
