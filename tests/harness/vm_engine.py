"""What tests of `ward run --isolation vm` need once: a kernel package, fetched once for all tests,
and a small image."""
import os
import re
import shutil
import subprocess

from . import users

OPTIONS = ("--widen", "--isolation", "vm", "--set", "vm.accel=tcg", "--set", "vm.memory=256Mi",
           "--image", "small")


def package(t):
    """A Debian cloud kernel, downloaded once."""
    directory = os.path.join(t.cache, "vm-kernel")
    with t.root():
        found = [n for n in os.listdir(directory)
                 if n.endswith(".deb")] if os.path.isdir(directory) else []
        if not found:
            names = subprocess.run(["apt-cache", "pkgnames", "linux-image-"], capture_output=True,
                                   text=True, check=True).stdout.split()
            names = [n for n in names
                     if re.fullmatch(r"linux-image-\d+\.\d+\.\d+[-+0-9a-z]*-cloud-amd64", n)]
            if not names:
                t.skip("apt knows no cloud kernel")
            part = f"{directory}.{os.getpid()}"
            os.makedirs(part)
            newest = max(names, key=lambda n: [int(x) for x in re.findall(r"\d+", n)])
            subprocess.run(["apt-get", "download", "-qq", "-oAPT::Sandbox::User=", newest],
                           cwd=part, check=True, capture_output=True,
                           preexec_fn=(lambda: os.setresuid(0, 0, 0)) if users.IS_ROOT else None)
            os.chmod(part, 0o755)
            try:
                os.rename(part, directory)
            except OSError:
                shutil.rmtree(part)	# another test was faster
            found = [n for n in os.listdir(directory) if n.endswith(".deb")]
        for name in found:
            os.chmod(os.path.join(directory, name), 0o644)
    return os.path.join(directory, found[0])


def prepare(t):
    """A kernel and the image `small` in the test's state directory."""
    for program in ("qemu-system-x86_64", "mkfs.erofs", "busybox", "dpkg-deb", "apt-get"):
        if not shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin"):
            t.skip(f"{program} is not here")
    r = t.ward("vm", "setup", "--quiet", "--from", package(t), timeout=120)
    t.equal(r.rc, 0, f"ward vm setup: {r.err}")
    tree = t.fresh_dir("small")
    for name in ("bin", "etc", "tmp", "usr"):
        os.mkdir(os.path.join(tree, name))
    shutil.copy(shutil.which("busybox"), os.path.join(tree, "bin/busybox"))
    for applet in ("sh", "cat", "ls", "id", "uname", "sleep", "true", "date", "head", "od", "wget",
                   "nc", "grep", "rm", "mkdir", "dd", "test", "printf", "touch", "kill"):
        os.symlink("busybox", os.path.join(tree, "bin", applet))
    r = t.ward("image", "import", tree, "--name", "small", timeout=60)
    t.equal(r.rc, 0, f"ward image import: {r.err}")
