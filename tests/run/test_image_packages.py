"""packages: of a recipe: the base image's own apt-get installs them in a sandbox that reaches the
servers of the image's sources and nothing else, and is nobody's root."""
import hashlib
import json
import os
import shutil
import subprocess

from harness import by_turns, timeout
from harness.images import imported, listed, root_of
from harness.world import World, serve

PROGRAMS = ("apt-get", "dpkg", "dpkg-deb", "dpkg-split", "dpkg-query", "tar", "sh", "rm", "cat",
            "mkdir", "chmod", "chown", "id", "touch", "mv", "diff", "ldconfig", "start-stop-daemon",
            "wc", "cp", "ls", "stat")
TREES = ("/usr/lib/apt", "/usr/share/dpkg", "/usr/lib/dpkg")


def libraries(path):
    """What a program needs to start."""
    out = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
    return {word for word in out.split() if word.startswith("/")}


def debian(t, sources):
    """A directory with the host's apt and dpkg and what they need, as the base image."""
    top = t.fresh_dir("debian")
    files = {shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") for name in PROGRAMS}
    if None in files:
        t.skip("this is no Debian")
    for tree in TREES:
        for directory, _, names in os.walk(tree):
            files |= {os.path.join(directory, n) for n in names}
    for path in list(files):
        files |= libraries(path)
    for path in files:
        # the image has one /usr, as Debian has
        real = "/usr" + path if not path.startswith("/usr") else path
        target = top + real
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.exists(target):
            shutil.copy(os.path.realpath(path), target)
    for name in ("bin", "sbin", "lib", "lib64"):
        os.makedirs(os.path.join(top, "usr", name), exist_ok=True)
        os.symlink("usr/" + name, os.path.join(top, name))
    t.write(top, {"var/lib/dpkg/status": "", "var/lib/dpkg/available": "",
                  "var/lib/dpkg/info": None, "var/lib/dpkg/updates": None,
                  "var/lib/dpkg/triggers": None,
                  "etc/apt/sources.list.d": None, "etc/apt/sources.list": sources,
                  "etc/apt/apt.conf.d": None, "etc/apt/preferences.d": None,
                  "etc/resolv.conf": "# the image's own\n", "var/log": None,
                  "etc/passwd": "root:x:0:0::/root:/bin/sh\n"})
    imported(t, top, "--name", "debian")


def package(top, name, files, depends="", scripts=None):
    """Builds a package; returns its paragraph in the list."""
    work = os.path.join(top, f"{name}.d")
    for path, (text, mode) in files.items():
        os.makedirs(os.path.dirname(work + path), exist_ok=True)
        with open(work + path, "w") as f:
            f.write(text)
        os.chmod(work + path, mode)
    control = (f"Package: {name}\nVersion: 1.0-1\nArchitecture: all\nMaintainer: nobody "
               "<nobody@example.com>\nDescription: made by a test\n"
               + (f"Depends: {depends}\n" if depends else ""))
    os.makedirs(f"{work}/DEBIAN", mode=0o755, exist_ok=True)
    for script, text in {"control": control, **(scripts or {})}.items():
        with open(f"{work}/DEBIAN/{script}", "w") as f:
            f.write(text)
        os.chmod(f"{work}/DEBIAN/{script}", 0o755 if script != "control" else 0o644)
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", work, f"{top}/{name}.deb"], check=True,
                   capture_output=True)
    shutil.rmtree(work)
    with open(f"{top}/{name}.deb", "rb") as f:
        data = f.read()
    return (f"{control}Filename: ./{name}.deb\nSize: {len(data)}\n"
            f"SHA256: {hashlib.sha256(data).hexdigest()}\n\n")


def repository(t):
    """Two packages, the second with what usually needs root."""
    top = t.fresh_dir("repository")
    os.umask(0o022)
    os.chmod(top, 0o755)
    rows = package(top, "greeting-data", {"/usr/share/greeting": ("HELLO-FROM-A-PACKAGE\n", 0o644)})
    rows += package(top, "greeting",
                    {"/usr/bin/greet": ("#!/bin/sh\ncat /usr/share/greeting\n", 0o755),
                     "/usr/bin/greet-suid": ("#!/bin/sh\n", 0o4755)}, depends="greeting-data",
                    scripts={"postinst": "#!/bin/sh\nset -e\n[ \"$(id -u)\" = 0 ]\n"
                             "chown 33:33 /usr/bin/greet\nmkdir -p /var/lib/greeting\n"
                             "chmod 2755 /var/lib/greeting\n"
                                         "ls /root /home > /var/lib/greeting/seen 2>&1 || true\n"})
    t.write(top, {"Packages": rows})
    return top


def build(t, world, recipe, rc=0):
    """Builds a recipe at home in the world."""
    top = t.fresh_dir("recipe")
    t.write(top, {"recipe.yaml": recipe, "secret-beside": "SECRET-BESIDE-THE-RECIPE\n"})
    r = world.ward("image", "build", os.path.join(top, "recipe.yaml"), "--name", "made", "--json",
                   cwd=top, timeout=60)
    t.equal(r.rc, rc, r.err)
    return r


@by_turns
@timeout(120)
def test_packages_of_the_bases_own_sources(t):
    world = World(t)
    top = repository(t)
    serve(t, world, ["python3", "-m", "http.server", "-d", top, "8000"], 8000)
    debian(t, "# deb http://never.test/ ./\ndeb [trusted=yes] http://web.test:8000/ ./\n")
    r = build(t, world, "from: debian\npackages: [greeting]\nrun: ['greet > /var/greeted']\n"
              "entrypoint: [greet]\n")
    made = root_of(t, json.loads(r.out))
    t.equal(t.read(made, "var/greeted"), "HELLO-FROM-A-PACKAGE\n")
    t.equal(os.stat(os.path.join(made, "usr/bin/greet-suid")).st_mode & 0o7777, 0o755,
            "set-id bits")
    t.check("install ok installed" in t.read(made, "var/lib/dpkg/status"), "dpkg knows them")
    t.equal((t.read(made, "usr/sbin/policy-rc.d"),
             os.listdir(os.path.join(made, "var/lib/apt/lists"))), (None, []), "left behind")
    t.equal(t.read(made, "etc/resolv.conf"), "# the image's own\n")
    t.equal(t.ward("run", "--image", "made", cwd=t.workspace()).out, "HELLO-FROM-A-PACKAGE\n")
    t.check(not any("never" in line for line in world.log()), "a server in a comment was asked")
    # what lies beside is put there when the network is gone again, lists of sources before it;
    # addresses are no servers
    r = build(t, world, "from: made\npackages: [greeting]\nfiles: [{from: secret-beside, to: "
              "/opt/secret}]\n")
    root = root_of(t, json.loads(r.out))
    t.equal(t.read(root, "opt/secret"), "SECRET-BESIDE-THE-RECIPE\n")
    # a package that does not exist, a server that is not there
    r = build(t, world, "from: debian\npackages: [no-such-package]\n", rc=125)
    t.check("packages: apt-get ended with status 100" in r.err and "web.test:8000" in r.err, r.err)
    t.equal(sorted(name for name in listed(t) if len(name) < 64), ["debian", "made"])


def test_what_is_no_package(t):
    top = t.fresh_dir("empty")
    t.write(top, {"bin/x": "x"})
    imported(t, top, "--name", "bare")
    where = t.fresh_dir("recipe")
    for text, why in (("[git]", "has no /usr/bin/apt-get"), ("['-o']", "not a package name"),
                      ("['a b']", "not a package name"), ("['git-']", "not a package name"),
                      ("['$(id)']", "not a package name"),
                      ("[../x.deb]", "not a package name"), ("git", "expected a list"),
                      ("['git=']", "not a package name"), ("[Git]", "not a package name")):
        t.write(where, {"r.yaml": f"from: bare\npackages: {text}\n"})
        r = t.ward("image", "build", os.path.join(where, "r.yaml"), "--name", "made")
        t.check(r.rc == 125 and why in r.err, f"{text}: {r.err}")
    t.equal(sorted(listed(t)), ["bare"])


def test_addresses_are_no_servers(t):
    """A base image could name private addresses: they are left out, in every spelling."""
    top = t.fresh_dir("base")
    t.write(top,
            {"usr/bin/apt-get": "#!/bin/sh\n",
             "etc/apt/sources.list": "deb http://10.255.255.1/ ./\ndeb http://169.254.169.254:80/ "
             "./\ndeb http://0x7f000001/ ./\ndeb http://2130706433/ ./\ndeb http://localhost/ ./\n"
                   "deb http://10.0.0.1./ ./\n# deb http://real.example/ ./\n"})
    imported(t, top, "--name", "bare")
    where = t.fresh_dir("recipe")
    t.write(where, {"r.yaml": "from: bare\npackages: [git]\n"})
    r = t.ward("image", "build", os.path.join(where, "r.yaml"), "--name", "made")
    t.check(r.rc == 125 and "has no package source" in r.err, r.err)
