"""Attacks on the gate, generated: every row of tables/protect.def as a file, as every kind of link
and as other things, and git directories of many forms. A way out of a sandbox is handed all of them
in one run; afterwards none may be found under a protected name, and no git command may have run
anything."""
import json
import os
import re

from . import host

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tables/protect.def")

# every row meets each of these
LINKS = ("to a file", "to a directory", "out of the tree", "to nothing", "by a chain",
         "by an absolute path", "up and down", "above")
# and some of these, in turn
OTHERS = ("directory", "hard link", "pipe", "socket", "renamed", "closed", "unwritable",
          "by exchange", "newline", "bytes")

# files of a git directory that the agent made itself; EVIL is a program that makes the marker
GIT = {
    "hook": ("hooks/post-checkout", "EVIL"),
    "hook without end": ("hooks/post-index-change", "EVIL"), "commondir": ("commondir", "."),
    "worktree config": ("config.worktree", "[core]\n\tfsmonitor = EVIL\n"),
    "fsmonitor": ("config", "[core]\n\tfsmonitor = EVIL\n"),
    "hooksPath": ("config", "[core]\n\thooksPath = ../evil.d\n"),
    "include": ("config", "[include]\n\tpath = ../../evil.config\n"),
    "conditional include": ("config", "[includeIf \"gitdir:**\"]\n\tpath = ../../evil.config\n"),
    "alias": ("config", "[alias]\n\tx = !EVIL\n"),
    "sshCommand": ("config", "[core]\n\tsshCommand = EVIL\n"),
    "filter": ("config", "[filter \"f\"]\n\tclean = EVIL\n\tsmudge = EVIL\n"),
    "textconv": ("config", "[diff \"f\"]\n\ttextconv = EVIL\n"),
    "pager": ("config", "[core]\n\tpager = EVIL\n[pager]\n\tstatus = EVIL\n"),
    "continued line": ("config", "[core]\n\tfsmonitor \\\n= EVIL\n"),
    "carriage return": ("config", "[core]\r\n\tfsmonitor = EVIL\r\n"),
    "byte order mark": ("config", "\ufeff[core]\n\tfsmonitor = EVIL\n"),
    "NUL": ("config", "[core]\n\tfsmonitor = EVIL\n\0"),
    "upper case": ("config", "[CORE]\n\tFSMONITOR = EVIL\n"),
    "one line": ("config", "[core] fsmonitor = EVIL\n"),
    "dotted section": ("config", "[core.x]\n\ty = 1\n[core]fsmonitor=EVIL"),
    "promisor": ("config", "[remote \"o\"]\n\turl = ext::EVIL\n\tpromisor = true\n[extensions]\n"
                 "\tpartialClone = o\n"),
    "alternates": ("objects/info/alternates", "/etc\n"),
    "attributes": ("info/attributes", "* filter=f\n"),
    "rebase": ("rebase-merge/git-rebase-todo", "exec EVIL\n"),
    "worktree": ("config", "[core]\n\tworktree = /etc/nothing\n"),
    "modules": ("modules/x/hooks/post-checkout", "EVIL"),
    "sub worktree": ("worktrees/x/commondir", "../../../evil.d\n"),
}
# files called .git; GOOD is a repository of the tree
GITFILES = {"plain": "gitdir: ../gits/0/.git\n", "absolute": "gitdir: GOOD/.git\n",
            "NUL": "gitdir: ../gits/0/.git\0x\n", "no newline": "gitdir: ../gits/0/.git",
            "carriage return": "gitdir: ../gits/0/.git\r\n",
            "to data": "gitdir: ../gits/0/.git/logs/refs\n",
            "to nothing": "gitdir: ../gits/later\n", "outside": "gitdir: /etc\n",
            "more lines": "gitdir: ../gits/0/.git\nx\n", "spaces": "gitdir:  ../gits/0/.git \n"}


def rows():
    """(path, whether it is a directory, whether it counts at the top alone) for each row of the
    table."""
    with open(TABLE) as f:
        patterns = [p.replace('\\"', '"')
                    for p in re.findall(r'^PROTECT\("((?:[^"\\]|\\.)*)"', f.read(), re.M)]
    for pattern in patterns:
        top, pattern = pattern.startswith("/"), pattern.removeprefix("**/").removeprefix("/")
        path = "/".join("settings.json" if part == "*" else part.replace("*", "x")
                        for part in pattern.rstrip("/").split("/"))
        yield path, pattern.endswith("/"), top


def cases():
    """[directory, path in it, kind, is it a directory]: each lies in a directory of its own, but
    for names that count at the top alone."""
    made = []
    for i, (path, is_dir, top) in enumerate(rows()):
        kinds = ["file", *LINKS, *(OTHERS[(i + k) % len(OTHERS)] for k in range(3))]
        for k, kind in enumerate(kinds if not top else ["file"]):
            if kind == "above" and "/" not in path:
                continue
            made.append(["" if top else f"c{i}/{k}", path, kind, is_dir])
    return made


CASES = cases()
PLANT = r"""
import json, os, socket, subprocess, sys
cases, git, gitfiles, marker = json.load(sys.stdin)
top = os.getcwd()
EVIL = "#!/bin/sh\ntouch %s\ncat\n" % marker
def put(path, text="evil\n", mode=0o644):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as f:
        f.write(text.encode() if isinstance(text, str) else text)
    os.chmod(path, mode)
put("evil", EVIL, 0o755); put("evil.d/planted", EVIL,
                              0o755); put("evil.d/settings.json"); put("evil.d/post-checkout",
                                                                       EVIL, 0o755)
put("evil.d/fsmonitor", EVIL, 0o755); put("evil.config",
                                          "[core]\n\tfsmonitor = %s/evil\n"
                                          % top); put("fine", "fine\n")
os.symlink(top + "/evil", "chain1"); os.symlink("chain1", "chain2")
closed, skipped = [], []
for place, path, kind, is_dir in cases:
    place = os.path.join(top, place)
    parent, name = os.path.split(path)
    odd = {"newline": b"a\nb", "bytes": b"\xff\xfe\x80"}.get(kind)
    home = os.path.join(os.fsencode(place), odd,
                        os.fsencode(parent)) if odd else os.fsencode(
                            os.path.join(place, "shut" if kind in ("closed", "unwritable") else "",
                                         parent))
    up = os.path.relpath(os.fsencode(top), home)
    at = os.path.join(home, os.fsencode(name))
    # a plain file where tools look for a directory is nothing
    if is_dir and kind in ("hard link", "pipe", "socket"):
        home, name = at, "planted"
        at = os.path.join(home, b"planted")
    if kind != "above":
        os.makedirs(home, exist_ok=True)
    if place != top:
        put(place + "/fine", "fine\n")
    target = {"to a file": b"/evil", "to a directory": b"/evil.d", "by a chain": b"/chain2",
              "to nothing": b"/later/thing"}.get(kind)
    if target:
        os.symlink(up + target, at)
    elif kind == "out of the tree":
        os.symlink("/etc/hostname", at)
    elif kind == "by an absolute path":
        os.symlink(os.fsencode(top) + (b"/evil.d" if is_dir else b"/evil"), at)
    elif kind == "up and down":
        os.symlink(up + b"/evil.d/../evil.d/./planted", at)
    elif kind == "above":
        first, rest = path.split("/", 1)
        put(os.path.join(place, "real", rest, "planted" if is_dir else "") .rstrip("/"))
        os.symlink("real", os.path.join(place, first))
    elif kind == "directory":
        os.mkdir(at); put(at + b"/planted")
    elif kind == "hard link":
        try:
            os.link(os.fsencode(top) + b"/evil", at)
        except OSError:
            put(at)
    elif kind == "pipe":
        os.mkfifo(at)
    elif kind == "socket":
        os.chdir(home); s = socket.socket(socket.AF_UNIX)
        try:
            s.bind(os.fsencode(name))
        except OSError:
            put(at)
        s.close(); os.chdir(top)
    elif kind == "renamed":
        put(at + b".plain" + (b"/planted" if is_dir else b"")); os.rename(at + b".plain", at)
    elif kind == "by exchange":
        other = at + b".other"
        put(other + (b"/planted" if is_dir else b"")); put(at + (b"/x" if is_dir else b""))
        os.rename(at, at + b".old"); os.rename(other, at)
    else:
        put(at + (b"/planted" if is_dir else b""), EVIL, 0o755)
    if kind in ("closed", "unwritable"):
        closed.append((os.path.join(place, "shut"), 0 if kind == "closed" else 0o555))
for i, (path, text) in enumerate(git):
    at = "gits/%d" % i
    if i == 0:
        subprocess.run(["git", "init", "-q", at], check=True)
    else:
        subprocess.run(["cp", "-r", "model", at], check=True)
    if i == 0:
        subprocess.run(["cp", "-r", at, "model"], check=True)
        put("model/a", "a\n"); put("model/.gitattributes", "* filter=f diff=f\n")
    put(at + "/a", "a\n"); put(at + "/.gitattributes", "* filter=f diff=f\n")
    old = open(at + "/.git/config").read() if path == "config" else ""
    try:
        put(at + "/.git/" + path,
            (EVIL if text == "EVIL" else old + text.replace("EVIL", top + "/evil")), 0o755)
    except OSError as e:
        skipped.append(path)
subprocess.run(["cp", "-r", "gits/0/.git", "bare"], check=True)
for i, text in enumerate(gitfiles):
    put("gitfile%d/.git" % i, text.replace("GOOD", top + "/gits/0"))
for path, mode in reversed(closed):
    os.chmod(path, mode)
print("planted", len(cases) + len(git) + len(gitfiles) - len(skipped))
"""


def part(every):
    """Each Nth case of the names: root and the user get others, and others in the next turn."""
    return CASES[(host.TURN + (every // 2 if os.geteuid() else 0)) % every::every]


def plan(marker, every=1):
    """What the program gets on standard input; with every=N each Nth case of the names, all of
    git's."""
    return json.dumps([part(every), list(GIT.values()), list(GITFILES.values()), marker])


def count(every=1):
    """How many attacks that are."""
    return len(part(every)) + len(GIT) + len(GITFILES)


def look(at, case):
    """Whether the name of a case is there."""
    place, path, kind, _ = case
    odd = {"newline": b"a\nb", "bytes": b"\xff\xfe\x80"}.get(kind)
    if kind in ("closed", "unwritable") and os.path.isdir(f"{at}/{place}/shut"):
        os.chmod(f"{at}/{place}/shut", 0o700)
        place += "/shut"
    return os.path.lexists(os.path.join(os.fsencode(f"{at}/{place}"), odd or b"",
                                        os.fsencode(path)))


def found(t, at, marker):
    """What lies at a protected name below the directory, and what git runs on the host."""
    names = ["{}/{} ({})".format(*c[:3]) for c in CASES if look(at, c)]
    names += [f"gitfile{i}/.git ({kind})" for i, kind in enumerate(GITFILES)
              if os.path.lexists(f"{at}/gitfile{i}/.git")]
    for i, (kind, (path, _)) in enumerate(GIT.items()):
        if path not in ("config",
                        "info/attributes") and os.path.lexists(f"{at}/gits/{i}/.git/{path}"):
            names.append(f"gits/{i}/.git/{path} ({kind})")
    for where in ("bare", ".", *(f"gits/{i}" for i in range(len(GIT))),
                  *(f"gitfile{i}" for i in range(len(GITFILES)))):
        if os.path.isdir(f"{at}/{where}"):
            t.run("sh", "-c", "git add -A; git status; git diff; git checkout -q -b other; git x; "
                  "git rebase --continue; git fetch --all", cwd=f"{at}/{where}",
                  env={"GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true"})
            if os.path.exists(marker):
                os.unlink(marker)
                names.append(f"git ran it in {where}")
    return names
