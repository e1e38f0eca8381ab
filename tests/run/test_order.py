"""Which run is the last one of a workspace: runs are ordered by when they began, however many begin
in one second."""
import json
import threading

from run.test_review import apply, diff, review

MANY = 12


def last_of(t, ws):
    """What each verb takes for the last run here."""
    explain = t.ward("explain", "--json", cwd=ws)
    return {"diff": json.loads(t.ward("diff", "--json", cwd=ws).out)["run"],
            "list": json.loads(t.ward("diff", "--list", "--json",
                                      cwd=ws).out)["reviews"][-1]["run"],
            "explain": json.loads(explain.out)["run"],
            "export": json.loads(t.ward("audit", "export", "--format", "json",
                                        cwd=ws).out.splitlines()[0])["run"]}


def test_the_last_of_many_reviews_of_one_second(t):
    """Reviews follow each other within milliseconds; after each of them every verb means it."""
    ws = t.workspace({"a": "old\n"})
    for i in range(MANY):
        ran = review(t, ws, f"echo {i} > a").report["run"]
        t.equal(json.loads(t.ward("diff", "--json", cwd=ws).out)["run"], ran, f"run {i}")
    for verb, run in last_of(t, ws).items():
        t.equal(run, ran, verb)
    apply(t, ws)
    t.equal(t.read(ws, "a"), f"{MANY - 1}\n")


def test_runs_that_begin_side_by_side(t):
    """Each verb means the same run, which none of the others began after."""
    ws = t.workspace({"a": "old\n"})
    runs, threads = [], []
    for i in range(MANY):
        threads.append(
            threading.Thread(
                target=lambda i=i: runs.append(review(t, ws, f"echo {i} > a{i}").report["run"])))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    t.equal(len(set(runs)), MANY)
    for verb, run in last_of(t, ws).items():
        t.equal(run, max(runs), verb)


def test_a_review_that_is_continued_is_the_last_one(t):
    ws = t.workspace({"a": "old\n"})
    first = review(t, ws, "echo first > a").report["run"]
    second = review(t, ws, "echo second > a").report["run"]
    t.equal(set(last_of(t, ws).values()), {second})
    review(t, ws, "echo again >> a", "--continue", first)
    for verb, run in last_of(t, ws).items():
        t.equal(run, first, verb)
    t.equal(diff(t, ws), {"a": "content"})
    apply(t, ws)
    t.equal(t.read(ws, "a"), "first\nagain\n")


def test_the_quarantine_of_the_last_run(t):
    """Without a name, restore takes what the last run left, of many within a second."""
    ws = t.workspace()
    for i in range(MANY):
        t.equal(t.ward("run", "--", "/bin/sh", "-c", f"echo {i} > .envrc", cwd=ws).rc, 0)
    r = t.ward("quarantine", "restore", cwd=ws)
    t.equal(r.rc, 0, r.err)
    t.equal(t.read(ws, ".envrc"), f"{MANY - 1}\n")
