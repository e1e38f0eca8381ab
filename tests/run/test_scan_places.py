"""credentials.scan_output and credentials.scan_workspace: secrets in what a run prints and
changes."""
import json
import os
import pty
import select
import time

TOKEN = "ghp_" + "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ" + "0mLq17"


def policy(t, **credentials):
    path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
    t.write(os.path.dirname(path), {"ward.yaml": json.dumps({"version": 1,
                                                             "credentials": credentials})})
    return path


def events(t, report):
    shown = t.ward("audit", "show", "--json", report["run"]).out
    return [e for e in map(json.loads, shown.splitlines()) if e.get("kind") == "credential.found"]


def run(t, script, options=(), ws=None, **credentials):
    ws = ws or t.workspace()
    return t.ward("run", *options, "-p", policy(t, **credentials), "--", "sh", "-c", script, cwd=ws,
                  report=True)


PRINTS = f"echo before; echo token {TOKEN} here; echo error {TOKEN} >&2; echo after"


def test_redact(t):
    r = run(t, PRINTS, scan_output="redact")
    t.equal(r.rc, 0, "the exit code is the command's")
    t.equal(r.out, f"before\ntoken ghp_{'*' * 36} here\nafter\n", "standard output")
    t.contains(r.err, f"error ghp_{'*' * 36}", "standard error")
    t.check(TOKEN[4:] not in r.err + json.dumps(r.report), "the secret is nowhere")
    t.contains(" ".join(r.report["notes"]), "github-token in standard output", "a note")
    t.equal(sorted(e["path"] for e in events(t, r.report)), ["standard error", "standard output"],
            "events")


def test_block(t):
    r = run(t, PRINTS + "; sleep 0.5; echo more; echo more", scan_output="block")
    t.check(TOKEN[4:] not in r.out + r.err, "the secret is not printed")
    t.check("after" not in r.out and "more" not in r.out, f"nothing behind it is: {r.out}")
    t.check(any("standard output: github-token" in d["what"] for d in r.report["denials"]),
            f"a denial: {r.report['denials']}")


def test_log_and_off(t):
    r = run(t, PRINTS, secret_scanning=True)
    t.check(TOKEN in r.out and TOKEN in r.err, "log stops nothing")
    t.check(all(e["action"] == "log" for e in events(t, r.report)) and events(t, r.report),
            "but reports it")
    r = run(t, PRINTS)
    t.check(TOKEN in r.out and not events(t, r.report), "off by default")


def test_pieces_and_bulk(t):
    """A secret in two writes; much output comes through whole; a dialogue does not stall."""
    half = TOKEN[:20], TOKEN[20:]
    r = run(t, f"printf {half[0]}; printf '{half[1]}\\n'; seq 1 300000", scan_output="redact")
    t.check(half[0][4:] not in r.out, "split over two writes")
    t.equal(r.out.splitlines()[1:], [str(n) for n in range(1, 300001)], "bulk")
    ws = t.workspace()
    argv = t.ward_argv("run", "-p", policy(t, scan_output="redact"), "--", "sh", "-c",
                       "printf 'glpat-'; read x; echo got $x", wrap=None)
    process = t.popen(argv, cwd=ws, stdin=-1)
    ready = select.select([process.stdout], [], [], 20)[0]
    t.check(ready, "what may begin a secret is not held for ever")
    text = os.read(process.stdout.fileno(), 100)
    t.check(text in (b"glpat-", "glpat-"), f"the question: {text}")
    out, _ = process.communicate(input="y\n" if process.text_mode else b"y\n", timeout=30)
    t.contains(out if isinstance(out, str) else out.decode(), "got y", "the answer")


def test_exit_and_files(t):
    ws = t.workspace()
    out = os.path.join(ws, "out")
    with open(out, "w") as f:
        process = t.popen(t.ward_argv("run", "-p", policy(t, scan_output="redact"), "--", "sh",
                                      "-c", f"echo {TOKEN}; exit 7"), cwd=ws, stdout=f)
        process.wait(timeout=60)
    t.equal(process.returncode, 7, "exit code")
    t.equal(t.read(out), f"ghp_{'*' * 36}\n", "into a file")


def test_terminal_is_logged(t):
    """On a terminal nothing is changed, and what was shown is reported."""
    ws, report = t.workspace(), os.path.join(t.fresh_dir("report"), "report.json")
    master, slave = pty.openpty()
    process = t.popen(t.ward_argv("run", "--report", report, "-p", policy(t, scan_output="redact"),
                                  "--", "sh", "-c", PRINTS), cwd=ws, stdin=slave, stdout=slave,
                      stderr=slave)
    os.close(slave)
    shown, end = b"", time.time() + 60
    while time.time() < end:
        if not select.select([master], [], [], 0.2)[0]:
            if process.poll() is not None:
                break
            continue
        try:
            shown += os.read(master, 65536)
        except OSError:
            break
    process.wait(timeout=60)
    os.close(master)
    t.check(TOKEN.encode() in shown, "a terminal shows what the program draws")
    found = events(t, json.loads(t.read(report)))
    t.check(any(e["path"] == "the terminal" and e["action"] == "log" for e in found),
            f"events: {found}")


def test_what_cannot_be_stopped_is_refused(t):
    ws = t.workspace()
    r = t.ward("run", "-d", "-p", policy(t, scan_output="block"), "--", "sleep", "100", cwd=ws)
    t.equal(r.rc, 125, "detached")
    t.contains(r.err, "credentials.scan_output", "why")
    r = t.ward("run", "-t", "-p", policy(t, scan_output="redact"), "--", "true", cwd=ws)
    t.equal(r.rc, 125, "a terminal inside whose output goes elsewhere")


def test_workspace(t):
    """Files that the run changed, and no others; as they are at its end."""
    ws = t.workspace({"old": f"x {TOKEN}\n", "touched": f"y {TOKEN}\n", "sub/plain": "x"})
    time.sleep(0.1)  # the clock that stamps files ticks: what is as new as the run is the run's
    script = f"echo 'key {TOKEN}' >sub/new; touch -d 2001-01-01 sub/new; echo >>touched; " \
             f"echo {TOKEN} >gone; rm gone; echo fine >fine"
    r = run(t, script, ws=ws, scan_workspace="log")
    t.equal(r.rc, 0, r.err)
    t.equal(sorted(e["path"] for e in events(t, r.report)), ["sub/new", "touched"], "places")
    t.contains(r.err, "github-token in sub/new:1", "the operator reads it")
    t.check(TOKEN[4:] not in r.err + json.dumps(r.report), "without the secret")
    r = run(t, script, ws=ws, options=["--review"], scan_workspace="log")
    t.equal(sorted(e["path"] for e in events(t, r.report)), ["sub/new", "touched"],
            "under review")
