"""--profile: where profiles come from, what goes over what, the programs they show, and ward
shell."""
import json
import os
import stat

from harness import needs
from harness.agents import own_profile, program

BUILT_IN = ["aider", "amp", "claude", "codex", "copilot", "cursor-agent", "gemini", "generic",
            "goose", "opencode", "python"]
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../profiles")


def path_with(*dirs):
    """An environment whose PATH begins with these directories."""
    return {"PATH": ":".join((*dirs, "/usr/local/bin:/usr/bin:/bin"))}


def test_the_built_in_ones(t):
    """Every file of profiles/ is built in, loads, plans, and runs a command."""
    t.equal(sorted(f[:-5] for f in os.listdir(SOURCE)), BUILT_IN, "files")
    listed = json.loads(t.ward("profile", "ls", "--json").out)["profiles"]
    t.equal([p["name"] for p in listed], BUILT_IN, "names")
    t.check(all(p["about"] and p["file"] is None for p in listed), f"descriptions: {listed}")
    ws = t.workspace()
    for name in BUILT_IN:
        t.equal(t.ward("profile", "show", name).out, t.read(SOURCE, f"{name}.yaml"), name)
        t.equal(json.loads(t.ward("plan", "--json", "--profile", name, cwd=ws).out)["profile"],
                name)
        r = t.ward("run", "--profile", name, "--", "sh", "-c",
                   "echo $HOME; touch ~/x ~/.npm/x ~/.cache/pip/x", cwd=ws, report=True)
        t.equal((r.rc, r.out), (0, "/home/agent\n"), name)
        note = [n for n in r.report["notes"] if n.startswith("no network: ")]
        t.equal(note, [], f"notes of {name}")
        t.equal("network" in r.report, name != "generic", f"network of {name}")
    for text in (t.ward("profile", "ls").out, t.ward("plan", "--profile", "claude", cwd=ws).out):
        t.contains(text, "claude")


def test_an_unknown_one(t):
    ws = t.workspace()
    for name in ("claud", "../claude", "", "no/such", "-x"):
        r = t.ward("run", f"--profile={name}", "--", "true", cwd=ws)
        t.equal(r.rc, 125, name)
    t.contains(t.ward("run", "--profile", "claud", "--", "true", cwd=ws).err,
               "did you mean claude?")
    t.equal(t.ward("profile", "show", "claud").rc, 125)
    t.equal(t.ward("profile").rc, 2)
    t.equal(t.ward("profile", "show").rc, 2)


def test_ones_own_goes_first(t):
    own_profile(t, "claude", "# Mine.\nversion: 1\nresources: {pids_limit: 17}\n")
    own_profile(t, "team", "version: 1\nresources: {pids_limit: 18}\n")
    ws = t.workspace()
    for name, pids in (("claude", 17), ("team", 18)):
        plan = json.loads(t.ward("plan", "--json", "--profile", name, cwd=ws).out)
        t.equal(plan["limits"]["pids"]["value"], pids, name)
    listed = {p["name"]: p for p in json.loads(t.ward("profile", "ls", "--json").out)["profiles"]}
    t.equal((listed["claude"]["about"], listed["team"]["file"]),
            ("Mine.", f"{t.home}/.config/ward/profiles/team.yaml"))
    moved = t.fresh_dir("config")
    t.write(moved, {"ward/profiles/moved.yaml": "version: 1\n"})
    t.equal(t.ward("plan", "--profile", "moved", cwd=ws, env={"XDG_CONFIG_HOME": moved}).rc, 0)
    own_profile(t, "broken", "version: 1\nfilesytem: {mode: x}\nresources: {pids_limit: lots}\n")
    r = t.ward("run", "--profile", "broken", "--", "true", cwd=ws)
    t.equal(r.rc, 125)
    t.contains(r.err, "broken.yaml:2:1")
    t.contains(r.err, "broken.yaml:3:")


def test_precedence(t):
    """Defaults < profile < file < options; a profile widens without trust, a found file on top of
    it does not."""
    own_profile(t, "p", "version: 1\nprocess: {syscalls: build}\nresources: {pids_limit: 2000, "
                "timeout_seconds: 100}\n")
    ws = t.workspace({"ward.yaml": "version: 1\nresources: {timeout_seconds: 50}\n"})

    def planned(*options, **more):
        r = t.ward("plan", "--json", *options, cwd=ws, **more)
        return [json.loads(r.out)["limits"][k]["value"]
                for k in ("pids", "timeout")] if r.rc == 0 else r.err
    t.equal(planned(), [1024, 50000])
    t.equal(planned("--profile", "p"), [2000, 50000])
    t.equal(planned("--profile", "p", "--pids", "7"), [7, 50000])
    t.contains(planned("--profile", "p", "--pids", "2001"), "can only narrow")
    t.write(ws, {"ward.yaml": "version: 1\nresources: {pids_limit: 2000}\n"})
    t.contains(planned(), "widens the defaults")
    t.equal(planned("--profile", "p"), [2000, 100000], "the file grants what the profile does")
    t.write(ws, {"ward.yaml": "version: 1\nresources: {pids_limit: 3000}\n"})
    t.contains(planned("--profile", "p"), "ward trust")


def test_what_this_build_cannot_do_is_refused(t):
    ws = t.workspace()
    own_profile(t, "later", "version: 1\ntools: tools.yaml\n")
    t.contains(t.ward("run", "--profile", "later", "--", "true", cwd=ws).err, "not yet supported")
    t.write(ws, {"p.yaml": "version: 1\ntools: tools.yaml\n"})
    t.equal(t.ward("run", "-p", "p.yaml", "--", "true", cwd=ws).rc, 125)


def test_programs_are_shown_with_their_packages_only(t):
    """npm's layout, a virtual environment, a single file: each runs, and nothing beside it is in
    view."""
    ws, top = t.workspace(), t.fresh_dir("prefix")
    modules = os.path.join(top, "npm/lib/node_modules")
    program(t, f"{modules}/@scope/agent/bin/run",
            '#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/../data"\n')
    program(t, f"{modules}/plain/cli")
    program(t, f"{modules}/other/secret")
    t.write(top, {"npm/lib/node_modules/@scope/agent/data": "data\n",
                  "venv/pyvenv.cfg": f"home = {top}/base/bin\nversion = 3\n",
                  "venv/lib/module": "module\n", "base/lib/x": "base\n", "other": "secret\n"})
    program(t, f"{top}/base/bin/python", '#!/bin/sh\nexec sh "$@"\n')
    program(t, f"{top}/venv/bin/tool",
            f"#!{top}/base/bin/python\ncat {top}/venv/lib/module {top}/base/lib/x\n")
    program(t, f"{top}/native/versions/1.0/agent")
    program(t, f"{top}/native/versions/1.0/beside")
    os.makedirs(f"{top}/npm/bin")
    os.makedirs(f"{top}/bin")
    for link, to in ((f"{top}/npm/bin/agent", "../lib/node_modules/@scope/agent/bin/run"),
                     (f"{top}/npm/bin/plain", "../lib/node_modules/plain/cli"),
                     (f"{top}/bin/native", f"{top}/native/versions/1.0/agent")):
        os.symlink(to, link)
    env = path_with(f"{top}/npm/bin", f"{top}/venv/bin", f"{top}/bin")
    options = ("--set", "filesystem.programs=[agent, plain, tool, native, missing, ls]")

    def inside(script):
        return t.ward("run", *options, "--", "sh", "-c", script, cwd=ws, env=env)
    t.equal(inside("agent; tool").out, "data\nmodule\nbase\n")
    t.contains(inside("plain a").out, "ran /.ward/bin/plain a")
    t.contains(inside("native b").out, "ran /.ward/bin/native b")
    t.equal(inside("command -v ls").out.strip() in ("/usr/bin/ls", "/bin/ls"), True,
            "what /usr has stays")
    r = inside(f"cd {top}; find . -type f | sort; touch {modules}/plain/x {top}/x 2>&1")
    t.equal([line for line in r.out.splitlines() if line.startswith("./")],
            ["./base/bin/python", "./base/lib/x", "./native/versions/1.0/agent",
             "./npm/lib/node_modules/@scope/agent/bin/run",
             "./npm/lib/node_modules/@scope/agent/data", "./npm/lib/node_modules/plain/cli",
             "./venv/bin/tool", "./venv/lib/module",
             "./venv/pyvenv.cfg"], "files in view")
    t.check(r.rc != 0 and not os.path.exists(f"{top}/x"),
            "the programs' directories can be written")
    t.equal(inside("missing").rc, 127)
    t.equal(t.ward("run", *options, "--", "agent", cwd=ws, env=env).out, "data\n",
            "as the command itself")


def test_a_version_of_an_installer_is_shown_as_a_whole(t):
    """.../NAME/versions/VERSION/NAME brings what lies beside it; other versions stay outside."""
    ws, top = t.workspace(), t.fresh_dir("prefix")
    share = f"{top}/share/agent"
    program(t, f"{share}/versions/2/agent",
            '#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/data"\n')
    program(t, f"{share}/versions/1/agent")
    program(t, f"{share}/odd/2/agent")
    t.write(share, {"versions/2/data": "data\n", "versions/1/secret": "x\n", "settings": "x\n",
                    "odd/2/secret": "x\n"})
    os.makedirs(f"{top}/bin")
    os.symlink(f"{share}/versions/2/agent", f"{top}/bin/agent")
    os.symlink(f"{share}/odd/2/agent", f"{top}/bin/odd")
    r = t.ward("run", "--set", "filesystem.programs=[agent, odd]", "--", "sh", "-c",
               f"agent; cd {top}; find . -type f | sort", cwd=ws, env=path_with(f"{top}/bin"))
    t.equal(r.out.splitlines(), ["data", "./share/agent/odd/2/agent",
                                 "./share/agent/versions/2/agent", "./share/agent/versions/2/data"])


def test_programs_never_show_a_home(t):
    """A virtual environment that is the home directory itself would show all of it."""
    ws = t.workspace()
    t.write(t.home, {"pyvenv.cfg": "home = /usr/bin\n", ".netrc": "secret\n"})
    program(t, f"{t.home}/bin/tool")
    r = t.ward("run", "--set", "filesystem.programs=[tool]", "--", "cat", f"{t.home}/.netrc",
               cwd=ws, env=path_with(f"{t.home}/bin"))
    t.equal((r.rc, r.out), (125, ""))
    t.contains(r.err, "contains the home directory")


def test_what_the_agent_wrote_shows_nothing(t):
    """A program in the workspace, or one that a link leads to through it: the agent may have made
    it point at anything."""
    ws, top = t.workspace({"venv/pyvenv.cfg": ""}), t.fresh_dir("top")
    program(t, f"{top}/secret/bin/python3")
    program(t, f"{top}/secret/bin/tool3")
    t.write(top, {"secret/key": "secret\n"})
    t.write(ws, {"venv/pyvenv.cfg": f"home = {top}/secret/bin\n"})
    program(t, f"{ws}/venv/bin/tool")
    os.makedirs(f"{ws}/bin")
    os.makedirs(f"{top}/bin")
    os.symlink(f"{top}/secret/bin/tool3", f"{ws}/bin/tool2")
    os.symlink(f"{ws}/dir/tool3", f"{top}/bin/tool3")
    os.symlink(f"{top}/secret/bin", f"{ws}/dir")
    os.symlink(ws, f"{top}/ws")
    os.symlink(f"{top}/ws/dir/tool3", f"{top}/bin/tool4")
    env = path_with(f"{ws}/venv/bin", f"{ws}/bin", f"{top}/bin")
    r = t.ward("run", "--set", "filesystem.programs=[tool, tool2, tool3, tool4]", "--", "sh", "-c",
               f"find {top}/secret; tool; ls /.ward/bin", cwd=ws, env=env)
    t.equal(r.out, f"ran {ws}/venv/bin/tool\n", "what is in view")


def test_a_profile_in_the_workspace_is_refused(t):
    """Dotfiles as a workspace: the agent could write the profile that it runs under next."""
    ws = t.workspace({"ward/profiles/mine.yaml": "version: 1\nresources: {pids_limit: none}\n"})
    r = t.ward("run", "--profile", "mine", "--", "true", cwd=ws, env={"XDG_CONFIG_HOME": ws})
    t.equal(r.rc, 125)
    t.contains(r.err, "-p ")
    config = t.fresh_dir("config")
    os.symlink(f"{ws}/ward", f"{config}/ward")
    t.equal(t.ward("run", "--profile", "mine", "--", "true", cwd=ws,
                   env={"XDG_CONFIG_HOME": config}).rc, 125, "through a link")
    t.equal(t.ward("run", "--profile", "mine", "--", "true", cwd=t.workspace(),
                   env={"XDG_CONFIG_HOME": config}).rc, 0, "elsewhere")


def test_a_found_policy_that_names_programs_needs_trust(t):
    ws = t.workspace({"ward.yaml": "version: 1\nfilesystem: {programs: [tool]}\n"})
    r = t.ward("run", "--", "true", cwd=ws)
    t.equal(r.rc, 125)
    t.contains(r.err, "filesystem.programs")


def test_an_agents_keys_stay_outside(t):
    """A profile passes no credential of the host's: not by variable, not by file."""
    ws = t.workspace()
    keys = {"ANTHROPIC_API_KEY": "KEY-ONE", "OPENAI_API_KEY": "KEY-TWO",
            "GEMINI_API_KEY": "KEY-THREE", "GOOGLE_API_KEY": "KEY-FOUR"}
    t.write(t.home, {".claude/.credentials.json": "KEY-FIVE", ".codex/auth.json": "KEY-SIX",
                     ".gemini/oauth_creds.json": "KEY-SEVEN"})
    for name in BUILT_IN:
        r = t.ward("run", "--profile", name, "--", "sh", "-c",
                   f"env; ls -A ~; cat ~/.claude/* ~/.codex/* ~/.gemini/* {t.home}/.c*/*", cwd=ws,
                   env=keys)
        t.check(not any(k in r.out for k in ("KEY-", "API_KEY")), f"{name}: {r.out}")
    r = t.ward("run", "--profile", "claude", "--env", "ANTHROPIC_API_KEY", "--", "sh", "-c",
               "echo $ANTHROPIC_API_KEY", cwd=ws, env=keys)
    t.equal(r.out, "KEY-ONE\n", "asked for")


def test_shell(t):
    ws = t.workspace({"ward.yaml": "version: 1\n"})
    r = t.ward("shell", "--timeout", "20", "--", "-c",
               'echo "$SHELL" "$0" "$#"; [ -d "$HOME" ]; exit 7', cwd=ws)
    t.equal(r.rc, 7)
    t.contains(r.out, "/bin/bash" if os.path.exists("/usr/bin/bash") else "/bin/sh")
    r = t.ward("shell", cwd=ws, input="pwd\necho $WARD\nexit 3\n")
    t.equal((r.rc, r.out), (3, f"{ws}\n1\n"))
    t.equal(t.ward("shell", "--no-such", cwd=ws).rc, 125)
    t.contains(t.ward("shell", "--help").out, "--profile")


def test_shell_on_a_terminal(t):
    """A prompt that says where one is, a terminal inside, and the shell's own exit code."""
    ws = t.workspace()
    r = t.ward_tty("shell", cwd=ws, env={"TERM": "xterm"},
                   input=b"tty; echo sum $((40 + 2)); exit 5\n", after=b"(ward)")
    t.equal(r.rc, 5, "exit")
    t.contains(r.out, "sum 42")
    t.contains(r.out, "/dev/pts/")


@needs("git")
def test_git_works_under_every_profile(t):
    for name in BUILT_IN:
        ws = t.git_repo()
        r = t.ward("run", "--profile", name, "--env", "GIT_AUTHOR_NAME=a", "--env",
                   "GIT_AUTHOR_EMAIL=a@b", "--env", "GIT_COMMITTER_NAME=a", "--env",
                   "GIT_COMMITTER_EMAIL=a@b", "--", "sh", "-ec",
                   "echo x > x; git add x; git commit -qm inside; git log --oneline | wc -l",
                   cwd=ws)
        t.equal((r.rc, r.out.strip()), (0, "2"), name)
        t.equal(stat.S_IMODE(os.stat(f"{t.state_dir}/caches").st_mode), 0o700)


def test_the_hint_for_a_missing_program_works(t):
    """What ward says when only the host has the command is what makes it run."""
    ws, top = t.workspace(), t.fresh_dir("prefix")
    program(t, f"{top}/lib/node_modules/agent/cli")
    os.makedirs(f"{top}/bin")
    os.symlink("../lib/node_modules/agent/cli", f"{top}/bin/agent")
    env = path_with(f"{top}/bin")
    r = t.ward("run", "--", "agent", cwd=ws, env=env)
    t.equal(r.rc, 127)
    t.contains(r.err, "--add filesystem.programs=agent")
    t.contains(t.ward("run", "--add", "filesystem.programs=agent", "--", "agent", cwd=ws,
                      env=env).out, "ran ")
