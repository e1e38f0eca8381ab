"""ward inside ward, and other sandboxes inside ward: by default the weaker rung or a refusal, with process.nesting more."""
import os
import shutil

from harness import needs

NEST = ["--set", "process.nesting=true"]


def inner(t):
    """ward where the outer sandbox shows it: in the workspace."""
    ws = t.workspace()
    shutil.copy(t.ward_path, os.path.join(ws, "ward"))
    return ws


def test_inner_ward_says_what_it_needs(t):
    """Without nesting the inner one cannot have namespaces: a clear refusal, with the remedy."""
    ws = inner(t)
    os.mkdir(os.path.join(ws, "task"))
    r = t.ward("run", "--", "./ward", "run", "-w", "task", "--", "/bin/true", cwd=ws)
    t.equal(r.rc, 125)
    t.contains(r.err, "remedy")


def test_inner_ward_takes_the_landlock_rung(t):
    """Without nesting, where the inner policy accepts the weaker rung."""
    ws = inner(t)
    t.write(ws, {"task/a": "x", "other": "secret",
                 "inner.yaml": "version: 1\nrequire: {isolation: landlock, limits: none}\n"})
    script = "cat a; echo y > b; cat ../other; echo z > ../made; ls -A"
    r = t.ward("run", "--", "./ward", "run", "-p", "inner.yaml", "-w", "task", "--", "/bin/sh", "-c", script, cwd=ws)
    t.contains(r.out, "x", r.err)
    t.check("secret" not in r.out, "the inner sandbox reads outside its workspace")
    t.check(not os.path.exists(os.path.join(ws, "made")), "the inner sandbox writes outside its workspace")
    t.equal(t.read(ws, "task/b"), "y\n", "its own work")


def test_inner_ward_with_nesting(t):
    ws = inner(t)
    t.write(ws, {"task/a": "x", "other": "secret"})
    r = t.ward("run", *NEST, "--", "./ward", "run", "-w", "task", "--", "/bin/sh", "-c",
               "cat a; echo y > b; cat ../other; id -un", cwd=ws)
    t.equal((r.rc, r.out), (0, "xagent\n"), r.err)
    t.equal(t.read(ws, "task/b"), "y\n")


def test_nesting_is_shown_as_weaker(t):
    r = t.ward("run", *NEST, "--", "/bin/true", cwd=t.workspace(), report=True)
    t.equal(r.rc, 0, r.err)
    text = str(r.report["layers"]) + str(r.report.get("notes", ""))
    t.contains(text, "nesting", "the report")


def test_bubblewrap_inside(t):
    if not os.path.exists("/usr/bin/bwrap"):
        t.skip("bubblewrap is not installed")
    command = ["/usr/bin/bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--unshare-user", "--unshare-pid", "/bin/echo", "inside"]
    r = t.ward("run", *NEST, "--", *command, cwd=t.workspace())
    t.equal((r.rc, r.out), (0, "inside\n"), r.err)
    r = t.ward("run", "--", *command, cwd=t.workspace())
    t.check(r.rc != 0, "user namespaces work without nesting")


def test_nesting_still_contains(t):
    """More is allowed inside; the outside stays out of reach."""
    ws, outside = t.workspace({".envrc": "old\n", ".env": "secret", ".aiignore": ".env\n"}), t.fresh_dir()
    t.write(outside, {"secret": "secret"})
    script = f"""unshare -Urm sh -c '
        umount .env; umount -l .env; mount -o remount,bind,rw .envrc; umount .envrc; umount -R "$PWD"
        cat .env {outside}/secret; echo evil > .envrc; mount -t tmpfs none /mnt && echo mounted'
        cat .env {outside}/secret /etc/shadow"""
    r = t.ward("run", *NEST, "--", "/bin/sh", "-c", script, cwd=ws)
    t.check("secret" not in r.out, f"read: {r.out}")
    t.equal(t.read(ws, ".envrc"), "old\n", "protected file")


@needs("root")
def test_inside_a_plain_container(t):
    """A mount, pid and net namespace around ward, as a container has them."""
    ws = t.workspace({"a": "x"})
    r = t.ward("run", "-w", ws, "--", "/bin/cat", "a", cwd=ws,
               wrap=["unshare", "--mount", "--pid", "--fork", "--net", "--ipc", "--uts", "--mount-proc"])
    t.equal((r.rc, r.out), (0, "x"), r.err)


def test_twice_nested(t):
    ws = inner(t)
    t.write(ws, {"one/two/a": "deep"})
    shutil.copy(t.ward_path, os.path.join(ws, "one/ward"))
    r = t.ward("run", *NEST, "--", "./ward", "run", *NEST, "-w", "one", "--", "./ward", "run", "-w", "two", "--", "/bin/cat", "a",
               cwd=ws)
    t.equal((r.rc, r.out), (0, "deep"), r.err)
