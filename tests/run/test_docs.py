"""Runs every command of README.md and of the documents in docs/ that explain ward to its users.

Each document is one test. It has a project of its own (see prepare()), in which its fenced blocks
are carried out from the top to the bottom, as a reader would:

    ```sh              run by sh; the block fails with the first command that does
    ```sh if=PROGRAM   the same where PROGRAM is installed, else only checked
    ```sh engine=NAME  the same where `ward doctor` finds that engine usable
    ```sh network      the same on a small internet of the test's own (it has the hosts of HOSTS);
                       it takes root to make one, without root the block is only checked
    ```sh check        never run (it needs the real internet, an agent, a terminal), only checked
    ```text            behind a sh block: these lines come in its output, in this order; ... stands
                       for anything
    ```yaml            a policy: `ward check` must find no error
    ```LANGUAGE file=NAME    written to NAME in the project; a policy as well where it is yaml
    ```yaml recipe=NAME      written to NAME, and no policy

A line that ends with `# exit N` must end with that status. "Only checked" means that each verb
exists and has the options that it is given, and that `make` has the target. Commands in the text
between the blocks, in backquotes, are checked in the same way.
"""
import glob
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

from harness import host, libward
from harness.world import OTHER, WEB, trusted_world

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
NAMES = ("policy", "toolchains", "review", "network", "credentials", "budgets", "engines", "images",
         "audit", "libward", "containers", "install", "agents", "git", "serve",
         "tools", "mcp", "watch", "children")
PAGES = {"README.md": TOP / "README.md",
         "docs/README.md": TOP / "docs/README.md",
         **{f"docs/{n}.md": TOP / "docs" / f"{n}.md" for n in NAMES}}
# read here, where the tests still have the rights of the user that started them
TEXTS = {name: path.read_text() for name, path in PAGES.items()}
AGENT = (TOP / "examples/agent.py").read_text()
MAKEFILE = (TOP / "Makefile").read_text()
AGENTS = re.findall(r'^AGENT\("([^"]+)"', (TOP / "tables/agents.def").read_text(), re.M)
JOINTS = ("&&", "||", "|", ";", "&")
LANGUAGES = ("sh", "text", "yaml", "c", "python")
HOSTS = {"api.example.com": [WEB], "files.example.com": [OTHER]}
# programs in blocks that are only checked
OTHERS = {"git", "cd", "tar", "source", "apt-get", "clang", "podman", "docker", "export", "grep",
          "curl"}
COLUMNS = 100
README_LINES = 150


class Block:
    """One fenced block: language, the words behind it, its text, the number of its first line."""

    def __init__(self, info, lines, line):
        self.language, *words = info.split() or [""]
        self.options = dict(w.split("=", 1) for w in words if "=" in w)
        self.marks = {w for w in words if "=" not in w}
        self.text = "".join(f"{l}\n" for l in lines)
        self.line = line


def blocks(text):
    """The fenced blocks of a document, in order."""
    found, info, lines, start = [], None, [], 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("```"):
            lines.append(line)
        elif info is None:
            info, lines, start = line[3:], [], number + 1
        else:
            found.append(Block(info, lines, start))
            info = None
    return found


# -- what is only checked

def commands(text):
    """The simple commands of a block, each as its words."""
    joined = text.replace("\\\n", " ")
    for line in joined.splitlines():
        words = shlex.split(line, comments=True)
        while words:
            end = next((i for i, w in enumerate(words) if w in JOINTS), len(words))
            command = words[:end]
            while command and re.fullmatch(r"[A-Z_]+=.*", command[0]):
                command.pop(0)
            if command:
                yield command
            words = words[end + 1:]


def check_ward(t, words):
    """Fails unless the verb exists and has each option."""
    verb = words[1] if len(words) > 1 else "--help"
    if verb.startswith("-"):
        return
    if verb in AGENTS:
        if "--" not in words:
            return	# all of it is the agent's
        verb = "agent"
    r = t.ward(verb, "--help")
    t.equal(r.rc, 0, f"ward {verb} --help")
    for word in words[2:]:
        if word == "--":
            break
        if word.startswith("-") and len(word) > 1:
            option = re.escape(word.split("=", 1)[0])
            known = re.search(rf"^ +(-\w, )?{option}\b|^ +{option}, --", r.out, re.M)
            t.check(known, f"ward {verb} has no {word}")


def check_inline(t, text):
    """Checks the commands in backquotes between the blocks."""
    plain = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    for line in re.findall(r"`((?:ward|make) [^`]+)`", plain):
        check_commands(t, " ".join(line.split()))


def check_commands(t, text):
    """What can be said about commands that cannot be run here."""
    for words in commands(text):
        if words[0] == "ward":
            check_ward(t, words)
        elif words[0] == "make":
            for target in (w for w in words[1:] if "=" not in w):
                known = re.search(rf"^{re.escape(target)}:", MAKEFILE, re.M)
                t.check(known, f"make has no target {target}")
        else:
            t.check(words[0] in OTHERS, f"{words[0]}: a document may not leave it unchecked")


# -- what is run

def script(text):
    """The block for sh: a line with `# exit N` must end with that status, others with 0."""
    lines = ["set -eu"]
    for line in text.replace("\\\n", " ").splitlines():
        wanted = re.search(r"\s+# exit (\d+)$", line)
        if wanted:
            code = wanted.group(1)
            line = (f"got=0; {line[:wanted.start()]} || got=$?; "
                    f"[ $got = {code} ] || {{ echo exit status $got, wanted {code}; exit 99; }}")
        lines.append(line)
    return "\n".join(lines) + "\n"


def matches(output, expected):
    """The first line of expected that does not come in output in its order, None if all do."""
    lines = iter(output.splitlines())
    for wanted in expected.splitlines():
        pattern = ".*".join(re.escape(part) for part in wanted.split("..."))
        if wanted.strip() in ("", "..."):
            continue
        if not any(re.fullmatch(pattern, line.rstrip()) for line in lines):
            return wanted
    return None


def has(program):
    """Whether a program is here and can be used as documents do; None: no program is needed."""
    path = program and shutil.which(program)
    if not path or program == "cc":
        return not program or bool(path)
    if program == "busybox":	# a root with nothing else in it: a static one
        return subprocess.run(["ldd", path], capture_output=True).returncode != 0
    return not host.is_confined()


class Project:
    """What the blocks of one document share."""

    def __init__(self, t, name, found):
        self.t, self.name, self.engines = t, name, {}
        self.directory = prepare(t)
        here = os.path.dirname(t.ward_path)
        self.env = {"PATH": f"{here}:{t.environment()['PATH']}"}
        if name == "docs/libward.md":
            self.env.update(library(t))
            if libward.sanitizers(t):
                self.env["PATH"] = f"{sanitized(t)}:{self.env['PATH']}"
        wanted = any("network" in b.marks for b in found)
        self.world = small_internet(t) if wanted else None

    def runs(self, block):
        """Whether this host can run the block."""
        if "check" in block.marks or not has(block.options.get("if")):
            return False
        if "engine" in block.options and not self.usable(block.options["engine"]):
            return False
        return self.world is not None or "network" not in block.marks

    def usable(self, engine):
        """Whether doctor finds the engine usable here."""
        if not self.engines:	# doctor tries every runtime, which takes a while
            found = json.loads(self.t.ward("doctor", "--json").out)["engines"]
            self.engines = {row["name"]: row["usable"] for row in found}
        return self.engines[engine]

    def run(self, block):
        """Runs a block; returns what it printed."""
        argv = ["sh", "-c", f"exec 2>&1\n{script(block.text)}"]
        if self.world:
            words = [f"{k}={v}" for k, v in self.t.environment(self.env).items()]
            r = self.world.run("env", "-i", *words, *argv, cwd=self.directory, timeout=60)
        else:
            r = self.t.run(*argv, cwd=self.directory, env=self.env, timeout=60)
        self.t.equal(r.rc, 0, f"{self.name}:{block.line}: {r.out[-1500:]}: exit status")
        return r.out

    def write(self, block):
        """Writes the file that a block is, and checks it where it is a policy."""
        name = block.options.get("file") or block.options.get("recipe")
        if name:
            self.t.write(self.directory, {name: block.text})
        if block.language == "yaml" and "recipe" not in block.options:
            self.t.write(self.t.home, {"block.yaml": block.text})
            r = self.t.ward("check", os.path.join(self.t.home, "block.yaml"))
            self.t.equal(r.rc, 0, f"{self.name}:{block.line}: {r.out}{r.err}: exit status")


def prepare(t):
    """A project as a newcomer has one: a git repository, a secret, a test, an agent; and a home."""
    t.write(t.home, {".gitconfig": "[user]\n\tname = Ann\n\temail = ann@example.com\n",
                     "data/table.csv": "1,2\n", ".keys/id": "app-0123456789\n",
                     ".keys/key": "sk-real-key-0123456789\n"})
    for name in ("id", "key"):
        os.chmod(os.path.join(t.home, ".keys", name), 0o600)
    return t.git_repo({"agent.py": AGENT, "notes.txt": "first line\n",
                       ".env": "API_TOKEN=do-not-read-me\n",
                       "Makefile": "test:\n\t@echo 1 test passed\n"})


def library(t):
    """Variables for programs that use libward, as installed."""
    # a path without a space, because a shell splits what pkg-config prints
    tree = os.path.join(t.fresh_dir("lib"), "ward")
    os.symlink(libward.tree(t), tree)
    config = os.path.dirname(glob.glob(f"{tree}/lib/**/ward.pc", recursive=True)[0])
    found = glob.glob(f"{tree}/lib/**/libward.so", recursive=True)[0]
    return {"PKG_CONFIG_PATH": config, "LD_LIBRARY_PATH": os.path.dirname(found),
            "PYTHONPATH": str(TOP / "examples/python"), "PYTHONDONTWRITEBYTECODE": "1"}


def sanitized(t):
    """A directory with a cc and a python3 that can use a library with sanitizers."""
    place = t.fresh_dir("bin")
    asan = t.run("cc", "-print-file-name=libasan.so", check=True).out.strip()
    flags = " ".join(libward.sanitizers(t))
    t.write(place, {"cc": f"#!/bin/sh\nexec /usr/bin/cc {flags} \"$@\"\n",
                    "python3": "#!/bin/sh\nexport ASAN_OPTIONS=detect_leaks=0\n"
                               f"LD_PRELOAD={asan} exec /usr/bin/python3 \"$@\"\n"})
    for name in os.listdir(place):
        os.chmod(os.path.join(place, name), 0o755)
    return place


def small_internet(t):
    """The hosts that documents speak of, None where the tests cannot make them."""
    if host.missing("admin") or not os.path.exists("/usr/bin/nsenter"):
        return None
    return trusted_world(t, names=HOSTS, certified=tuple(HOSTS))


def follow(t, name):
    """Does what the document says."""
    found = blocks(TEXTS[name])
    project = Project(t, name, found)
    ran = 0
    for at, block in enumerate(found):
        if block.language == "sh":
            if not project.runs(block):
                check_commands(t, block.text)
                continue
            output = project.run(block)
            ran += 1
            after = found[at + 1] if at + 1 < len(found) else None
            missing = matches(output, after.text) if after and after.language == "text" else None
            t.check(missing is None, f"{name}:{block.line}: no {missing!r} in:\n{output}")
        elif block.language not in ("text", ""):
            project.write(block)
    check_inline(t, TEXTS[name])
    t.say(f"{ran} blocks were run")


def _test_of(name):
    def test(t):
        follow(t, name)
    test.__doc__ = f"The commands of {name}."
    test.timeout = 300
    return test


for _name in PAGES:
    globals()["test_" + re.sub(r"\W", "_", _name[:-3]).lower()] = _test_of(_name)


def test_form(t):
    """Width and length, no fence left open, no link that leads nowhere, only known languages."""
    for name, text in TEXTS.items():
        for number, line in enumerate(text.splitlines(), 1):
            t.check(len(line) <= COLUMNS, f"{name}:{number}: {len(line)} columns")
        t.equal(sum(l.startswith("```") for l in text.splitlines()) % 2, 0, f"{name}: fences")
        for block in blocks(text):
            t.check(block.language in LANGUAGES, f"{name}:{block.line}: {block.language!r}")
        plain = re.sub(r"```.*?```", "", text, flags=re.S)
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", plain):
            with t.root():
                t.check((PAGES[name].parent / link).exists(), f"{name}: there is no {link}")
    t.check(len(TEXTS["README.md"].splitlines()) <= README_LINES, "README.md is too long")
