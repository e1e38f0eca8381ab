"""Every way out of a sandbox, crossed with every row of tables/protect.def and with links: nothing is found under a protected name afterwards."""
import os
import re

from harness.boxes import box

TABLE = os.path.join(os.path.dirname(__file__), "../../tables/protect.def")
LINKS = {".envrc": "../evil", ".vscode": "../evil.d", ".git": "../repo/.git", "data": "../repo/.git", "mise.toml": "/etc/hostname", ".claude": "../evil.d",
         ".config": "../evil.d", "chain": "chain2", ".zed": "chain"}


def rows():
    """One path for each row: every pattern with something that it covers."""
    with open(TABLE) as f:
        patterns = [p.replace('\\"', '"') for p in re.findall(r'^PROTECT\("((?:[^"\\]|\\.)*)"', f.read(), re.M)]
    for i, pattern in enumerate(patterns):
        path = pattern.removeprefix("**/")
        path = "/".join("settings.json" if part == "*" else part.replace("*", "x") for part in path.split("/"))
        path += "planted" if path.endswith("/") else ""
        yield path[1:] if path.startswith("/") else f"r{i}/{path}"


ROWS = list(rows())


def script(marker):
    """What the agent does in the directory where it stands."""
    lines = ["echo evil > evil; mkdir -p evil.d/fish; echo evil > evil.d/settings.json"]
    lines += ["mkdir -p " + " ".join(f"'{os.path.dirname(p) or '.'}'" for p in ROWS)]
    lines += [f"echo evil > '{p}'" for p in ROWS]
    lines += ["git init -q repo; git init -q --bare bare"]
    for git in ("repo/.git", "bare"):
        lines += [f"printf '#!/bin/sh\\ntouch {marker}\\n' > {git}/hooks/post-checkout; chmod +x {git}/hooks/post-checkout",
                  f"git -C {git} config core.fsmonitor 'touch {marker}'", f"echo . > {git}/commondir; printf '[core]\\n\\tfsmonitor = touch {marker}\\n' > {git}/config.worktree"]
    lines += ["mkdir -p " + " ".join(f"l{i}" for i in range(len(LINKS)))]
    lines += [f"ln -s '{target}' 'l{i}/{name}'" for i, (name, target) in enumerate(LINKS.items())]
    lines += ["mkdir -p sub; echo 'gitdir: ../repo/.git' > sub/.git; echo fine > fine"]
    return "\n".join(lines)


def found(t, at, marker):
    """What lies at a protected name below the directory, and whether the host's git runs anything of it."""
    names = [p for p in ROWS if os.path.lexists(os.path.join(at, p))]
    names += [f"l{i}/{name} -> {target}" for i, (name, target) in enumerate(LINKS.items())
              if name not in ("chain",) and os.path.lexists(os.path.join(at, f"l{i}", name))]
    names += [p for git in ("repo/.git", "bare") for p in (f"{git}/hooks/post-checkout", f"{git}/commondir", f"{git}/config.worktree") if os.path.lexists(os.path.join(at, p))]
    names += ["sub/.git"] if os.path.lexists(os.path.join(at, "sub/.git")) else []
    for where in ("repo", "bare", "sub", "."):
        if os.path.isdir(os.path.join(at, where)):
            t.run("git", "-C", os.path.join(at, where), "status")
            t.run("git", "-C", os.path.join(at, where), "checkout", "-q", "-b", "x")
    return names + (["git ran it"] if os.path.exists(marker) else [])


def check(t, at, marker, way, fine=True):
    t.equal(found(t, at, marker), [], way)
    if fine:
        t.equal(t.read(at, "fine"), "fine\n", f"{way}: what is harmless")


def test_rows(t):
    """The attack is one: outside of a sandbox everything is found."""
    at, marker = t.fresh_dir("at"), os.path.join(t.fresh_dir("mark"), "ran")
    t.check(len(ROWS) > 100, "rows")
    t.run("sh", "-c", script(marker), cwd=at, check=True)
    t.check(len(found(t, at, marker)) > len(ROWS) + len(LINKS), "not all of it is found")


def test_direct(t):
    ws, marker = t.workspace(), os.path.join(t.fresh_dir("mark"), "ran")
    r = t.ward("run", "-w", ws, "--", "sh", "-c", script(marker), cwd=ws)
    t.equal(r.rc, 0, r.err)
    check(t, ws, marker, "the sweep of a direct run")


def test_review(t):
    ws, marker = t.workspace(), os.path.join(t.fresh_dir("mark"), "ran")
    t.equal(t.ward("run", "--review", "-w", ws, "--", "sh", "-c", script(marker), cwd=ws).rc, 0)
    t.equal(t.ward("apply", cwd=ws).rc, 1)
    check(t, ws, marker, "apply")
    ws, marker = t.workspace(), os.path.join(t.fresh_dir("mark"), "ran")
    r = t.ward("run", "--review", "-w", ws, "--", "touch", "first", cwd=ws, report=True)
    r = t.ward("run", "--continue", r.report["run"], "--", "sh", "-c", script(marker), cwd=ws)
    t.equal(r.rc, 0, r.err)
    t.equal(t.ward("apply", cwd=ws).rc, 1)
    check(t, ws, marker, "apply of a run that went on")


def test_cp(t):
    at, marker = t.fresh_dir("at"), os.path.join(t.fresh_dir("mark"), "ran")
    b = box(t, cwd=t.workspace())
    r = t.ward("exec", b, "sh", "-c", f"mkdir /tmp/all; cd /tmp/all; {script(marker)}")
    t.equal(r.rc, 0, r.err)
    t.equal(t.ward("cp", f"{b}:/tmp/all", at).rc, 125)
    check(t, f"{at}/all", marker, "cp as a new directory")
    over = t.fresh_dir("over")
    t.write(over, {"all/" + os.path.dirname(p) if os.path.dirname(p) else "all": None for p in ROWS if not p.split("/")[1:2] == [".git"]})
    t.equal(t.ward("cp", f"{b}:/tmp/all", over).rc, 125)
    check(t, f"{over}/all", marker, "cp over directories that are there")
    single = t.fresh_dir("single")
    for name in (".envrc", "mise.toml", ".mcp.json", "ward.yaml", "tools.yaml", ".git"):
        t.equal(t.ward("cp", f"{b}:/tmp/all/fine", f"{single}/{name}").rc, 125, name)
    t.equal(os.listdir(single), [])


def test_kept_home(t):
    """What one run leaves in a home that is kept reaches the host only through another run's workspace, and is swept there."""
    ws, marker = t.workspace(), os.path.join(t.fresh_dir("mark"), "ran")
    home = ["--set", "filesystem.home=kept"]
    r = t.ward("run", *home, "-w", ws, "--", "sh", "-c", f"mkdir ~/all; cd ~/all; {script(marker)}", cwd=ws)
    t.equal(r.rc, 0, r.err)
    t.equal(os.listdir(ws), [])
    r = t.ward("run", *home, "-w", ws, "--", "sh", "-c", "cp -a ~/all/. .", cwd=ws)
    t.equal(r.rc, 0, r.err)
    check(t, ws, marker, "a kept home")
    t.ward("volume", "rm", "kept", cwd=ws)


def test_restore_elsewhere(t):
    """What is quarantined goes nowhere but where somebody asks for it, and never into a git directory or a protected one."""
    ws, marker = t.workspace(), os.path.join(t.fresh_dir("mark"), "ran")
    t.ward("run", "-w", ws, "--", "sh", "-c", script(marker), cwd=ws)
    repo = t.git_repo()
    t.write(repo, {".vscode/x": "x\n"})
    before = sorted(os.listdir(f"{repo}/.git")), sorted(os.listdir(f"{repo}/.git/hooks")), os.listdir(f"{repo}/.vscode")
    for place in (".git", ".git/hooks", ".git/../.git/hooks", ".vscode"):
        t.equal(t.ward("quarantine", "restore", "--to", f"{repo}/{place}", cwd=ws).rc, 125, place)
    t.equal((sorted(os.listdir(f"{repo}/.git")), sorted(os.listdir(f"{repo}/.git/hooks")), os.listdir(f"{repo}/.vscode")), before)
    check(t, ws, marker, "restore elsewhere")
