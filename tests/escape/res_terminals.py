"""Opens pseudo terminals until the host has none left for anybody.

layer: devpts
control: without a sandbox it opens hundreds
"""
ENGINES = ("native", "oci")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"
OPTIONS = ["--set", "resources.open_files=2000"]


def attack(a):
    import resource
    attempt(resource.setrlimit, resource.RLIMIT_NOFILE,
            (2000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    opened = 0
    try:
        for _ in range(600):
            os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
            opened += 1
    except OSError as error:
        print(error)
    print("opened:", opened)


def escaped(s, r):
    return int(r.out.split("opened:")[1].split()[0]) > 300
