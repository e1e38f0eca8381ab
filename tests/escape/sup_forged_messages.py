"""Forges messages of the supervisor's control channel on every descriptor, to have another exit
code reported.

layer: descriptors
control: a supervisor that left its socket open at descriptor 3 hears the forged message
"""
ENGINES = ("native", "oci", "vm")
ENGINES_WHY = ("ward-init's socket does not exist behind it; the runner's own files are tried in "
               "tests/run/test_gvisor.py")
import socket


def scene(s):
    if s.control:
        s.mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.pass_fds = (theirs.fileno(),)
        s.keep = theirs


def attack(a):
    message = struct.pack("=Iii", 3, 0, 0)
    for fd in range(3, 256):
        for send in (lambda: os.write(fd, message),
                     lambda: socket.socket(fileno=os.dup(fd)).send(message)):
            try:
                send()
            except OSError:
                pass
    for path in ("/proc/1/fd/3", "/proc/1/fd/4"):
        attempt(lambda: os.write(os.open(path, os.O_RDWR), message) if inside() else None)
    sys.stdout.flush()
    os._exit(9)


def escaped(s, r):
    if s.control:
        s.mine.settimeout(1)
        return len(s.mine.recv(64)) == 12
    return r.rc != 9 or not r.report or r.report["exit"]["code"] != 9
