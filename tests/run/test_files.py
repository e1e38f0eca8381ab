"""The workspace and what else is granted: same paths, same owners, nothing more."""
import os
import stat

from harness import needs, only_root


def test_owner_and_mode_are_kept(t):
    ws = t.workspace({"old": "x", "dir/old": "x"})
    r = t.ward("run", "--", "/bin/sh", "-c",
               "umask 022; echo y > new; mkdir made; echo z > dir/new; echo more >> old; mv "
               "dir/old dir/moved",
               cwd=ws)
    t.equal((r.rc, r.err), (0, ""))
    for name in ("new", "made", "dir/new", "old", "dir/moved"):
        status = os.stat(os.path.join(ws, name))
        t.equal((status.st_uid, status.st_gid), (t.person.pw_uid, t.person.pw_gid),
                f"owner of {name}")
    t.equal(t.read(ws, "old"), "xmore\n")


def test_inside_the_agent_owns_its_files(t):
    ws = t.workspace({"a": "x"})
    r = t.ward("run", "--", "/usr/bin/stat", "-c", "%U %u", ".", "a", "/home/agent",
               "/tmp/.." if False else "/home/agent", cwd=ws)
    t.equal(set(r.out.splitlines()), {"agent 1000"})


def test_same_path_inside(t):
    ws = t.workspace({"sub/x": "1"})
    r = t.ward("run", "--", "/bin/pwd", cwd=ws)
    t.equal(r.out.strip(), ws)
    r = t.ward("run", "-w", ws, "--", "/bin/pwd", cwd=os.path.join(ws, "sub"))
    t.equal(r.out.strip(), os.path.join(ws, "sub"), "where the caller stands")
    r = t.ward("run", "-w", ws, "-C", "sub", "--", "/bin/pwd", cwd=ws)
    t.equal(r.out.strip(), os.path.join(ws, "sub"), "-C")
    r = t.ward("run", "-w", ws, "--", "/bin/pwd", cwd="/usr")
    t.equal(r.out.strip(), ws, "from elsewhere")


def test_odd_names(t):
    base = t.fresh_dir()
    for name in ("with space", "new\nline", "quo'te\"s", "tab\t", "\u00fcml\u00e4ut", "%s%n", "-w",
                 "a:b", "back\\slash", "{x: y}"):
        ws = os.path.join(base, name)
        os.mkdir(ws)
        r = t.ward("run", "--", "/bin/sh", "-c", "echo x > made", cwd=ws)
        t.equal((r.rc, t.read(ws, "made")), (0, "x\n"), f"workspace {name!r}: {r.err}")


def test_linked_workspace(t):
    """A link on the way is resolved once; inside the real path stands."""
    ws = t.workspace()
    link = os.path.join(t.fresh_dir(), "link")
    os.symlink(ws, link)
    r = t.ward("run", "-w", link, "--", "/bin/pwd", cwd="/")
    t.equal((r.rc, r.out.strip()), (0, ws))


def test_read_only(t):
    ws = t.workspace({"a": "x"})
    r = t.ward("run", "--set", "filesystem.mode=read_only", "--", "/bin/sh", "-c",
               "cat a; echo y > a; touch b", cwd=ws)
    t.equal(r.out, "x")
    t.check(r.rc != 0, "the write went through")
    t.equal(os.listdir(ws), ["a"])


def test_hidden_files_are_there_and_empty(t):
    ws = t.workspace({".env": "secret", "keys/a.key": "secret", "private/x": "secret", "open": "x",
                      ".aiignore": "# comment\n/.env\n*.key\nprivate/\n!open\n"})
    r = t.ward("run", "--", "/bin/sh", "-c",
               "cat .env keys/a.key private/x; ls -A . private; cat open", cwd=ws)
    t.check("secret" not in r.out, f"readable: {r.out}")
    t.contains(r.out, ".env")
    t.check(r.out.endswith("x"), "what is not hidden is readable")
    t.equal(t.read(ws, ".env"), "secret", "outside nothing changed")


def test_host_mounts(t):
    ws, given, file = t.workspace(), t.fresh_dir(), t.fresh_dir()
    t.write(given, {"lib": "library\n"})
    t.write(file, {"one": "single\n", "two": "not given\n"})
    r = t.ward("run", "--ro", given, "--ro", f"{file}/one", "--", "/bin/sh", "-c",
               f"cat {given}/lib {file}/one; echo x > {given}/lib; cat {file}/two", cwd=ws)
    t.equal(r.out, "library\nsingle\n")
    t.equal(t.read(given, "lib"), "library\n")
    r = t.ward("run", "--rw", given, "--", "/bin/sh", "-c",
               f"echo new > {given}/lib; echo y > {given}/made", cwd=ws)
    t.equal((r.rc, t.read(given, "lib"), t.read(given, "made")), (0, "new\n", "y\n"),
            f"--rw: {r.err}")
    t.equal(os.stat(os.path.join(given, "made")).st_uid, t.person.pw_uid, "owner")
    r = t.ward("run", "--ro", f"{given}:/opt/lib", "--", "/bin/cat", "/opt/lib/lib", cwd=ws)
    t.equal(r.out, "new\n", f"at another place: {r.err}")


def test_private_directories(t):
    ws = t.workspace()
    script = ("for d in /tmp /home/agent /dev/shm /var/tmp; do echo x > $d/f && cat $d/f; done; "
              "echo $HOME; cd; pwd")
    first = t.ward("run", "--", "/bin/sh", "-c", script, cwd=ws)
    t.equal(first.out, "x\nx\nx\nx\n/home/agent\n/home/agent\n", first.err)
    second = t.ward("run", "--", "/bin/sh", "-c", "ls /tmp /home/agent /dev/shm | grep -x f",
                    cwd=ws)
    t.equal(second.out, "", "they are fresh each time")


def test_system_directories_are_read_only(t):
    r = t.ward("run", "--", "/bin/sh", "-c",
               "for d in / /usr /etc /usr/bin /dev /proc /lib; do touch $d/x 2>/dev/null && echo "
               "$d; done",
               cwd=t.workspace())
    t.equal(r.out, "")


def test_programs_find_what_they_need(t):
    """The root is long enough for ordinary tools."""
    ws = t.workspace({"a.c": "int main(void) { return 42; }\n"})
    for command, code in (("cc a.c -o a && ./a", 42),
                          ("python3 -c 'import ssl, json, sqlite3, ctypes'", 0),
                          ("awk 'BEGIN { exit 3 }'", 3), ("git init -q g && cd g && git status", 0),
                          ("ps aux > /dev/null && free > /dev/null", 0), ("perl -e 'exit 5'", 5),
                          ("getent passwd agent && id -un", 0),
                          ("cat /etc/hosts | grep localhost", 0)):
        tool = command.split()[0]
        if not any(os.path.exists(f"{d}/{tool}") for d in ("/usr/bin", "/bin")):
            continue
        r = t.ward("run", "--", "/bin/sh", "-c", command, cwd=ws)
        t.equal(r.rc, code, f"{command}: {r.err}")


@needs("git")
def test_git_works(t):
    ws = t.git_repo()
    r = t.ward("run", "--", "/bin/sh", "-c", """set -e
        echo more >> README; git add README
        git -c user.name=a -c user.email=a@example.com commit -qm second
        git checkout -q -b side; git log --oneline | wc -l""", cwd=ws)
    t.equal((r.rc, r.out.strip()), (0, "2"), r.err)
    t.equal(t.run("git", "log", "--oneline", cwd=ws).out.count("\n"), 2, "seen from outside")
    t.equal(t.run("git", "fsck", cwd=ws).rc, 0)


@needs("git")
def test_git_worktree_works(t):
    main = t.git_repo()
    tree = os.path.join(t.fresh_dir(), "tree")
    t.run("git", "worktree", "add", "-q", tree, "-b", "side", cwd=main, check=True)
    r = t.ward("run", "--", "/bin/sh", "-c",
               "echo x > f; git add f; git -c user.name=a -c user.email=a@example.com commit -qm "
               "side && git status --short",
               cwd=tree)
    t.equal((r.rc, r.out), (0, ""), r.err)
    t.equal(t.run("git", "log", "--oneline", "side", cwd=main).out.count("\n"), 2)


@needs("git")
def test_git_submodule_works(t):
    ws, other = t.git_repo(), t.git_repo({"lib.c": "int x;\n"})
    t.run("git", "-c", "protocol.file.allow=always", "submodule", "add", "-q", other, "lib", cwd=ws,
          check=True)
    r = t.ward("run", "--", "/bin/sh", "-c",
               "cd lib && echo y > n && git add n && git -c user.name=a -c "
               "user.email=a@example.com commit -qm sub && git status --short",
               cwd=ws)
    t.equal((r.rc, r.out), (0, ""), r.err)


@needs("git")
def test_git_init_and_clone_work(t):
    ws = t.git_repo()
    r = t.ward("run", "--", "/bin/sh", "-c",
               "git init -q made && git clone -q . cloned && git -C cloned log --oneline", cwd=ws,
               report=True)
    t.equal(r.rc, 0, r.err)
    t.equal(r.report["quarantine"], [], "nothing of it is suspicious")
    t.check(os.path.isdir(os.path.join(ws, "made/.git/hooks"))
            and os.path.isdir(os.path.join(ws, "cloned/.git")), "they stay")


def test_quarantine_gives_back(t):
    ws = t.workspace()
    r = t.ward("run", "--", "/bin/sh", "-c",
               "mkdir .vscode; echo tasks > .vscode/tasks.json; echo plain > plain", cwd=ws,
               report=True)
    t.equal(sorted(os.listdir(ws)), ["plain"], "moved aside")
    t.check(r.report["quarantine"], "the report does not list it")
    t.contains(t.ward("quarantine", "ls", cwd=ws).out, ".vscode")
    back = t.ward("quarantine", "restore", cwd=ws)
    t.equal((back.rc, t.read(ws, ".vscode/tasks.json")), (0, "tasks\n"), back.err)


def test_planted_set_id_files_are_moved(t):
    """The filter refuses to make them; one that comes by way of a mount or an older file is
    swept."""
    ws = t.workspace({"old": "x"})
    os.chmod(os.path.join(ws, "old"), 0o4755)
    t.ward("run", "--", "/bin/sh", "-c", "cp old new; mv old moved", cwd=ws)
    left = [n for n in os.listdir(ws) if os.stat(os.path.join(ws, n)).st_mode & stat.S_ISUID]
    t.check("new" not in left, "a copy kept the bit")


@only_root
def test_private_parent(t):
    """The workspace's parents may be closed to everybody else: root's home."""
    base = t.fresh_dir()
    ws = os.path.join(base, "project")
    os.mkdir(ws)
    os.chmod(base, 0o700)
    r = t.ward("run", "--", "/bin/sh", "-c", "echo x > f && cat f", cwd=ws)
    t.equal((r.rc, r.out), (0, "x\n"), r.err)


@only_root
def test_workspace_of_another_user(t):
    """root runs an agent in somebody's project: files keep that owner."""
    ws = t.workspace({"a": "x"})
    for top, dirs, files in os.walk(ws):
        for name in [""] + dirs + files:
            os.chown(os.path.join(top, name), 4711, 4712)
    r = t.ward("run", "--", "/bin/sh", "-c", "echo y > b; echo z >> a", cwd=ws)
    t.equal(r.rc, 0, r.err)
    for name in ("a", "b"):
        status = os.stat(os.path.join(ws, name))
        t.equal((status.st_uid, status.st_gid), (4711, 4712), f"owner of {name}")
