"""Commits that a sandbox gets signed by the user's gpg, whose keys it never holds: real gpg,
gpg-agent and git; and a hostile program that talks to the socket itself."""
import json
import os

from harness import by_turns, timeout
from harness.world import need

# A program inside that asks for what git never would.
HOSTILE = r"""
import os, socket, struct, subprocess, sys
def text(b):
    return struct.pack(">I", len(b)) + b
def ask(data, key=b"", name=b"gpg-sign@ward", more=b""):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(60)
    s.connect("/.ward/ssh/agent")
    try:
        s.sendall(text(b"\x1b" + text(name) + text(key) + text(data) + more))
        got = s.recv(4)
        return s.recv(struct.unpack(">I", got)[0]) if len(got) == 4 else b"\0"
    except OSError:
        return b"\0"
tree = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n"
who = b"A <a@b> 1 +0000\n"
fine = tree + b"author " + who + b"committer " + who + b"\nm\n"
tag = b"object 4b825dc642cb6eb9a060e54bf8d69288fbee4904\ntype commit\ntag v\ntagger " + who + b"\n"
cases = {
    "fine": (fine,), "tag": (tag + b"m\n",), "text": (b"I owe you everything\n",), "empty": (b"",),
    "mail": (b"From: a@b\n\n" + fine,), "nul": (fine + b"\0rest",), "nouser": (tree + b"\nm",),
    "push": (b"certificate version 0.1\npusher A <a@b> 1 +0000\n\n",),
    "armor": (tag + b"-----BEGIN PGP SIGNATURE-----\n",), "huge": (fine + b"x" * (256 << 10),),
    "otherkey": (fine, sys.argv[1].encode()), "shortkey": (fine, b"ABCD1234ABCD1234"),
    "option": (fine, b"--export-secret-keys"), "decrypt": (fine, b"", b"gpg-decrypt@ward"),
    "more": (fine, b"", b"gpg-sign@ward", b"x"), "big": (fine + b"x" * 200000,),
}
for name, case in cases.items():
    got = ask(*case)
    print(name, got[0], b"BEGIN PGP SIGNATURE" in got, flush=True)
for words in (["--export-secret-keys"], ["--list-secret-keys", "--with-colons"]):
    done = subprocess.run(["/.ward/ssh/gpg", *words], capture_output=True)
    print("gpg", len(done.stdout), flush=True)
print("ssh", os.environ.get("SSH_AUTH_SOCK"), flush=True)
"""


class Keys:
    """A home of gpg with a key that signs."""

    def __init__(self, t):
        self.t = t
        self.gpg, self.gpgconf, self.git = need(t, "gpg", "gpgconf", "git")
        # a short path: the agent's socket lies in it
        self.home = t.fresh_dir("g")
        os.chmod(self.home, 0o700)
        self.env = {"GNUPGHOME": self.home, "GPG_TTY": None}
        self.first = self.make("first", "sign")

    def make(self, name, use, passphrase=""):
        t = self.t
        t.run(self.gpg, "-q", "--batch", "--pinentry-mode", "loopback", "--passphrase", passphrase,
              "--quick-gen-key", f"{name} <{name}@b.example>", "ed25519", use, "never",
              env=self.env, check=True)
        listed = t.run(self.gpg, "--batch", "--with-colons", "--list-secret-keys", f"={name} "
                       f"<{name}@b.example>", env=self.env, check=True)
        return next(line.split(":")[9] for line in listed.out.splitlines() if line[:4] == "fpr:")

    def forget(self):
        """The agent knows no passphrase any more."""
        self.t.run(self.gpgconf, "--kill", "gpg-agent", env=self.env)

    def ward(self, keys, *argv, cwd, more=None):
        t = self.t
        path = t.fresh_dir("policy")
        t.write(path, {"ward.yaml": json.dumps({"version": 1, "credentials": {
            "mode": "just_in_time", "gpg": keys, **(more or {})}})})
        return t.ward("run", "-p", os.path.join(path, "ward.yaml"), "--", *argv, cwd=cwd,
                      env=self.env, report=True)

    def signs(self, r):
        shown = self.t.ward("audit", "show", "--json", "--kind", "credential.sign", r.report["run"])
        events = [json.loads(line) for line in shown.out.splitlines()]
        return [(e["action"], e["object"], e.get("host")) for e in events]


def denials(r):
    """git shows nothing of what its gpg wrote."""
    return json.dumps(r.report["denials"])


@timeout(90)
def test_commit_and_tag(t):
    """git inside signs commits and tags by itself; git outside and inside verify them; the
    end of a key's id in the repository's configuration is fine, another key is refused."""
    k = Keys(t)
    try:
        repo = t.git_repo({"a": "1\n"})
        r = k.ward([k.first.lower()], "/bin/sh", "-ec", f"""
g="git -c user.name=A -c user.email=a@b"
$g commit -q --allow-empty -m one
$g -c user.signingKey={k.first[-16:]}! commit -q --allow-empty -m two
$g tag -m v1 v1
git verify-commit HEAD HEAD~ 2>&1; git verify-tag v1 2>&1
$g -c user.signingKey={"AB" * 20} commit -q --allow-empty -m three 2>&1 || echo refused
ls -A ~/.gnupg/private-keys-v1.d 2>/dev/null || true
env | grep -c SSH_AUTH_SOCK || true
""", cwd=repo)
        t.equal(r.rc, 0, f"exit code: {r.err} {r.out}")
        t.equal(r.out.count("Good signature from \"first <first@b.example>"), 3, f"inside: {r.out}")
        t.contains(denials(r), "credentials.gpg does not have this key", "another key")
        t.equal(r.out.splitlines()[-2:], ["refused", "0"], "no key and no ssh-agent inside")
        for what in (("verify-commit", "HEAD"), ("verify-commit", "HEAD~"), ("verify-tag", "v1")):
            done = t.run(k.git, "-C", repo, *what, env=k.env)
            t.equal(done.rc, 0, f"git {what}: {done.err}")
            t.contains(done.err, k.first, f"whose signature: {what}")
        t.equal(k.signs(r), [("allow", k.first, "git")] * 3 + [("deny", "gpg", "git")], "events")
        t.contains(r.err, "gpg signature for git", "the refusal in the summary")
        left = [n for n in os.listdir(t.runtime_dir) if n.startswith("ssh-")]
        t.equal(left, [], "what the run left in the runtime directory")
    finally:
        k.forget()


@timeout(90)
def test_hostile_program(t):
    """A program that talks to the socket itself gets commits and tags signed by granted keys, and
    nothing else; no secret key comes out."""
    k = Keys(t)
    try:
        ws = t.workspace({"hostile.py": HOSTILE})
        r = k.ward([k.first], "/usr/bin/python3", "hostile.py", k.make("second", "sign"), cwd=ws)
        t.equal(r.rc, 0, f"exit code: {r.err}")
        lines = [line.split(" ", 1) for line in r.out.splitlines()]
        t.equal([v for n, v in lines if n == "gpg"], ["0", "0"], "secret keys")
        t.equal(dict(lines)["ssh"], "None", "SSH_AUTH_SOCK")
        signed = {n for n, v in lines if v == "6 True"}
        t.equal(signed, {"fine", "tag", "big", "option"}, f"what was signed: {r.out}")
        refused = {n for n, v in lines if v in ("5 False", "0 False")}
        t.equal(refused, {"text", "empty", "mail", "nul", "nouser", "push", "armor", "huge",
                          "otherkey", "shortkey", "decrypt", "more"}, f"refused: {r.out}")
        actions = [e[:2] for e in k.signs(r)]
        t.equal(actions.count(("allow", k.first)), 4, f"events: {actions}")
        t.check(len(actions) >= 4 + 10, f"events of refusals: {actions}")
    finally:
        k.forget()


@by_turns
@timeout(90)
def test_refusals(t):
    """What cannot work is said before anything starts, with the remedy; a key whose passphrase is
    unknown fails the commit with the reason, and does not wait."""
    k = Keys(t)
    try:
        ws = t.workspace()
        cases = [
            (["A" * 40], {}, "no secret key AAAA", "gpg --list-secret-keys"),
            ([k.make("third", "cert")], {}, "cannot sign", "[S]"),
            (["me@b.example"], {}, "40 hexadecimal digits", "gpg --list-secret-keys"),
            ([k.first], {"ssh": [{"sign": True}]}, "both say which key", "keep one"),
        ]
        for keys, more, why, remedy in cases:
            r = k.ward(keys, "touch", "started", cwd=ws, more=more)
            t.equal(r.rc, 125, f"{keys}: exit code: {r.err}")
            t.contains(r.err, why, f"{keys}")
            t.contains(r.err, remedy, f"{keys}: remedy")
            t.check(not os.path.exists(os.path.join(ws, "started")), "something was started")
        locked = k.make("locked", "sign", "a passphrase")
        k.forget()
        r = k.ward([locked], "/bin/sh", "-c", "git -c user.name=A -c user.email=a@b commit -q "
                   "--allow-empty -m one; echo $?", cwd=t.git_repo({"a": "1\n"}))
        t.check(r.out.strip() not in ("", "0"), f"a locked key has signed: {r.out} {r.err}")
        t.contains(denials(r), "if the key has a passphrase", "the reason")
        t.contains(t.ward("explain", r.report["run"]).out, "gpg-agent knows it", "ward explain")
    finally:
        k.forget()
