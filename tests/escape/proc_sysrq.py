"""Reboots or crashes the machine through /proc/sysrq-trigger, /dev/kmsg, or /proc/sys/kernel/sysrq.
(Only opens them.)

layer: masked proc
control: root without a sandbox may open one of them for writing
"""
ENGINES = ("native", "oci", "vm")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"
CONTROL = "root"


def attack(a):
    for path in ("/proc/sysrq-trigger", "/proc/sys/kernel/sysrq", "/dev/kmsg",
                 "/proc/sys/kernel/panic"):
        try:
            os.close(os.open(path, os.O_WRONLY))
            print("opened:", path)
        except OSError as error:
            print(path, error)


def escaped(s, r):
    return "opened:" in r.out
