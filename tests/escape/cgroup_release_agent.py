"""Has the kernel start a program as root: mounts a cgroup hierarchy and opens its release_agent.

layer: no capabilities
control: root in a throw-away mount namespace opens it
"""
CONTROL = "root"
CONTROL_SHELL = 'exec unshare -m "$@"'
NEEDS = ["cgroup1"]


def attack(a):
    os.mkdir("m")
    for options in (b"memory", b"pids", b"rdma", b"none,name=systemd"):
        try:
            syscall("mount", b"cgroup", "m", b"cgroup", 0, options)
            break
        except OSError as error:
            print(options, error)
    for top in ("m", "/sys/fs/cgroup/memory", "/sys/fs/cgroup"):
        try:
            os.close(os.open(top + "/release_agent", os.O_WRONLY))
            print("opened:", top)
        except OSError as error:
            print(top, error)


def escaped(s, r):
    return "opened:" in r.out
