"""profile: and extends: in a policy file, the user's defaults, WARD_* variables, and trust."""

import json
import os

WIDE = "version: 1\nresources: {pids_limit: 5000}\n"


def plan(t, *options, cwd, **more):
    r = t.ward("plan", "--json", *options, "--", "true", cwd=cwd, **more)
    return json.loads(r.out) if r.rc == 0 else r.err


def value(planned, field):
    return planned["policy"][field]["value"] if isinstance(planned, dict) else planned


def config(t, text, mode=0o644):
    t.write(t.home, {".config/ward/config.yaml": text})
    os.chmod(os.path.join(t.home, ".config/ward/config.yaml"), mode)


def test_precedence(t):
    """Built-in < user's defaults < profile < extended files in order < file < options."""
    t.write(
        t.home,
        {
            ".config/ward/profiles/p.yaml": "version: 1\nresources:\n"
            "  {pids_limit: 20, timeout_seconds: 20, open_files: 20, inode_limit: 20}\n"
        },
    )
    config(
        t,
        "version: 1\nresources: {pids_limit: 10, timeout_seconds: 10, open_files: 100, "
        "inode_limit: 100, output_limit: 10}\n",
    )
    top = t.fresh_dir("policies")
    t.write(
        top,
        {
            "base.yaml": "version: 1\nprofile: p\n"
            "resources: {timeout_seconds: 30, open_files: 30}\n",
            "team/more.yaml": "version: 1\nresources: {open_files: 40}\n",
            "ward.yaml": "version: 1\nextends: [base.yaml, team/more.yaml]\n"
            "resources: {inode_limit: 50}\n",
        },
    )
    ws = t.workspace()
    planned = plan(t, "-p", os.path.join(top, "ward.yaml"), "--disk", "1M", cwd=ws)
    t.equal(
        [
            value(planned, f"resources.{f}")
            for f in (
                "output_limit",
                "pids_limit",
                "timeout_seconds",
                "open_files",
                "inode_limit",
                "disk_limit",
            )
        ],
        ["10", "20", "30", "40", "50", "1M"],
    )
    froms = {
        f: planned["policy"][f"resources.{f}"]
        for f in (
            "output_limit",
            "pids_limit",
            "timeout_seconds",
            "open_files",
            "inode_limit",
            "disk_limit",
        )
    }
    t.equal(
        [
            (froms[f]["from"], os.path.basename(froms[f].get("file", "")), froms[f].get("line"))
            for f in froms
        ],
        [
            ("user", "config.yaml", 2),
            ("profile", "p.yaml", 3),
            ("file", "base.yaml", 3),
            ("file", "more.yaml", 2),
            ("file", "ward.yaml", 3),
            ("command line", "", None),
        ],
    )
    t.equal(planned["profile"], "p")
    text = t.ward("policy", "show", "-p", os.path.join(top, "ward.yaml"), cwd=ws).out
    t.contains(text, "resources.open_files: 40")
    t.contains(text, "team/more.yaml:2)")
    t.contains(
        t.ward("plan", "--full", "-p", os.path.join(top, "ward.yaml"), "--", "true", cwd=ws).out,
        "team/more.yaml:2)",
    )


def test_extends_by_name_and_as_one_word(t):
    ws = t.workspace()
    top = t.fresh_dir("policies")
    for text in ("extends: python", "extends: [python]", "profile: python"):
        t.write(top, {"p.yaml": f"version: 1\n{text}\n"})
        t.equal(
            value(plan(t, "-p", os.path.join(top, "p.yaml"), cwd=ws), "filesystem.home"),
            "python",
            text,
        )
    t.write(top, {"p.yaml": "version: 1\nprofile: python\n"})
    t.contains(
        plan(t, "-p", os.path.join(top, "p.yaml"), "--profile", "codex", cwd=ws),
        "--profile names codex",
    )
    t.equal(
        value(
            plan(t, "-p", os.path.join(top, "p.yaml"), "--profile", "codex", "--widen", cwd=ws),
            "filesystem.home",
        ),
        "codex",
    )


def test_what_cannot_be_extended(t):
    """A missing file, a cycle, too deep, a mistake below: each is named, and nothing runs."""
    ws = t.workspace()
    top = t.fresh_dir("policies")
    chain = {f"c{i}.yaml": f"version: 1\nextends: c{i + 1}.yaml\n" for i in range(12)}
    t.write(
        top,
        {
            "missing.yaml": "version: 1\nextends: nothing.yaml\n",
            "a.yaml": "version: 1\nextends: b.yaml\n",
            "b.yaml": "version: 1\nextends: [./a.yaml]\n",
            "self.yaml": "extends: self.yaml\n",
            "name.yaml": "extends: pyton\n",
            "below.yaml": "extends: bad.yaml\n",
            "bad.yaml": "version: 1\nnetwrk: {}\n",
            "kind.yaml": "extends: 7\n",
            "escaped.yaml": '"ext\\x65nds": bad.yaml\n',
            **chain,
        },
    )
    os.mkfifo(os.path.join(top, "fifo.yaml"))
    t.write(top, {"pipe.yaml": "extends: fifo.yaml\n"})
    for name, why in (
        ("missing", "missing.yaml:2: extends"),
        ("a", "extends itself by way of"),
        ("self", "extends itself"),
        ("name", "did you mean python"),
        ("below", "bad.yaml:2:1"),
        ("kind", "kind.yaml:1:"),
        ("c0", "more than 8 deep"),
        ("pipe", "not a regular file"),
        ("escaped", "without escapes"),
    ):
        r = t.ward(
            "run", "-p", os.path.join(top, f"{name}.yaml"), "--", "/bin/echo", "started", cwd=ws
        )
        t.check(r.rc == 125 and "started" not in r.out, (name, r.out, r.err))
        t.contains(r.err, why, name)


def test_trust_covers_what_is_extended(t):
    """A found file and one that it extends are accepted together; a change needs a new word."""
    ws = t.workspace({"ward.yaml": "version: 1\nextends: conf/base.yaml\n", "conf/base.yaml": WIDE})
    t.contains(plan(t, cwd=ws), "ward trust")
    r = t.ward("trust", cwd=ws)
    t.check(
        r.rc == 125 and "--yes" in r.err and "widens resources.pids_limit: 1024 -> 5000" in r.out,
        (r.out, r.err),
    )
    t.contains(plan(t, cwd=ws), "ward trust", "it was only shown")
    t.equal(t.ward("trust", "--yes", cwd=ws).rc, 0)
    t.equal(value(plan(t, cwd=ws), "resources.pids_limit"), "5000")
    t.write(ws, {"conf/base.yaml": WIDE.replace("5000", "6000")})
    t.contains(plan(t, cwd=ws), "ward trust", "the extended file has changed")
    t.contains(
        plan(t, "-p", "ward.yaml", cwd=ws),
        "a file in the workspace that was not named",
        "naming one does not name the other",
    )
    answer = t.ward_tty("trust", cwd=ws, input=b"n\n")
    t.contains(answer.out, "-resources: {pids_limit: 5000}", "the difference to what was accepted")
    t.contains(plan(t, cwd=ws), "ward trust", "no is no")
    t.equal(t.ward_tty("trust", cwd=ws, input=b"y\n").rc, 0)
    for options in ((), ("-p", "ward.yaml")):
        t.equal(value(plan(t, *options, cwd=ws), "resources.pids_limit"), "6000", options)
    t.write(ws, {"ward.yaml": "version: 1\nprofile: codex\n"})
    t.contains(
        plan(t, cwd=ws),
        "network.mode: none -> restricted",
        "a profile that the file chooses is not the user's word",
    )
    t.write(
        ws,
        {
            "ward.yaml": "version: 1\nextends: conf/base.yaml\n",
            "conf/base.yaml": "version: 1\nresources: {pids_limit: 7}\n",
        },
    )
    t.equal(value(plan(t, cwd=ws), "resources.pids_limit"), "7", "what narrows needs no trust")


def test_a_change_that_was_approved_stays_trusted(t):
    ws = t.workspace({"ward.yaml": WIDE})
    t.equal(t.ward("policy", "add", "filesystem.caches", "npm", "--yes", cwd=ws).rc, 0)
    t.contains(plan(t, cwd=ws), "ward trust", "it was not trusted before")
    t.equal(t.ward("trust", "--yes", cwd=ws).rc, 0)
    r = t.ward("policy", "add", "filesystem.caches", "pip", "--yes", cwd=ws)
    t.contains(r.out, "written and accepted")
    t.equal(value(plan(t, cwd=ws), "filesystem.caches"), "[npm, pip]")
    t.check(
        json.loads(
            t.ward("policy", "add", "filesystem.caches", "go", "--yes", "--json", cwd=ws).out
        )["trusted"],
        "as JSON",
    )
    with open(os.path.join(ws, "ward.yaml"), "a") as f:
        f.write("process: {syscalls: build}\n")
    t.contains(plan(t, cwd=ws), "ward trust", "somebody else's change")
    t.check(
        not json.loads(
            t.ward("policy", "add", "filesystem.caches", "uv", "--yes", "--json", cwd=ws).out
        )["trusted"],
        "as JSON",
    )
    t.contains(plan(t, cwd=ws), "ward trust", "an addition does not accept the rest")
    fresh = t.workspace()
    t.equal(t.ward("policy", "add", "filesystem.caches", "npm", "--yes", cwd=fresh).rc, 0)
    t.equal(
        value(plan(t, cwd=fresh), "filesystem.caches"),
        "[npm]",
        "a file of which every line was approved",
    )


def test_the_users_defaults(t):
    """They hold for every run; a found file cannot widen them without trust."""
    config(
        t,
        "version: 1\nprofile: generic\nresources: {pids_limit: 100}\nfilesystem: {hide: [.env]}\n",
    )
    ws = t.workspace({".env": "TOKEN=1\n"})
    r = t.ward("run", "--", "sh", "-c", "cat .env; ulimit -n", cwd=ws, report=True)
    t.contains(r.err, "Permission denied")
    planned = plan(t, cwd=ws)
    t.equal(
        (
            value(planned, "resources.pids_limit"),
            value(planned, "process.syscalls"),
            planned["profile"],
        ),
        ("100", "build", "generic"),
    )
    t.equal(
        value(plan(t, "--pids", "200", cwd=ws), "resources.pids_limit"),
        "200",
        "no policy file: options are the same user's word",
    )
    t.write(ws, {"ward.yaml": "version: 1\nresources: {pids_limit: 200}\n"})
    t.contains(plan(t, cwd=ws), "ward trust")
    t.write(ws, {"ward.yaml": "version: 1\nprofile: null\nresources: {pids_limit: 50}\n"})
    planned = plan(t, cwd=ws)
    t.equal((value(planned, "resources.pids_limit"), planned["profile"]), ("50", None))
    moved = t.fresh_dir("config")
    t.write(moved, {"ward/config.yaml": "version: 1\nresources: {pids_limit: 33}\n"})
    t.contains(
        plan(t, cwd=ws, env={"XDG_CONFIG_HOME": moved}),
        "resources.pids_limit: 33 -> 50",
        "what widens them needs trust",
    )
    t.equal(
        value(plan(t, cwd=t.workspace(), env={"XDG_CONFIG_HOME": moved}), "resources.pids_limit"),
        "33",
    )


def test_defaults_that_are_not_the_users(t):
    """Writable by others, in the workspace, or wrong: nothing runs."""
    ws = t.workspace()
    config(t, "version: 1\n", 0o666)
    r = t.ward("run", "--", "/bin/echo", "started", cwd=ws)
    t.check(r.rc == 125 and "chmod go-w" in r.err, r.err)
    config(t, "version: 1\nresorces: {}\n")
    t.contains(t.ward("run", "--", "true", cwd=ws).err, "config.yaml:2:1")
    config(t, "version: 1\nextends: x.yaml\n")
    t.contains(t.ward("run", "--", "true", cwd=ws).err, "the user's defaults extend nothing")
    os.unlink(os.path.join(t.home, ".config/ward/config.yaml"))
    inside = t.workspace({"ward/config.yaml": "version: 1\nresources: {pids_limit: 9000}\n"})
    r = t.ward("run", "--", "/bin/echo", "started", cwd=inside, env={"XDG_CONFIG_HOME": inside})
    t.check(r.rc == 125 and "in the workspace" in r.err and "started" not in r.out, r.err)


def test_a_sandbox_cannot_write_them(t):
    """Where a writable tree holds the directory of the user's settings, it is read-only there."""
    ws = t.workspace({"kept": "x\n"})
    tree = t.fresh_dir("tree")
    t.write(tree, {"ward/profiles/p.yaml": "version: 1\n"})
    r = t.ward(
        "run",
        "--rw",
        tree,
        "--",
        "sh",
        "-c",
        f"echo 'version: 1' > {tree}/ward/config.yaml; echo x > {tree}/other",
        cwd=ws,
        env={"XDG_CONFIG_HOME": tree},
    )
    t.check(not os.path.exists(os.path.join(tree, "ward/config.yaml")), (r.out, r.err))
    t.equal(t.read(tree, "other"), "x\n", "what lies beside it can be written")


def test_the_environment(t):
    """WARD_PROFILE is a default, WARD_POLICY names a file, WARD_ISOLATION is an option."""
    ws = t.workspace({"wide.yaml": WIDE})
    outside = t.fresh_dir("policy")
    t.write(outside, {"p.yaml": WIDE, "q.yaml": "version: 1\nprofile: generic\n"})
    t.equal(plan(t, cwd=ws, env={"WARD_PROFILE": "python"})["profile"], "python")
    t.equal(
        plan(t, "--profile", "codex", cwd=ws, env={"WARD_PROFILE": "python"})["profile"], "codex"
    )
    t.equal(
        plan(t, "-p", f"{outside}/q.yaml", cwd=ws, env={"WARD_PROFILE": "python"})["profile"],
        "generic",
    )
    t.equal(
        value(plan(t, cwd=ws, env={"WARD_POLICY": f"{outside}/p.yaml"}), "resources.pids_limit"),
        "5000",
    )
    t.contains(
        plan(t, cwd=ws, env={"WARD_POLICY": f"{ws}/wide.yaml"}), "ward trust", "in the workspace"
    )
    t.equal(
        value(
            plan(t, "-p", f"{outside}/q.yaml", cwd=ws, env={"WARD_POLICY": f"{outside}/p.yaml"}),
            "resources.pids_limit",
        ),
        "1024",
        "-p goes first",
    )
    t.contains(plan(t, cwd=ws, env={"WARD_ISOLATION": "nativ"}), "WARD_ISOLATION")
    planned = plan(t, cwd=ws, env={"WARD_ISOLATION": "native"})
    t.equal(planned["policy"]["isolation"]["from"], "command line")
    t.check(
        t.ward("run", "--", "sh", "-c", "env", cwd=ws, env={"WARD_PROFILE": "generic"}).out.find(
            "WARD_"
        )
        < 0,
        "they do not go inside",
    )
