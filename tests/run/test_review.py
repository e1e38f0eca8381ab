"""Review mode: changes stay aside, ward diff shows them, ward apply and ward discard decide;
nothing else happens to the workspace."""
import grp
import json
import os
import pwd
import stat
import subprocess
import time

from harness import needs, users

SHELL = ("/bin/sh", "-c")


def review(t, ws, command, *options, rc=0, **more):
    """One run under review; returns the result."""
    r = t.ward("run", "--review", *options, "--", *SHELL, command, cwd=ws, report=True, **more)
    t.equal(r.rc, rc, r.err)
    return r


def diff(t, ws, *words):
    """path -> (change, flags) of the last review."""
    r = t.ward("diff", "--json", *words, cwd=ws)
    t.equal(r.rc, 0, r.err)
    return {c["path"]: c["change"] + ("!" if c["conflict"] else "")
            + ("#" if c["protected"] else "") +
            ("-" if c["refused"] else "") for c in json.loads(r.out)["changes"]}


def apply(t, ws, *words, rc=0):
    r = t.ward("apply", *words, cwd=ws)
    t.equal(r.rc, rc, r.out + r.err)
    return r


def snapshot(directory):
    """Every path below directory with what can be seen of it, times apart."""
    found = {}
    for top, dirs, files in os.walk(directory):
        for name in dirs + files:
            path = os.path.join(top, name)
            st = os.lstat(path)
            content = None
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    content = f.read()
            elif stat.S_ISLNK(st.st_mode):
                content = os.readlink(path)
            found[os.path.relpath(path, directory)] = (st.st_mode, st.st_uid, st.st_gid, content)
    return found


def clean(t):
    """No review, no log, no temporary name is left."""
    for name in ("review", "applying"):
        path = os.path.join(t.state_dir, name)
        t.equal(os.listdir(path) if os.path.exists(path) else [], [], f"left in {name}")


FILES = {"a": "one\ntwo\nthree\n", "d/x": "x\n", "d/y": "y\n", "script": "#!/bin/sh\n",
         "mv": "some content\n", "sub/deep/f": "f\n"}
CHANGE = ("printf 'one\\n2\\nthree\\n' > a; rm -r d; echo new > new; chmod 755 script; mv mv "
          "moved; mkdir empty; "
          "mkdir -p n/e; echo w > n/e/w; ln -s a link; rm -r sub; echo file > sub")


def test_workspace_stays_as_it_is(t):
    ws = t.workspace(FILES)
    before = snapshot(ws)
    r = review(t, ws, CHANGE + "; cat a; ls d; cat sub", rc=0)
    t.contains(r.out, "2")
    t.equal(snapshot(ws), before, "the workspace")
    t.equal(len(r.report["changes"]), 1)
    c = r.report["changes"][0]
    t.equal((c["workspace"], c["review"]), (ws, r.report["run"]))
    t.check(c["added"] >= 4 and c["changed"] >= 3 and c["deleted"] >= 3, str(c))


def test_diff_names_every_change(t):
    ws = t.workspace(FILES)
    review(t, ws, CHANGE)
    t.equal(diff(t, ws), {"a": "content", "d/x": "deleted", "d/y": "deleted", "new": "added",
                          "script": "mode", "moved": "renamed",
                          "empty": "added", "n/e/w": "added", "link": "added", "sub": "type",
                          "sub/deep/f": "deleted"})
    r = t.ward("diff", cwd=ws)
    for line in ("M  a\n", "D  d/x\n", "A  new\n", "X  script  (mode 0644 -> 0755)\n",
                 "R  mv -> moved\n", "A  empty/\n",
                 "A  link  (link)\n", "T  sub  (directory -> file)\n"):
        t.contains(r.out, line)
    t.equal(t.ward("diff", "--exit-code", cwd=ws).rc, 1)
    r = t.ward("diff", "--stat", "a", "new", cwd=ws)
    t.contains(r.out, "2 files changed, 2 lines added, 1 removed")


def test_modes_of_diff_exclude_each_other(t):
    """One of two would be ignored: it is refused with both names, and those that do go together
    still do."""
    ws = t.workspace(FILES)
    review(t, ws, CHANGE)
    modes = ("--patch", "--stat", "--who", "--trailer", "--list")
    pairs = [(a, b) for i, a in enumerate(modes)
             for b in modes[i + 1:]] + [(m, "--json")
                                        for m in ("--patch", "--stat",
                                                  "--trailer")] + [("--list", "--exit-code")]
    for a, b in pairs:
        for words in ((a, b), (b, a)):
            r = t.ward("diff", *words, cwd=ws)
            t.check(r.rc == 2 and not r.out, f"{words}: {r.rc} {r.out}")
            message = json.loads(r.err)["refused"]["why"] if "--json" in words else r.err
            t.check(a in message and b in message and "exclude each other" in message, r.err)
    t.contains(t.ward("diff", "-pl", cwd=ws).err, "--patch and --list exclude each other")
    t.contains(t.ward("diff", "--help").out, "one at a time: --patch --stat --who --trailer --list")
    for words in (("--list", "--json"), ("--patch", "--patch"), ("--stat", "a")):
        t.equal(t.ward("diff", *words, cwd=ws).rc, 0, words)
    t.equal(t.ward("diff", "--patch", "--exit-code", cwd=ws).rc, 1)
    for words in (("ps", "-q", "--json"), ("attach", "--exclusive", "--read-only", "box"),
                  ("learn", "--merge", "x", "-o", "y", "--", "true"),
                  ("diff", "--list", "a"), ("kill", "--all", "web"), ("stop", "web", "--all"),
                  ("pause", "--all", "web"), ("resume", "--all", "web"),
                  ("rm", "--all", "-f", "web")):
        r = t.ward(*words, cwd=ws)
        t.check(r.rc == 2 and "exclude each other" in r.err, f"{words}: {r.rc} {r.err}")


def test_apply_makes_the_workspace_what_the_run_saw(t):
    ws = t.workspace(FILES)
    r = review(t, ws, CHANGE)
    apply(t, ws)
    seen = snapshot(ws)
    t.equal(sorted(seen), ["a", "empty", "link", "moved", "n", "n/e", "n/e/w", "new", "script",
                           "sub"])
    t.equal(t.read(ws, "a"), "one\n2\nthree\n")
    t.equal(t.read(ws, "sub"), "file\n")
    t.equal(os.readlink(os.path.join(ws, "link")), "a")
    t.equal(stat.S_IMODE(os.stat(os.path.join(ws, "script")).st_mode), 0o755)
    owner = os.stat(ws)
    t.equal({(s[1], s[2]) for s in seen.values()}, {(owner.st_uid, owner.st_gid)}, "owners")
    clean(t)
    t.equal(t.ward("diff", r.report["run"], cwd=ws).rc, 125)


def test_discard(t):
    ws = t.workspace(FILES)
    before = snapshot(ws)
    review(t, ws, CHANGE)
    r = t.ward("discard", cwd=ws)
    t.equal(r.rc, 0, r.err)
    t.equal(snapshot(ws), before)
    clean(t)


def test_parts(t):
    ws = t.workspace(FILES)
    review(t, ws, CHANGE)
    os.chdir("/")
    apply(t, os.path.join(ws, "d"), "x")
    t.equal(sorted(os.listdir(os.path.join(ws, "d"))), ["y"])
    apply(t, ws, "n/e/w", "a")
    t.equal((t.read(ws, "n/e/w"), t.read(ws, "a")), ("w\n", "one\n2\nthree\n"))
    t.check(not os.path.exists(os.path.join(ws, "new")), "more was applied than was asked for")
    r = t.ward("discard", "new", "sub", cwd=ws)
    t.equal(r.rc, 0, r.err)
    t.equal(diff(t, ws), {"d/y": "deleted", "script": "mode", "moved": "renamed", "empty": "added",
                          "link": "added"})
    r = t.ward("discard", "d/y", cwd=ws)
    t.equal(r.rc, 125)
    t.contains(r.err, "discard d")
    r = t.ward("apply", "nothing-there", cwd=ws)
    t.equal(r.rc, 125)
    t.contains(r.err, "has no change to nothing-there")
    t.equal(t.ward("apply", "../elsewhere", cwd=ws).rc, 125)
    apply(t, ws)
    t.equal(t.read(ws, "sub/deep/f"), "f\n")
    t.check(not os.path.exists(os.path.join(ws, "d")), "d is still there")
    clean(t)


def test_diff_of_what_is_not_there(t):
    ws = t.workspace({"a": "1\n"})
    t.equal(t.ward("run", "--review", "--", "/bin/sh", "-c", "echo 2 > a", cwd=ws).rc, 0)
    for words in (["nosuch"], ["--patch", "nosuch"], ["--json", "nosuch"]):
        r = t.ward("diff", *words, cwd=ws)
        t.equal(r.rc, 125, r.out)
        t.contains(r.out + r.err, "has no change to nosuch")
    for word in ("a", "."):
        r = t.ward("diff", word, cwd=ws)
        t.equal(r.rc, 0, r.err)
        t.contains(r.out, "a")


def test_dry_run_does_nothing(t):
    ws = t.workspace(FILES)
    review(t, ws, CHANGE)
    before = snapshot(ws)
    r = apply(t, ws, "--dry-run")
    t.contains(r.out, "would apply")
    t.equal(snapshot(ws), before)
    report = json.loads(apply(t, ws, "--dry-run", "--json").out)
    t.equal((report["dry_run"], report["finished"], report["conflict"]), (True, False, 0))


def test_conflicts(t):
    """An outside edit, a new file in the way, an edit in a directory that the run deleted, and a
    removed original."""
    ws = t.workspace({**FILES, "gone": "gone\n"})
    review(t, ws, "echo mine > a; echo mine > new; rm -r d; echo mine > sub/deep/f; echo "
           "mine > gone")
    time.sleep(0.02)
    t.write(ws, {"a": "theirs\n", "new": "theirs\n", "d/z": "theirs\n"})
    os.unlink(os.path.join(ws, "gone"))
    t.equal(diff(t, ws), {"a": "content!", "new": "content!", "d/x": "deleted", "d/y": "deleted",
                          "d/z": "deleted!",
                          "sub/deep/f": "content", "gone": "added"})
    r = apply(t, ws, rc=1)
    t.contains(r.out, "conflict: a: changed outside")
    t.equal((t.read(ws, "a"), t.read(ws, "new"), t.read(ws, "sub/deep/f")),
            ("theirs\n", "theirs\n", "mine\n"))
    t.equal(os.listdir(os.path.join(ws, "d")), ["z"])
    apply(t, ws, "--force", "a", "d")
    t.equal((t.read(ws, "a"), os.path.exists(os.path.join(ws, "d"))), ("mine\n", False))
    t.equal(diff(t, ws), {"new": "content!"})


def test_removed_original(t):
    ws = t.workspace({"gone": "gone\n", "b": "b\n"})
    review(t, ws, "echo mine > gone")
    time.sleep(0.02)
    os.unlink(os.path.join(ws, "gone"))
    t.equal(diff(t, ws), {"gone": "added!"})
    apply(t, ws, rc=1)
    t.check(not os.path.exists(os.path.join(ws, "gone")), "what was removed outside came back")


def test_same_edit_outside_is_no_conflict(t):
    ws = t.workspace(FILES)
    review(t, ws, "echo same > a; echo b > b")
    time.sleep(0.02)
    t.write(ws, {"a": "same\n"})
    t.equal(diff(t, ws), {"b": "added"})
    apply(t, ws)
    clean(t)


def test_protected_needs_a_word(t):
    ws = t.git_repo()
    review(t, ws, "git config user.name me; echo 'echo evil' > .git/hooks/pre-commit; mkdir "
           ".vscode; echo {} > .vscode/tasks.json; "
                  "echo fine > fine; echo x > .envrc")
    t.equal(diff(t, ws), {".vscode/tasks.json": "added#", "fine": "added", ".envrc": "added#"})
    t.contains(t.ward("diff", cwd=ws).out, "git: ", "what was done with git")
    apply(t, ws, rc=1)
    t.equal((t.read(ws, "fine"), t.read(ws, ".envrc"), t.read(ws, ".git/hooks/pre-commit"),
             os.path.exists(ws + "/.vscode")),
            ("fine\n", None, None, False))
    t.contains(t.read(ws, ".git/config"), "name = me")
    t.equal(diff(t, ws), {".vscode/tasks.json": "added#", ".envrc": "added#"})


def test_git_hooks_path_is_protected(t):
    """What the workspace's own git configuration leads to runs with the operator's rights, whatever
    it is called."""
    ws = t.git_repo({"README": "r\n", "tools/hooks/README": "x\n"})
    t.run("git", "config", "core.hooksPath", "tools/hooks", cwd=ws, check=True)
    review(t, ws, "echo evil > tools/hooks/pre-commit; echo fine > tools/fine")
    t.equal(diff(t, ws), {"tools/hooks/pre-commit": "added#", "tools/fine": "added"})


def test_git_works_inside(t):
    ws = t.git_repo()
    commands = ("git config user.name a; git config user.email a@example.com; echo more >> README; "
                "git commit -qam second; git checkout -q -b topic; "
                "echo t > t; git add t; git commit -qm third; git checkout -q main; git merge -q "
                "topic; git init -q fresh; cd fresh; "
                "git config user.name a; git config user.email a@example.com; echo f > f; git add "
                "f; git commit -qm first; git log --oneline | wc -l")
    r = review(t, ws, commands)
    t.equal(r.out.strip(), "1")
    t.equal(t.run("git", "log", "--oneline", cwd=ws).out.count("\n"), 1, "commits outside")
    t.contains(t.ward("diff", cwd=ws).out, "git: 2 commits on branch main (")
    r = t.ward("apply", cwd=ws)
    t.equal(r.rc, 0, r.out + r.err)
    t.equal(t.run("git", "config", "user.name", cwd=ws).out, "a\n", "a harmless setting")
    t.equal(t.run("git", "log", "--oneline", cwd=ws, check=True).out.count("\n"), 3,
            "commits after the apply")
    t.equal(t.run("git", "status", "--porcelain", cwd=ws, check=True).out.split(), ["??", "fresh/"])
    t.equal(t.run("git", "-C", "fresh", "log", "--oneline", cwd=ws, check=True).out.count("\n"), 1,
            "a new repository")


def test_hidden_stays_hidden(t):
    ws = t.workspace({".env": "SECRET=1\n", "conf/key.pem": "PRIVATE\n", "conf/plain": "p\n",
                      "sub/.aiignore": "local\n", "sub/local": "L\n"})
    r = review(t, ws, "cat .env conf/key.pem sub/local; echo x > other.pem; echo y > sub/new; "
               "mkdir late; echo z > late/.env; echo ok > conf/plain; "
               "rm -rf conf; rm -f .env; mv sub sub2; true", "--set",
               "filesystem.hide=['.env', '*.pem']")
    t.check("SECRET" not in r.out and "PRIVATE" not in r.out and "L\n" not in r.out, r.out)
    shown = t.ward("diff", cwd=ws)
    t.contains(shown.err, "hidden files")
    t.check(".env" not in shown.out and ".pem" not in shown.out, shown.out)
    t.check("SECRET" not in t.ward("diff", "-p", cwd=ws).out, "the text shows a hidden file")
    t.ward("apply", cwd=ws)
    t.equal((t.read(ws, ".env"), t.read(ws, "conf/key.pem"), t.read(ws, "sub/local")),
            ("SECRET=1\n", "PRIVATE\n", "L\n"))
    t.check(not os.path.exists(ws + "/other.pem") and not os.path.exists(ws + "/late/.env"),
            "a hidden name was applied")


def test_continue(t):
    ws = t.workspace(FILES)
    run = review(t, ws, "echo first > new; rm -r d").report["run"]
    time.sleep(0.02)
    t.write(ws, {"a": "edited between\n"})
    r = t.ward("run", "--continue", run, "--", *SHELL,
               "cat new a; ls d; echo second >> new; echo more >> a", cwd="/", report=True)
    t.contains(r.out, "first\nedited between\n")
    t.equal(r.report["run"], run)
    t.equal(diff(t, ws), {"new": "added", "a": "content", "d/x": "deleted", "d/y": "deleted"})
    apply(t, ws)
    t.equal((t.read(ws, "new"), t.read(ws, "a")), ("first\nsecond\n", "edited between\nmore\n"))
    r = t.ward("run", "--continue", run, "--", "true", cwd=ws)
    t.equal(r.rc, 125)
    t.contains(r.err, "no review of a run")


def test_continue_is_refused_meanwhile(t):
    ws = t.workspace({"a": "a\n"})
    go_on = os.path.join(t.fresh_dir(), "go-on")
    going = t.ward_start("run", "--review", "--ro", os.path.dirname(go_on), "--", *SHELL,
                         f"echo x > x; until [ -e {go_on} ]; do sleep 0.05; done", cwd=ws)
    t.wait_until(lambda: "x" in diff_or_nothing(t, ws), message="the run did not begin")
    run = json.loads(t.ward("diff", "--list", "--json", cwd=ws).out)["reviews"][0]["run"]
    for words in (("run", "--continue", run, "--", "true"), ("apply",), ("discard",)):
        r = t.ward(*words, cwd=ws)
        t.equal(r.rc, 125, str(words))
        t.contains(r.err, "in use")
    with open(go_on, "w", encoding="ascii"):
        pass
    t.equal(t.finish_ward(going).rc, 0)
    apply(t, ws)
    clean(t)


def diff_or_nothing(t, ws):
    r = t.ward("diff", "--json", cwd=ws)
    return {c["path"] for c in json.loads(r.out)["changes"]} if r.rc == 0 else set()


def test_apply_on_exit(t):
    ws = t.workspace(FILES)
    r = review(t, ws, "echo new > new; echo evil > .envrc", "--apply-on-exit")
    t.equal((t.read(ws, "new"), t.read(ws, ".envrc")), ("new\n", None))
    t.contains(r.err, "left: .envrc: protected")
    t.equal((r.report["changes"][0]["applied"], r.report["changes"][0]["left"]), (1, 1))
    t.equal(diff(t, ws), {".envrc": "added#"})
    t.ward("discard", cwd=ws)
    review(t, ws, "echo more > more", "--apply-on-exit")
    clean(t)
    r = t.ward("run", "--apply-on-exit", "--", "true", cwd=ws)
    t.equal(r.rc, 125)
    t.contains(r.err, "--review")


def test_nothing_changed_leaves_nothing(t):
    ws = t.workspace(FILES)
    review(t, ws, "cat a > /dev/null; touch a; exit 0")
    clean(t)
    r = t.ward("run", "--review", "--", "/no/such/program", cwd=ws)
    t.equal(r.rc, 127, r.err)
    clean(t)


def test_policy_file(t):
    ws = t.workspace({**FILES, "ward.yaml": "version: 1\nfilesystem: {mode: review}\n"})
    r = t.ward("run", "--", *SHELL, "echo x > x", cwd=ws)
    t.equal(r.rc, 0, r.err)
    t.equal((t.read(ws, "x"), diff(t, ws)), (None, {"x": "added"}))
    t.contains(t.ward("plan", "--full", cwd=ws).out, "review")


def test_other_mounts_stay_direct(t):
    ws, other = t.workspace(FILES), t.fresh_dir()
    review(t, ws, f"echo direct > {other}/f; echo aside > f; echo evil > {other}/.envrc",
           "--rw", other)
    t.equal((t.read(other, "f"), t.read(ws, "f")), ("direct\n", None))
    t.equal(os.listdir(other), ["f"], "the sweep of a direct mount")


def test_limits_hold(t):
    ws = t.workspace()
    r = t.ward("run", "--review", "--disk", "8M", "--", *SHELL,
               "dd if=/dev/zero of=big bs=1M count=200 2>/dev/null; sleep 5", cwd=ws, report=True)
    t.check(r.rc in (137, 153), f"exit {r.rc}: {r.err}")
    t.check(r.report["limits"]["disk"]["hit"], str(r.report["limits"]["disk"]))
    r = t.ward("run", "--review", "--set", "resources.inode_limit=200", "--", *SHELL,
               "i=0; while [ $i -lt 5000 ]; do echo > f$i; i=$((i+1)); done; sleep 5", cwd=ws,
               report=True)
    t.equal(r.rc, 137, r.err)
    t.check(r.report["limits"]["inodes"]["hit"], str(r.report["limits"]["inodes"]))
    t.equal(os.listdir(ws), [])


def test_strange_names(t):
    ws = t.workspace({"-dash": "d\n"})
    name = "new\nline\tand \x1b[31mred\x1b[0m \\ \"q\""
    review(t, ws, 'printf x > "$N"; echo u > "päth ☃"; mkdir "di r"; echo i > "di r/a,b:c"; echo d '
           '>> ./-dash', "--env", "N=" + name)
    shown = t.ward("diff", cwd=ws)
    t.check("\x1b" not in shown.out and len(shown.out.splitlines()) == 4, repr(shown.out))
    t.check("\x1b" not in t.ward("diff", "--patch", cwd=ws).out, "a name acts in the text")
    apply(t, ws)
    t.equal(sorted(os.listdir(ws)), sorted([name, "päth ☃", "di r", "-dash"]))
    t.equal(t.read(ws, "di r", "a,b:c"), "i\n")


def test_workspace_with_strange_path(t):
    ws = os.path.join(t.fresh_dir(), "a,b:c \\d 'é\"")
    os.mkdir(ws)
    t.write(ws, {"f": "f\n"})
    review(t, ws, "echo g > g; cat f")
    apply(t, ws)
    t.equal(t.read(ws, "g"), "g\n")


def test_patch_is_what_git_reads(t):
    ws = t.git_repo({"a": "".join(f"line {i}\n" for i in range(200)), "gone": "x\n",
                     "mv": "content that moves\n", "bin": "b\n", "e": "no newline"})
    t.run("cp", "-a", ws, ws + ".copy", check=True)
    review(t, ws, "sed -i -e 5d -e 's/^line 100$/hundred/' a; echo end >> a; rm gone; mv mv moved; "
           "ln -s a link; chmod +x e; echo new > new; "
           "printf 'a\\0b' > bin")
    patch = t.ward("diff", "-p", cwd=ws).out
    t.contains(patch, "GIT binary patch\nliteral 3\n")
    r = t.run("git", "apply", "-", input=patch, cwd=ws + ".copy")
    t.equal(r.rc, 0, r.err + patch)
    t.ward("apply", cwd=ws)
    for name in ("a", "moved", "link", "e", "new", "bin"):
        t.equal(t.read(ws + ".copy", name), t.read(ws, name), name)


def test_terminal_shows_nothing_that_acts(t):
    ws = t.workspace({"a": "plain\n"})
    review(t, ws, r"printf 'x\033]52;c;ZXZpbA==\007\033[2Jy\ttab\n' > a")
    r = t.ward_tty("diff", "--patch", cwd=ws, env={"TERM": "xterm"})
    t.check("\x1b]" not in r.out and "\x1b[2J" not in r.out, repr(r.out))
    t.contains(r.out, "tab")
    r = t.ward_tty("diff", cwd=ws, env={"TERM": "xterm"})
    t.contains(r.out, "1 file changed: 1 changed; ward apply")


def test_big_and_sparse_files(t):
    """Files of gigabytes: compared, shown and applied without reading holes or filling the disk."""
    ws = t.workspace({"a": "a\n"})
    review(t, ws, "truncate -s 8G sparse; printf end | dd of=sparse bs=1 seek=8589934000 "
           "conv=notrunc 2>/dev/null; echo b >> a")
    r = t.ward("diff", "--patch", cwd=ws, timeout=20)
    t.check(r.rc == 1 and "not in the patch: sparse: too large" in r.err and "+b" in r.out, r.err)
    apply(t, ws)
    st = os.stat(os.path.join(ws, "sparse"))
    t.equal(st.st_size, 8 << 30)
    t.check(st.st_blocks * 512 < (1 << 20), f"{st.st_blocks} blocks")
    with open(os.path.join(ws, "sparse"), "rb") as f:
        f.seek(8589934000)
        t.equal(f.read(3), b"end")
    clean(t)


def test_full_disk(t):
    """No half-applied file when there is no room: the old content, and the review for another
    try."""
    small = t.fresh_dir()
    t.run("mount", "-t", "tmpfs", "-o", f"size=1m,uid={t.person.pw_uid},gid={t.person.pw_gid}",
          "tmpfs", small, root=True, check=True)
    t.defer(lambda: t.run("umount", small, root=True))
    t.write(small, {"keep": "old\n", "b": "b\n"})
    r = t.ward("run", "--review", "--", *SHELL, "head -c 3000000 /dev/zero > keep; echo c > c",
               cwd=small)
    t.equal(r.rc, 0, r.err)
    r = t.ward("apply", cwd=small)
    t.equal(r.rc, 125, r.out)
    t.contains(r.err, "No space left")
    t.equal(t.read(small, "keep"), "old\n")
    t.equal([n for n in os.listdir(small) if n.startswith(".ward")], [])
    r = t.ward("diff", "--json", cwd=small)
    t.contains(r.out, '"keep"')


test_full_disk.needs = ("root",)


def test_mount_in_the_workspace_is_refused(t):
    ws = t.workspace({"m/f": "f\n"})
    t.run("mount", "-t", "tmpfs", "tmpfs", ws + "/m", root=True, check=True)
    t.defer(lambda: t.run("umount", ws + "/m", root=True))
    r = t.ward("run", "--review", "--", "true", cwd=ws)
    t.equal(r.rc, 125)
    t.contains(r.err, ws + "/m")
    t.contains(r.err, "read_only")
    clean(t)


test_mount_in_the_workspace_is_refused.needs = ("root",)


def test_state_in_the_workspace_is_refused(t):
    ws = t.workspace({"a": "a\n"})
    r = t.ward("run", "--review", "--", "true", cwd=ws, env={"WARD_STATE_DIR": ws + "/state"})
    t.equal(r.rc, 125)
    t.contains(r.err, "WARD_STATE_DIR")


def test_set_id_and_special_files(t):
    ws = t.workspace({"a": "a\n"})
    review(t, ws,
           "mkfifo pipe; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'; "
           "chmod 1777 a; ln -s /etc/passwd abs; ln -s ../out up; "
           "mkdir d; ln -s ../a d/in; ln -s d/../../x sneaky")
    t.equal(diff(t, ws), {"pipe": "added-", "sock": "added-", "a": "mode", "abs": "added-",
                          "up": "added-", "d/in": "added", "sneaky": "added-"})
    apply(t, ws, rc=1)
    t.equal(sorted(os.listdir(ws)), ["a", "d"])
    t.equal(stat.S_IMODE(os.stat(ws + "/a").st_mode), 0o777)
    t.equal(os.readlink(ws + "/d/in"), "../a")


def test_unreadable_things_of_the_agent(t):
    """Modes that shut out their own owner are the agent's to set; they neither hide nor stop
    anything."""
    ws = t.workspace({"a": "a\n", "d/f": "f\n"})
    review(t, ws, "echo s > s; chmod 000 s; mkdir z; echo in > z/in; chmod 000 z; echo g > d/g; "
           "chmod 555 d; chmod 0 a")
    t.equal(diff(t, ws), {"s": "added", "z/in": "added", "d": "mode", "d/g": "added", "a": "mode"})
    apply(t, ws)
    t.equal(stat.S_IMODE(os.stat(ws + "/z").st_mode), 0)
    t.equal(stat.S_IMODE(os.stat(ws + "/d").st_mode), 0o555)
    for name, mode in (("z", 0o700), ("d", 0o755), ("s", 0o600), ("a", 0o600)):
        os.chmod(os.path.join(ws, name), mode)
    t.equal((t.read(ws, "z/in"), t.read(ws, "s"), t.read(ws, "d/g")), ("in\n", "s\n", "g\n"))
    clean(t)


def test_deep_tree(t):
    ws = t.workspace({"a": "a\n"})
    review(t, ws, 'python3 -c "import os\nfor i in range(500): os.mkdir(\'ddddddddd\'); '
           'os.chdir(\'ddddddddd\')\nopen(\'leaf\', \'w\').write(\'x\')"')
    apply(t, ws)
    clean(t)
    for _ in range(500):
        os.chdir(os.path.join(ws, "ddddddddd") if _ == 0 else "ddddddddd")
    t.equal(os.listdir("."), ["leaf"])
    os.chdir("/")
    t.run("rm", "-rf", os.path.join(ws, "ddddddddd"), check=True)


def overlay(t, levels=1):
    """A directory on an overlay on a tmpfs, as the root of a container is; levels: overlays upon
    overlays. Gone after the test."""
    base = t.fresh_dir()
    t.run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", base, root=True, check=True)
    t.defer(lambda: t.run("umount", "-R", base, root=True))
    lower = base
    with t.root():
        for i in range(levels):
            for name in ("low", "up", "work", "at"):
                os.mkdir(f"{base}/{name}{i}")
            t.run("mount", "-t", "overlay", "-o",
                  f"lowerdir={lower if i else base + '/low0'},upperdir={base}/up{i},workdir={base}/work{i}", "overlay",
                  f"{base}/at{i}", root=True, check=True)
            lower = f"{base}/at{i}"
        os.mkdir(lower + "/home")
        os.chown(lower + "/home", t.person.pw_uid, t.person.pw_gid)
    return lower + "/home"


def test_state_on_an_overlay(t):
    """The kernel takes no changes there: they are kept in memory, and that is said."""
    state = overlay(t)
    os.mkdir(state + "/state", 0o700)
    env = {"WARD_STATE_DIR": state + "/state"}
    ws = t.workspace(FILES)
    r = review(t, ws, CHANGE, env=env)
    t.contains(" ".join(r.report["notes"]), "stay in memory")
    t.check(not os.path.exists(ws + "/new"), "the workspace was changed")
    r = t.ward("apply", cwd=ws, env=env)
    t.equal((r.rc, t.read(ws, "new")), (0, "new\n"), r.err)
    t.check(not os.path.exists(f"/dev/shm/ward-{t.person.pw_uid}"), "left in memory")


test_state_on_an_overlay.needs = ("root",)
test_state_on_an_overlay.serial = True


def test_workspace_on_an_overlay(t):
    ws = overlay(t) + "/ws"
    os.mkdir(ws)
    t.write(ws, FILES)
    review(t, ws, CHANGE)
    apply(t, ws)
    t.equal((t.read(ws, "new"), t.read(ws, "sub")), ("new\n", "file\n"))
    clean(t)


test_workspace_on_an_overlay.needs = ("root",)


def test_no_overlay_to_be_had(t):
    """Overlays can be stacked twice, not three times: the run works on a copy, says so, and leaves
    none."""
    ws = overlay(t, 2) + "/ws"
    os.mkdir(ws)
    t.write(ws,
            dict(FILES, **{"script": "#!/bin/sh\necho ran\n", "deep/er/file": "deep\n",
                           "closed": "CLOSED-TO-ALL\n"}))
    os.chmod(ws + "/script", 0o755)
    os.chmod(ws + "/closed", 0)
    os.symlink("deep/er", ws + "/way")
    os.utime(ws + "/script", (1000000000, 1000000000))
    look = "./script; cat way/file; stat -c '%a %Y' script; cat closed; rm deep/er/file; "
    r = review(t, ws, look + CHANGE)
    t.contains(r.out, "ran\ndeep\n755 1000000000\n")
    t.check("CLOSED-TO-ALL" not in r.out, "what nobody may read was read")
    t.contains(" ".join(r.report["notes"]), "works on a copy")
    t.check(not os.path.exists(ws + "/new"), "the workspace was changed")
    with t.root():
        kept = subprocess.run(["find", t.state_dir, "-path", "*/layer/lower/*"],
                              capture_output=True, text=True).stdout
    t.equal(kept, "", "the copy is left")
    t.write(ws, {"meanwhile": "outside\n"})
    r = t.ward("run", "--continue", r.report["run"], "--", "sh", "-c",
               "cat meanwhile new; ls deep/er", cwd=ws)
    t.equal((r.rc, r.out), (0, "outside\nnew\n"), r.err)
    t.contains(t.ward("diff", cwd=ws).out, "D  deep/er/file")
    apply(t, ws)
    t.equal((t.read(ws, "new"), t.read(ws, "deep/er/file")), ("new\n", None))
    clean(t)


test_no_overlay_to_be_had.needs = ("root",)


def test_a_killed_run_leaves_no_copy(t):
    """ward is killed: whoever finishes the run removes the copy of the workspace and keeps what was
    changed."""
    ws = overlay(t, 2) + "/ws"
    os.mkdir(ws)
    t.write(ws, FILES)
    going = t.ward_start("run", "--review", "--", *SHELL, "echo x > x; : > y; sleep 100", cwd=ws)
    t.wait_until(lambda: "y" in diff_or_nothing(t, ws), message="the run did not begin")
    going.kill()
    going.wait()

    def copy():
        t.ward("recover", cwd=ws)
        with t.root():
            return subprocess.run(["find", t.state_dir, "-path", "*/layer/lower/*"],
                                  capture_output=True, text=True).stdout
    t.wait_until(lambda: copy() == "", message="the copy is left")
    t.equal(diff(t, ws), {"x": "added", "y": "added"})
    run = json.loads(t.ward("diff", "--list", "--json", cwd=ws).out)["reviews"][0]["run"]
    r = t.ward("run", "--continue", run, "--", *SHELL, "cat x", cwd=ws)
    t.equal((r.rc, r.out), (0, "x\n"), r.err)
    apply(t, ws)
    clean(t)


test_a_killed_run_leaves_no_copy.needs = ("root",)


def test_a_copy_that_finds_no_room(t):
    ws = overlay(t, 2) + "/ws"
    os.mkdir(ws)
    t.write(ws, {"big": "x" * (3 << 20)})
    state = t.fresh_dir()
    t.run("mount", "-t", "tmpfs", "-o", f"size=1m,mode=700,uid={t.person.pw_uid}", "tmpfs", state,
          root=True, check=True)
    t.defer(lambda: t.run("umount", state, root=True))
    r = t.ward("run", "--review", "--", "echo", "RAN-ALL-THE-SAME", cwd=ws,
               env={"WARD_STATE_DIR": state})
    t.equal((r.rc, r.out), (125, ""), r.err)
    t.contains(r.err, "cannot copy big of the workspace: No space left on device")
    t.contains(r.err, "read_only or read_write")
    with t.root():
        t.equal(os.listdir(state + "/review") if os.path.exists(state + "/review") else [], [],
                "left")


test_a_copy_that_finds_no_room.needs = ("root",)


def test_fuse(t):
    """A file system in user space can be reviewed like any other. Nobody but its user may enter it,
    not even root's saved id."""
    source, ws = t.workspace(FILES), t.fresh_dir()
    if t.run("sh", "-c", "command -v bindfs").rc != 0:
        t.skip("there is no bindfs here")
    r = t.run("bindfs", *([] if t.as_user == "root" else ["--no-allow-other"]), source, ws)
    if r.rc != 0:
        t.skip(f"FUSE cannot be mounted here: {r.err.strip()}")
    t.defer(t.run, "fusermount", "-u", ws)
    r = t.ward("run", "--review", "-w", ws, "--", *SHELL, CHANGE, cwd="/")
    t.equal(r.rc, 0, r.err)
    t.check(not os.path.exists(source + "/new"), "the workspace was changed")
    run = json.loads(t.ward("diff", "--list", "--json", cwd="/").out)["reviews"][0]["run"]
    r = t.ward("apply", run, cwd="/")
    t.equal(r.rc, 0, r.out + r.err)
    t.equal((t.read(source, "new"), t.read(source, "a")), ("new\n", "one\n2\nthree\n"))
    clean(t)


def test_killed_run_leaves_a_review(t):
    """ward itself is killed: what the run did until then can be looked at, applied and
    continued."""
    ws = t.workspace(FILES)
    going = t.ward_start("run", "--review", "--", *SHELL, "echo x > x; sleep 100", cwd=ws)
    t.wait_until(lambda: "x" in diff_or_nothing(t, ws), message="the run did not begin")
    going.kill()
    going.wait()
    t.equal(diff(t, ws), {"x": "added"})
    run = json.loads(t.ward("diff", "--list", "--json", cwd=ws).out)["reviews"][0]["run"]
    r = t.ward("run", "--continue", run, "--", *SHELL, "cat x; echo y > y", cwd=ws)
    t.equal((r.rc, r.out), (0, "x\n"), r.err)
    apply(t, ws)
    t.equal((t.read(ws, "x"), t.read(ws, "y")), ("x\n", "y\n"))
    clean(t)


def test_pipe_in_place_of_a_file_stops_nobody(t):
    ws = t.workspace({"a": "a\n", "b": "b\n"})
    review(t, ws, "rm a b; mkfifo a; mkdir b; mkfifo b/c")
    t.equal(diff(t, ws), {"a": "type-", "b": "type", "b/c": "added-"})
    t.ward("diff", "--patch", cwd=ws, timeout=5)
    apply(t, ws, rc=1)
    t.equal((t.read(ws, "a"), os.listdir(ws + "/b")), ("a\n", []))


def test_detached(t):
    ws = t.workspace(FILES)
    r = t.ward("run", "-d", "--review", "--name", "aside", "--", *SHELL, "echo new > new", cwd=ws)
    t.equal(r.rc, 0, r.err)
    t.equal(t.ward("wait", "aside", cwd=ws).rc, 0)
    t.equal((diff(t, ws), t.read(ws, "new")), ({"new": "added"}, None))
    apply(t, ws)
    t.equal(t.ward("rm", "aside", cwd=ws).rc, 0)
    clean(t)


def test_endless_depth(t):
    """A chain of directories whose paths would fill the memory: shown as one thing that cannot be
    applied."""
    ws = t.workspace({"a": "a\n"})
    review(t, ws, 'python3 -c "import os\nfor i in range(250):\n os.mkdir(100 * \'d\')\n'
           ' os.chdir(100 * \'d\')"')
    found = diff(t, ws)
    t.equal(list(found.values()), ["added-"])
    t.check(16000 < len(list(found)[0]) < 16400, str(len(list(found)[0])))
    apply(t, ws, rc=1)
    t.equal(t.ward("discard", cwd=ws).rc, 0)
    clean(t)
    t.run("rm", "-rf", os.path.join(ws, 100 * "d"), check=True)


def test_root_in_somebody_elses_workspace(t):
    """Root reviews a directory that an ordinary user owns, id-mapped and where that cannot be: what
    is applied is the owner's."""
    owner = pwd.getpwnam("nobody")
    for ws in (t.fresh_dir(), overlay(t) + "/ws"):
        os.makedirs(ws, exist_ok=True)
        t.write(ws, FILES)
        t.run("chown", "-R", f"{owner.pw_uid}:{owner.pw_gid}", ws, check=True)
        os.chmod(os.path.dirname(ws), 0o755)
        review(t, ws, CHANGE + "; id -u")
        apply(t, ws)
        t.equal({(s[1], s[2]) for s in snapshot(ws).values()}, {(owner.pw_uid, owner.pw_gid)},
                "owners")
        t.equal(t.read(ws, "a"), "one\n2\nthree\n")
        clean(t)


test_root_in_somebody_elses_workspace.needs = ("root",)
test_root_in_somebody_elses_workspace.only = "root"


FOREIGN = """echo more >> own; echo more >> theirs; chmod 600 moded; mv moving moved; mv dir renamed; echo new > shared/new
echo more >> shared/f; rm gone; sed -i s/a/b/ roots; echo more >> deep/shared/f; rm -r gone.d; ln -s own link; cat secret secret.d/f; true"""


@needs("root")
def test_files_of_other_groups_and_users(t):
    """An overlay cannot take over what belongs to ids that the sandbox has not: the run works on a
    copy then."""
    names = ("own", "theirs", "moded", "moving", "gone", "roots", "dir/f", "shared/f",
             "deep/shared/f", "gone.d/f", "secret", "secret.d/f")
    ws = t.workspace({name: f"a {name}\n" for name in names})
    other, own = grp.getgrnam("games").gr_gid, os.stat(ws)
    with t.root():
        for name in ("theirs", "moded", "moving", "gone", "dir", "dir/f", "shared", "shared/f",
                     "deep/shared", "deep/shared/f", "gone.d"):
            os.chown(os.path.join(ws, name), -1, other)
        for name in ("shared", "deep/shared"):
            os.chmod(os.path.join(ws, name), 0o2775)
        owner = 0 if own.st_uid else 1
        for name, mode in (("roots", 0o644), ("secret", 0o600), ("secret.d", 0o700)):
            os.chown(os.path.join(ws, name), owner, owner)
            os.chmod(os.path.join(ws, name), mode)
        os.chmod(os.path.join(ws, "theirs"), 0o660)
        before = snapshot(ws)
    r = review(t, ws, FOREIGN)
    lines = [line for line in r.err.split("\n") if "ward:" not in line and line.strip()]
    t.check(len([line for line in lines if "ermission denied" in line]) == 2
            and "secret" not in r.out, f"only the secrets are closed: {r}")
    t.check(any("belongs to another user or group" in note and "copy" in note
                for note in r.report["notes"]), r.report["notes"])
    with t.root():
        t.equal(snapshot(ws), before, "the workspace itself")
    t.equal(diff(t, ws), {"own": "content", "theirs": "content", "moded": "mode",
                          "moved": "renamed", "renamed/f": "renamed", "shared/new": "added",
                          "shared/f": "content", "gone": "deleted", "roots": "content",
                          "deep/shared/f": "content", "gone.d/f": "deleted", "link": "added"})
    apply(t, ws)
    with t.root():
        after = snapshot(ws)
        want = {"own": "a own\nmore\n", "theirs": "a theirs\nmore\n", "shared/new": "new\n",
                "shared/f": "a shared/f\nmore\n", "roots": "b roots\n",
                "deep/shared/f": "a deep/shared/f\nmore\n", "renamed/f": "a dir/f\n",
                "moved": "a moving\n", "secret": "a secret\n", "secret.d/f": "a secret.d/f\n"}
        t.equal({n: after[n][3].decode() for n in want}, want)
        t.check(not {"gone", "gone.d/f", "dir/f", "moving"} & set(after), sorted(after))
        t.equal(after["moded"][0] & 0o777, 0o600)
        t.equal((after["secret"], after["secret.d"]), (before["secret"], before["secret.d"]))
        mode, _, gid, _ = after["theirs"]
        kept = gid == other
        t.check(kept or mode & 0o070 == 0,
                f"another group gets no more than everybody: {oct(mode)}, group {gid}")
        t.check(kept or own.st_uid, "root keeps the group")
    clean(t)


@needs("root")
def test_a_group_of_ones_own_is_kept(t):
    """A file of a group that the user is in is of that group after an apply, too."""
    ws = t.workspace({"f": "a\n"})
    group, person = grp.getgrnam("games").gr_gid, users.entry(t.as_user)
    with t.root():
        os.chown(os.path.join(ws, "f"), -1, group)
        os.chmod(os.path.join(ws, "f"), 0o664)
    review(t, ws, "echo b >> f")
    member = ("setpriv", f"--reuid={person.pw_uid}", f"--regid={person.pw_gid}",
              f"--groups={group}")
    r = t.run(*member, *t.ward_argv("apply"), root=True, cwd=ws)
    t.equal(r.rc, 0, r.err)
    st = os.stat(os.path.join(ws, "f"))
    t.equal((st.st_gid, st.st_mode & 0o777, t.read(ws, "f")), (group, 0o664, "a\nb\n"))


def test_hard_links(t):
    """Names of one file inside are files of their own outside; a second name of the workspace's
    keeps the old content."""
    ws = t.workspace({"a": "a\n"})
    os.link(ws + "/a", ws + "/also")
    review(t, ws, "echo more >> a; ln a third; echo n > n; ln n n2")
    t.equal(diff(t, ws), {"a": "content", "third": "added", "n": "added", "n2": "added"})
    apply(t, ws)
    t.equal([t.read(ws, n) for n in ("a", "third", "also", "n", "n2")],
            ["a\nmore\n", "a\nmore\n", "a\n", "n\n", "n\n"])
    clean(t)
