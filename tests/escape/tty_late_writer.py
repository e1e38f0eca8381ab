"""Leaves a process behind that keeps the terminal open and writes into whatever the operator does
next.

layer: pid namespace
control: without a sandbox it writes after the command has ended
"""


def scene(s):
    s.tty = True


def attack(a):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    parent = os.getpid()
    if os.fork() == 0:
        os.setsid()
        while os.getppid() == parent:
            time.sleep(0.005)
        for _ in range(50):
            os.write(1, b"late words ")
            time.sleep(0.01)
        os._exit(0)
    print("the command ends")


def escaped(s, r):
    # behind ward's last words it is over
    return b"late words" in r.out_bytes.split(b"ward:")[-1]
