"""The store of images: every kind of source becomes the same tree, names and digests hold, nothing
half-made is ever an image."""
import gzip
import json
import lzma
import os
import random
import signal
import stat
import subprocess
import time

from harness import by_turns, images, timeout
from harness.images import (directory, docker, hard, imported, Layout, link, listed, put, root_of,
                            tar)


def tree(path):
    """path -> what lies there."""
    found = {}
    for top, dirs, files in os.walk(path):
        for name in dirs + files:
            full = os.path.join(top, name)
            key = os.path.relpath(full, path)
            if os.path.islink(full):
                found[key] = "-> " + os.readlink(full)
            elif os.path.isdir(full):
                found[key] = "dir"
            else:
                with open(full, "rb") as f:
                    found[key] = f.read()
    return found


BASE = tar(("bin", directory()), ("bin/tool", {"data": "one\n", "mode": 0o4711}),
           ("bin/same", hard("bin/tool")), ("lib", link("usr/lib")),
           ("usr/lib/a", "a\n"),
           ("etc/conf", {"data": "old\n", "mode": 0o600, "uid": 33, "gid": 44}), ("old/x", "x\n"),
           ("old/y", "y\n"), ("gone", "g\n"))
NEXT = tar(("etc/conf", "new\n"), (".wh.gone", b""), ("old/.wh..wh..opq", b""), ("old/z", "z\n"),
           ("lib/b", "b\n"))
WHOLE = {"bin": "dir", "bin/tool": b"one\n", "bin/same": b"one\n", "lib": "-> usr/lib",
         "usr": "dir", "usr/lib": "dir", "usr/lib/a": b"a\n",
         "usr/lib/b": b"b\n", "etc": "dir", "etc/conf": b"new\n", "old": "dir", "old/z": b"z\n"}


def test_every_kind_of_source_gives_its_tree(t):
    """Layers one over the other, whiteouts and opaque directories applied, a link of an older layer
    followed within."""
    layout = Layout([BASE, NEXT], {"Env": ["A=b"]}).write(t.fresh_dir("layout"),
                                                          name="from-layout:1")
    plain = Layout([BASE, NEXT], packed=lambda d: d,
                   media="application/vnd.oci.image.layer.v1.tar").write(t.fresh_dir("layout"))
    archive = put(t, "layout.tar", b"")
    t.run("tar", "-C", layout, "-cf", archive, ".", check=True)
    saved = put(t, "docker.tar", docker([BASE, NEXT], tags=["from-docker:1"]))
    for source, name in ((layout, "from-layout:1"), (plain, None), (archive, "from-layout:1"),
                         (saved, "from-docker:1"),
                         (put(t, "docker.tar.gz", gzip.compress(docker([BASE, NEXT]))), "made:1")):
        made = imported(t, source)
        t.equal(made["name"], name, source)
        t.equal(tree(root_of(t, made)), WHOLE, source)
    t.equal(len({row["digest"] for row in listed(t).values()}), 3,
            "one of the two layouts (compression is part of a manifest), one configuration")


def test_a_tar_archive_is_a_root_however_it_is_packed(t):
    small = tar(("a/b", "content\n"), ("l", link("a")))
    zst = put(t, "r.tar", small) + ".zst"
    t.run("zstd", "-q", put(t, "r.tar", small), "-o", zst, check=True)
    digests = {imported(t, source)["digest"]
               for source in (put(t, "r.tar", small), put(t, "r.tar.gz", gzip.compress(small)),
                             put(t, "r.tar.xz", lzma.compress(small)), zst)}
    t.equal(len(digests), 1, "digests of one content")
    r = t.ward("image", "import", "-", "--json", input=small)
    t.equal(json.loads(r.out)["digest"], digests.pop(), "from standard input")


def test_a_directory_is_copied_with_its_links_and_names(t):
    top = t.fresh_dir("root")
    t.write(top, {"a/file": "text\n", "empty": None})
    os.link(os.path.join(top, "a/file"), os.path.join(top, "a/other"))
    os.symlink("/etc/passwd", os.path.join(top, "a/link"))
    os.mkfifo(os.path.join(top, "pipe"))
    os.chmod(os.path.join(top, "a/file"), 0o6755)
    made = imported(t, top, "--name", "mine")
    t.equal((made["skipped"], made["set_id_dropped"]), (1, 1))
    root = root_of(t, made)
    t.equal(tree(root), {"a": "dir", "empty": "dir", "a/file": b"text\n", "a/other": b"text\n",
                         "a/link": "-> /etc/passwd"})
    t.equal(os.stat(os.path.join(root, "a/file")).st_nlink, 2, "names of one file")
    t.equal(imported(t, top)["digest"], made["digest"], "the same again")
    with open(os.path.join(top, "a/file"), "a") as f:
        f.write("more")
    t.check(imported(t, top)["digest"] != made["digest"], "another content has another digest")


def test_files_are_the_users_and_have_no_rights_of_their_own(t):
    made = imported(t, put(t, "r.tar", BASE), "--name", "base")
    root = root_of(t, made)
    for top, dirs, files in os.walk(root):
        for name in dirs + files:
            st = os.lstat(os.path.join(top, name))
            t.equal(st.st_uid, t.person.pw_uid, name)
            if not stat.S_ISLNK(st.st_mode):
                t.check(stat.S_IMODE(st.st_mode) in (0o644, 0o755), f"{name}: {st.st_mode:o}")
    with open(os.path.join(t.state_dir, "images", made["digest"], "owners"), "rb") as f:
        noted = f.read().split(b"\0")
    t.check(b"600 33 44 etc/conf" in noted and b"4711 0 0 bin/tool" in noted, f"noted: {noted}")
    t.equal(os.stat(os.path.join(root, "etc/conf")).st_mtime, 1000000000, "time")
    t.equal(stat.S_IMODE(os.stat(os.path.join(t.state_dir, "images")).st_mode), 0o700, "the store")


def test_names_move_and_the_last_one_takes_the_image_along(t):
    one, two = put(t, "one.tar", tar(("a", "1"))), put(t, "two.tar",
                                                       docker([tar(("a", "2"))], tags=["tool:1"]))
    imported(t, one, "--name", "tool:1")
    taken = imported(t, two)
    t.equal(taken["name"], None, "an archive cannot take a name")
    t.check("tool:1, which is the name of another image" in t.ward("image", "import", two).out,
            "said")
    first = listed(t)["tool:1"]["digest"]
    t.equal(imported(t, two, "--name", "tool:1")["name"], "tool:1")
    t.check(listed(t)["tool:1"]["digest"] != first, "the user can")
    imported(t, two, "--name", "team/agent")
    t.equal(t.ward("image", "rm", "tool:1").out, "removed the name tool:1, the image has others\n")
    t.equal(t.ward("image", "rm", "team/agent").out, "removed team/agent\n")
    t.equal(list(listed(t)), [first], "the first one has no name now")
    t.equal(json.loads(t.ward("image", "gc", "--json").out)["removed"], 1)
    t.equal(listed(t), {})
    t.equal(t.ward("image", "rm", "tool:1").rc, 125, "it is gone")
    for bad in ("../x", "/abs", "a b", "-x", "host", "x/", "a//b", "\x1b[2Jx"):
        r = t.ward("image", "import", one, "--name",
                   bad) if not bad.startswith("-") else t.ward("image", "import", one,
                                                               f"--name={bad}")
        t.check(r.rc == 125 and "cannot be the name" in r.err and "\x1b" not in r.err,
                f"{bad!r}: {r}")


def test_pull_goes_through_skopeo(t):
    layout = Layout([BASE, NEXT]).write(t.fresh_dir("layout"), name="x")
    saved = put(t, "docker.tar", docker([BASE, NEXT]))
    target = os.path.join(t.directory, "as-dir")
    t.run("skopeo", "--insecure-policy", "copy", f"oci:{layout}:x", f"dir:{target}", check=True)
    for source in (f"oci:{layout}:x", f"docker-archive:{saved}", f"dir:{target}"):
        r = t.ward("image", "pull", source, "--name", "pulled", "--json")
        t.equal(r.rc, 0, r.err)
        t.equal(tree(root_of(t, json.loads(r.out))), WHOLE, source)
    r = t.ward("image", "pull", f"oci:{t.directory}/nothing:x")
    t.check(r.rc == 125 and "skopeo could not get" in r.err, r)
    planted = t.fresh_dir("planted")
    t.write(planted, {"skopeo": f"#!/bin/sh\necho RAN >> {planted}/ran\n"})
    os.chmod(os.path.join(planted, "skopeo"), 0o755)
    r = t.ward("image", "pull", f"oci:{layout}:x", "--name", "pulled",
               env={**os.environ, "PATH": f"{planted}:{os.environ['PATH']}"})
    t.check(r.rc == 0 and not os.path.exists(f"{planted}/ran"),
            f"what stands in PATH was started: {r}")
    t.equal(t.ward("image", "pull", "--", "--help").rc, 2, "an option is not a name")
    t.equal([n for n in os.listdir(os.path.join(t.state_dir, "images")) if n.startswith("work-")],
            [], "left behind")


def test_bad_words_are_usage_errors(t):
    for words in (["import"], ["import", "a", "b"], ["pull"], ["pull", "a b"], ["ls", "x"],
                  ["gc", "x"], ["rm"], ["frobnicate"], ["import", "x", "--max-size", "much"],
                  ["import", "x", "--max-files", "-1"]):
        t.equal(t.ward("image", *words).rc, 2, words)
    r = t.ward("image", "import", "/nonexistent-source", "--json")
    t.equal(r.rc, 125)
    t.check("nonexistent-source" in json.loads(r.err)["refused"]["why"], r.err)


@timeout(120)
def test_a_kill_leaves_an_image_or_none(t):
    """Kills at random moments of an import, fifty as root and user together: whatever has a digest
    is complete, and the next command clears the rest away."""
    source = put(t, "many.tar", tar(*((f"d{i % 20}/f{i}", os.urandom(300)) for i in range(250))))
    started = time.monotonic()
    whole = imported(t, source, "--name", "whole")
    took = time.monotonic() - started
    good = tree(root_of(t, whole))
    store = os.path.join(t.state_dir, "images")
    t.equal(t.ward("image", "rm", "whole").rc, 0)
    chance, finished = random.Random(t.as_user), 0
    for _ in range(25):
        process = t.ward_start("image", "import", source)
        try:
            process.wait(chance.random() * took)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
        if os.path.isdir(os.path.join(store, whole["digest"])):
            finished += 1
            t.equal(tree(root_of(t, whole)), good, "what has the digest")
            t.equal(t.ward("image", "rm", whole["digest"]).rc, 0)
    t.check(finished < 25, "no kill came in time")
    deadline = time.monotonic() + 10
    left = None
    # a worker notices its parent's death at once, but not before
    while left != [] and time.monotonic() < deadline:
        t.equal(t.ward("image", "gc").rc, 0)
        left = [n for n in os.listdir(store) if n.startswith("work-")]
        time.sleep(0 if left == [] else 0.05)
    t.equal(left, [], "left behind")
    t.equal(listed(t), {}, "images")


MOUNTS = """import ctypes, os, sys
libc = ctypes.CDLL(None)
print("began", flush=True)
while os.getppid() != 1:
    libc.mount(b"none", os.fsencode(sys.argv[1]), b"tmpfs", 0, None)
    libc.umount2(os.fsencode(sys.argv[1]), 2)
"""


@by_turns
@timeout(240)
def test_others_mount_meanwhile(t):
    """The kernel gives up on ".." while anybody mounts something, as every other sandbox does."""
    entries = [("a/b", directory()),
               ("l", link("a/b/../../a/b/../../a"))] + [(f"l/{'' if i % 2 else 'd/'}{i}", "x")
                                                        for i in range(5000)]
    path = put(t, "links.tar", tar(*entries))
    other = t.popen(["unshare", "-rm", "/usr/bin/python3", "-c", MOUNTS, t.fresh_dir("mounted")])
    t.equal(other.stdout.readline().strip(), b"began")
    # others mount all the time, and the machine may be busy
    r = t.ward("image", "import", path, timeout=200)
    t.equal(r.rc, 0, r.err)
