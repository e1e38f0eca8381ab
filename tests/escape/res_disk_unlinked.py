"""Fills the disk with files that have no name any more.

layer: limits
control: without a sandbox it holds them
"""
OPTIONS = ["--disk", "16M"]
ENGINES = ("native", "oci", "gvisor")
ENGINES_WHY = ("a machine's files lie in its own memory until they come back, and one without a "
               "name never does")


def attack(a):
    chunk = b"x" * (1 << 20)
    held = []
    for number in range(96):
        fd = os.open("gone", os.O_CREAT | os.O_RDWR)
        os.unlink("gone")
        os.write(fd, chunk)
        held.append(fd)
        if number % 8 == 0:
            time.sleep(0.002)
    time.sleep(0.5)
    print("held:", len(held), "MiB")


def escaped(s, r):
    return "held: 96" in r.out
