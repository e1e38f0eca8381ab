"""A real mise on the host: after a run, entering a directory of the workspace runs nothing that the
agent wrote and finds none of its programs, whether the person trusts the directory or not.

mise is not in Debian: the one that WARD_TEST_MISE names, the one in PATH, or what tools/mise.sh has
fetched into the build directory.
"""
import os
import shutil

from harness import native_only, timeout
from harness.boxes import box

# under what names mise looks for something; {exec} is a template that runs a command when mise
# reads the file
TOML = ["mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml", ".rtx.toml",
        "mise/config.toml", "mise/config.local.toml", ".mise/config.toml",
        ".mise/config.local.toml", ".config/mise.toml", ".config/mise.local.toml",
        ".config/mise/config.toml", ".config/mise/config.local.toml",
        ".config/mise/mise.toml", ".config/mise/conf.d/a.toml", ".config/mise/conf.d/b/mise.toml",
        ".mise/conf.d/a.toml", ".mise/conf.d/b/mise.toml",
        "mise/conf.d/a.toml", "mise/conf.d/b/mise.local.toml"]
RC = [".miserc.toml", ".miserc.local.toml", ".config/miserc.toml", ".config/miserc.local.toml"]
TASKS = [".mise/tasks/t", "mise-tasks/t", ".mise-tasks/t", "mise/tasks/t", ".config/mise/tasks/t"]
# version files of other tools, which mise reads where idiomatic_version_file_enable_tools says so
IDIOMATIC = {name: "path:../agents-bin" for name in (
    ".nvmrc", ".node-version", ".python-version", ".python-versions", ".ruby-version",
    ".java-version", ".go-version", ".terraform-version", ".bun-version", ".deno-version", ".yvmrc",
    ".zig-version", ".crystal-version", ".swift-version", ".exenv-version", ".packer-version",
    ".opentofu-version")}
IDIOMATIC |= {
    "two words/.nvmrc": "18 path:../agents-bin",
    "two lines/.python-version": r"3.11\npath:../agents-bin",
    "prefix/.ruby-version": "ruby-path:../agents-bin", "v/.nvmrc": "vpath:../agents-bin",
    "runtime/package.json":
        '{"devEngines":{"runtime":{"name":"node","version":"path:../agents-bin"}}}',
    "list/package.json":
        '{"devEngines":{"runtime":[{"name":"node","version":"path:../agents-bin"}]}}',
    "manager/package.json": '{"packageManager":"pnpm@path:../agents-bin"}',
    "escaped/package.json": r'{"packageManager":"pnpm@\\u0070ath:../agents-bin"}',
    "rust-toolchain.toml": r'[toolchain]\nchannel = "path:../agents-bin"\n',
}
TOOLS = ["node", "python", "ruby", "java", "go", "terraform", "bun", "deno", "yarn", "pnpm", "zig",
         "crystal", "swift", "elixir", "packer", "opentofu", "rust"]
# what a file that the person trusts names: its own text, the file that the agent would like to
# fill, and what it fills it with
CALLERS = {
    "source": ("mise.toml", "[env]\n_.source = \"env.sh\"\n", "env.sh", "sh"),
    "source in a list": ("mise.toml", "[env]\n_.source = [\"scripts/a.sh\", \"scripts/b.sh\"]\n",
                         "scripts/b.sh", "sh"),
    "source of a table": ("mise.toml",
                          "[env]\n_.source = { path = \"./t/env.sh\", tools = true }\n", "t/env.sh",
                          "sh"),
    "from the root": ("mise.toml", "[env]\n_.source = \"{{config_root}}/etc/env.sh\"\n",
                      "etc/env.sh", "sh"),
    "file": ("mise.toml", "[env]\n_.file = \".env\"\n", ".env", "env"),
    "file of a name": ("mise.toml", "[env]\n_.file = [\"conf/dev.env\"]\n", "conf/dev.env", "env"),
    "json": ("mise.toml", "[env]\n_.file = \"env.json\"\n", "env.json", "json"),
    "exec": ("mise.toml", "[env]\nA = \"{{ exec(command='./bin/a') }}\"\n", "bin/a", "sh"),
    "exec of an interpreter": ("mise.toml", "[env]\nA = \"{{ exec(command='sh tools/a.sh') }}\"\n",
                               "tools/a.sh", "sh"),
    "enter": ("mise.toml", "[hooks]\nenter = \"./hooks/enter.sh\"\n", "hooks/enter.sh", "sh"),
    "cd": ("mise.toml", "[hooks]\ncd = \"bash scripts/cd.sh\"\n", "scripts/cd.sh", "sh"),
    "another place": (".config/mise/config.toml", "[env]\n_.source = \"env_b.sh\"\n", "env_b.sh",
                      "sh"),
    "a third place": ("mise/config.toml", "[env]\n_.source = \"env_c.sh\"\n", "env_c.sh", "sh"),
    "a fourth place": (".mise/config.toml", "[env._]\nsource = 'bin/env_d'\n", "bin/env_d", "sh"),
    "a topic": (".config/mise/conf.d/x.toml", "[env]\n_.file = \"e.env\"\n", "e.env", "env"),
}


def find(t):
    """The program."""
    build = os.path.dirname(os.path.dirname(os.path.dirname(t.ward_path)))
    for path in (os.environ.get("WARD_TEST_MISE"), shutil.which("mise"),
                 os.path.join(build, "mise", "mise")):
        if path and os.access(path, os.X_OK):
            return path
    return t.skip("there is no mise here: tools/mise.sh fetches it, or WARD_TEST_MISE names it")


# a shell that has mise activated goes through directories: "== DIR", what ran, variables of the
# agent's, PATH, then the same for `mise env`
WALK = r"""
eval "$("$MISE" activate bash)"
for dir; do
    cd "$dir"; echo "== $dir"
    _mise_hook
    git --version >/dev/null
    echo "PATH $PATH"; env | grep AGENT_WAS_HERE
    [ ! -e "$MARKER" ] || { echo "RAN by cd"; rm -f "$MARKER"; }
    "$MISE" env -s bash; "$MISE" tasks ls
    [ ! -e "$MARKER" ] || { echo "RAN by mise env"; rm -f "$MARKER"; }
done
"""


def enter(t, places, marker):
    """Somebody goes to each of the places: {place: what mise ran of the agent's, took as a
    variable, or put in front of PATH}."""
    program, found, at = find(t), {}, None
    env = {"MISE_OFFLINE": "1", "MISE": program, "MARKER": marker,
           "PATH": f"{os.path.dirname(program)}:/usr/bin:/bin"}
    r = t.run("bash", "--norc", "-c", WALK, "walk", *places, cwd="/", env=env, timeout=200)
    for line in r.out.splitlines():
        if line.startswith("== "):
            at = line[3:]
        elif line.startswith("RAN ") or "AGENT_WAS_HERE" in line or "/agents-bin" in line:
            found.setdefault(at, []).append(line[:60])
    t.equal(at, places[-1], "the last place")
    return found


def plant_script(marker, callers=()):
    """The agent's script: everything that it can think of, one directory for each."""
    lines = ["put() { mkdir -p \"$(dirname \"$1\")\" && printf '%b' \"$2\" > \"$1\" && chmod 755 "
             "\"$1\"; } 2>/dev/null", f"put agents-bin/bin/git '#!/bin/sh\\ntouch {marker}\\n'"]
    template = "{{ exec(command=\"touch %s; echo 1\") }}" % marker
    toml = (f"[env]\\nX = \\047{template}\\047\\nAGENT_WAS_HERE = \"1\"\\n[hooks]\\nenter = "
            f"\"touch {marker}\"\\ncd = \"touch {marker}\"\\n")
    content = {"sh": f"#!/bin/sh\\ntouch {marker}\\nexport AGENT_WAS_HERE=1\\n",
               "env": "AGENT_WAS_HERE=1\\n", "json": "{\"AGENT_WAS_HERE\":\"1\"}"}
    for i, name in enumerate(TOML):
        lines.append(f"put n{i}/{name} '{toml}'")
    for i, name in enumerate(RC):
        lines.append(f"put r{i}/planted.toml '{toml}'; put r{i}/{name} 'override_config_filenames "
                     "= [\"planted.toml\"]\\nenv = [\"x\"]\\n'")
        lines.append(f"put s{i}/planted 'node path:../agents-bin\\n'; put s{i}/{name} "
                     "'override_tool_versions_filenames = [\"planted\"]\\n'")
    for i, name in enumerate(TASKS):
        lines.append(f"put t{i}/{name} '{content['sh']}'")
    lines.append(f"put v0/.tool-versions 'node {template}\\n'; put v1/.tool-versions 'node "
                 "path:../agents-bin\\n'; put v2/.tool-versions \"node path:$PWD/agents-bin\\n\"")
    for i, (_, _, name, kind) in enumerate(callers):
        lines.append(f"put 'p{i}/{name}' '{content[kind]}'")
    return "\n".join(lines) + "\ntrue"


def rounds(t, go):
    """Without trust, and with all of it; go(ws, script) lets the agent work there."""
    callers = list(CALLERS.values())
    for trusted in (False, True):
        ws, marker = t.workspace({"README": "x\n"}), os.path.join(t.fresh_dir("mark"), "ran")
        kept = [f"{kind}{i}" for kind, names in (("n", TOML), ("r", RC), ("s", RC), ("t", TASKS),
                                                 ("v", range(3))) for i, _ in enumerate(names)]
        for place in kept:
            t.write(ws, {f"{place}/keep": "x\n"})
        for i, (own, text, _, _) in enumerate(callers):
            t.write(ws, {f"p{i}/{own}": text})
        if trusted:
            t.write(t.home,
                    {".config/mise/config.toml": f"[settings]\ntrusted_config_paths = [\"{ws}\"]\n"
                     "experimental = true\n"})
        go(ws, plant_script(marker, callers))
        places = dict(zip(kept, [*TOML, *RC, *(f"{name} for versions" for name in RC), *TASKS,
                                 "template", "path", "whole path"])) | {f"p{i}": kind
                                                                        for i, kind in enumerate(
                                                                            CALLERS)}
        found = enter(t, [os.path.join(ws, place) for place in places], marker)
        yield trusted, {places[os.path.basename(place)]: ran for place, ran in found.items()}


@native_only("the time is that of mise; test_direnv runs the same C code sanitized")
@timeout(240)
def test_control(t):
    """Outside of a sandbox mise runs what is planted: without trust it finds programs, with it
    everything."""
    find(t)
    for trusted, ran in rounds(t,
                               lambda ws, script: t.run("bash", "-c", script, cwd=ws, check=True)):
        t.check({"path", "whole path"} <= set(ran),
                f"what mise finds without trust (trusted: {trusted}): {set(ran)}")
        if trusted:
            t.check({"template", "mise.toml", "mise/config.toml", ".config/miserc.toml",
                     *CALLERS} <= set(ran), f"what mise does not run: {set(CALLERS) - set(ran)}")


@timeout(240)
def test_after_a_run(t):
    """Nothing of it is run after a default run."""
    find(t)

    def go(ws, script):
        r = t.ward("run", "-w", ws, "--", "bash", "-c", script, cwd=ws)
        t.equal(r.rc, 0, r.err)
    for trusted, ran in rounds(t, go):
        t.equal(sorted(ran), [], f"mise ran what the agent wrote (trusted: {trusted})")


@native_only("the time is that of mise; test_direnv runs the same C code sanitized")
@timeout(240)
def test_after_review(t):
    """The same through apply."""
    find(t)

    def go(ws, script):
        t.equal(t.ward("run", "--review", "-w", ws, "--", "bash", "-c", script, cwd=ws).rc, 0)
        t.ward("apply", cwd=ws)
    for trusted, ran in rounds(t, go):
        t.equal(sorted(ran), [], f"mise ran what the agent wrote (trusted: {trusted})")


@native_only("the time is that of mise; test_direnv runs the same C code sanitized")
@timeout(240)
def test_after_cp(t):
    """The same through cp over the workspace of the sandbox."""
    find(t)

    def go(ws, script):
        b = box(t, "-w", ws, cwd=ws)
        t.equal(t.ward("exec", b, "bash", "-c", f"mkdir /tmp/w; cd /tmp/w; {script}").rc, 0)
        for name in t.ward("exec", b, "ls", "/tmp/w").out.split():
            t.ward("cp", f"{b}:/tmp/w/{name}", ws)
    for trusted, ran in rounds(t, go):
        t.equal(sorted(ran), [], f"mise ran what the agent wrote (trusted: {trusted})")


def idiomatic(t, go):
    """What mise finds of the agent's where the person has told it to read version files of other
    tools."""
    ws, marker = t.workspace({"README": "x\n"}), os.path.join(t.fresh_dir("mark"), "ran")
    settings = f"[settings]\nidiomatic_version_file_enable_tools = {TOOLS}\n".replace("'", '"')
    t.write(t.home, {".config/mise/config.toml": settings})
    lines = [plant_script(marker).splitlines()[0],
             f"put agents-bin/bin/git '#!/bin/sh\\ntouch {marker}\\n'"]
    for i, (name, text) in enumerate(IDIOMATIC.items()):
        lines.append(f"put i{i}/{os.path.basename(name)} '{text}'")
        t.write(ws, {f"i{i}/keep": "x\n"})
    go(ws, "\n".join(lines) + "\ntrue")
    found = enter(t, [os.path.join(ws, f"i{i}") for i, _ in enumerate(IDIOMATIC)], marker)
    return {list(IDIOMATIC)[int(os.path.basename(place)[1:])] for place in found}


@native_only("the time is that of mise; test_guard_news runs the same C code sanitized")
@timeout(240)
def test_idiomatic_control(t):
    """Outside of a sandbox mise takes a directory out of every one of these files."""
    find(t)
    found = idiomatic(t, lambda ws, script: t.run("bash", "-c", script, cwd=ws, check=True))
    t.equal(set(IDIOMATIC) - found, set(), "files that are no attack")


@timeout(400)
def test_idiomatic(t):
    """After a run, after a review and out of a copy it finds none."""
    find(t)

    def direct(ws, script):
        t.equal(t.ward("run", "-w", ws, "--", "bash", "-c", script, cwd=ws).rc, 0)

    def reviewed(ws, script):
        r = t.ward("run", "--review", "-w", ws, "--", "bash", "-c", script, cwd=ws)
        t.equal(r.rc, 0, r.err)
        t.ward("apply", cwd=ws)

    def copied(ws, script):
        b = box(t, "-w", ws, cwd=ws)
        t.equal(t.ward("exec", b, "bash", "-c", f"mkdir /tmp/w; cd /tmp/w; {script}").rc, 0)
        for name in t.ward("exec", b, "ls", "/tmp/w").out.split():
            t.ward("cp", f"{b}:/tmp/w/{name}", ws)
            for inner in t.ward("exec", b, "ls", "-A", f"/tmp/w/{name}").out.split():
                t.ward("cp", f"{b}:/tmp/w/{name}/{inner}", os.path.join(ws, name))
    for way in (direct, reviewed, copied):
        t.equal(idiomatic(t, way), set(), f"mise finds the agent's programs ({way.__name__})")
