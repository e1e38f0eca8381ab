"""Names a program of its own in /proc/sys/kernel/core_pattern, which the kernel would start as root. (It writes back what stands there already, so that the control run does no harm.)

layer: masked proc
control: root without a sandbox may write it
"""
CONTROL = "root"


def attack(a):
    for name in ("kernel/core_pattern", "kernel/modprobe", "kernel/poweroff_cmd"):
        path = "/proc/sys/" + name
        try:
            value = slurp(path)
            fd = os.open(path, os.O_WRONLY)
            os.write(fd, value.encode())
            print("written:", path)
        except OSError as error:
            print(path, error)


def escaped(s, r):
    return "written:" in r.out
