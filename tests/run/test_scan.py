"""ward scan: what is found, what is not, and what the report must not show."""
import json
import os
import pathlib

TOKEN = "ghp_" + "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ" + "0mLq17"


def tree(t):
    ws = pathlib.Path(t.workspace())
    t.write(ws, {"a.env": f"X=1\nGITHUB={TOKEN}\n"})
    t.write(ws, {"clean.txt": "key = AKIAIOSFODNN7EXAMPLE\npassword: ${PASSWORD}\n"})
    return ws


def test_a_secret_is_found_and_not_shown(t):
    ws = tree(t)
    r = t.ward("scan", ws)
    t.equal(r.rc, 1, "exit code with a finding")
    t.check("a.env:2:" in r.out and "github-token" in r.out, r.out)
    t.check(TOKEN[4:] not in r.out and "clean.txt" not in r.out, r.out)
    t.check(TOKEN[4:8] not in t.ward("scan", "--redact", ws).out, "with --redact nothing is shown")
    t.equal(t.ward("scan", ws / "clean.txt").rc, 0, "exit code without one")
    t.equal(t.ward("scan", "-", input=f"x {TOKEN}").rc, 1, "standard input")
    t.equal(t.ward("scan").rc, 2, "no path")
    t.equal(t.ward("scan", ws / "none").rc, 125, "a path that is not there")


def test_json_and_sarif(t):
    ws = tree(t)
    found = json.loads(t.ward("scan", "--json", ws).out)["findings"]
    t.equal([(f["rule"], f["line"], f["severity"]) for f in found],
            [("github-token", 2, "high")], "findings")
    run = json.loads(t.ward("scan", "--sarif", ws).out)["runs"][0]
    t.equal([x["ruleId"] for x in run["results"]], ["github-token"], "SARIF")
    rules = json.loads(t.ward("scan", "--rules", "--json").out)["rules"]
    t.check(len(rules) >= 60, "rules")


def test_baseline_and_allow_list(t):
    ws = tree(t)
    base = ws / "base"
    t.equal(t.ward("scan", "--write-baseline", base, ws / "a.env").rc, 0, "writing a baseline")
    t.equal(t.ward("scan", "--baseline", base, ws / "a.env").rc, 0, "known findings")
    t.write(ws, {".wardscan": "path ** nothing counts\n"})
    t.equal(t.ward("scan", ws).rc, 1, "a list in the tree allows nothing by itself")
    t.equal(t.ward("scan", "--allow", ws / ".wardscan", ws).rc, 0, "a list that the user names")
    t.write(ws, {"bad": "path **\n"})
    t.equal(t.ward("scan", "--allow", ws / "bad", ws).rc, 125, "a line without a reason")


def test_hostile_trees(t):
    ws = pathlib.Path(t.workspace())
    t.write(ws, {"x\x1b[31m\n.txt": TOKEN})
    os.symlink("/etc", ws / "link")
    os.mkfifo(ws / "pipe")
    t.write(ws, {"big": "a\n" * 3000000 + TOKEN + "\n"})
    r = t.ward("scan", ws)
    t.equal(r.rc, 1, "findings, and no hang at the pipe")
    t.equal(len(r.out.splitlines()), 2, r.out)
    t.check("\x1b" not in r.out and "/link/" not in r.out, r.out)
    t.check("big:3000001:" in r.out, r.out)


def test_personal_data_by_choice(t):
    text = "card 4012 8888 8888 1881, DE89 3704 0044 0532 0130 00, 536-22-8726, ann@corp.org\n"
    t.equal(t.ward("scan", "-", input=text).rc, 0, "without --pii")
    found = json.loads(t.ward("scan", "--pii", "--json", "-", input=text).out)["findings"]
    t.equal(sorted(f["rule"] for f in found), ["card-number", "email", "iban", "us-ssn"], "PII")


def test_tracked_files(t):
    """Only what git tracks, without git; a linked work tree; an index that lies."""
    ws = pathlib.Path(t.workspace())
    t.write(ws, {"repo/in": TOKEN, "repo/sub/in": TOKEN, "repo/out": TOKEN, "repo/gone": TOKEN})
    repo = ws / "repo"
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x.example", "-C", str(repo)]
    t.run(*git, "init", "-q", check=True)
    t.run(*git, "add", "in", "sub/in", "gone", check=True)
    t.run(*git, "commit", "-qm", "x", check=True)
    t.run(*git, "worktree", "add", "-q", str(ws / "linked"), check=True)
    (repo / "gone").unlink()
    os.symlink("../out", repo / "sub/link")
    for top, names in ((repo, ["in", "sub/in"]), (ws / "linked", ["gone", "in", "sub/in"])):
        r = t.ward("scan", "--tracked", "--json", top)
        t.equal(sorted(f["path"] for f in json.loads(r.out)["findings"]),
                [f"{top}/{name}" for name in names], f"{top}: {r.err}")
    t.equal(t.ward("scan", "--tracked", ws).rc, 125, "not a work tree")
    index = (repo / ".git/index").read_bytes()
    (repo / ".git/index").write_bytes(index[:50] + b"x" + index[51:])
    r = t.ward("scan", "--tracked", repo)
    t.equal(r.rc, 125, "a damaged index")
    t.contains(r.err, "damaged", "why")
