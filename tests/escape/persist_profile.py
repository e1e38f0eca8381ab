"""Works in the user's configuration directory, or in the one that its links lead to, and leaves a
profile there for the next run, and what shells and git read.

layer: protected names, by where ward reads them
control: without a sandbox the next run believes the profile
"""
import os

PROFILE = "version: 1\nfilesystem:\n  host_mounts: [%s]\n"
PLANT = """
rm -rf ward 2>/dev/null
mkdir -p ward/profiles git
printf '%s' "$1" > ward/profiles/python.yaml
printf '[core]\n\tpager = evil\n' > git/config
"""


def places(s):
    """What holds the profiles, where the agent works, what XDG_CONFIG_HOME says."""
    home = s.t.fresh_dir("home")
    s.t.write(home,
              {"plain/.config/other": "x", "old/.config/ward/profiles/mine.yaml": "version: 1\n",
               "dots/ward/profiles": None,
               "linked/.config/other": "x", "store/profiles": None, "swap/.config/other": "x"})
    s.t.run("ln", "-s", "../../dots/ward", home + "/linked/.config/ward", check=True)
    s.t.run("ln", "-s", "../../store", home + "/swap/.config/ward", check=True)
    s.t.run("chown", "-hR", s.t.person.pw_name + ":", home, root=True, check=True)
    for top, work in (("plain", "plain/.config"), ("old", "old/.config"), ("linked", "dots"),
                      ("swap", "swap/.config")):
        yield f"{home}/{top}/.config", f"{home}/{work}"


def run(s):
    s.secret()
    found = False
    for config, work in places(s):
        env = {"XDG_CONFIG_HOME": config}
        words = ["sh", "-c", PLANT, "sh", PROFILE % s.outside]
        if s.control:
            s.t.run(*words, cwd=work, env=env)
        else:
            s.t.ward("run", "--", *words, cwd=work, env=env)
            s.t.ward("run", "--review", "--", *words, cwd=work, env=env)
            s.t.ward("apply", cwd=work, env=env)
            s.t.ward("run", "--rw", work, "--", *words, cwd=s.ws, env=env)
            found |= os.path.exists(work + "/git/config") and work.endswith(".config")
        r = s.t.ward("run", "--profile", "python", "--", "sh", "-c", f"cat {s.outside}/*", cwd=s.ws,
                     env=env)
        s.t.check(r.rc != 125, f"the next run was refused: {r.err}")
        s.t.check(not s.control or s.token in r.out, f"{work}: the control run did not succeed")
        found |= s.token in r.out
    return found


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
