"""ward quarantine: what was moved, in text and JSON; reading one thing; bringing things back,
nowhere over anything."""
import base64
import json
import os


def plant(t, command):
    ws = t.workspace({"a": "x"})
    r = t.ward("run", "--", "/bin/sh", "-c", command, cwd=ws)
    t.equal(r.rc, 0, r.err)
    return ws


def test_empty(t):
    t.equal(t.ward("quarantine", "ls", cwd=t.workspace()).out, "the quarantine is empty\n")
    t.equal(json.loads(t.ward("quarantine", "ls", "--json", cwd=t.workspace()).out),
            {"quarantine": []})


def test_list_names_run_place_and_reason(t):
    ws = plant(t, "echo evil > .envrc; mkdir -p sub/.vscode; echo evil > sub/.vscode/tasks.json")
    listed = json.loads(t.ward("quarantine", "ls", "--json", cwd=ws).out)["quarantine"]
    t.equal(sorted(i["path"] for i in listed), [".envrc", "sub/.vscode"])
    t.equal({i["root"] for i in listed}, {ws})
    t.check(all(i["why"] for i in listed), "a reason is missing")
    run = listed[0]["run"]
    t.contains(t.ward("quarantine", "ls", run, cwd="/").out, "direnv")
    t.equal(t.ward("quarantine", "ls", "no-such-run", cwd="/").out, "the quarantine is empty\n")


def test_restore_one_and_elsewhere(t):
    ws = plant(t, "echo one > .envrc; echo two > .bashrc; mkdir sub; echo three > sub/.mcp.json")
    r = t.ward("quarantine", "restore", ".bashrc", cwd=ws)
    t.equal((r.rc, t.read(ws, ".bashrc")), (0, "two\n"), r.err)
    t.check(not os.path.exists(os.path.join(ws, ".envrc")), "more came back than was asked for")
    elsewhere = t.fresh_dir()
    r = t.ward("quarantine", "restore", "--to", elsewhere, "sub/.mcp.json", cwd=ws)
    t.equal((r.rc, t.read(elsewhere, "sub/.mcp.json")), (0, "three\n"), r.err)
    r = t.ward("quarantine", "restore", "--json", cwd=ws)
    t.equal(json.loads(r.out), {"restored": [os.path.join(ws, ".envrc")]})
    t.equal(t.ward("quarantine", "ls", cwd=ws).out, "the quarantine is empty\n")


def test_restore_overwrites_nothing(t):
    ws = plant(t, "echo planted > .envrc")
    with open(os.path.join(ws, ".envrc"), "w", encoding="ascii") as f:
        f.write("mine")
    r = t.ward("quarantine", "restore", cwd=ws)
    t.equal((r.rc, t.read(ws, ".envrc")), (125, "mine"))
    t.contains(r.err, "already")
    t.contains(r.err, "--to")


def test_usage(t):
    ws = t.workspace()
    for words in (["purge"], ["ls", "a", "b"], ["ls", "--to", "/tmp"], ["ls", "--all", "run"],
                  ["restore", "--all"], ["show"],
                  ["show", "run"], ["show", "run", "a", "b"], ["show", "--all", "run", "a"],
                  ["show", "--to", "/tmp", "run", "a"]):
        t.equal(t.ward("quarantine", *words, cwd=ws).rc, 2, str(words))
    r = t.ward("quarantine", "restore", cwd=ws)
    t.equal(r.rc, 125)
    t.contains(r.err, "ward quarantine ls")


def run_of(t, ws):
    """The run whose things lie in the quarantine of this workspace."""
    return json.loads(t.ward("quarantine", "ls", "--json", cwd=ws).out)["quarantine"][0]["run"]


def test_list_of_the_workspace(t):
    """ls answers for the workspace that it is asked in, from any directory of it; --all and a named
    run answer for all."""
    one, two = plant(t, "mkdir -p deep/er; echo one > .envrc"), plant(t, "echo two > .bashrc")

    def paths(*words, cwd):
        return sorted(i["path"]
                      for i in json.loads(t.ward("quarantine", "ls", "--json", *words,
                                                 cwd=cwd).out)["quarantine"])

    t.equal((paths(cwd=one), paths(cwd=two)), ([".envrc"], [".bashrc"]))
    t.equal(paths(cwd=os.path.join(one, "deep/er")), [".envrc"])
    t.equal((paths(cwd="/"), paths("--all", cwd="/")), ([], [".bashrc", ".envrc"]))
    t.equal(paths(run_of(t, two), cwd=one), [".bashrc"])
    out = t.ward("quarantine", "ls", cwd=one).out
    t.check(".envrc" in out and ".bashrc" not in out, out)
    out = t.ward("quarantine", "ls", cwd=t.workspace()).out
    t.check("other directories have 2 entries" in out and "--all" in out
            and "the quarantine is empty\n" not in out, out)
    beside = one + "-beside"	# its name begins with the workspace's
    os.mkdir(beside)
    t.equal(paths(cwd=beside), [])


def test_show(t):
    """Bytes as they are into a pipe; what is no file is named, not followed and not opened."""
    ws = plant(t, r"""
printf 'a\000\377\033[31m' > .envrc; printf 'plain\n' > .bashrc; mkdir -p .vscode sub; echo tasks > .vscode/tasks.json
ln -s /etc/passwd .vscode/link; mkfifo .vscode/fifo; ln -s /etc/passwd .mcp.json; echo deep > sub/.envrc; : > .zshrc""")
    run = run_of(t, ws)

    def show(*words, rc=0):
        r = t.popen(t.ward_argv("quarantine", "show", *words), cwd=ws)
        out, err = r.communicate(timeout=30)
        t.equal(r.returncode, rc, f"{words}: {err}")
        return out if rc == 0 else err

    t.equal(show(run, ".envrc"), b"a\0\377\033[31m")
    t.equal((show(run, "./.bashrc"), show(run, ws + "/.bashrc"), show(run, "sub/.envrc")),
            (b"plain\n", b"plain\n", b"deep\n"))
    t.equal((show(run, ".zshrc"), show(run, ".vscode/tasks.json")), (b"", b"tasks\n"))
    t.equal(show(run, ".vscode"), b"fifo\nlink\ntasks.json\n")
    t.equal((show(run, ".mcp.json"), show(run, ".vscode/link")),
            (b"a link to /etc/passwd\n", b"a link to /etc/passwd\n"))
    t.equal(show(run, ".vscode/fifo"), b"a fifo\n")
    for path in (".vscode/link/x", ".vscode/../../index", ".vscode/..", "a", "nothing",
                 "/etc/passwd", "../index", ".vscod", ""):
        t.contains(show(run, path, rc=125).decode(), "ward: ", path)
    t.contains(show("no-run", ".envrc", rc=125).decode(), "ward quarantine ls")
    shown = json.loads(show("--json", run, ".envrc"))
    t.equal((base64.b64decode(shown["base64"]), shown["type"], shown["size"], shown["root"]),
            (b"a\0\377\033[31m", "file", 8, ws))
    t.check(shown["why"], shown)
    t.equal(json.loads(show("--json", run, ".bashrc"))["text"], "plain\n")
    t.equal(json.loads(show("--json", run, ".mcp.json"))["target"], "/etc/passwd")
    shown = json.loads(show("--json", run, ".vscode"))
    t.equal((shown["names"], shown["type"]), (["fifo", "link", "tasks.json"], "directory"))
    t.equal(sorted(os.listdir(ws)), ["a", "sub"], "nothing came back")


def test_show_on_a_terminal(t):
    """Nothing in a planted file or name acts on the terminal that it is shown on."""
    ws = plant(t, r"""
printf 'one\ttwo\n\033]52;c;eA==\007\033[2J\r\010\302\2333m\342\200\256evil\377\000\nlast' > .envrc
mkdir .vscode; : > .vscode/"$(printf 'a\033[2Jb')"; ln -s "$(printf '/x\033[2J')" .mcp.json""")
    run = run_of(t, ws)
    r = t.ward_tty("quarantine", "show", run, ".envrc", cwd=ws)
    t.equal(r.rc, 0, str(r))
    t.equal(
        r.out.replace("\r\n", "\n"),
        "one\ttwo\n\\x1b]52;c;eA==\\x07\\x1b[2J\\r\\x08\\u{009b}3m\\u{202e}evil\\xff\\x00\nlast\n")
    for path, want in ((".vscode", "a\\x1b[2Jb"), (".mcp.json", "a link to /x\\x1b[2J")):
        r = t.ward_tty("quarantine", "show", run, path, cwd=ws)
        t.equal(r.out.replace("\r\n", "\n"), want + "\n", path)


def test_show_what_ls_prints(t):
    """A name that ls had to escape can be asked for as it is printed."""
    ws = plant(t, r"""d="$(printf 'd\033[1m')"; mkdir "$d"; echo odd > "$d/.envrc" """)
    run = run_of(t, ws)
    line = t.ward("quarantine", "ls", cwd=ws).out.split("\n")[1]
    path = line.strip().split(": ")[0]
    t.equal(path, "d\\x1b[1m/.envrc")
    for word in (path, f"{ws}/{path}", "d\x1b[1m/.envrc"):
        t.equal(t.ward("quarantine", "show", run, word, cwd=ws).out, "odd\n", word)


def test_show_of_two_trees(t):
    """The same name in two trees must be said apart."""
    other, ws = t.fresh_dir("other"), t.workspace()
    r = t.ward("run", "--rw", other, "--", "/bin/sh", "-c",
               f"echo one > .envrc; echo two > {other}/.envrc", cwd=ws)
    t.equal(r.rc, 0, r.err)
    run = run_of(t, ws)
    r = t.ward("quarantine", "show", run, ".envrc", cwd=ws)
    t.check(r.rc == 125 and f"{other}/.envrc" in r.err and f"{ws}/.envrc" in r.err, r)
    t.equal(t.ward("quarantine", "show", run, f"{other}/.envrc", cwd=ws).out, "two\n")
    t.equal(t.ward("quarantine", "show", run, f"{ws}/.envrc", cwd=ws).out, "one\n")


def test_too_much_for_the_quarantine(t):
    """What is planted must not stay because it is too big to be moved: it loses its name at
    least."""
    ws = t.workspace()
    state = os.path.join(t.fresh_dir(), "in the way")
    os.mkdir(state, 0o700)
    with open(os.path.join(state, "quarantine"), "w", encoding="ascii"):
        pass
    r = t.ward("run", "--", "/bin/sh", "-c", "echo evil > .envrc", cwd=ws,
               env={"WARD_STATE_DIR": state})
    t.equal(r.rc, 0, r.err)
    t.equal(os.listdir(ws), [".envrc.quarantined"])
