"""Opens files without end, after raising its own limit.

layer: rlimits
control: without a sandbox it opens five hundred
"""
ENGINES = ("native", "oci", "vm")
ENGINES_WHY = "so few descriptors are not enough for the inner runtime itself: it refuses to start"
OPTIONS = ["--set", "resources.open_files=64"]


def attack(a):
    import resource
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    attempt(resource.setrlimit, resource.RLIMIT_NOFILE, (hard, hard))
    attempt(resource.setrlimit, resource.RLIMIT_NOFILE, (4096, 4096))
    opened = 0
    try:
        for _ in range(500):
            os.dup(0)
            opened += 1
    except OSError as error:
        print(error)
    print("opened:", opened)


def escaped(s, r):
    return int(r.out.split("opened:")[1].split()[0]) > 64
