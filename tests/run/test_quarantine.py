"""ward quarantine: what was moved, in text and JSON; bringing things back, nowhere over anything."""
import json
import os


def plant(t, command):
    ws = t.workspace({"a": "x"})
    r = t.ward("run", "--", "/bin/sh", "-c", command, cwd=ws)
    t.equal(r.rc, 0, r.err)
    return ws


def test_empty(t):
    t.equal(t.ward("quarantine", "ls", cwd=t.workspace()).out, "the quarantine is empty\n")
    t.equal(json.loads(t.ward("quarantine", "ls", "--json", cwd=t.workspace()).out), {"quarantine": []})


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
    for words in (["purge"], ["ls", "a", "b"], ["ls", "--to", "/tmp"]):
        t.equal(t.ward("quarantine", *words, cwd=ws).rc, 2, str(words))
    r = t.ward("quarantine", "restore", cwd=ws)
    t.equal(r.rc, 125)
    t.contains(r.err, "ward quarantine ls")


def test_too_much_for_the_quarantine(t):
    """What is planted must not stay because it is too big to be moved: it loses its name at least."""
    ws = t.workspace()
    state = os.path.join(t.fresh_dir(), "in the way")
    os.mkdir(state, 0o700)
    with open(os.path.join(state, "quarantine"), "w", encoding="ascii"):
        pass
    r = t.ward("run", "--", "/bin/sh", "-c", "echo evil > .envrc", cwd=ws, env={"WARD_STATE_DIR": state})
    t.equal(r.rc, 0, r.err)
    t.equal(os.listdir(ws), [".envrc.quarantined"])
