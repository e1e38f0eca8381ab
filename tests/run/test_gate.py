"""The gate: what ward cp and ward quarantine restore bring to a place on the host is judged by its
place."""
import fcntl
import os
import signal
import time

from harness.boxes import box

HOOK = "#!/bin/sh\ntouch {}\n"


def plant(t, b, script):
    """Runs a script in the sandbox's /tmp/out."""
    r = t.ward("exec", b, "sh", "-c", f"mkdir -p /tmp/out && cd /tmp/out && {script}")
    t.equal(r.rc, 0, r.err)


def names(path):
    """Every name below path."""
    return {os.path.relpath(os.path.join(top, n), path) for top, dirs, files in os.walk(path)
            for n in dirs + files}


def test_cp_protected_names(t):
    """A protected name is left out and named, the rest comes; --protected brings all of it."""
    b = box(t, cwd=t.workspace())
    plant(t, b, "mkdir -p d/.vscode d/sub/.config/fish d/.hg && echo x > d/.envrc && echo x > "
          "d/.vscode/tasks.json && "
                "echo x > d/fine && echo x > d/sub/mise.toml && echo x > d/.hg/hgrc && echo x > "
          "d/sub/.config/fish/config.fish")
    at = t.fresh_dir("at")
    r = t.ward("cp", f"{b}:/tmp/out/d", at)
    t.equal(r.rc, 125, "exit status")
    for name in (".envrc: run by direnv", ".vscode: ", "sub/mise.toml: ", ".hg/hgrc: ",
                 "sub/.config/fish: "):
        t.contains(r.err, name)
    t.contains(r.err, "--protected")
    t.equal(names(at), {"d", "d/fine", "d/sub", "d/sub/.config", "d/.hg"})
    r = t.ward("cp", "--protected", f"{b}:/tmp/out/d", at)
    t.equal(r.rc, 0, r.err)
    t.equal(t.read(at, "d/.envrc"), "x\n")
    t.equal([n for n in os.listdir(at) if n.startswith(".ward")], [],
            "nothing of the copy's own stays")


def test_cp_over_existing(t):
    """The same where directories of the same names are there: they are joined, host files stay."""
    b = box(t, cwd=t.workspace())
    plant(t, b, "mkdir -p d/.vscode d/sub && echo new > d/.vscode/tasks.json && echo new > "
          "d/.vscode/more.json && "
                "echo new > d/sub/a && echo new > d/sub/b && echo new > d/.envrc")
    at = t.fresh_dir("at")
    t.write(at, {"d/.vscode/tasks.json": "host\n", "d/sub/a": "old\n", "d/sub/c": "old\n",
                 "d/.envrc": "host\n"})
    t.equal(t.ward("cp", f"{b}:/tmp/out/d", at).rc, 125)
    t.equal({n: t.read(at, "d", n) for n in (".vscode/tasks.json", ".vscode/more.json", ".envrc",
                                             "sub/a", "sub/b", "sub/c")},
            {".vscode/tasks.json": "host\n", ".vscode/more.json": None, ".envrc": "host\n",
             "sub/a": "new\n", "sub/b": "new\n", "sub/c": "old\n"})


def test_cp_name_given_outside(t):
    """The name on the host counts, whatever the thing is called inside; also through links and
    "..", and in a protected directory."""
    b = box(t, cwd=t.workspace())
    plant(t, b,
          "echo evil > plain; mkdir dir; echo evil > dir/tasks.json; echo evil > dir/config.toml")
    at = t.fresh_dir("at")
    t.write(at, {".vscode/settings.json": "host\n", "sub/x": "x\n", "mise/y": "y\n",
                 ".config/z": "z\n", ".hg/w": "w\n"})
    t.run("ln", "-s", f"{at}/.vscode", f"{at}/editor", check=True)
    for target in (".envrc", "sub/.envrc", "sub/../.envrc", ".vscode/tasks.json", ".vscode",
                   "editor/tasks.json", "editor", "sub/mise.toml", ".hg/hgrc",
                   "tools.yaml", ".vscode/../.vscode/tasks.json", ".vscode/settings.json"):
        r = t.ward("cp", f"{b}:/tmp/out/plain", f"{at}/{target}")
        t.equal(r.rc, 125, f"a file as {target}")
    for target in (".vscode", "sub/.vscode", ".config/fish", "sub/mise"):
        t.equal(t.ward("cp", f"{b}:/tmp/out/dir", f"{at}/{target}").rc, 125,
                f"a directory as {target}")
    t.equal(t.ward("cp", f"{b}:/tmp/out/plain", ".envrc", cwd=f"{at}/sub").rc, 125, "from within")
    t.equal(t.ward("cp", f"{b}:/tmp/out/plain", "tasks.json", cwd=f"{at}/.vscode").rc, 125,
            "from within a protected directory")
    found = names(at)
    t.equal({n for n in found
             if n.endswith((".envrc", "tasks.json", "mise.toml", "hgrc", "tools.yaml", "fish",
                            "plain", "config.toml"))},
            {"sub/mise/tasks.json"}, "what came: mise does not read that one")
    t.equal(t.read(at, ".vscode/settings.json"), "host\n")


def test_cp_into_git(t):
    """Nothing comes into a repository of the host's, whatever way the name is given; git runs
    nothing."""
    marker = os.path.join(t.fresh_dir("mark"), "ran")
    ws = t.git_repo({"README": "r\n", "scripts/pre-commit": "#!/bin/sh\nexit 0\n", "sub/x": "x\n"})
    os.chmod(f"{ws}/scripts/pre-commit", 0o755)
    t.run("git", "config", "core.hooksPath", "scripts", cwd=ws, check=True)
    bare = t.fresh_dir("bare")
    t.run("git", "init", "-q", "--bare", bare, check=True)
    outer = t.fresh_dir("outer")
    t.run("ln", "-s", f"{ws}/.git", f"{outer}/g", check=True)
    before = {p: t.read(ws, p) for p in (".git/config", "scripts/pre-commit")}
    b = box(t, cwd=t.workspace())
    hook = HOOK.format(marker)
    plant(t, b, f"printf '%s' '{hook}' > hook; chmod +x hook; printf '[core]\\n\\tfsmonitor = "
          f"touch {marker}\\n' > config; mkdir -p w/.git/hooks w/hooks; "
                "cp config w/.git/config; cp hook w/.git/hooks/pre-commit; cp hook "
          "w/hooks/pre-commit; cp config w/config; mkdir -p w/scripts; cp hook "
          "w/scripts/pre-commit; "
                f"printf 'gitdir: {outer}/evil\\n' > gitfile; mkdir w/sub; cp gitfile w/sub/.git")
    base = os.path.basename(ws)
    tries = [("config", f"{ws}/.git/config"), ("config", f"{ws}/.git"),
             ("hook", f"{ws}/.git/hooks/pre-commit"), ("hook", f"{ws}/.git/new"),
             ("config", f"{outer}/g/config"), ("config", f"{outer}/g"),
             ("hook", f"{outer}/../{base}/.git/hooks/pre-commit"),
             ("hook", f"{ws}/scripts/pre-commit"),
             ("config", f"{bare}/config"), ("hook", f"{bare}/hooks/post-update"),
             ("gitfile", f"{ws}/sub/.git"), ("w/.git", f"{ws}"), ("w/hooks", f"{bare}"),
             ("config", f"{ws}/.git/config.worktree"), ("w/.git", f"{ws}/sub"),
             ("hook", f"{ws}/.git/modules/x"), ("hook", f"{ws}/.git/objects/info/alternates")]
    for inside, outside in tries:
        r = t.ward("cp", f"{b}:/tmp/out/{inside}", outside)
        t.equal(r.rc, 125, f"{inside} as {outside}: {r.out}{r.err}")
    t.run("mkdir", f"{outer}/w", check=True)
    t.run("cp", "-r", f"{ws}/.git", f"{ws}/scripts", f"{outer}/w", check=True)
    t.equal(t.ward("cp", f"{b}:/tmp/out/w", outer).rc, 125, "over a work tree")
    t.equal({p: t.read(ws, p) for p in before}, before, "the repository")
    t.equal({p: t.read(outer, "w", p) for p in before}, before, "the other one")
    for at in (ws, f"{ws}/sub", bare, f"{outer}/w", f"{outer}/w/sub"):
        t.run("git", "-C", at, "status")
        t.run("git", "-C", at, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit",
              "--allow-empty", "-qm", "x")
    t.check(not os.path.exists(marker), "git ran what the sandbox wrote")


def test_cp_whole_repository(t):
    """A repository that was made inside comes out as one that git can use; hooks and settings that
    run programs stay away."""
    marker = os.path.join(t.fresh_dir("mark"), "ran")
    b = box(t, cwd=t.workspace())
    hook = HOOK.format(marker)
    plant(t, b, "git init -q -b main r && cd r && echo a > a && git add a && git -c user.name=t -c "
          "user.email=t@example.com commit -qm one && "
                "cp -r /tmp/out/r /tmp/out/evil && cd ../evil && "
                f"printf '%s' '{hook}' > .git/hooks/post-checkout && chmod +x .git/hooks/* && git "
          f"config core.fsmonitor 'touch {marker}' && "
                "mkdir sub && printf 'gitdir: ../.git/logs/x\\n' > sub/.git && ln -s "
          ".git/config shown")
    at = t.fresh_dir("at")
    r = t.ward("cp", f"{b}:/tmp/out/r", at)
    t.equal(r.rc, 0, r.err)
    t.run("git", "-C", f"{at}/r", "fsck", "--strict", check=True)
    t.equal(t.run("git", "-C", f"{at}/r", "log", "--format=%s").out, "one\n")
    r = t.ward("cp", f"{b}:/tmp/out/evil", at)
    t.equal(r.rc, 125)
    for name in (".git/hooks/post-checkout: ", ".git/config: ", "sub/.git: ", "shown: "):
        t.contains(r.err, name)
    for words in (["status"], ["checkout", "-q", "-b", "new"]):
        t.run("git", "-C", f"{at}/evil", *words)
    t.check(not os.path.exists(marker), "git ran what the sandbox wrote")


def test_cp_repository_in_parts(t):
    """A directory does not become a repository piece by piece, whatever the order."""
    marker = os.path.join(t.fresh_dir("mark"), "ran")
    b = box(t, cwd=t.workspace())
    hook = HOOK.format(marker)
    plant(t, b, f"git init -q --bare r && printf '%s' '{hook}' > r/hooks/post-checkout && chmod +x "
          "r/hooks/post-checkout && "
                "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree "
          f"= .\\n\\tfsmonitor = touch {marker}\\n' > r/config")
    for order in (("config", "hooks", "objects", "refs", "HEAD"),
                  ("HEAD", "objects", "refs", "config", "hooks"),
                  ("refs", "config", "HEAD", "hooks", "objects")):
        at = t.fresh_dir("at")
        refused = [part for part in order if t.ward("cp", f"{b}:/tmp/out/r/{part}", at).rc != 0]
        t.check(refused, f"all of {order} came")
        t.run("git", "-C", at, "status")
        t.run("git", "-C", at, "checkout", "-q", "-b", "x")
    t.check(not os.path.exists(marker), "git ran what the sandbox wrote")


def test_cp_policy_names(t):
    """The policy's own protected names hold for ward cp, counted from the workspace's top where
    they begin with a slash, and so do its releases."""
    ws = t.workspace({"ward.yaml": "version: 1\nfilesystem:\n  protect: [deploy.sh, /ops/run, "
                      "keys/, '!.envrc']\n", "ops/old": "x\n"})
    t.ward("trust", "--yes", cwd=ws)
    b = box(t, cwd=ws)
    plant(t, b, "mkdir -p d/sub/keys d/ops; for i in d/deploy.sh d/sub/deploy.sh d/sub/keys/k "
          "d/ops/run d/.envrc d/fine; do echo x > $i; done")
    at = t.fresh_dir("at")
    r = t.ward("cp", f"{b}:/tmp/out/d", at)
    t.equal(r.rc, 125, r.err)
    t.contains(r.err, "deploy.sh: protected by the policy")
    t.equal(names(at), {"d", "d/sub", "d/ops", "d/ops/run", "d/.envrc", "d/fine"})
    for inside, outside in (("d/fine", "ops/run"), ("d/ops/run", "ops"), ("d/ops", "."),
                            ("d/fine", "sub/../ops/run"), ("d/fine", "deploy.sh"),
                            ("d/sub/keys", ".")):
        r = t.ward("cp", f"{b}:/tmp/out/{inside}", f"{ws}/{outside}")
        t.equal(r.rc, 125, f"{inside} as {outside}: {r.err}")
    t.equal(names(ws) - {"ward.yaml"}, {"ops", "ops/old"})
    t.equal(t.ward("cp", f"{b}:/tmp/out/d/fine", f"{ws}/ops/walk").rc, 0)


def test_cp_what_links_lead_to(t):
    """What a protected link of the workspace leads to is not written by ward cp either, without any
    repository."""
    ws = t.workspace({".vscode/settings.json": "{}\n", "tools/tasks.json": "host\n",
                      "tools/fine": "host\n"})
    t.run("ln", "-s", "../tools/tasks.json", f"{ws}/.vscode/tasks.json", check=True)
    t.run("ln", "-s", "tools/mcp.json", f"{ws}/.mcp.json", check=True)
    b = box(t, cwd=ws)
    plant(t, b, "mkdir tools; for i in tasks.json mcp.json fine; do echo evil > tools/$i; done")
    t.equal(t.ward("cp", f"{b}:/tmp/out/tools", ws).rc, 125)
    t.equal(t.ward("cp", f"{b}:/tmp/out/tools/tasks.json", f"{ws}/tools").rc, 125)
    t.equal([t.read(ws, "tools", n) for n in ("tasks.json", "mcp.json", "fine")],
            ["host\n", None, "evil\n"])


def test_cp_killed(t):
    """A copy that is cut short, by any signal, leaves nothing beside the place; what is left when
    all its processes are killed is removed by the next copy."""
    b = box(t, cwd=t.workspace())
    plant(t, b, "mkdir big; head -c 3000 /dev/zero | tr '\\0' x > big/.envrc; truncate -s "
          "15G big/z")
    for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
        at = t.fresh_dir("at")
        p = t.ward_start("cp", f"{b}:/tmp/out/big", at)
        t.wait_until(lambda: any(os.path.exists(f"{at}/{n}/new/big") for n in os.listdir(at)), 20,
                     "the copy does not begin")
        t.equal([n[:9] for n in os.listdir(at)], [".ward-cp-"])
        p.send_signal(sent)
        p.wait()
        t.wait_until(lambda: os.listdir(at) == [], 20, f"signal {sent} leaves {os.listdir(at)}")
    at = t.fresh_dir("at")
    keep = {".ward-cp-0123456789abcde": "x\n", ".ward-cp-0123456789abcdeg/x": "x\n",
            ".ward-cp-fedcba9876543210": "x\n", ".ward-cp-": "x\n"}
    t.write(at, {".ward-cp-0123456789abcdef/new/big/.envrc": "x\n",
                 ".ward-cp-1123456789abcdef/new/y": "y\n", **keep})
    os.chmod(f"{at}/.ward-cp-0123456789abcdef/new", 0)
    t.equal(t.ward("cp", f"{b}:/etc/hostname", at).rc, 0)
    t.equal(len(os.listdir(at)), 7, "another copy may be about to use what is so young")
    locked = os.open(f"{at}/.ward-cp-1123456789abcdef", os.O_RDONLY)
    fcntl.flock(locked, fcntl.LOCK_SH)
    for name in ("0123456789abcdef", "1123456789abcdef"):
        os.utime(f"{at}/.ward-cp-{name}", (time.time() - 60,) * 2)
    t.equal(t.ward("cp", f"{b}:/etc/hostname", f"{at}/again").rc, 0)
    t.equal(sorted(os.listdir(at)),
            sorted([n.split("/")[0] for n in keep] + [".ward-cp-1123456789abcdef", "hostname",
                                                      "again"]))


def test_restore_by_its_place(t):
    """restore --to puts nothing into a git directory or a protected one, follows no link, and says
    what it restores."""
    ws = t.workspace()
    r = t.ward("run", "-w", ws, "--", "sh", "-c",
               "echo x > .envrc; mkdir .vscode; echo y > .vscode/tasks.json", cwd=ws, report=True)
    t.equal(len(r.report["quarantine"]), 2)
    repo = t.git_repo()
    at = t.fresh_dir("at")
    t.write(at, {".idea/x": "x\n"})
    for place in (f"{repo}/.git", f"{repo}/.git/hooks", f"{at}/.idea"):
        r = t.ward("quarantine", "restore", "--to", place, cwd=ws)
        t.equal(r.rc, 125, place)
        t.contains(r.err, "it would be in")
    t.run("ln", "-s", f"{repo}/.git", f"{at}/.vscode", check=True)
    r = t.ward("quarantine", "restore", "--to", at, cwd=ws)
    t.equal(r.rc, 125, "through a link")
    t.contains(r.out, f"restored {at}/.envrc")
    t.contains(r.out, "run by direnv")
    t.check(not os.path.exists(f"{repo}/.git/tasks.json"), "the link was followed")
    r = t.ward("quarantine", "restore", cwd=ws)
    t.equal(r.rc, 0, r.err)
    t.contains(r.out, ".vscode")
    t.contains(r.out, "the editor starts")
