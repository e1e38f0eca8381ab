"""ward cp: files into a detached sandbox and out of it, and what must not come along."""
import json
import os
import signal
import stat
import subprocess

from harness.boxes import box


def tree(t, path):
    """path -> (kind, mode, content) of everything below."""
    found = {}
    with t.root():
        for top, dirs, files in os.walk(path):
            for name in dirs + files:
                whole = os.path.join(top, name)
                status = os.lstat(whole)
                content = os.readlink(whole) if stat.S_ISLNK(status.st_mode) else \
                    open(whole, "rb").read() if stat.S_ISREG(status.st_mode) else None
                found[os.path.relpath(whole, path)] = (stat.S_IFMT(status.st_mode),
                                                       status.st_mode & 0o7777, content)
    return found


def make_tree(t):
    path = t.fresh_dir("src")
    t.write(path, {"a": "text\n", "empty": "", "sub/deep/er/b": "x" * 200000, "dir": None,
                   "sp ace\tü": "odd\n"})
    os.chmod(f"{path}/a", 0o755)
    os.symlink("a", f"{path}/link")
    os.symlink("../../../a", f"{path}/sub/deep/er/up")
    t.run("chmod", "-R", "u+rwX,go-w", path, check=True)
    if t.as_user == "user":
        t.run("chown", "-hR", t.person.pw_name, path, root=True)
    return path


def test_there_and_back(t):
    src = make_tree(t)
    b = box(t, cwd=t.workspace())
    t.equal(t.ward("cp", src, f"{b}:/tmp/new").rc, 0, "a directory under a new name")
    t.equal(t.ward("cp", src, f"{b}:/tmp").rc, 0, "a directory into a directory")
    for name in ("new", os.path.basename(src)):
        r = t.ward("exec", b, "sh", "-c",
                   f"cd /tmp/{name} && cat a link && readlink link && stat -c %a a && wc -c < "
                   "sub/deep/er/b")
        t.equal(r.out, "text\ntext\na\n755\n200000\n", name)
    back = t.fresh_dir("back")
    t.equal(t.ward("cp", f"{b}:/tmp/new", f"{back}/x").rc, 0, "back under a new name")
    t.equal(tree(t, f"{back}/x"), tree(t, src), "what came back")
    t.equal(t.ward("cp", f"{b}:/tmp/new/", back).rc, 0, "back into a directory")
    t.equal(tree(t, f"{back}/new"), tree(t, src), "what came back")
    r = t.ward("cp", "--json", f"{b}:/tmp/new/a", f"{back}/file")
    t.equal(json.loads(r.out), {"files": 1, "bytes": 5, "errors": []}, "--json")
    t.equal(t.read(back, "file"), "text\n", "one file")
    t.ward("exec", b, "sh", "-c", "truncate -s 50M /tmp/holes; echo end >> /tmp/holes")
    t.equal(t.ward("cp", f"{b}:/tmp/holes", back).rc, 0, "a file with holes")
    status = os.stat(f"{back}/holes")
    t.equal(status.st_size, (50 << 20) + 4, "its size")
    t.check(status.st_blocks * 512 < 1 << 20, f"holes take {status.st_blocks} blocks")
    t.run("cmp", "-n", str(50 << 20), f"{back}/holes", "/dev/zero", check=True)
    t.equal(t.ward("cp", f"{src}/a", f"{b}:/tmp/one").rc, 0, "one file")
    t.equal(t.ward("cp", f"{src}/empty", f"{b}:/tmp/one").rc, 0, "over a file")
    t.equal(t.ward("exec", b, "stat", "-c", "%s", "/tmp/one").out, "0\n", "over a file")


def test_refusals(t):
    src = t.fresh_dir()
    t.write(src, {"a": "x"})
    b = box(t, cwd=t.workspace())
    for words, code, text in (
            ([f"{src}/a", f"{src}/b"], 2, "one of the two paths"),
            ([f"{b}:/tmp/a", f"{b}:/tmp/b"], 2, "one of the two paths"),
            ([f"{src}/none", f"{b}:/tmp"], 125, "No such file"),
            ([f"{b}:/none", src], 125, "No such file"),
            ([f"{src}/a", f"{b}:/usr/bin/x"], 125, "inside"),
            ([f"{src}/a", f"{b}:/none/x"], 125, "No such file"),
            ([f"{b}:/tmp", f"{src}/no/such"], 125, "No such file"),
            ([f"{src}/a", "nobody:/tmp"], 125, "there is no sandbox"),
            (["/dev/null", f"{b}:/tmp/x"], 125, "neither a file nor a directory")):
        r = t.ward("cp", *words)
        t.equal(r.rc, code, f"{words}: {r.err}")
        t.contains(r.err, text, str(words))


def test_what_may_not_come_out(t):
    b = box(t, cwd=t.workspace())
    t.ward("exec", b, "sh", "-c",
           "mkdir -p /tmp/x/d; cd /tmp/x; ln -s /etc/passwd out; ln -s ../../.. up; ln -s d in; "
                                  "mkfifo pipe; echo fine > d/f; ln -s /etc d/etc")
    back = t.fresh_dir("back")
    r = t.ward("cp", f"{b}:/tmp/x", back)
    t.equal(r.rc, 125, "exit code")
    for name in ("out", "up", "pipe", "d/etc"):
        t.contains(r.err, f"{name}: ", "what was left out")
    t.equal(set(tree(t, f"{back}/x")), {"d", "d/f", "in"}, "what came")


def test_links_in_the_workspace_are_not_followed(t):
    secret = os.path.join(t.fresh_dir(), "secret")
    t.write(os.path.dirname(secret), {"secret": "key"})
    ws = t.workspace()
    b = box(t, cwd=ws)
    t.equal(t.ward("exec", b, "sh", "-c",
                   f"ln -s {secret} link; ln -s {os.path.dirname(secret)} dir").rc, 0, "links")
    for name in ("link", "dir/secret"):
        r = t.ward("cp", name, f"{b}:/tmp/stolen", cwd=ws)
        t.equal(r.rc, 125, f"{name} was followed")
        t.equal(t.ward("exec", b, "cat", "/tmp/stolen").rc, 1, "it came inside")
    t.ward("exec", b, "sh", "-c", "echo evil > /tmp/evil")
    r = t.ward("cp", f"{b}:/tmp/evil", "dir/planted", cwd=ws)
    t.equal(r.rc, 125, "a directory of the workspace that is a link")
    t.equal(sorted(os.listdir(os.path.dirname(secret))), ["secret"], "a file was planted")
    r = t.ward("cp", f"{b}:/tmp/evil", "link", cwd=ws)
    t.equal(r.rc, 0, "over a link")
    t.equal(t.read(secret), "key", "the link was followed")


def test_race_for_a_place_in_the_workspace(t):
    outside = t.fresh_dir("outside")
    ws = t.workspace()
    b = box(t, cwd=ws)
    t.ward("exec", b, "sh", "-c",
           "mkdir -p /tmp/x/s; for i in $(seq 60); do echo $i > /tmp/x/s/$i; done")
    racer = t.ward_start("exec", b, "python3", "-c",
                         f"import os\nos.makedirs('to/x/s', exist_ok=True)\nopen('ready','w')\n"
                         f"while True:\n"
                         f"  try:\n"
                         f"    os.rename('to/x/s', 'to/x/away'); os.symlink('{outside}', "
                         "'to/x/s')\n"
                         f"    os.unlink('to/x/s'); os.rename('to/x/away', 'to/x/s')\n"
                         f"  except OSError: pass\n", cwd=ws)
    t.wait_until(lambda: os.path.exists(f"{ws}/ready"), 20, "the racer did not start")
    for _ in range(15):
        t.ward("cp", f"{b}:/tmp/x", "to", cwd=ws)
    with t.root():
        racer.kill()
    t.equal(os.listdir(outside), [], "the race was won")


def test_hostile_end(t):
    """The inner half is killed in the middle: no half copy passes for a whole one."""
    b = box(t, cwd=t.workspace())
    t.ward("exec", b, "sh", "-c", "truncate -s 300M /tmp/big")
    back = t.fresh_dir("back")
    p = t.ward_start("cp", f"{b}:/tmp/big", f"{back}/big")
    t.wait_until(lambda: os.listdir(back), 20, "the copy did not start")
    with t.root():
        p.send_signal(signal.SIGSTOP)
    t.equal(t.ward("kill", b).rc, 0, "kill")
    with t.root():
        p.send_signal(signal.SIGCONT)
    r = t.finish_ward(p)
    t.equal(r.rc, 125, "exit code")
    t.contains(r.err, "incomplete", "why")
    subprocess.run(["rm", "-f", f"{back}/big"])
