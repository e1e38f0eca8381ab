"""What people take for granted: git knows who commits, locale, time zone and terminal are right,
localhost works, and the workspace may lie anywhere."""
import os
import shutil
import subprocess

from harness import needs, only_root, timeout

IDENTITY = '[user]\n\tname = "Ünal \\"Q\\" \\\\ O\'Brien"\n\temail = me@example.com\n'
SERVER = r"""
import http.server, socket, threading, urllib.request
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    class Server(http.server.ThreadingHTTPServer):
        address_family = family
    server = Server((address, 0), http.server.SimpleHTTPRequestHandler)
    server.RequestHandlerClass.log_message = lambda *a: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host = f"[{address}]" if ":" in address else address
    for name in (host, "localhost"):
        print(name,
              b"served" in urllib.request.urlopen(f"http://{name}:{server.server_port}/").read())
    server.shutdown()
print(sorted({a[4][0] for a in socket.getaddrinfo("localhost", 1)}),
      socket.gethostbyname(socket.gethostname()))
"""


def git_log(t, ws, config, *options, script="git commit -q --allow-empty -m inside && git log -1 "
            "--format='%an|%ae'", env=None):
    """Commits inside with this ~/.gitconfig outside."""
    t.write(t.home, {".gitconfig": config})
    return t.ward("run", *options, "--", "sh", "-c", script, cwd=ws, env=env)


@needs("git")
def test_git_knows_who_commits(t):
    ws = t.git_repo()
    t.equal(git_log(t, ws, IDENTITY).out, "Ünal \"Q\" \\ O'Brien|me@example.com\n")
    r = git_log(t, ws, IDENTITY, "--set", "process.git_identity=false")
    t.check(r.rc != 0 and "me@example.com" not in r.out + r.err,
            f"the identity is known all the same: {r}")
    t.run("git", "config", "user.email", "work@example.com", cwd=ws, check=True)
    t.contains(git_log(t, ws, IDENTITY).out, "|work@example.com",
               "the repository's own goes over it")
    fresh = t.workspace()
    t.contains(git_log(t, fresh, IDENTITY, script="git init -q . && git commit -q --allow-empty -m "
                       "x && git log --format=%ae").out, "me@example.com")


@needs("git")
def test_where_gits_identity_comes_from(t):
    """git's own order; what cannot be read, is broken, or is not plain text gives none and breaks
    nothing."""
    ws = t.git_repo()
    show = "git config --global --list; git config user.name"
    t.write(t.home, {".config/git/config": "[user]\n\tname = xdg\n"})
    t.equal(git_log(t, ws, "[core]\n\tabbrev = 12\n", script=show).out, "xdg\n")
    t.equal(git_log(t, ws, "[user]\n\tname = home\n", script=show).out, "home\n")
    other = os.path.join(t.fresh_dir("other"), "config")
    t.write(os.path.dirname(other), {"config": "[user]\n\tname = other\n"})
    t.equal(git_log(t, ws, "[user]\n\tname = home\n", script=show,
                    env={"GIT_CONFIG_GLOBAL": other}).out, "other\n")
    shutil.rmtree(os.path.join(t.home, ".config"))
    for broken in ("[user\nname = x\n", "[user]\n\tname = \"a\\tb\"\n",
                   "[user]\n\tname = \"a\\nb\"\n", f"[user]\n\tname = {'x' * 300}\n",
                   "[user \"sub\"]\n\tname = x\n", "[user]\n\tname\n", "",
                   f"[include]\n\tpath = {other}\n"):
        r = git_log(t, ws, broken, script=show + "; true")
        t.equal((r.rc, r.out), (0, ""), f"the identity of {broken[:40]!r}")
    os.unlink(os.path.join(t.home, ".gitconfig"))
    os.mkfifo(os.path.join(t.home, ".gitconfig"))
    t.equal(t.ward("run", "--", "true", cwd=ws, timeout=10).rc, 0,
            "with a fifo for a configuration")


@needs("git")
def test_nothing_else_of_gits_configuration_is_passed(t):
    ws = t.git_repo()
    secrets = IDENTITY + ('\tsigningkey = KEYID\n[credential]\n\thelper = store --file=/x\n'
                          '[alias]\n\tx = !echo alias\n[core]\n\tsshCommand = evil\n'
                          '[http]\n\textraHeader = "Authorization: token"\n'
                          '[url "https://token@host/"]\n\tinsteadOf = https://host/\n')
    r = git_log(t, ws, secrets, script="git config --list --show-origin; cat /etc/gitconfig")
    t.check(not any(w in r.out for w in ("KEYID", "helper", "alias", "evil", "token", "insteadOf")),
            f"passed on: {r.out}")
    t.contains(r.out, "user.email=me@example.com")


@only_root
@needs("git")
def test_a_repository_of_somebody_else(t):
    """Its files belong to a uid that the sandbox knows as nobody: git works with it all the
    same."""
    ws = t.git_repo()
    t.run("chown", "-R", "12345:12345", os.path.join(ws, ".git"), check=True)
    r = t.ward("run", "--", "git", "status", "--short", cwd=ws)
    t.equal((r.rc, r.err), (0, ""), "git status inside")


@needs("git")
def test_settings_that_run_something_are_explained(t):
    """git config works inside. What would run a program on the host stays there, and the run says
    so; a policy can release it."""
    ws = t.git_repo()
    command = ("git", "config", "core.pager", "evil")
    r = t.ward("run", "--", *command, cwd=ws, report=True)
    t.equal(r.rc, 0, "git config inside")
    t.contains(r.err, ".git/config: git configuration whose core.pager names a program that git "
               "log runs")
    t.contains(" ".join(r.report["quarantine"]), ".git/config")
    t.check("pager" not in t.read(ws, ".git/config"), "the setting is on the host")
    t.equal(t.ward("run", "--", "git", "config", "user.name", "somebody", cwd=ws).err, "",
            "a harmless setting")
    t.contains(t.read(ws, ".git/config"), "somebody")
    t.equal(t.ward("run", "--set", 'filesystem.protect=["!.git/config"]', "--", *command,
                   cwd=ws).rc, 0, "released")
    t.contains(t.read(ws, ".git/config"), "pager", "what the policy releases")


def test_locale(t):
    ws = t.workspace()
    env = {"LANG": "C.UTF-8", "LC_TIME": "C", "LC_CTYPE": "C.UTF-8", "LC_MESSAGES": "C",
           "LANGUAGE": "de:en", "LCX": "no", "SECRET": "no"}
    r = t.ward("run", "--", "env", cwd=ws, env=env)
    got = dict(line.split("=", 1) for line in r.out.splitlines())
    t.equal({k: got.get(k) for k in env}, {**env, "LCX": None, "SECRET": None}, "variables")
    if shutil.which("locale"):
        script = "locale charmap; printf 'ä' | wc -m; locale -a"
        inside = t.ward("run", "--", "sh", "-c", script, cwd=ws, env=env).out
        t.equal(inside, t.run("sh", "-c", script, env=env).out, "locale inside and outside")
        t.equal(inside.splitlines()[:2], ["UTF-8", "1"])
    r = t.ward("run", "--", "sh", "-c", "echo ä > ä; ls; cat ä", cwd=ws)
    t.equal(r.out.splitlines()[-1], "ä")
    t.equal(t.read(ws, "ä"), "ä\n")


def test_time_zone(t):
    ws = t.workspace()
    t.equal(t.ward("run", "--", "date", "+%Z %z", cwd=ws).out, t.run("date", "+%Z %z").out,
            "the system's")
    if os.path.exists("/usr/share/zoneinfo/Asia/Tokyo"):
        t.equal(t.ward("run", "--", "date", "+%z", cwd=ws, env={"TZ": "Asia/Tokyo"}).out,
                "+0900\n", "TZ")


def test_terminal_type(t):
    """A TERM that the system knows stays; another becomes one that it knows, so that full-screen
    programs start."""
    ws = t.workspace()
    known = [n for n in ("xterm-256color", "xterm", "vt100")
             if any(os.path.exists(f"{d}/{n[0]}/{n}") for d in
("/usr/share/terminfo", "/usr/lib/terminfo", "/lib/terminfo"))]
    if not known:
        t.skip("there is no terminfo here")
    for term, wanted in ((known[-1], known[-1]), ("dumb", "dumb"), ("xterm-no-such", known[0]),
                         ("../../etc/passwd", known[0]), ("x" * 500, known[0])):
        r = t.ward("run", "--", "sh", "-c", "echo $TERM; tput clear > /dev/null", cwd=ws,
                   env={"TERM": term}, report=True)
        t.equal((r.rc if shutil.which("tput") and term != "dumb" else 0, r.out), (0, f"{wanted}\n"),
                f"TERM={term[:20]}")
        t.equal(any("TERM is" in n for n in r.report["notes"]), term != wanted, "note")
    t.equal(t.ward("run", "--env", "TERM=mine", "--", "sh", "-c", "echo $TERM", cwd=ws).out,
            "mine\n", "the user's word")


def test_localhost(t):
    """A server and its clients in one sandbox, by both addresses and by name; nobody outside hears
    of it."""
    ws = t.workspace({"served": "x"})
    r = t.ward("run", "--", "/usr/bin/python3", "-c", SERVER, cwd=ws)
    t.equal(r.out, "127.0.0.1 True\nlocalhost True\n[::1] True\nlocalhost True\n"
            "['127.0.0.1', '::1'] 127.0.0.1\n")


@needs("git")
def test_names_that_are_hard(t):
    """Spaces, quotes, newlines, other alphabets, a dash in front: the workspace works, and so does
    git in it."""
    top = t.fresh_dir("names")
    for name in ("with space", "Größe-Ω-漢字-🙂", "quote'\"`$x", "new\nline", "-dash", "tab\there",
                 "back\\slash", "%s%n", "..dots", "a:b,c=d"):
        ws = os.path.join(top, name)
        os.mkdir(ws)
        r = t.ward("run", "--set", "filesystem.caches=[npm]", "--", "sh", "-ec",
                   """touch -- 'a b'; mkdir -p 'd ö'; cd 'd ö'; [ "$(basename "$(pwd)")" = 'd ö' ]
            git init -q .; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x; git rev-parse --show-toplevel > /dev/null""", cwd=ws)
        t.equal(r.rc, 0, repr(name))
        t.check(os.path.exists(os.path.join(ws, "d ö/.git/HEAD")),
                f"nothing was written in {name!r}")
        r = t.ward("plan", "--json", cwd=ws)
        t.equal(r.rc, 0, repr(name))


def test_a_very_long_path(t):
    """Up to what the kernel takes; beyond it a clear refusal."""
    top = os.open(t.fresh_dir("long"), os.O_PATH)
    path = os.readlink(f"/proc/self/fd/{top}")
    os.fchdir(top)
    for total, works in ((2000, True), (4080, True), (4300, False)):
        while len(path) < total:
            name = "d" * min(200, max(1, total - len(path) - 1))
            os.mkdir(name, 0o700)
            os.chdir(name)
            path += "/" + name
        at = os.open(".", os.O_PATH)
        process = t.popen(t.ward_argv("run", "--", "sh", "-c", "pwd | wc -c; touch x"),
                          prepare=lambda fd=at: os.fchdir(fd), pass_fds=(at,))
        r = t.finish(process, ["ward in a path of", str(len(path))])
        if works:
            t.equal((r.rc, r.out.strip()), (0, str(len(path) + 1)), f"{len(path)} bytes")
            t.check(os.path.exists("x"), "nothing was written")
        else:
            t.equal((r.rc, r.out), (125, ""), f"{len(path)} bytes")
            t.check("ward: " in r.err and len(r.err) < 2000, f"message: {r.err}")
        os.close(at)
    os.close(top)
    os.chdir("/")


@timeout(60)
def test_a_fuse_file_system(t):
    """No id-mapped mounts and no overlay there: ward says what is weaker and works."""
    if not shutil.which("bindfs"):
        t.skip("there is no bindfs here")
    if not os.path.exists("/dev/fuse"):
        t.skip("there is no /dev/fuse here")
    below, ws = t.fresh_dir("below"), t.fresh_dir("fuse")
    r = t.run("bindfs", "--no-allow-other", below, ws)
    if r.rc != 0:
        t.skip(f"FUSE cannot be mounted here: {r.err.strip()}")
    t.defer(subprocess.run, ["fusermount3", "-u", ws])
    r = t.ward("run", "-w", ws, "--", "sh", "-ec",
               "echo x > x; mkdir d; mv x d/y; ln -s d/y l; cat l; git init -q r; cd r; git status "
               "--short",
               report=True)
    t.equal((r.rc, r.out), (0, "x\n"))
    t.equal(t.read(below, "d/y"), "x\n")
    if t.as_user == "root":
        t.contains(" ".join(r.report["notes"]), "no id-mapped mounts here")
        r = t.ward("run", "-w", ws, "--set", "require.idmap=true", "--", "true")
        t.equal(r.rc, 125)
        t.contains(r.err, "ext4, xfs, btrfs or tmpfs")
