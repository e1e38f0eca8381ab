"""Looks for anything in /proc that opens for writing and is not the attacker's own process.

layer: masked proc
control: root without a sandbox finds many
"""
ENGINES = ("native", "oci")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"
CONTROL = "root"


def attack(a):
    own = {"self", "thread-self"} | {str(p) for p in processes() if p != 1}
    for top, dirs, files in os.walk("/proc" if inside() else "/proc/sys/kernel"):
        if top == "/proc":
            dirs[:] = [d for d in dirs if d not in own]
        if top.startswith("/proc/1"):
            dirs[:] = [d for d in dirs if d not in ("fd", "map_files", "root", "cwd", "ns")]
        for name in files:
            path = os.path.join(top, name)
            if os.path.islink(path):
                continue
            try:
                fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                if os.fstat(fd).st_rdev == os.makedev(1, 3):
                    continue	# /dev/null stands there
                if path.startswith("/proc/1/"):
                    # some of a process's files open for everybody and ask at the write
                    os.write(fd, b"1")
                print("opened for writing:", path)
            except OSError:
                pass


def escaped(s, r):
    return "opened for writing:" in r.out
