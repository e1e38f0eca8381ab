"""Takes more processor time than allowed, with several processes.

layer: limits
control: without a sandbox it takes what there is
"""
from harness import engines

# its start alone takes half a second of a processor
CPUS = 0.2 if engines.asked() == "gvisor" else 0.05
OPTIONS = ["--cpus", str(CPUS)]
SERIAL = True


def scene(s):
    s.args = {"seconds": 1.5 if s.control else 3}


def attack(a):
    started = time.monotonic()
    for _ in range(8):
        if os.fork() == 0:
            while time.monotonic() - started < a["seconds"]:
                pass
            os._exit(0)
    for _ in range(8):
        os.wait()
    used = os.times()
    print("share:", (used.children_user + used.children_system) / (time.monotonic() - started))


def escaped(s, r):
    if s.control:
        return float(r.out.split("share:")[1]) > 0.15
    # counted outside: what a machine thinks that it used is what it was kept from, too
    share = r.report["cpu_ms"] / r.report["duration_ms"]
    s.t.say(f"a share of {share:.3f}")
    return share > 2 * CPUS + 0.05
