"""Reads and writes the memory of pid 1 through /proc/1/mem, and looks at its descriptors and maps.

layer: pid namespace
control: in a throw-away pid namespace, where pid 1 belongs to the same user
"""
ENGINES = ("native", "oci", "vm")
ENGINES_WHY = "pid 1 behind it has the agent's own id and holds nothing that the command has not"
CONTROL = "unshare -Urpf --mount-proc"
CONTROL_SHELL = '"$@"; exit $?'


def attack(a):
    for name in ("mem", "maps", "auxv", "environ", "syscall", "io"):
        try:
            fd = os.open(f"/proc/1/{name}", os.O_RDWR if name == "mem" else os.O_RDONLY)
            data = os.read(fd, 64) if name != "mem" else b""
            if data or name == "mem":
                print("opened:", name, data[:40])
        except OSError as error:
            print(name, error)
    def descriptors():
        numbers = os.listdir("/proc/1/fd")
        # the /proc of a container around ward: its numbers say nothing yet
        if os.readlink("/proc/self") != str(os.getpid()):
            numbers = [os.readlink(f"/proc/1/fd/{number}") for number in numbers]
        print("opened: fd", numbers)
    attempt(descriptors)


def escaped(s, r):
    return "opened:" in r.out
