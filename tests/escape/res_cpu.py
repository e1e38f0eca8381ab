"""Takes more processor time than allowed, with several processes.

layer: limits
control: without a sandbox it takes what there is
"""
OPTIONS = ["--cpus", "0.05"]
SERIAL = True


def attack(a):
    started = time.monotonic()
    for _ in range(8):
        if os.fork() == 0:
            while time.monotonic() - started < 1.5:
                pass
            os._exit(0)
    for _ in range(8):
        os.wait()
    used = os.times()
    print("share:", (used.children_user + used.children_system) / (time.monotonic() - started))


def escaped(s, r):
    return float(r.out.split("share:")[1]) > 0.15
