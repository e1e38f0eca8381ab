"""Wrong input: a clear error that names the place and the remedy, and exit 125; nothing is started
or left."""
import os
import resource

from harness import needs, only_root, only_user


def refused(t, r, *parts):
    t.equal(r.rc, 125, f"exit ({r.err})")
    t.check(r.err.startswith("ward: "), f"the message is not ward's: {r.err!r}")
    t.check("started" not in r.out, "the command ran")
    for part in parts:
        t.contains(r.err, part, "the message")


def test_workspace_that_is_not_there(t):
    missing = os.path.join(t.fresh_dir(), "missing")
    refused(t, t.ward("run", "-w", missing, "--", "/bin/echo", "started", cwd="/"), missing,
            "remedy")


def test_workspace_that_is_a_file(t):
    path = os.path.join(t.workspace({"f": "x"}), "f")
    refused(t, t.ward("run", "-w", path, "--", "/bin/echo", "started", cwd="/"), path)


def test_workspace_that_is_too_much(t):
    for path in ("/", "/usr", "/etc", "/proc", "/dev", "/home", "/tmp"):
        r = t.ward("run", "-w", path, "--", "/bin/echo", "started", cwd="/")
        refused(t, r, path, "remedy")


def test_workspace_that_is_home(t):
    refused(t, t.ward("run", "--", "/bin/echo", "started", cwd=t.home), "home", "remedy")
    refused(t, t.ward("run", "-w", os.path.dirname(t.home), "--", "/bin/echo", "started", cwd="/"),
            "home")


@only_user
def test_workspace_without_permission(t):
    ws = t.fresh_dir()
    os.chmod(ws, 0)
    refused(t, t.ward("run", "-w", ws, "--", "/bin/echo", "started", cwd="/"), "workspace",
            "Permission denied")
    os.chmod(ws, 0o700)


def test_directory_outside_the_workspace(t):
    refused(t, t.ward("run", "-w", t.workspace(), "-C", "/usr/no/such", "--", "/bin/echo",
                      "started", cwd="/"), "/usr/no/such")


def test_working_directory_that_was_removed(t):
    gone = t.fresh_dir()
    r = t.run("sh", "-c", f'rmdir {gone}; exec "$@"', "sh", t.ward_path, "run", "--", "/bin/echo",
              "started", cwd=gone)
    refused(t, r)


def test_policy_that_cannot_be_read(t):
    ws = t.workspace({"dir/x": "x", "empty.yaml": "", "bad.yaml": "version: [",
                      "binary.yaml": "\x00\x01\x02"})
    for name in ("missing.yaml", "dir", "bad.yaml", "binary.yaml"):
        r = t.ward("run", "-p", name, "--", "/bin/echo", "started", cwd=ws)
        t.equal(r.rc, 125, f"{name}: {r.err}")
        t.contains(r.err, name)


@only_user
def test_policy_without_permission(t):
    ws = t.workspace({"p.yaml": "version: 1\n"})
    os.chmod(os.path.join(ws, "p.yaml"), 0)
    refused(t, t.ward("run", "-p", "p.yaml", "--", "/bin/echo", "started", cwd=ws), "p.yaml")


def test_policy_with_many_errors_says_all(t):
    ws = t.workspace({"p.yaml": "version: 1\nfilesystem:\n  mod: read_only\nresources:\n"
                      "  pids_limit: many\n  memory_limit: -1\n"})
    r = t.ward("run", "-p", "p.yaml", "--", "/bin/echo", "started", cwd=ws)
    t.equal(r.rc, 125)
    for part in ("p.yaml:3:", "mode", "p.yaml:5:", "p.yaml:6:"):
        t.contains(r.err, part)


def test_policy_bomb(t):
    """Aliases that would unfold to billions of entries."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    ws = t.workspace({"p.yaml": "\n".join(lines) + "\n", "deep.yaml": "[" * 20000,
                      "long.yaml": "version: " + "1" * 4000000})
    for name in ("p.yaml", "deep.yaml", "long.yaml"):
        r = t.ward("run", "-p", name, "--", "/bin/echo", "started", cwd=ws, timeout=10)
        t.equal(r.rc, 125, name)


def test_hostile_ignore_files(t):
    """Patterns that make naive matchers run for ever, a very long list, odd bytes."""
    for text in ("*a" * 2000 + "b\n", "**/" * 3000 + "x\n", "[" * 5000 + "\n", "\\" * 9999 + "\n",
                 "\xff\xfe\n", "x\n" * 200000):
        ws = t.workspace({"a" * 200: "x", "aaaa/" * 40 + "f": "x"})
        with open(os.path.join(ws, ".aiignore"), "w", encoding="latin-1") as f:
            f.write(text)
        r = t.ward("run", "--", "/bin/true", cwd=ws, timeout=10)
        t.check(r.rc in (0, 125), f"exit {r.rc}: {r.err}")


def test_deep_and_wide_workspaces(t):
    ws = t.workspace({f"d{i}/f{j}": "" for i in range(40) for j in range(50)})
    t.run("sh", "-c", "i=0; while [ $i -lt 300 ]; do mkdir directory && cd directory || exit 1; "
          "i=$((i+1)); done", cwd=ws, check=True)
    r = t.ward("run", "--", "/bin/true", cwd=ws, timeout=15)
    t.equal(r.rc, 0, r.err)


def test_huge_argument(t):
    r = t.ward("run", "--", "/bin/sh", "-c", 'echo ${#1}', "sh", "x" * 100000, cwd=t.workspace())
    t.equal((r.rc, r.out), (0, "100000\n"), r.err)
    many = ["y" * 1000] * 1000
    r = t.ward("run", "--", "/bin/sh", "-c", 'echo $#', "sh", *many, cwd=t.workspace())
    t.equal((r.rc, r.out), (0, "1000\n"), r.err)


def test_closed_descriptors(t):
    """Without 0, 1 or 2 ward says so or works; it never takes another file for them."""
    for closing in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        ws = t.workspace()
        r = t.run("sh", "-c", f'"$@" {closing}', "sh", t.ward_path, "run", "-w", ws, "--",
                  "/bin/sh", "-c",
                  "ls /proc/self/fd > fds; echo text > made", cwd=ws)
        t.check(r.rc in (0, 125), f"{closing}: exit {r.rc} {r.err}")
        if r.rc == 0:
            t.equal(t.read(ws, "made"), "text\n", closing)


def test_no_descriptors_left(t):
    """A caller whose limit of open files is almost used up gets an error, not a weaker sandbox."""
    for number in (4, 6, 8, 12, 16, 24):
        ws = t.workspace()
        r = t.ward("run", "-w", ws, "--", "/bin/sh", "-c", "echo started", cwd=ws,
                   prepare=lambda n=number: resource.setrlimit(resource.RLIMIT_NOFILE, (n, 4096)))
        t.check((r.rc, r.out) == (0, "started\n") or r.rc in (125, 126, 127) and not r.out,
                f"{number}: exit {r.rc} {r.out} {r.err}")


@needs("plain")
def test_little_memory(t):
    """A caller with a small address space: an error, not a crash."""
    for megabytes in (1, 4, 8, 16):
        ws = t.workspace()
        r = t.ward("run", "-w", ws, "--", "/bin/true", cwd=ws,
                   prepare=lambda m=megabytes: resource.setrlimit(resource.RLIMIT_AS,
                                                                  (m << 20, m << 20)))
        t.check(r.rc in (0, 125, 127) or (r.rc == -9 and megabytes < 4)
                or (r.rc == -11 and megabytes < 4), f"{megabytes} MiB: exit {r.rc} {r.err}")


@needs("root")
def test_full_tmp_and_state(t):
    """Every place that ward could write to is full: an error with the place, or a run that needs
    none of them."""
    ws = t.workspace()
    state = os.path.join(t.directory, "full")
    os.mkdir(state)
    owner = f"uid={t.person.pw_uid},gid={t.person.pw_gid},mode=700"
    fill = (f'mount -t tmpfs -o size=64k,{owner} none {state} && head -c 1000000 /dev/zero > '
            f'{state}/fill 2>/dev/null; exec "$@"')
    r = t.ward("run", "-w", ws, "--", "/bin/echo", "started", cwd=ws,
               env={"WARD_STATE_DIR": state, "TMPDIR": state},
               wrap=["unshare", "-m", "sh", "-c", fill, "sh"])
    if r.rc == 0:
        t.equal(r.out, "started\n")
    else:
        refused(t, r, "No space left", "WARD_STATE_DIR")


@only_user
def test_no_home(t):
    """One reason, said once."""
    ws = t.workspace()
    for home in ("", "relative", "/nonexistent"):
        r = t.ward("run", "--", "/bin/echo", "started", cwd=ws,
                   env={"HOME": home, "WARD_STATE_DIR": "", "XDG_STATE_HOME": ""})
        refused(t, r, "remedy", "WARD_STATE_DIR")
        t.equal(r.err.count("remedy: "), 1, r.err)
        r = t.ward("run", "--json", "--", "/bin/echo", "started", cwd=ws,
                   env={"HOME": home, "WARD_STATE_DIR": "", "XDG_STATE_HOME": ""})
        t.equal((r.rc, r.err.count("\n")), (125, 1), r.err)


@only_root
def test_state_directory_of_another_user(t):
    """Records that somebody else could have written are not used."""
    state = t.fresh_dir()
    os.chown(state, 4711, 4711)
    refused(t, t.ward("run", "--", "/bin/echo", "started", cwd=t.workspace(),
                      env={"WARD_STATE_DIR": state}), state)


def test_state_directory_that_others_may_write(t):
    state = t.fresh_dir()
    os.chmod(state, 0o777)
    refused(t, t.ward("run", "--", "/bin/echo", "started", cwd=t.workspace(),
                      env={"WARD_STATE_DIR": state}), state)


@needs("root")
def test_read_only_machine(t):
    """A host whose file systems are all read-only but for the workspace."""
    ws = t.workspace()
    script = f'mount --bind {ws} {ws} && mount -o remount,bind,ro / ; exec "$@"'
    r = t.ward("run", "-w", ws, "--", "/bin/sh", "-c", "echo y > made; echo started", cwd=ws,
               wrap=["unshare", "-m", "sh", "-c", script, "sh"])
    t.check((r.rc, r.out) == (0, "started\n") or r.rc == 125 and "ward: " in r.err,
            f"exit {r.rc} {r.out} {r.err}")


def test_missing_mounts(t):
    ws = t.workspace()
    missing = os.path.join(ws, "no/such")
    refused(t, t.ward("run", "--ro", missing, "--", "/bin/echo", "started", cwd=ws), missing)
    refused(t, t.ward("run", "--rw", missing, "--", "/bin/echo", "started", cwd=ws), missing)


def test_mounts_that_would_break_the_walls(t):
    """Places inside that ward itself fills cannot be mounted over; the root cannot be given."""
    ws, given = t.workspace(), t.fresh_dir()
    for place in ("/proc", "/dev", "/", "/proc/self", "/dev/shm"):
        r = t.ward("run", "--ro", f"{given}:{place}", "--", "/bin/echo", "started", cwd=ws)
        refused(t, r, place)
    r = t.ward("run", "--ro", "/", "--", "/bin/echo", "started", cwd=ws)
    t.check(r.rc == 125 or "started" in r.out, f"exit {r.rc}")
    r = t.ward("run", "--ro", "/proc", "--", "/bin/echo", "started", cwd=ws)
    refused(t, r, "/proc")


def test_environment_of_odd_strings(t):
    env = {"EMPTY": "", "NEWLINE": "a\nb", "TERM": "\x1b]0;evil\x07", "LANG": "x" * 100000}
    r = t.ward("run", "--env", "NEWLINE", "--env", "SET=1=2", "--", "/usr/bin/env",
               cwd=t.workspace(), env=env)
    t.equal(r.rc, 0, r.err)
    t.contains(r.out, "NEWLINE=a\nb\n")
    t.contains(r.out, "SET=1=2\n")
    t.check("EMPTY" not in r.out, "a variable that was not named")


