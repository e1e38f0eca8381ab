"""Every way by which something of a sandbox's making arrives on the host, crossed with generated
attacks (harness/gate_attacks.py): nothing is found under a protected name afterwards, and git runs
nothing."""
import json
import os

from harness import by_turns, engines, host, images, native_only, needs, timeout
from harness.boxes import box
from harness.gate_attacks import CASES, LINKS, PLANT, count, found, part, plan
from harness.gvisor import usable
from harness.images import imported, put, tar

PYTHON = ("python3", "-c", PLANT)
SLOW = 180


def names():
    """Which of the names: all where the test is named, else every fifth."""
    return 1 if host.THOROUGH and host.is_plain() else 5


def fewer():
    """The same for other engines, and for ways that end in the same sweep."""
    return 5 if host.THOROUGH else 15


def marker(t):
    """A file that must never appear; sandboxes see its directory nowhere."""
    return os.path.join(t.fresh_dir("mark"), "ran")


def planted(t, r, every=1):
    t.equal(r.rc, 0, r.err)
    t.contains(r.out, f"planted {count(every)}")
    t.check(count(every) >= 150, "attacks")


def check(t, at, mark, way, every=1):
    """Nothing is there, and what is harmless is."""
    left = found(t, at, mark)
    t.equal(left[:20], [], f"{way}: {len(left)} of {count(every)} attacks")
    for place in ("", *sorted({c[0] for c in part(every) if c[2] in ("file", *LINKS)})[:40]):
        t.equal(t.read(at, place, "fine"), "fine\n", f"{way}: what is harmless in {place}")
    t.say(f"{way}: {count(every)} attacks, none arrived")


@native_only("nothing of ward runs: the attacks are tried without a sandbox")
@timeout(SLOW)
def test_attacks(t):
    """The attacks are some: outside of a sandbox all of them are found, and git runs what they
    say."""
    at, mark = t.fresh_dir("at"), marker(t)
    planted(t, t.run(*PYTHON, input=plan(mark), cwd=at, check=True, timeout=SLOW))
    t.check(count() >= 1500 and len({c[1] for c in CASES}) >= 150, f"{count()} attacks")
    left = found(t, at, mark)
    missing = {"{}/{} ({})".format(*c[:3]) for c in CASES} - set(left)
    t.equal(missing, set(), "attacks that are none")
    t.check(sum(n.startswith("git ran it") for n in left) >= 8, "git runs little of it")
    t.say(f"{count()} attacks in all, {count(fewer())} in a part")


def direct(t, *options, way="the sweep of a direct run", every=1):
    ws, mark = t.workspace(), marker(t)
    planted(t, t.ward("run", *options, "-w", ws, "--", *PYTHON, input=plan(mark, every), cwd=ws,
                      timeout=SLOW), every)
    check(t, ws, mark, way, every)


def reviewed(t, *options, way="apply", every=1):
    ws, mark = t.workspace(), marker(t)
    planted(t, t.ward("run", *options, "--review", "-w", ws, "--", *PYTHON, input=plan(mark, every),
                      cwd=ws, timeout=SLOW), every)
    t.equal(os.listdir(ws), [], "nothing is there before apply")
    t.equal(t.ward("apply", cwd=ws, timeout=SLOW).rc, 1)
    check(t, ws, mark, way, every)


def copied(t, *options, way="cp", every=1):
    mark, at, over = marker(t), t.fresh_dir("at"), t.fresh_dir("over")
    b = box(t, *options, cwd=t.workspace())
    planted(t, t.ward("exec", "-i", b, "sh", "-c", 'mkdir /tmp/all; cd /tmp/all; exec "$@"', "sh",
                      *PYTHON, input=plan(mark, every), timeout=SLOW), every)
    t.equal(t.ward("cp", f"{b}:/tmp/all", at, timeout=SLOW).rc, 125)
    check(t, f"{at}/all", mark, f"{way} as a new directory", every)
    t.write(over, {os.path.join("all", c[0], os.path.dirname(c[1])): None for c in CASES
                   if c[2] not in ("above", "closed", "unwritable")})
    t.equal(t.ward("cp", f"{b}:/tmp/all", over, timeout=SLOW).rc, 125)
    check(t, f"{over}/all", mark, f"{way} over directories that are there", every)


@timeout(SLOW)
def test_direct(t):
    direct(t, every=names())


@native_only("the same gate and sweep as test_direct and test_cp")
@timeout(SLOW)
def test_direct_large(t):
    """The same where the sweep reads only what changed."""
    ws, mark = t.workspace({f"d{i}/f{k}": "" for i in range(25) for k in range(50)}), marker(t)
    planted(t, t.ward("run", "-w", ws, "--", *PYTHON, input=plan(mark, names()), cwd=ws,
                      timeout=SLOW), names())
    check(t, ws, mark, "the sweep of a large tree", names())


@native_only("the same gate and sweep as test_direct and test_cp")
@timeout(SLOW)
def test_direct_oci(t):
    direct(t, *engines.OPTIONS["oci"], way="the sweep under oci", every=fewer())


@by_turns
@native_only("the same gate and sweep as test_direct and test_cp")
@timeout(2 * SLOW)
def test_direct_gvisor(t):
    usable(t)
    direct(t, *engines.OPTIONS["gvisor"], way="the sweep behind gVisor", every=fewer())


@by_turns
@native_only("the same gate and sweep as test_direct and test_cp")
@timeout(SLOW)
def test_another_tree(t):
    """A directory that --rw adds is swept like the workspace."""
    ws, other, mark = t.workspace(), t.fresh_dir("other"), marker(t)
    planted(t, t.ward("run", "-w", ws, "--rw", other, "--", "sh", "-c", f'cd {other}; exec "$@"',
                      "sh", *PYTHON, input=plan(mark, fewer()), cwd=ws, timeout=SLOW), fewer())
    check(t, other, mark, "another writable tree", fewer())


@by_turns
@timeout(SLOW)
def test_review(t):
    reviewed(t, every=names())


@by_turns
@native_only("the same gate and sweep as test_direct and test_cp")
@timeout(SLOW)
def test_review_oci(t):
    reviewed(t, *engines.OPTIONS["oci"], way="apply after oci", every=fewer())


@by_turns
@native_only("the same gate and sweep as test_direct and test_cp")
@timeout(2 * SLOW)
def test_review_gvisor(t):
    usable(t)
    reviewed(t, *engines.OPTIONS["gvisor"], way="apply after gVisor", every=fewer())


@by_turns
@timeout(SLOW)
def test_review_goes_on(t):
    """A review that a second run goes on with, applied at the end of that run."""
    ws, mark = t.workspace(), marker(t)
    r = t.ward("run", "--review", "-w", ws, "--", "touch", "first", cwd=ws, report=True)
    planted(t, t.ward("run", "--continue", r.report["run"], "--apply-on-exit", "--", *PYTHON,
                      input=plan(mark, fewer()), cwd=ws, timeout=SLOW), fewer())
    check(t, ws, mark, "--apply-on-exit of a run that went on", fewer())


@by_turns
@timeout(SLOW)
def test_cp(t):
    copied(t, every=names())
    b, single = box(t, cwd=t.workspace()), t.fresh_dir("single")
    for name in (".envrc", "mise.toml", ".mcp.json", "ward.yaml", "tools.yaml", ".git"):
        t.equal(t.ward("cp", f"{b}:/etc/hostname", f"{single}/{name}").rc, 125, name)
    t.equal(os.listdir(single), [])


@by_turns
@native_only("the same gate and sweep as test_direct and test_cp")
@timeout(SLOW)
def test_cp_oci(t):
    copied(t, *engines.OPTIONS["oci"], way="cp out of oci", every=fewer())


@by_turns
@native_only("the same gate and sweep as test_direct and test_cp")
@timeout(2 * SLOW)
def test_cp_gvisor(t):
    usable(t)
    copied(t, *engines.OPTIONS["gvisor"], way="cp out of gVisor", every=fewer())


def test_top_names(t):
    """Names that count at the top of a workspace alone, as every kind of link."""
    for engine in ("native", "oci"):
        for target in ("fine", "../x", "/etc/hostname", "nothing", "chain"):
            ws = t.workspace()
            r = t.ward("run", *engines.OPTIONS[engine], "-w", ws, "--", "sh", "-c",
                       f"echo fine > fine; ln -s fine chain; ln -s {target} tools.yaml", cwd=ws)
            t.equal((r.rc, sorted(os.listdir(ws))), (0, ["chain", "fine"]), target)


def volume(t, options, inside, name):
    """What one run leaves in a volume reaches the host only through the workspace of another run,
    and is swept there."""
    ws, mark = t.workspace(), marker(t)
    planted(t, t.ward("run", *options, "-w", ws, "--", "sh", "-c",
                      f'mkdir -p {inside}/all && cd {inside}/all; exec "$@"', "sh", *PYTHON,
                      input=plan(mark, fewer()), cwd=ws, timeout=SLOW), fewer())
    t.equal(os.listdir(ws), [])
    r = t.ward("run", *options, "-w", ws, "--", "sh", "-c",
               f"chmod -R u+rwx {inside}/all; cp -a {inside}/all/. . 2>/dev/null; test -e fine",
               cwd=ws, timeout=SLOW)
    t.equal(r.rc, 0, r.err)
    check(t, ws, mark, name, fewer())
    volumes = [v["name"] for v in json.loads(t.ward("volume", "ls", "--json").out)["volumes"]]
    t.check(volumes, "there is a volume")
    places = t.run("find", t.directory, "-name", "all", "-not", "-path", f"{t.state_dir}/*").out
    t.equal(places, "", "a volume outside of the state directory")
    t.equal(os.stat(t.state_dir).st_mode & 0o077, 0)


@by_turns
@native_only("the same gate and sweep as test_direct and test_cp")
@timeout(SLOW)
def test_kept_home(t):
    volume(t, ("--set", "filesystem.home=kept"), "~", "a kept home")


@by_turns
@native_only("the same gate and sweep as test_direct and test_cp")
@timeout(SLOW)
def test_cache(t):
    volume(t, ("--set", "filesystem.caches=[npm]"), "~/.npm", "a cache")


@by_turns
@needs("unsanitized")
@timeout(2 * SLOW)
def test_checkpoint(t):
    """What a checkpoint holds reaches the host only through the workspace of the run that goes on
    from it, and is swept there."""
    usable(t)
    ws, mark = t.workspace(), marker(t)
    script = (f"mkdir /tmp/all; cd /tmp/all; python3 -c \"$PLANT\" < {ws}/plan.json > /dev/null; "
              f"cd {ws}; touch ready; until [ -e go ]; do sleep 0.1; done; chmod -R u+rwx "
              "/tmp/all; cp -a /tmp/all/. . 2>/dev/null; exit 0")
    t.write(ws, {"plan.json": plan(mark, fewer())})
    gvisor = engines.OPTIONS["gvisor"]
    b = box(t, *gvisor, "--env", f"PLANT={PLANT}", "--", "sh", "-c", script, cwd=ws)
    t.wait_until(lambda: os.path.exists(f"{ws}/ready"), 120, "it is planted")
    r = t.ward("checkpoint", b, "kept", "--stop", timeout=60)
    t.equal(r.rc, 0, r.err)
    t.equal(sorted(os.listdir(ws)), ["plan.json", "ready"], "nothing comes with the checkpoint")
    t.write(ws, {"go": ""})
    r = t.ward("run", *gvisor, "--env", f"PLANT={PLANT}", "--restore", "kept", cwd=ws, timeout=SLOW)
    t.equal(r.rc, 0, r.err)
    check(t, ws, mark, "a run that goes on from a checkpoint", fewer())
    t.equal(t.run("find", t.directory, "-name", "evil.d", "-not", "-path", f"{ws}/*").out, "",
            "files of the checkpoint elsewhere")
    t.equal(t.ward("checkpoint", "rm", "kept").rc, 0)


@by_turns
@native_only("the same gate and sweep as test_direct and test_cp")
@timeout(SLOW)
def test_image_build(t):
    """What the commands of a recipe make lies in ward's store alone: nothing comes beside the
    recipe or into the workspace, and what a run takes out of its image is swept."""
    made, mark, top = t.fresh_dir("made"), marker(t), t.fresh_dir("recipe")
    r = t.run(*PYTHON, input=plan(mark, fewer()), cwd=made, check=True, timeout=SLOW)
    planted(t, r, fewer())
    t.run("sh", "-c", "chmod -R u+rwx .; tar --exclude=socket -cf ../all.tar . 2>/dev/null; true",
          cwd=made, check=True)
    os.rename(os.path.join(made, "../all.tar"), f"{top}/all.tar")
    imported(t, put(t, "base.tar", tar(*images.busybox_root())), "--name", "base")
    t.write(top,
            {"recipe.yaml": "from: base\nfiles: [{from: all.tar, to: /opt/all.tar}]\nrun:\n"
             "  - mkdir /opt/all; tar xf /opt/all.tar -C /opt/all || true; tar xf /opt/all.tar "
             "2>/dev/null || true\n"})
    before = sorted(os.listdir(top))
    r = t.ward("image", "build", f"{top}/recipe.yaml", "--name", "evil", timeout=SLOW, cwd=top)
    t.equal(r.rc, 0, r.err)
    t.equal(sorted(os.listdir(top)), before, "beside the recipe")
    t.run("rm", "-rf", made, check=True)
    t.equal(t.run("find", t.directory, "-name", "evil.d", "-not", "-path",
                  f"{t.state_dir}/images/*").out, "", "outside of the store")
    t.check("evil.d" in t.run("find", f"{t.state_dir}/images", "-name", "evil.d").out,
            "the image holds it")
    ws = t.workspace()
    r = t.ward("run", "--image", "evil", "-w", ws, "--", "sh", "-c",
               "cp -a /opt/all/. .; test -e fine", cwd=ws, timeout=SLOW)
    t.equal(r.rc, 0, r.err)
    check(t, ws, mark, "what comes out of an image", fewer())


@by_turns
@timeout(SLOW)
def test_restore_elsewhere(t):
    """What is quarantined goes nowhere but where somebody asks for it, and never into a git
    directory or a protected one."""
    ws, mark = t.workspace(), marker(t)
    planted(t, t.ward("run", "-w", ws, "--", *PYTHON, input=plan(mark, names()), cwd=ws,
                      timeout=SLOW), names())
    repo = t.git_repo()
    t.write(repo, {".vscode/x": "x\n"})
    before = sorted(os.listdir(f"{repo}/.git")), sorted(
        os.listdir(f"{repo}/.git/hooks")), os.listdir(f"{repo}/.vscode")
    for place in (".git", ".git/hooks", ".git/../.git/hooks", ".vscode"):
        t.equal(t.ward("quarantine", "restore", "--to", f"{repo}/{place}", cwd=ws, timeout=SLOW).rc,
                125, place)
    t.equal((sorted(os.listdir(f"{repo}/.git")), sorted(os.listdir(f"{repo}/.git/hooks")),
             os.listdir(f"{repo}/.vscode")), before)
    check(t, ws, mark, "restore elsewhere", names())
