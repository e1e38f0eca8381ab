"""Starts processes without end.

layer: limits
control: without a sandbox two hundred are started
"""
OPTIONS = ["--pids", "64"]


def attack(a):
    children = []
    try:
        for _ in range(200):
            pid = os.fork()
            if pid == 0:
                time.sleep(20)
                os._exit(0)
            children.append(pid)
    except OSError as error:
        print("stopped:", error)
    print("started:", len(children))
    sys.stdout.flush()
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def escaped(s, r):
    return "started:" in r.out and int(r.out.split("started:")[1].split()[0]) > 70
