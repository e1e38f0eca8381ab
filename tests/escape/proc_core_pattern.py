"""Names a program of its own in /proc/sys/kernel/core_pattern, which the kernel would start as
root. (It only opens it for writing.)

layer: masked proc
control: root without a sandbox may write it
"""
CONTROL = "root"


def attack(a):
    for name in ("kernel/core_pattern", "kernel/modprobe", "kernel/poweroff_cmd"):
        path = "/proc/sys/" + name
        try:
            os.close(os.open(path, os.O_WRONLY))
            print("opened:", path)
        except OSError as error:
            print(path, error)


def escaped(s, r):
    return "opened:" in r.out
