"""ward inside OCI containers: makes a bundle with the host's /usr, runs a command in it with runc,
leaves nothing.

For a test as root it is an ordinary container, for a test as the user a rootless one, where root
inside is that user. What there is to choose is what people meet: the capabilities, a masked /proc,
a root that is an overlay, a system call filter that takes user namespaces and mounts away, an
ordinary user inside.
"""
import json
import os
import shutil
import subprocess

DEFAULT_CAPS = ["CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID",
                "SETFCAP", "SETPCAP",
                "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE"]
RUNC_CAPS = ["AUDIT_WRITE", "KILL", "NET_BIND_SERVICE"]
ADMIN_CAPS = DEFAULT_CAPS + ["SYS_ADMIN", "SYS_PTRACE", "NET_ADMIN", "DAC_READ_SEARCH"]
NEW_USER = 0x10000000
WITHOUT_ADMIN = ["mount", "umount2", "pivot_root", "setns", "open_tree", "move_mount",
                 "mount_setattr", "fsopen", "fsconfig",
                 "fsmount", "fspick", "bpf", "perf_event_open", "unshare"]


def default_filter():
    """What containers take away from those without CAP_SYS_ADMIN: namespaces and mounts; clone3 is
    ENOSYS."""
    return {"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64"], "syscalls": [
        {"names": WITHOUT_ADMIN, "action": "SCMP_ACT_ERRNO", "errnoRet": 1},
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
        {"names": ["clone"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1, "args": [
            {"index": 0, "value": NEW_USER, "valueTwo": NEW_USER, "op": "SCMP_CMP_MASKED_EQ"}]}]}


class Container:
    """One bundle. run() starts a container in it, waits for its end and returns what t.run()
    returns."""

    def __init__(self, t, caps=(), uid=0, seccomp=None, masked=True, overlay=False, files=None):
        self.t, self.overlay, self.count = t, overlay, 0
        self.rootless = t.person.pw_uid != 0
        self.bundle = t.fresh_dir("bundle")
        self.root = os.path.join(self.bundle, "rootfs")
        self._fill(uid, files or {})
        self._configure(caps, uid, seccomp, masked)

    def _fill(self, uid, files):
        for name in ("proc", "dev", "sys", "usr", "tmp", "etc", "root", "run", "mnt", "var", "opt",
                     "home", "project"):
            os.makedirs(os.path.join(self.root, name))
        for name in ("bin", "sbin", "lib", "lib64"):
            os.symlink(f"usr/{name}", os.path.join(self.root, name))
        os.chmod(os.path.join(self.root, "tmp"), 0o1777)
        for directory in (self.bundle, self.root):
            os.chmod(directory, 0o755)
        self.t.write(self.root,
                     {"etc/passwd": "root:x:0:0::/root:/bin/sh\n"
                      "person:x:1000:1000::/home:/bin/sh\n",
                      "etc/shadow": "root:secret:1::::::\n"})
        shutil.copy(self.t.ward_path, os.path.join(self.root, "opt/ward"))
        self.t.write(os.path.join(self.root, "project"), files)
        if uid and not self.rootless:
            for directory, _, names in os.walk(os.path.join(self.root, "project")):
                for path in [directory] + [os.path.join(directory, n) for n in names]:
                    os.chown(path, uid, uid)
            os.chown(os.path.join(self.root, "home"), uid, uid)

    def _configure(self, caps, uid, seccomp, masked):
        self.t.run("runc", "spec", "--bundle", self.bundle,
                   *(["--rootless"] if self.rootless else []), check=True)
        path = os.path.join(self.bundle, "config.json")
        config = json.loads(self.t.read(path))
        names = ["CAP_" + c for c in caps] if uid == 0 else []
        config["process"].update(terminal=False, cwd="/project", noNewPrivileges=False,
                                 user={"uid": uid, "gid": uid})
        config["process"]["env"] = ["PATH=/usr/bin:/usr/sbin",
                                    "HOME=" + ("/home" if uid else "/root")]
        config["process"]["capabilities"] = {k: names
                                             for k in ("bounding", "effective", "permitted")}
        config["process"].pop("rlimits", None)
        config["root"] = {"path": "rootfs", "readonly": False}
        config["mounts"].append({"destination": "/usr", "source": "/usr", "type": "bind",
                                 "options": ["rbind", "ro", "nosuid", "nodev"]})
        if not masked:
            config["linux"].update(maskedPaths=[], readonlyPaths=[])
        if seccomp:
            config["linux"]["seccomp"] = seccomp
        if self.rootless:
            config["linux"]["uidMappings"] = [{"containerID": 0, "hostID": self.t.person.pw_uid,
                                               "size": 1}]
            config["linux"]["gidMappings"] = [{"containerID": 0, "hostID": self.t.person.pw_gid,
                                               "size": 1}]
            config["linux"].pop("resources", None)
        self.config, self.path = config, path

    def run(self, *argv, timeout=30):
        """One command in a container of its own."""
        self.config["process"]["args"] = [os.fspath(a) for a in argv]
        self.t.write(self.bundle, {"config.json": json.dumps(self.config)})
        self.count += 1
        name = f"ward-test-{os.getpid()}-{self.count}"
        state = os.path.join(self.bundle, "state")
        command = ["runc", "--root", state, "run", "--bundle", self.bundle, name]
        if self.overlay:
            command = ["unshare", "-m", "/bin/sh", "-c",
                       'cd "$0" && mkdir -p upper work && mount -t overlay overlay '
                       '-o lowerdir=rootfs,upperdir=upper,workdir=work rootfs && exec "$@"',
                       self.bundle, *command]
        self.t.defer(self._remove, state, name)
        return self.t.run(*command, timeout=timeout)

    def _remove(self, state, name):
        if os.path.isdir(os.path.join(state, name)):
            subprocess.run(["runc", "--root", state, "delete", "--force", name], check=False)

    def ward(self, *args, **options):
        """ward in the container, which is at /opt/ward there; the current directory is /project."""
        return self.run("/opt/ward", *args, **options)
