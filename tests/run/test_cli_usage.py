"""The command line: verbs, options, what is refused and with which exit code."""
import os
import re
import shutil
import subprocess

from harness import libward, native_only

VERBS = ["run", "agent", "plan", "check", "init", "trust", "doctor", "quarantine", "exec", "ps",
         "attach", "logs", "stats", "top", "cp", "wait",
         "pause", "resume", "stop", "kill", "rm", "diff", "apply", "discard", "help", "version"]
LATER_VERBS = ["prove", "render"]


def test_help(t):
    r = t.ward("help")
    t.equal(r.rc, 0, "exit code")
    for verb in VERBS:
        t.equal(r.out.count(f"\n  {verb} "), 1, f"{verb} in the help")
    groups = re.findall(r"(?m)^([a-z ]+):$", r.out)
    t.equal(groups, ["start here", "run", "review", "network and secrets", "look and explain",
                     "policy", "images and engines", "housekeeping", "example"])
    t.equal(len(r.out.split("start here:\n")[1].split("\n\n")[0].splitlines()), 10,
            "verbs to start with")
    t.check(all(len(line) < 80 for line in r.out.splitlines()), "the help is wider than 80 columns")
    for words in (["--help"], ["-h"]):
        t.equal(t.ward(*words).out, r.out, "help")
    for verb in VERBS:
        one = t.ward(verb, "--help")
        t.equal(one.rc, 0, "exit code")
        t.equal(one.err, "", "standard error")
        t.contains(one.out, f"usage: ward {verb}", "help")
        t.contains(one.out, "example:", "help")
        t.equal(t.ward("help", verb).out, one.out, "help")
        t.check(all(len(line) < 80 for line in one.out.splitlines()),
                f"help of {verb} is wider than 80 columns")


def test_help_of_run_wins(t):
    r = t.ward("run", "--timeout", "5", "--help")
    t.equal(r.rc, 0, "exit code")
    t.contains(r.out, "--report FILE", "help")


def test_no_verb(t):
    r = t.ward()
    t.equal(r.rc, 2, "exit code")
    t.contains(r.err, "usage: ward", "standard error")
    t.equal(r.out, "", "standard output")


def test_version(t):
    for words in (["version"], ["--version"], ["-V"]):
        r = t.ward(*words)
        t.equal(r.rc, 0, "exit code")
        t.check(r.out.startswith("ward "), r.out)
    t.contains(t.ward("version", "--json").out, '{"version":"', "JSON")


def test_unknown_verb(t):
    r = t.ward("chekc")
    t.equal(r.rc, 2, "exit code")
    t.contains(r.err, "did you mean ward check?", "standard error")
    r = t.ward("zzzzzz")
    t.equal(r.rc, 2, "exit code")
    t.contains(r.err, "ward help", "standard error")


def test_unknown_verb_is_not_looked_for_in_path(t):
    directory = t.fresh_dir()
    t.write(directory, {"ward-hijack": "#!/bin/sh\necho hijacked\n"})
    os.chmod(os.path.join(directory, "ward-hijack"), 0o755)
    r = t.ward("hijack", env={"PATH": f"{directory}:/usr/bin:/bin"}, cwd=directory)
    t.equal(r.rc, 2, "exit code")
    t.equal(r.out, "", "standard output")
    r = t.ward("../hijack", cwd=directory)
    t.equal(r.rc, 2, "exit code")


def test_programs_beside_ward_are_verbs(t):
    tree = t.fresh_dir()
    script = "#!/bin/sh\necho $(basename \"$0\") \"$@\"\n"
    t.write(tree, {"bin": None, "bin/ward-beside": script, "libexec/ward/ward-extra": script})
    for name in ("bin/ward-beside", "libexec/ward/ward-extra"):
        os.chmod(os.path.join(tree, name), 0o755)
    shutil.copy(t.ward_path, os.path.join(tree, "bin/ward"))
    for verb in ("beside", "extra"):
        r = t.run(os.path.join(tree, "bin/ward"), verb, "--json", "a b")
        t.equal((r.rc, r.out), (0, f"ward-{verb} --json a b\n"), verb)
    t.equal(t.run(os.path.join(tree, "bin/ward"), "other").rc, 2, "exit code")


def test_later_verbs(t):
    for verb in LATER_VERBS:
        r = t.ward(verb, "x")
        t.equal(r.rc, 125, f"exit code of {verb}")
        t.contains(r.err, f"ward {verb} is not yet supported by this build", "standard error")


def test_wrong_options(t):
    workspace = t.workspace()
    cases = [
        (["run", "--tiemout", "5", "--", "true"], 125, "did you mean --timeout?"),
        (["run", "--timeout"], 125, "--timeout needs a value: SECONDS"),
        (["run", "--widen=1", "--", "true"], 125, "--widen takes no value"),
        (["run"], 125, "no command given"),
        (["run", "--"], 125, "no command given"),
        (["run", "--hide", "--", "true"], 125, "--hide needs a value"),
        (["run", "--set", "nonsense", "--", "true"], 125, "expected FIELD=VALUE"),
        (["run", "--set", "resources.pid_limit=5", "--", "true"], 125, "resources.pids_limit"),
        (["run", "--pids", "many", "--", "true"], 125, "pids"),
        (["run", "--memory", "1", "--", "true"], 125, "memory"),
        (["run", "--timeout", "-3", "--", "true"], 125, "timeout"),
        (["run", "-p", "", "--", "true"], 125, "the value is empty"),
        (["plan", "--nope"], 2, "unknown option --nope"),
        (["check", "a", "b"], 2, "unexpected argument: b"),
        (["doctor", "--widen"], 2, "unknown option --widen"),
        (["help", "nope"], 2, "unknown verb: nope"),
    ]
    for words, code, text in cases:
        r = t.ward(*words, cwd=workspace)
        t.equal(r.rc, code, f"exit code of {words}")
        t.contains(r.err, text, f"standard error of {words}")
        t.equal(r.out, "", f"standard output of {words}")


def test_errors_cannot_act_on_the_terminal(t):
    workspace = t.workspace()
    for words in (["run", "--\x1b[31mred\nward: forged"], ["check", "\x1b]0;title\x07.yaml"],
                  ["\x1b[2J"],
                  ["run", "-w", "/no\n\x1b[1m", "--", "true"],
                  ["run", "--set", "a\x1bb=c", "--", "true"]):
        r = t.ward(*words, cwd=workspace)
        t.check(r.rc in (2, 125), f"exit code {r.rc}")
        t.check("\x1b" not in r.err and "\x07" not in r.err, "an escape got through")
        t.check("\nward: forged" not in r.err, "a line was forged")


def test_first_word_begins_the_command(t):
    r = t.ward("run", "/bin/echo", "--json", "-v", cwd=t.workspace())
    t.equal(r.rc, 0, "exit code")
    t.equal(r.out, "--json -v\n", "standard output")
    t.equal(r.err, "", "standard error")


def test_refusal_as_json(t):
    import json
    for words in (["--json", "--nope", "--", "true"], ["--nope", "--json", "--", "true"],
                  ["--json", "-w", "/nonexistent", "--", "true"]):
        r = t.ward("run", *words, cwd=t.workspace())
        t.equal(r.rc, 125, "exit code")
        refused = json.loads(r.err.splitlines()[-1])["refused"]
        t.equal(sorted(refused), ["remedy", "what", "why"], "keys")


def test_argv_of_a_megabyte(t):
    words = ["x" * 1000] * 1000
    r = t.ward("run", "--", "/bin/sh", "-c", "echo $#", "sh", *words, cwd=t.workspace())
    t.equal(r.rc, 0, "exit code")
    t.equal(r.out, "1000\n", "standard output")
    r = t.ward("run", *[w for i in range(3000) for w in ("--env", f"V{i}=1")], "--", "/bin/sh",
               "-c", "echo $V2999",
               cwd=t.workspace())
    t.equal(r.rc, 0, "exit code")
    t.equal(r.out, "1\n", "standard output")


def test_empty_argv(t):
    program = t.compile("#include <unistd.h>\n#include <sys/wait.h>\n"
                        "int main(int c, char **v) { char *none[] = { 0 }; if (!fork()) { "
                        "execve(v[1], none, none);"
                        " _exit(9); } int s; wait(&s); return WIFEXITED(s) ? WEXITSTATUS(s) "
                        ": 99; }")
    r = t.run(program, t.ward_path)
    t.equal(r.rc, 2, "exit code")


def test_closed_stdio(t):
    workspace = t.workspace()
    for closed in ((0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)):
        def prepare(which=closed):
            for fd in which:
                os.close(fd)
        r = t.run(t.ward_path, "run", "--", "/bin/sh", "-c", "echo out; echo err >&2; exit 3",
                  cwd=workspace,
                  prepare=prepare)
        t.equal(r.rc, 3, f"exit code with {closed} closed")
        t.equal(r.out, "" if 1 in closed else "out\n", "standard output")


def test_reader_that_goes_away(t):
    r = t.run("/bin/bash", "-c", f"{t.ward_path} help | head -n 1; echo ${{PIPESTATUS[0]}}")
    t.contains(r.out, "usage:", "standard output")
    process = t.popen([t.ward_path, "run", "--", "/bin/sh", "-c", "exit 4"], cwd=t.workspace(),
                      stdout=subprocess.PIPE)
    process.stdout.close()
    process.stdout = None
    t.equal(process.wait(20), 4, "exit code")


def test_full_output(t):
    with open("/dev/full", "wb") as full:
        r = t.ward("help", stdout=full)
    t.equal(r.rc, 125, "exit code")
    t.contains(r.err, "standard output", "standard error")


def test_sigpipe_is_the_commands_default(t):
    r = t.ward("run", "--", "/bin/sh", "-c", "grep SigIgn /proc/self/status", cwd=t.workspace())
    t.equal(int(r.out.split()[1], 16) & (1 << 12), 0, "SIGPIPE is ignored inside")


TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@native_only("the time is man's")
def test_manual_pages_render(t):
    """A line that begins with a dot is a request, and an unknown one is left out of what is
    read."""
    if not shutil.which("man") or not shutil.which("groff"):
        t.skip("there is no man or no groff here")
    pages = os.path.join(TOP, "docs/man")
    for page in sorted(os.listdir(pages)):
        r = t.run("man", "--warnings", "-l", os.path.join(pages, page),
                  env={"LC_ALL": "C.UTF-8", "MANWIDTH": "100"})
        t.equal((r.rc, r.err), (0, ""), page)


def test_every_verb_has_an_installed_manual_page(t):
    """`make install` gives the page of each verb that `ward help` lists, and each page that another
    one refers to."""
    tree = libward.tree(t)
    pages = {name for _, _, names in os.walk(os.path.join(tree, "share/man")) for name in names}
    pages = {name.removesuffix(".gz") for name in pages}
    listed = t.ward("help").out.split("start here:\n", 1)[1].split("\nexample:", 1)[0]
    verbs = re.findall(r"^  ([a-z]+) ", listed, re.M)
    t.check(len(verbs) > 30, f"ward help lists {verbs}")
    t.equal([verb for verb in verbs if f"ward-{verb}.1" not in pages], [], "verbs without a page")
    references = set()
    for page in os.listdir(os.path.join(TOP, "docs/man")):
        text = t.read(TOP, "docs/man", page).replace("\\-",
                                                     "-").replace("\\fB", "").replace("\\fR", "")
        references |= set(re.findall(r"\b((?:ward|libward)[a-z.-]*)\s?\(([135])\)", text))
    missing = sorted(f"{name}({section})" for name, section in references
                     if f"{name}.{section}" not in pages)
    t.equal(missing, [], "pages that are referred to and not installed")


def test_completions_of_words_within_a_verb(t):
    script = (f". {TOP}/completions/ward.bash; COMP_WORDS=(ward \"$@\"); COMP_CWORD=$#; _ward; "
              f"echo \"${{COMPREPLY[@]}}\"")
    for words, said in ((["ru"], "run"), (["image", ""], "import pull build ls rm gc"),
                        (["audit", "ver"], "verify"), (["volume", ""], "ls rm"),
                        (["run", "--isol"], "--isolation")):
        t.equal(t.run("bash", "-c", script, "bash", *words).out.strip(), said, " ".join(words))


def test_completions_of_values(t):
    """Values of options: profiles by asking ward, policy fields and engines from the tables."""
    script = (f'. {TOP}/completions/ward.bash; ward() {{ "$WARD" "$@"; }}; compopt() {{ :; }}; '
              'COMP_WORDS=(ward "$@"); COMP_CWORD=$#; _ward; echo "${COMPREPLY[@]}"')
    for words, said in ((["run", "--profile", "cl"], "claude"),
                        (["plan", "--set", "process.sys"], "process.syscalls="),
                        (["run", "--isolation", "gv"], "gvisor"),
                        (["run", "--profile", "no-such"], "")):
        done = t.run("bash", "-c", script, "bash", *words, env={"WARD": t.ward_path})
        t.equal(done.out.strip(), said, " ".join(words))
