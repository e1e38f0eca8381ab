"""Takes a lease on a file of the /etc that all sandboxes of a user share: whoever opens it would
have to wait for the holder.

layer: seccomp
control: the same user without a sandbox takes one on the very file
"""
ENGINES = ("native", "oci", "gvisor")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"


def scene(s):
    for _ in range(2):	# the second one makes it
        s.t.equal(s.t.ward("run", "--", "true", cwd=s.t.workspace()).rc, 0, "an earlier run")
    s.args = {"file": s.t.state_dir + "/kept-etc/now/root/passwd"}


def attack(a):
    import fcntl, struct
    F_SETDELEG = 1040	# newer kernels: a lease by another name
    for name in ("/etc/passwd", "/etc/hosts", "/etc/ld.so.cache") if inside() else (a["file"],):
        fd = os.open(name, os.O_RDONLY)
        attempt(lambda: print("LEASE_TAKEN", fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)))
        attempt(lambda: print("LEASE_TAKEN",
                              fcntl.fcntl(fd, F_SETDELEG,
                                          struct.pack("=IHH", 0, fcntl.F_RDLCK, 0))))


def escaped(s, r):
    return "LEASE_TAKEN" in r.out
