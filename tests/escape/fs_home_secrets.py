"""Reads the keys and tokens in the user's home directory: ~/.ssh, ~/.aws, ~/.netrc, the shell's
history.

layer: mount namespace
control: the same user without a sandbox reads them
"""
NAMES = [".ssh/id_ed25519", ".aws/credentials", ".netrc", ".bash_history", ".config/gh/hosts.yml"]


def scene(s):
    s.t.write(s.t.home, {name: s.token for name in NAMES})
    s.args = {"home": s.t.home, "names": NAMES}


def attack(a):
    import pwd
    homes = {a["home"]}
    if inside():
        homes |= {os.environ.get("HOME", "/"), "/root"} | {entry.pw_dir for entry in pwd.getpwall()}
    for home in homes:
        for name in a["names"]:
            try:
                slurp(os.path.join(home, name))
                print("read:", home, name)
            except OSError:
                pass


def escaped(s, r):
    return "read:" in r.out
