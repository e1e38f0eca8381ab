"""Caches and homes that outlive a run: kept by name, a project's own, never the host's, and no way
out of the sandbox."""
import json
import os
import stat

from harness import only_root, timeout


def caches(*names):
    """The option that gives these caches."""
    return ("--set", f"filesystem.caches=[{', '.join(names)}]")


def sh(t, ws, script, *options, rc=0, **more):
    """Runs a shell script inside and returns the result."""
    r = t.ward("run", *options, "--", "sh", "-c", script, cwd=ws, **more)
    t.equal(r.rc, rc, script)
    return r


def volumes(t):
    """name -> row of `ward volume ls --json`."""
    return {v["name"]: v for v in json.loads(t.ward("volume", "ls", "--json").out)["volumes"]}


def test_a_cache_is_kept_for_its_project(t):
    one, two = t.workspace(), t.workspace()
    places = (".cache/pip .cache/uv .npm .cache/yarn .local/share/pnpm/store .cargo/registry "
              ".cargo/git .cache/go-build go/pkg/mod .cache/ccache")
    every = caches("pip", "uv", "npm", "yarn", "pnpm", "cargo", "go", "ccache")
    sh(t, one, f"cd; for d in {places}; do echo $d > $d/kept && echo x > $d/../beside || exit "
       "1; done", *every)
    r = sh(t, one, f"cd; for d in {places}; do [ $(cat $d/kept) = $d ] && [ ! -e $d/../beside ] || "
           "echo $d; done", *every)
    t.equal(r.out, "", "caches that were not kept, or more than they")
    sh(t, two, f"cd; for d in {places}; do [ ! -e $d/kept ] || exit 1; done", *every)
    sh(t, one, "[ ! -e ~/.npm ]")
    t.equal(sorted(n.split("/")[2] for n in volumes(t) if n.startswith("cache/ws1-")
                   or "/ws1" in n),
            ["cargo", "ccache", "go", "npm", "pip", "pnpm", "uv", "yarn"], "volumes of the first")
    t.equal(os.listdir(t.home), [], "the host's own home")


def test_a_private_home_is_new_each_time(t):
    ws = t.workspace()
    sh(t, ws, "echo x > ~/x")
    sh(t, ws, "[ -z \"$(ls -A ~)\" ]")


def test_a_named_home_is_kept_and_shared_by_projects(t):
    one, two = t.workspace(), t.workspace()
    home = ("--set", "filesystem.home=mine")
    sh(t, one, "mkdir -p ~/.config/tool; echo token > ~/.config/tool/file; chmod 600 "
       "~/.config/tool/file", *home)
    t.equal(sh(t, two, "cat ~/.config/tool/file; pwd; echo $HOME", *home).out.splitlines()[0],
            "token")
    sh(t, one, "[ ! -e ~/.config ]", "--set", "filesystem.home=other")
    sh(t, one, "echo a > ~/.npm/a; ls ~/.config/tool/file", *home, *caches("npm"))
    t.equal(sh(t, one, "cat ~/.npm/a", *caches("npm")).out, "a\n",
            "the cache is the project's, not the home's")
    sh(t, two, "[ ! -e ~/.npm/a ]", *home)


def test_volumes_have_the_users_eyes_only(t):
    """Nobody else can enter them, and the agent's files belong to whom ward runs as."""
    ws = t.workspace()
    sh(t, ws, "umask 0; mkdir ~/d; echo x > ~/d/x; chmod 777 ~; cp /bin/true ~/.npm/true; "
       "~/.npm/true", "--set", "filesystem.home=h", *caches("npm"))
    for top in ("caches", "homes"):
        path = os.path.join(t.state_dir, top)
        t.equal(stat.S_IMODE(os.stat(path).st_mode), 0o700, path)
        for name in os.listdir(path):
            t.equal(stat.S_IMODE(os.stat(os.path.join(path, name)).st_mode), 0o700, name)
    t.equal(os.stat(os.path.join(t.state_dir, "homes/h/home/d/x")).st_uid, t.person.pw_uid, "owner")
    options = sh(t, ws, "grep -E ' /home/agent(/.npm)? ' /proc/self/mountinfo", "--set",
                 "filesystem.home=h", *caches("npm")).out
    t.equal(len([line for line in options.splitlines() if "nosuid" in line and "nodev" in line]), 2,
            options)


def test_a_home_that_the_agent_has_closed_opens_again(t):
    ws = t.workspace()
    home = ("--set", "filesystem.home=h")
    sh(t, ws, "echo x > ~/x; chmod 0 ~", *home)
    t.equal(sh(t, ws, "cat ~/x", *home).out, "x\n")
    sh(t, ws, "mkdir -p ~/a/b; chmod 0 ~/a ~", *home)
    t.equal(t.ward("volume", "rm", "home/h").rc, 0, "rm")
    t.equal(volumes(t), {})


def test_links_in_a_home_lead_nowhere(t):
    """A home is written by an agent: what ward makes there for its mounts is made through no
    link."""
    ws, aim = t.workspace(), t.fresh_dir("aim")
    home = ("--set", "filesystem.home=h")
    sh(t, ws, f"ln -s {aim} ~/.cache; ln -s {aim} ~/.npm; mkdir ~/.cargo; ln -s "
       f"../../../../../../../..{aim} ~/.cargo/registry", *home)
    for name in ("pip", "npm", "cargo"):
        r = t.ward("run", *home, *caches(name), "--", "true", cwd=ws)
        t.equal(r.rc, 125, name)
        t.contains(r.err, "is not a directory")
        t.contains(r.err, "ward volume rm home/h")
    t.equal(os.listdir(aim), [], "what was made outside of the home")


def test_two_sandboxes_share_a_cache(t):
    """At the same time, and rm waits for neither: it refuses."""
    ws = t.workspace()
    first = t.ward_start("run", *caches("npm"), "--", "sh", "-c",
                         "echo first > ~/.npm/one; until [ -e ~/.npm/two ]; do sleep 0.02; done; "
                         "cat ~/.npm/two", cwd=ws)
    sh(t, ws, "until [ -e ~/.npm/one ]; do sleep 0.02; done; cat ~/.npm/one", *caches("npm"))
    name = next(iter(volumes(t)))
    t.equal(volumes(t)[name]["in_use"], True)
    r = t.ward("volume", "rm", name)
    t.equal(r.rc, 125, "rm of what is in use")
    t.contains(r.err, "is running")
    sh(t, ws, "echo second > ~/.npm/2; mv ~/.npm/2 ~/.npm/two", *caches("npm"))
    done = t.finish_ward(first)
    t.equal((done.rc, done.out), (0, "second\n"))
    t.equal(volumes(t)[name]["in_use"], False)
    t.equal(t.ward("volume", "rm", name).rc, 0)
    t.equal(volumes(t), {})
    t.equal(os.listdir(os.path.join(t.state_dir, "caches")), [], "what rm left")


@timeout(120)
def test_volumes_count_in_the_disk_limit(t):
    ws = t.workspace()
    for options, place in ((caches("npm"), "$HOME/.npm/big"),
                           (("--set", "filesystem.home=h"), "$HOME/big")):
        for mode in ("read_write", "read_only"):
            r = t.ward("run", *options, "--set", f"filesystem.mode={mode}", "--disk", "8M", "--",
                       "sh", "-c",
                       f"i=0; while [ $i -lt 400 ]; do dd if=/dev/zero of={place}$i bs=1M count=1 "
                       "status=none || exit 9; i=$((i+1)); done",
                       cwd=ws, report=True, timeout=60)
            t.check(r.report["limits"]["disk"]["hit"] and r.rc == 137,
                    f"400 MiB in {place} with {mode}: exit {r.rc}")


def test_bad_names(t):
    ws = t.workspace()
    for option in (caches("nmp"), caches("../x"), ("--set", "filesystem.home=../x"),
                   ("--set", "filesystem.home=.x"),
                   ("--set", "filesystem.home=a/b"), ("--set", "filesystem.home=")):
        r = t.ward("run", *option, "--", "true", cwd=ws)
        t.equal(r.rc, 125, option[1])
        t.contains(r.err, "expected")
    for name in ("home/../x", "home/", "cache/x", "x", "cache//x", "home/h/home", "cache/a/..",
                 "cache/a/workspace"):
        t.equal(t.ward("volume", "rm", name).rc, 125, name)
    t.equal(t.ward("volume").rc, 2)
    t.equal(t.ward("volume", "rm").rc, 2)
    t.equal(t.ward("volume", "frob").rc, 2)
    t.contains(t.ward("volume", "ls").out, "no volumes")


def test_a_found_policy_that_names_a_home_needs_trust(t):
    """A hostile repository must not get at the home that holds an agent's login."""
    ws = t.workspace({"ward.yaml": "version: 1\nfilesystem: {home: claude}\n"})
    r = t.ward("run", "--", "true", cwd=ws)
    t.equal(r.rc, 125)
    t.contains(r.err, "filesystem.home: private -> claude")
    t.equal(t.ward("run", "-p", "ward.yaml", "--", "true", cwd=ws).rc, 0)
    t.equal(t.ward("run", "-p", "ward.yaml", "--set", "filesystem.home=private", "--widen", "--",
                   "true", cwd=ws).rc, 0)


def test_plan_makes_nothing(t):
    ws = t.workspace()
    r = t.ward("plan", "--json", "--set", "filesystem.home=h", *caches("pip"), cwd=ws)
    t.equal(r.rc, 0)
    targets = [m["target"] for m in json.loads(r.out)["mounts"]]
    t.check("/home/agent" in targets and "/home/agent/.cache/pip" in targets, f"mounts: {targets}")
    t.check(not os.path.exists(os.path.join(t.state_dir, "homes")), "plan made a home")


@only_root
@timeout(60)
def test_without_id_mapped_mounts(t):
    """Where the state directory's file system refuses them a cache is left out and a home is
    refused; ids stay as they are."""
    ws = t.workspace()
    state = t.fresh_dir("ramfs")
    t.run("mount", "-t", "ramfs", "ramfs", state, root=True, check=True)
    t.defer(t.run, "umount", state)
    env = {"WARD_STATE_DIR": os.path.join(state, "ward")}
    r = t.ward("run", *caches("npm"), "--", "sh", "-c",
               "touch ~/x; [ ! -e ~/.npm ]; cat /proc/self/uid_map", cwd=ws, env=env, report=True)
    t.equal(r.rc, 0)
    t.check(r.out.split()[1] != "0", f"the agent is root outside: {r.out}")
    t.contains(" ".join(r.report["notes"]), "the cache npm does not persist")
    r = t.ward("run", "--set", "filesystem.home=h", "--", "true", cwd=ws, env=env)
    t.equal(r.rc, 125)
    t.contains(r.err, "id-mapped")
    # there the agent is the workspace's owner, or root itself
    slow = os.path.join(state, "ws")
    os.mkdir(slow)
    for owner in (12345, 0):
        os.chown(slow, owner, owner)
        home = ("--set", "filesystem.home=h", *caches("npm"))
        t.equal(t.ward("run", *home, "--", "sh", "-c", "echo kept > ~/x; echo kept > ~/.npm/x",
                       cwd=slow, env=env).rc, 0, f"as {owner}")
        t.equal(t.ward("run", *home, "--", "sh", "-c", "cat ~/x ~/.npm/x", cwd=slow, env=env).out,
                "kept\nkept\n", f"as {owner}")
    t.equal(sorted(os.listdir(os.path.join(state, "ward/homes"))), ["h", "h@12345"], "homes")


def test_a_detached_sandbox_holds_its_volumes(t):
    """They are in use as long as it lives, commands that are executed in it see them, and they are
    free when it is gone."""
    ws = t.workspace()
    started = t.ward("run", "-d", "--name", "keeper", *caches("npm"), "--set", "filesystem.home=h",
                     cwd=ws)
    t.equal(started.rc, 0, "run -d")
    t.equal(t.ward("exec", "keeper", "sh", "-c", "echo kept > ~/.npm/x; echo kept > ~/x",
                   cwd=ws).rc, 0, "exec")
    t.equal({v["in_use"] for v in volumes(t).values()}, {True}, "in use")
    t.equal(t.ward("volume", "rm", "home/h").rc, 125, "rm while it lives")
    t.equal(sh(t, ws, "cat ~/.npm/x ~/x", *caches("npm"), "--set", "filesystem.home=h").out,
            "kept\nkept\n", "another one beside it")
    t.equal(t.ward("kill", "keeper", cwd=ws).rc, 0, "kill")
    t.wait_until(lambda: not any(v["in_use"] for v in volumes(t).values()), 20,
                 "the volumes are free")
    t.equal(t.ward("volume", "rm", *volumes(t)).rc, 0, "rm afterwards")
    t.ward("rm", "keeper", cwd=ws)
