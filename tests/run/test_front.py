"""What a newcomer meets first: the sample agent, the example policies, an installed tree."""
import json
import os
import pathlib
import shutil

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples"
# read here, where the tests still have the rights of whoever started them
AGENT = (EXAMPLES / "agent.py").read_text()
POLICIES = {p.name: p.read_text() for p in sorted((EXAMPLES / "policies").iterdir())}


def test_sample_agent_is_contained(t):
    ws = t.git_repo({"agent.py": AGENT})
    r = t.ward("run", "--", "python3", "agent.py", "--json", "outcomes.json", cwd=ws, report=True)
    t.equal(r.rc, 0, "exit code")
    outcomes = {o["what"]: o for o in json.loads(t.read(ws, "outcomes.json"))}
    t.check(len(outcomes) >= 8, "the agent tried less than it should")
    for what, outcome in outcomes.items():
        # these are moved away afterwards
        if what not in ("plant a shell start file", "plant a git hook"):
            t.check(outcome["blocked"], f"{what}: {outcome['outcome']}")
    t.check(not os.path.exists(f"{ws}/.git/hooks/pre-commit"), "the hook is in the repository")
    t.check(not os.path.exists(f"{ws}/.envrc"), "the start file is still in the project")
    for name in (".envrc", ".git/hooks/pre-commit"):
        t.check(any(name in q for q in r.report["quarantine"]),
                f"the report does not say that {name} was moved")
    t.check(t.read(ws, "report.txt"), "the agent's honest work is missing")


def test_sample_agent_succeeds_without_ward(t):
    ws = t.git_repo({"agent.py": AGENT})
    t.run("python3", "agent.py", "--json", "outcomes.json", cwd=ws, timeout=60, check=True)
    done = [o["what"] for o in json.loads(t.read(ws, "outcomes.json")) if not o["blocked"]]
    t.check("plant a git hook" in done and "look at other processes" in done,
            f"outside it only did: {done}")


def test_example_policies_are_valid(t):
    for name, text in POLICIES.items():
        path = os.path.join(t.workspace(), name)
        with open(path, "w") as f:
            f.write(text)
        r = t.ward("check", path)
        t.equal(r.rc, 0, f"{name}: {r.out}{r.err}: exit code of check")


def test_installed_ward_can_be_moved(t):
    """One file is all of ward: it needs no other at a fixed place."""
    one = os.path.join(t.fresh_dir("tree"), "ward")
    shutil.copy(t.ward_path, one)
    ws = t.workspace()
    r = t.run(one, "run", "--", "echo", "here", cwd=ws)
    t.equal((r.rc, r.out), (0, "here\n"), "first place")
    two = os.path.join(t.fresh_dir("two words"), "guard")
    os.rename(one, two)
    r = t.run(two, "run", "--", "echo", "there", cwd=ws)
    t.equal((r.rc, r.out), (0, "there\n"), "second place")


def test_command_has_the_callers_processors(t):
    """The start moves between processors; the command must not stay where it was sent."""
    ask = "import os; print(sorted(os.sched_getaffinity(0)))"
    here = sorted(os.sched_getaffinity(0))
    for mask in (here, here[-1:]):
        for _ in range(5):
            r = t.ward("run", "--", "/usr/bin/python3", "-c", ask, cwd=t.workspace(),
                       wrap=["taskset", "-c", ",".join(map(str, mask))])
            t.equal(r.out.strip(), str(mask))
