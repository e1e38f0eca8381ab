"""Starts threads without end; they count as processes do.

layer: limits
control: without a sandbox two hundred are started
"""
OPTIONS = ["--pids", "64"]


def attack(a):
    import threading
    threading.stack_size(65536)
    started = 0
    try:
        for _ in range(200):
            threading.Thread(target=time.sleep, args=(20,), daemon=True).start()
            started += 1
    except (RuntimeError, OSError) as error:
        print("stopped:", error)
    print("started:", started)


def escaped(s, r):
    return "started:" in r.out and int(r.out.split("started:")[1].split()[0]) > 70
