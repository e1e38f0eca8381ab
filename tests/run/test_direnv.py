"""A real direnv on the host: after a run, entering any directory of the workspace runs nothing that
the agent wrote, whatever the person has allowed before."""
import os

from harness import by_turns, native_only
from harness.boxes import box

# what the person allowed; {} stands for a name that the agent would like to fill
CALLERS = {
    "source_env": ("source_env {}\n", "env.rc"),
    "source_env of a directory": ("source_env other\n", "other/.envrc"),
    "source_env_if_exists": ("source_env_if_exists {}\n", ".envrc.local"),
    "source": ("source {}\n", "scripts/env"), "a dot": (". ./{}\n", "vars"),
    "quoted": ("source_env \"{}\"\n", "a b/env"),
    "expanded": ("source_env \"$PWD/{}\"\n", "etc/env"),
    "conditional": ("if [ -f {0} ]; then\n  source_env {0}\nfi\n", ".envrc.private"),
    "one line": ("[[ -e {0} ]] && source {0}\n", "mine.env"),
    "a script": ("eval \"$(./{})\"\n", "bin/env"),
    "an interpreter": ("eval \"$(bash {})\"\n", "tools/env"),
    "of its own": ("export A=1; source_env_if_exists {}; export B=2\n", "b.env"),
    "source_up": ("source_up\n", "../.envrc"),
    "dotenv": ("dotenv\n", ".env"), "dotenv_if_exists": ("dotenv_if_exists {}\n", "conf/.env.dev"),
    "nix": ("use nix\n", "shell.nix"), "flake": ("use flake\n", "flake.nix"),
    "direnv_load": ("direnv_load ./{}\n", "load"),
    "a variable": ("D=$PWD/lib; . \"$D/env.sh\"\n", "lib/env.sh"),
    "a quoted variable": ("export D=\"$PWD/lib\"\n[ -e \"$D/x\" ] || source \"$D/a.sh\"\n",
                          "lib/a.sh"),
    "a pattern": ("for f in env.d/*.sh; do . \"$f\"; done\n", "env.d/b.sh"),
}


def enter(t, path, marker):
    """Somebody goes there: whether direnv ran what the agent wrote, or took a variable of its from
    a file."""
    ran = []
    for words in (["export", "bash"], ["exec", path, "true"]):
        r = t.run("direnv", *words, cwd=path)
        if os.path.exists(marker):
            os.unlink(marker)
            ran.append(" ".join(words))
        if "AGENT_WAS_HERE" in r.out + r.err:
            ran.append("a variable")
    return ran


def evil(marker):
    return (f"touch {marker} 2>/dev/null; echo 'AGENT_WAS_HERE=1' >/dev/null\n"
            "export AGENT_WAS_HERE=1\n")


def evil_for(name, marker):
    return "AGENT_WAS_HERE=1\n" if name in (".env",
                                            "conf/.env.dev") else "#!/bin/bash\n" + evil(marker)


def people(t, ws, callers):
    """Writes and allows what the person has: one directory a caller."""
    for i, (text, name) in enumerate(callers):
        t.write(ws, {f"p{i}/x/.envrc": text.format(name)})
        t.run("direnv", "allow", f"{ws}/p{i}/x", check=True)


def plant(callers, marker):
    """The agent's script: fills every name that it can, in the directory and in those above."""
    lines = ["put() { mkdir -p \"$(dirname \"$1\")\" && printf '%s' \"$2\" > \"$1\" && chmod 755 "
             "\"$1\"; } 2>/dev/null"]
    for i, (_, name) in enumerate(callers):
        lines.append(f"put 'p{i}/x/{name}' '{evil_for(name, marker).replace(chr(39), chr(34))}'")
    return "\n".join(lines) + "\ntrue"


def rounds(t, go):
    """Missing files, then old ones; go(ws, script) lets the agent work there."""
    callers = list(CALLERS.values())
    for there in (False, True):
        ws, marker = t.workspace({"README": "x\n"}), os.path.join(t.fresh_dir("mark"), "ran")
        people(t, ws, callers)
        if there:
            for i, (_, name) in enumerate(callers):
                t.write(ws, {f"p{i}/x/{name}": "#!/bin/sh\nexport HOST=1\n" if ".env" not in name
                             else "HOST=1\n"})
                os.chmod(f"{ws}/p{i}/x/{name}", 0o755)
                t.run("direnv", "allow", f"{ws}/p{i}/x", check=True)
        go(ws, plant(callers, marker))
        ran = {kind: enter(t, f"{ws}/p{i}/x", marker) for i, kind in enumerate(CALLERS)}
        yield there, {kind: r for kind, r in ran.items() if r}


@by_turns
@native_only("the time is direnv's own; test_what_an_allowed_file_loads has the sweep")
def test_control(t):
    """Outside of a sandbox direnv runs what is planted."""
    for there, ran in rounds(t, lambda ws, script: t.run("sh", "-c", script, cwd=ws, check=True)):
        # there is no nix here
        t.equal(sorted(set(CALLERS) - set(ran)), ["flake", "nix"],
                f"what direnv does not run (there: {there})")


@by_turns
def test_what_an_allowed_file_loads(t):
    """An .envrc that the person allowed stays theirs, with all that it loads: files that are there,
    and those that are not."""
    def go(ws, script):
        r = t.ward("run", "-w", ws, "--", "sh", "-c", script, cwd=ws)
        t.equal(r.rc, 0, r.err)
        # no nix here: what it would evaluate must not be the agent's
        for name in ("shell.nix", "flake.nix"):
            i = [n for _, n in CALLERS.values()].index(name)
            t.check("AGENT" not in (t.read(ws, f"p{i}/x/{name}") or ""), name)
    for there, ran in rounds(t, go):
        t.equal(ran, {}, f"direnv ran what the agent wrote (there: {there})")


@by_turns
@native_only("the time is direnv's own; test_what_an_allowed_file_loads has the sweep")
def test_after_review(t):
    """The same through apply."""
    def go(ws, script):
        t.equal(t.ward("run", "--review", "-w", ws, "--", "sh", "-c", script, cwd=ws).rc, 0)
        t.ward("apply", cwd=ws)
    for there, ran in rounds(t, go):
        t.equal(ran, {}, f"direnv ran what the agent wrote (there: {there})")


@by_turns
@native_only("the time is direnv's own; test_what_an_allowed_file_loads has the sweep")
def test_after_cp(t):
    """The same through cp over the workspace of the sandbox."""
    def go(ws, script):
        b = box(t, "-w", ws, cwd=ws)
        t.equal(t.ward("exec", b, "sh", "-c", f"mkdir /tmp/w; cd /tmp/w; {script}").rc, 0)
        for name in t.ward("exec", b, "ls", "/tmp/w").out.split():
            t.ward("cp", f"{b}:/tmp/w/{name}", ws)
    for there, ran in rounds(t, go):
        t.equal(ran, {}, f"direnv ran what the agent wrote (there: {there})")


@native_only("the time is direnv's own; test_what_an_allowed_file_loads has the sweep")
def test_its_own_files(t):
    """.envrc files: new, changed, replaced by a link, in directories that are allowed as a whole
    (whitelist.prefix), by renaming their directory."""
    for allow in ("file", "prefix"):
        ws, marker = t.workspace({".envrc": "export A=1\n", "sub/.envrc": "export B=1\n",
                                  "old/.envrc": "export C=1\n",
                                  "x/y": "y\n"}), os.path.join(t.fresh_dir("mark"), "ran")
        for where in ("", "sub", "old"):
            t.run("direnv", "allow", os.path.join(ws, where), check=True)
        if allow == "prefix":
            t.write(t.home, {".config/direnv/direnv.toml": f"[whitelist]\nprefix = [\"{ws}\"]\n"})
        script = evil(marker).replace("'", '"')
        lines = [f"printf '%s' '{script}' > evil", "cp evil .envrc", "ln -sf ../evil sub/.envrc",
                 "mkdir -p new/deep; cp evil new/deep/.envrc", "ln -s ../evil x/.envrc",
                 "mv old older; mkdir old; cp evil old/.envrc",
                 "mkdir plain; cp evil plain/.envrc; mv plain renamed",
                 "mkdir e; printf x > e/.env; ln evil e/.envrc",
                 "mv sub sub2; mkdir sub; cp evil sub/.envrc"]
        t.ward("run", "-w", ws, "--", "sh", "-c", "\n".join(lines), cwd=ws)
        ran = {top: enter(t, top, marker) for top, _, _ in os.walk(ws)}
        t.equal({k: r for k, r in ran.items() if r}, {}, allow)
        t.check(len(ran) >= 8, "directories")
        if allow == "prefix":
            t.run("sh", "-c", "mkdir control; cp evil control/.envrc", cwd=ws, check=True)
            t.check(enter(t, f"{ws}/control", marker), "the control ran nothing")
