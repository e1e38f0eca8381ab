"""ward image build: a recipe's files and commands make an image, the commands in a sandbox that can
write the new root alone."""
import json
import os
import shutil
import signal
import tempfile
import time

from harness import images, leaks, needs, timeout, users
from harness.images import imported, listed, put, root_of, tar
from harness.leaks import descendants


def base(t):
    """A base image with a shell."""
    return imported(t, put(t, "base.tar", tar(*images.busybox_root())), "--name", "base")


def build(t, recipe, files=None, rc=0, name="made"):
    """Writes a recipe beside its files and builds it."""
    top = t.fresh_dir("recipe")
    t.write(top, {"recipe.yaml": recipe, **(files or {})})
    r = t.ward("image", "build", os.path.join(top, "recipe.yaml"), "--name", name, "--json")
    t.equal(r.rc, rc, f"{recipe}: {r.err}")
    return r


def test_files_commands_and_wishes(t):
    first = base(t)
    r = build(t, """
from: base
files: [{from: app, to: /opt/app}, {from: tool.sh, to: /usr/local/bin/tool}]
env: [GREETING=hello, PATH=/usr/local/bin:/bin]
run:
  - cat beside > /etc/from-beside; id -u > /var/who; mkdir -p /var/lib/app
  - echo $GREETING > /var/lib/app/greeting; ls /opt/app > /var/lib/app/list; echo SAID-BY-A-STEP
entrypoint: [tool]
cmd: [one]
workdir: /var/lib/app
""", {"app/a": "A\n", "app/deep/b": "B\n",
      "tool.sh": "#!/bin/sh\ncat greeting list /etc/from-beside; echo $1 $(pwd)\n",
      "beside": "BESIDE\n"})
    t.check("SAID-BY-A-STEP" in r.err and r.out.startswith("{"),
            "what a command prints is not the result")
    made = json.loads(r.out)
    root = root_of(t, made)
    t.equal((t.read(root, "opt/app/deep/b"), t.read(root, "var/who")), ("B\n", "1000\n"))
    os.chmod(os.path.join(root, "usr/local/bin/tool"), 0o755)
    r = t.ward("run", "--image", "made", cwd=t.workspace())
    t.equal(r.out.split(), ["hello", "a", "deep", "BESIDE", "one", "/var/lib/app"], r.err)
    t.equal(sorted(os.listdir(root_of(t, first))), ["bin", "etc", "root", "tmp", "usr", "var"],
            "the base is as it was")
    again = json.loads(build(t, "from: made\ncmd: [other]\n", name="third").out)
    other = json.loads(build(t, "from: made\ncmd: [another]\n", name="fourth").out)
    t.check(again["digest"] != other["digest"],
            "the same files with another command are another image")
    t.equal(sorted(listed(t)), ["base", "fourth", "made", "third"])
    t.equal([n for n in os.listdir(os.path.join(t.state_dir, "images")) if n.startswith("work-")],
            [], "left behind")


def test_a_step_can_write_the_new_root_alone(t):
    first = base(t)
    outside = t.fresh_dir("outside")
    build(t, f"""
from: base
files: [{{from: mine, to: /etc/mine}}]
run:
  - for d in {outside} {t.state_dir} {t.home} . /; do touch $d/written-by-a-step 2>/dev/null || true; done
  - ln -s {outside} /opt/link; cp /bin/busybox /opt/suid; chmod 4755 /opt/suid 2>/dev/null || echo refused > /opt/answer
""", {"mine": "M\n"})
    root = root_of(t, listed(t)["made"])
    t.equal(t.read(root, "opt/answer"), "refused\n", "set-id bits")
    for place in (outside, t.state_dir, t.home, root, os.path.dirname(listed(t)["made"]["source"]),
                  listed(t)["made"]["source"]):
        # a private /tmp may have taken it
        t.check(not os.path.exists(os.path.join(place, "written-by-a-step")), place)
    t.equal(os.listdir(outside), [], "outside")
    t.equal(t.read(root_of(t, first), "etc/image-name"), "MADE-OF-BUSYBOX\n")
    # a file that goes through a link of the base stays in the image
    r = build(t, f"from: made\nfiles: [{{from: mine, to: /opt/link/x}}]\n", {"mine": "M\n"}, rc=125)
    t.check("leads nowhere" in r.err, r.err)
    t.equal(os.listdir(outside), [], "outside")


def places(t):
    """Directories in which a person may keep recipes: beside the home, in the system's own, closed
    to others."""
    top = "/root" if t.as_user == "root" else None
    with t.root():
        for parent in ("/srv", "/opt", "/var/lib", "/usr/local", "/etc", top):
            if not parent:
                continue
            made = tempfile.mkdtemp(prefix="ward-recipe.", dir=parent)
            t.defer(lambda path=made: leaks.with_rights(
                lambda: shutil.rmtree(path, ignore_errors=True)))
            person = users.entry(t.as_user)
            os.chown(made, person.pw_uid, person.pw_gid)
            yield made
    yield os.path.join(t.home, "in the home")


@needs("root")
@timeout(120)
def test_recipes_anywhere(t):
    """Where the recipe lies must not matter: the new root's own directories cover every place of
    the host's."""
    base(t)
    for where in list(places(t)):
        t.write(where,
                {"r.yaml": "from: base\nfiles: [{from: beside, to: /opt/copied}]\n"
                 "run: ['cat beside sub/x > /srv/seen; ls > /var/list; touch here || true']\n",
                 "beside": "BESIDE\n", "sub/x": "X\n"})
        r = t.ward("image", "build", os.path.join(where, "r.yaml"), "--name", "made", "--json")
        t.equal(r.rc, 0, f"{where}: {r.err}")
        root = root_of(t, json.loads(r.out))
        t.equal((t.read(root, "srv/seen"), t.read(root, "opt/copied"), t.read(root, "var/list")),
                ("BESIDE\nX\n", "BESIDE\n", "beside\nr.yaml\nsub\n"), where)
        t.equal(sorted(os.listdir(where)), ["beside", "r.yaml", "sub"], "it is read-only")
        t.equal(os.listdir(os.path.join(root, "srv")), ["seen"],
                "and leaves no place to mount it in the image")


@needs("root")
@timeout(120)
def test_state_in_the_systems_directories(t):
    """As root's own state directory does: it lies in /var, which each step has of its own."""
    with t.root():
        state = tempfile.mkdtemp(prefix="ward-state.", dir="/var/lib")
        person = users.entry(t.as_user)
        os.chown(state, person.pw_uid, person.pw_gid)
    t.defer(lambda: leaks.with_rights(lambda: shutil.rmtree(state, ignore_errors=True)))
    env = {"WARD_STATE_DIR": state}
    r = t.ward("image", "import", put(t, "base.tar", tar(*images.busybox_root())), "--name", "base",
               env=env)
    t.equal(r.rc, 0, r.err)
    top = t.fresh_dir("recipe")
    t.write(top,
            {"r.yaml": "from: base\nrun: ['ls -R /var > /opt/var; id -u > /var/who', 'cat /var/who "
             "> /opt/who']\n"})
    before = set(os.listdir("/tmp"))
    r = t.ward("image", "build", os.path.join(top, "r.yaml"), "--name", "made", "--json", env=env)
    t.equal(r.rc, 0, r.err)
    root = os.path.join(state, "images", json.loads(r.out)["digest"].removeprefix("sha256:"),
                        "root")
    t.equal((t.read(root, "opt/who"), "ward" in t.read(root, "opt/var")), ("1000\n", False))
    t.equal([n for n in set(os.listdir("/tmp")) - before if n.startswith("ward-work")], [],
            "left in /tmp")
    t.equal([n for n in os.listdir(os.path.join(state, "images")) if n.startswith("work-")], [],
            "left behind")


def test_modes_that_a_step_leaves(t):
    """An image keeps no modes but for x: whatever a step leaves closed is in the image, and can be
    removed."""
    base(t)
    r = build(t, """
from: base
run:
  - mkdir -p /var/closed/deep /srv/x; echo IN > /var/closed/deep/f; echo SECRET > /var/secret; echo X > /srv/x/f
  - chmod 0 /var/secret /var/closed/deep/f /var/closed/deep /var/closed; chmod 0 /srv
  - echo next > /opt/next; echo again > /srv/again
""")
    root = root_of(t, json.loads(r.out))
    t.equal([t.read(root, p) for p in ("var/closed/deep/f", "var/secret", "srv/x/f", "srv/again",
                                       "opt/next")],
            ["IN\n", "SECRET\n", "X\n", "again\n", "next\n"])
    build(t, "from: base\nrun: ['mkdir -p /var/closed/in; chmod 0 /var/closed/in /var/closed', "
          "'exit 7']\n", rc=125)
    t.equal([n for n in os.listdir(os.path.join(t.state_dir, "images")) if n.startswith("work-")],
            [], "left behind")


def test_recipes_that_are_wrong(t):
    base(t)
    top = t.fresh_dir("secret")
    t.write(top, {"file": "SECRET\n"})
    cases = [("run: [a]\n", "base image is missing"),
             ("from: base\nfrobnicate: 1\n", "2:1: unknown key frobnicate; known are from"),
             ("from: nobody\n", "there is no image nobody"),
             ("from: base\nfiles: [{from: ../../etc/passwd, to: /x}]\n", "leads upwards"),
             ("from: base\nfiles: [{from: link, to: /x}]\n",
              "files: link: cannot open link: it leads out of the directory"),
             ("from: base\nfiles: [{from: a, to: relative}]\n", "absolute"),
             ("from: base\nfiles: [{from: a, to: /}]\n", "not the root"),
             ("from: base\nfiles: [{from: a, to: /../x}]\n", "leads upwards"),
             ("from: base\nfiles: [{from: missing, to: /x}]\n", "missing"),
             ("from: base\nrun: [exit 7]\n", "exit status 7"),
             ("from: base\nenv: [NOTHING]\n", "NAME=VALUE"),
             ("from: base\nrun: {a: b}\n", "expected a list"), ("- a\n", "expected a map"),
             ("from: [\n", "recipe.yaml:")]
    for recipe, why in cases:
        made = t.fresh_dir("recipe")
        t.write(made, {"recipe.yaml": recipe})
        os.symlink(os.path.join(top, "file"), os.path.join(made, "link"))
        r = t.ward("image", "build", os.path.join(made, "recipe.yaml"))
        t.check(r.rc == 125 and why in r.err, f"{recipe!r}: {r}")
    t.equal(list(listed(t)), ["base"])
    t.equal([n for n in os.listdir(os.path.join(t.state_dir, "images")) if n.startswith("work-")],
            [], "left behind")
    t.equal(t.ward("image", "build").rc, 2)


def test_from_nothing(t):
    build(t, "from: scratch\nfiles: [{from: busybox, to: /bin/busybox}]\n"
          "entrypoint: [/bin/busybox, echo, FROM-SCRATCH]\n", rc=125)
    top = t.fresh_dir("recipe")
    t.write(top,
            {"r.yaml": "from: scratch\nfiles: [{from: busybox, to: /bin/busybox}]\n"
             "entrypoint: [/bin/busybox, echo, FROM-SCRATCH]\n"})
    t.run("cp", images.BUSYBOX, top, check=True)
    t.equal(t.ward("image", "build", os.path.join(top, "r.yaml"), "--name", "tiny").rc, 0)
    t.equal(t.ward("run", "--image", "tiny", cwd=t.workspace()).out, "FROM-SCRATCH\n")


def test_a_step_may_write_what_projects_protect(t):
    """Start files of shells and git's own are files like others in an image: nothing of it runs
    outside of a sandbox."""
    base(t)
    r = build(t, """
from: base
run:
  - mkdir -p /etc/skel /opt/app/.git/hooks; echo one > /etc/skel/.bashrc; echo '[core]' > /opt/app/.git/config; echo x > /opt/app/.git/hooks/pre-commit
  - echo two > /etc/skel/.bashrc; echo '[user]' >> /opt/app/.git/config; ln -s ../etc/skel /opt/near; ln -s /etc/skel /opt/far
""")
    root = root_of(t, json.loads(r.out))
    t.equal((t.read(root, "etc/skel/.bashrc"), t.read(root, "opt/app/.git/config"),
             t.read(root, "opt/app/.git/hooks/pre-commit")), ("two\n", "[core]\n[user]\n", "x\n"))
    t.equal([os.readlink(os.path.join(root, "opt", name)) for name in ("near", "far")],
            ["../etc/skel", "/etc/skel"], "links")
    t.contains(t.ward("quarantine", "ls").out, "is empty")


def test_a_step_ends_with_its_build(t):
    """Whoever ends a build, with a signal that a step may ignore or without a word, ends the step:
    nobody would wait for it, and nobody could remove what it goes on writing."""
    base(t)
    top = t.fresh_dir("recipe")
    t.write(top,
            {"recipe.yaml": "from: base\nrun: [\"trap '' TERM HUP INT; echo WAITING; while :; do "
             ":; done\"]\n"})
    for number in (signal.SIGKILL, signal.SIGTERM):
        process = t.ward_start("image", "build", os.path.join(top, "recipe.yaml"))
        t.check(any(b"WAITING" in line for line in process.stderr), "it has begun")
        started = descendants(process.pid)
        t.check(started, "it runs")
        process.send_signal(number)
        process.wait()
        deadline = time.monotonic() + 10
        while started & descendants(1) and time.monotonic() < deadline:
            time.sleep(0.05)
        left = started & descendants(1)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        t.equal(left, set(), f"it goes on after signal {number}")
        process.communicate()
        live = os.path.join(t.state_dir, "audit", "live")
        t.wait_until(lambda: t.ward("recover").rc == 0 and not os.listdir(live), 30,
                     "its run is not finished")
    t.equal(t.ward("image", "gc").rc, 0)
    t.equal([n for n in os.listdir(os.path.join(t.state_dir, "images")) if n.startswith("work-")],
            [], "left behind")
