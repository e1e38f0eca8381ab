"""Runs that overlap in one workspace: what one of them plants is never taken for the host's by
another, in whatever order they begin and end."""
import os
import signal

HOOK = "#!/bin/sh\\ntouch MARK\\n"
PLANTS = {
    "file": "echo evil > .envrc",
    "directory": "mkdir .vscode && echo evil > .vscode/tasks.json",
    "link": "echo evil > evil.sh && ln -s evil.sh .envrc && ln -s evil.d .vscode",
    "repository": "git init -q sub && printf '" + HOOK + "' > sub/.git/hooks/post-checkout && "
    "chmod +x sub/.git/hooks/post-checkout && "
                  "git -C sub config core.fsmonitor 'touch MARK'",
}


class Run:
    """A run whose command does what the test says, step by step."""

    def __init__(self, t, ws, *options, at=None):
        self.t, self.dir = t, ws
        self.process = t.ward_start("run", *options, "-w", at or ws, "--", "sh", "-c",
                                    "echo ready; while read line; do eval \"$line\"; echo "
                                    "done; done",
                                    cwd=at or ws, stdin=-1)
        self.wait("ready")

    def wait(self, word):
        line = self.process.stdout.readline().decode().strip()
        self.t.equal(line, word, "what the command said")

    def do(self, script):
        self.process.stdin.write(script.encode() + b"\n")
        self.process.stdin.flush()
        self.wait("done")

    def end(self):
        self.t.finish_ward(self.process)

    def kill(self):
        with self.t.root():
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()


def planted(t, ws, marker, sub="."):
    """What is found at a protected name, and whether the host's git ran anything."""
    at = os.path.join(ws, sub)
    found = [n for n in (".envrc", ".vscode", "sub/.git/hooks/post-checkout")
             if os.path.lexists(os.path.join(at, n))]
    if os.path.isdir(os.path.join(at, "sub")):
        t.run("git", "-C", os.path.join(at, "sub"), "status")
        t.run("git", "-C", os.path.join(at, "sub"), "checkout", "-q", "-b", "x")
    return found + (["git ran it"] if os.path.exists(marker) else [])


def cases(t, order, plants=PLANTS):
    """Every kind of planted thing in a workspace of its own."""
    for kind, script in plants.items():
        ws = t.workspace({"in/x": "x\n", "README": "r\n"})
        marker = os.path.join(t.fresh_dir("mark"), "ran")
        script = script.replace("MARK", marker)
        order(ws, script)
        t.equal(planted(t, ws, marker), [], kind)


def test_planted_before_the_other_begins(t):
    """A plants, B begins and finds it; A ends first, B's end puts nothing back."""
    def order(ws, script):
        a = Run(t, ws)
        a.do(script)
        b = Run(t, ws)
        a.end()
        b.end()
    cases(t, order)


def test_planted_before_and_held(t):
    """The same where B holds what it finds, because its command can leave mounts behind."""
    def order(ws, script):
        a = Run(t, ws)
        a.do(script)
        b = Run(t, ws, "--set", "process.nesting=true")
        a.end()
        b.end()
    cases(t, order)


def test_other_ends_first(t):
    """A plants, B begins and ends, A ends."""
    def order(ws, script):
        a = Run(t, ws)
        a.do(script)
        b = Run(t, ws)
        b.end()
        a.end()
    cases(t, order)


def test_planted_while_both_run(t):
    """Both are there when one of them plants; either may end first."""
    for first in (0, 1):
        def order(ws, script, first=first):
            runs = [Run(t, ws), Run(t, ws)]
            runs[0].do(script)
            runs.pop(first).end()
            runs.pop().end()
        cases(t, order)


def test_killed_runs(t):
    """A plants and is killed while B begins, or B is killed; whoever finishes them puts nothing
    back."""
    for who in (0, 1):
        def order(ws, script, who=who):
            a = Run(t, ws)
            a.do(script)
            runs = [a, Run(t, ws, "--set", "process.nesting=true")]
            runs.pop(who).kill()
            runs.pop().end()
            t.ward("run", "-w", t.fresh_dir("other"), "--", "true")
            t.wait_until(lambda: not any(os.path.getsize(os.path.join(t.state_dir, "live", n))
                                         for n in os.listdir(os.path.join(t.state_dir, "live"))),
                         20, "the killed run was not finished")
        cases(t, order, plants={k: PLANTS[k] for k in ("file", "link", "repository")})


def test_three_runs(t):
    """A plants, B begins, A ends and is swept while B plants the same again for C, which begins
    then."""
    def order(ws, script):
        a = Run(t, ws)
        a.do(script)
        b = Run(t, ws, "--set", "process.nesting=true")
        a.end()
        b.do(script.replace("ln -s", "ln -sf").replace("mkdir ", "mkdir -p ") + " || true")
        c = Run(t, ws, "--set", "process.nesting=true")
        b.end()
        c.end()
    cases(t, order)


def test_workspaces_within_each_other(t):
    """The same where one workspace lies in the other, both ways round."""
    for outer_plants in (True, False):
        for kind, script in PLANTS.items():
            ws = t.workspace({"in/x": "x\n"})
            marker = os.path.join(t.fresh_dir("mark"), "ran")
            script = script.replace("MARK", marker)
            a = Run(t, ws, at=ws if outer_plants else f"{ws}/in")
            a.do(f"cd {ws}/in; {script}")
            b = Run(t, ws, "--set", "process.nesting=true", at=f"{ws}/in" if outer_plants else ws)
            a.end()
            b.end()
            t.equal(planted(t, ws, marker, "in"), [],
                    f"{kind}, planted by the {'outer' if outer_plants else 'inner'} one")


def test_what_was_there_stays(t):
    """What the host had before all of them stays as it was, through every order; links that a run
    removes are put back."""
    files = {".envrc": "host\n", ".vscode/tasks.json": "host\n", ".claude/settings.json": "{}\n",
             "real": "x\n"}
    ws = t.git_repo(files)
    t.write(ws, {".git/hooks/pre-commit": "#!/bin/sh\nexit 0\n"})
    t.run("ln", "-s", "real", f"{ws}/mise.toml", check=True)
    config = t.read(ws, ".git/config")
    for options in ((), ("--set", "process.nesting=true")):
        a = Run(t, ws)
        b = Run(t, ws, *options)
        a.do("rm -f mise.toml; echo x > new; true")
        a.end()
        c = Run(t, ws, *options)
        b.end()
        c.end()
        t.equal({n: t.read(ws, n) for n in files}, files)
        t.equal(t.read(ws, ".git/config"), config)
        t.equal(t.read(ws, ".git/hooks/pre-commit"), "#!/bin/sh\nexit 0\n")
        t.equal(os.readlink(f"{ws}/mise.toml"), "real")
