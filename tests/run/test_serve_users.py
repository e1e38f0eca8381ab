"""The users of a sandbox of ward serve: `user`, and `root`, which is a name and a home of the same
id; sudo; what E2B's sandboxes say of themselves; and small calls of the SDKs beside."""
import base64
import time

from harness.serve import Server


def basic(name):
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:".encode()).decode()}


def as_root(box, script):
    """What a command prints that a client runs as root."""
    c, r = box.stream("process.Process/Start",
                      {"process": {"cmd": "/bin/sh", "args": ["-c", script]}, "stdin": False},
                      **basic("root"))
    out = r.read()
    c.close()
    return b"".join(base64.b64decode(part.split(b'"')[0])
                    for part in out.split(b'"stdout":"')[1:]).decode()


def test_serve_root(t):
    s = Server(t)
    box = s.create(envVars={"MINE": "1"})
    t.equal(as_root(box, "pwd; echo $HOME $USER $LOGNAME; id -u; touch made; ls /root"),
            "/root\n/root root root\n1000\nmade\n")
    r = box.ask("POST", "/files?path=a.txt&username=root", b"hello",
                **{"Content-Type": "application/octet-stream"})
    t.equal((r.status, r.json[0]["path"]), (200, "/root/a.txt"))
    t.equal(box.ask("GET", "/files?path=a.txt&username=root").body, b"hello")
    t.equal(box.ask("GET", "/files?path=~/a.txt").status, 404)
    t.equal(box.sh("cat /root/a.txt")[1], "hello")
    for name in ("other", "nobody", "root "):
        r = box.ask("POST", "/process.Process/List", {}, **basic(name))
        t.equal((name, r.status), (name, 401))
    # files of root are in a snapshot
    name = s.ask("POST", f"/sandboxes/{box.id}/snapshots", {}).json["snapshotID"]
    t.equal(s.create(name).sh("cat /root/a.txt; ls /root")[1], "helloa.txt\nmade\n")


def test_serve_sudo(t):
    s = Server(t)
    box = s.create(envVars={"MINE": "1"})
    for script, out in (
            ("sudo echo test", "test\n"),
            ("sudo -n -- sh -c 'echo $HOME $USER $SUDO_USER'", "/root root user\n"),
            ("FOO=bar sudo sh -c 'echo [$FOO]'", "[]\n"),
            ("FOO=bar sudo -E sh -c 'echo [$FOO]'", "[bar]\n"),
            ("FOO=bar sudo --preserve-env=X,FOO sh -c 'echo [$FOO]'", "[bar]\n"),
            ("sudo FOO=a=b sh -c 'echo [$FOO]'", "[a=b]\n"),
            ("sudo -u user sh -c 'echo $HOME'", "/home/user\n"),
            ("sudo -i pwd", "/root\n"),
            ("sudo -i echo 'a  b;c' '$HOME'", "a  b;c /root\n"),
            ("echo 'echo in $USER' | sudo -s", "in root\n"),
            ("sudo sudo id -u", "1000\n"),
            ("sudo -v && echo fine", "fine\n")):
        t.equal((script, box.sh(script)), (script, (0, out, "")))
    for script, code, err in (("sudo nonsense-x", 1, "sudo: nonsense-x: command not found\n"),
                              ("sudo -u other true", 1,
                               "sudo: there is no user other in this sandbox\n"),
                              ("sudo --nonsense true", 1, None), ("sudo", 1, None),
                              ("sudo sh -c 'exit 7'", 7, "")):
        r = box.sh(script)
        t.equal((script, r[0], r[2] if err is not None else None), (script, code, err))


def test_serve_root_has_no_rights(t):
    """It is the same id without a capability; what only root may do fails."""
    s = Server(t)
    box = s.create()
    t.equal(as_root(box, "grep -E '^(Uid|CapEff|CapBnd|NoNewPrivs)' /proc/self/status | tr -s "
                         "'\\t' ' '"),
            "Uid: 1000 1000 1000 1000\nCapEff: 0000000000000000\nCapBnd: 0000000000000000\n"
            "NoNewPrivs: 1\n")
    for script in ("touch /usr/x", "touch /etc/x", "chown 0 /root", "mount -t tmpfs x /mnt",
                   "echo x >/.ward-bin/sudo", "rm -f /.ward-envd", "mkdir /new"):
        t.equal((script, box.sh(f"sudo sh -c '{script}' 2>/dev/null")[0] != 0), (script, True))


def test_serve_without_root(t):
    """A template without a writable /root has no such user."""
    templates = t.fresh_dir("templates")
    t.write(templates, {"bare.yaml": "version: 1\nprocess: {user: user}\n"})
    s = Server(t, "--templates", templates)
    box = s.create("bare")
    t.equal(box.ask("POST", "/process.Process/List", {}, **basic("root")).status, 401)
    t.equal(box.ask("GET", "/files?path=a&username=root").status, 401)
    t.equal(box.sh("sudo true"), (1, "", "sudo: there is no user root in this sandbox\n"))
    t.equal(box.sh("sudo -u user id -u")[1], "1000\n")


def test_serve_says_what_it_is(t):
    s = Server(t, "--pool", "base=1")
    box = s.create(envVars={"MINE": "1"})
    names = ("E2B_SANDBOX", "E2B_SANDBOX_ID", "E2B_TEMPLATE_ID")
    wanted = f"true {box.id} base\n"
    t.equal(box.sh("echo " + " ".join(f"${n}" for n in names))[1], wanted)
    t.equal(box.sh("cd /run/e2b; echo " + " ".join(f"$(cat .{n})" for n in names))[1], wanted)
    t.equal(box.sh("echo $MINE")[1], "1\n")
    own = s.create(envVars={"E2B_SANDBOX_ID": "mine"})
    t.equal(own.sh("echo $E2B_SANDBOX_ID")[1], "mine\n")


def test_serve_small_calls(t):
    """Calls that the SDKs' helpers make: whether a template exists, numbers of a time, mcp."""
    s = Server(t)
    other = t.run(t.ward_path, "serve", "--state", s.state, "--add-key", "mallory",
                  check=True).out.strip()
    box = s.create(mcp={"some_server": {}})
    s.ask("POST", f"/sandboxes/{box.id}/snapshots", {"name": "work"})
    t.wait_until(lambda: s.ask("GET", "/templates/aliases/base").status == 200, 20)
    r = s.ask("GET", "/templates/aliases/work")
    t.equal((r.status, r.json["public"]), (200, False))
    t.equal(s.ask("GET", "/templates/aliases/work", key=other).status, 404)
    t.equal(s.ask("GET", "/templates/aliases/base", key="e2b_00").status, 401)
    for name in ("nothing", "..", "%2e%2e", "%00", "x" * 200):
        t.equal((name, s.ask("GET", f"/templates/aliases/{name}").status), (name, 404))
    now = int(time.time())
    for query, count in (("", 1), (f"?start={now - 60}&end={now}", 1), (f"?end={now - 60}", 0),
                         (f"?start={now + 60}", 0), ("?start=x", 1),
                         (f"?start={now + 1}&end={now + 1}", 1), (f"?start={now - 9}", 1)):
        r = s.ask("GET", f"/sandboxes/{box.id}/metrics{query}")
        t.equal((query, r.status, len(r.json)), (query, 200, count))
