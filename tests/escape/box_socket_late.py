"""Drives another sandbox of the same user over its control socket, which was made after this one
had started, in a directory that it was given read-only.

layer: mount namespace; the socket asks for the peer's user namespace, too
control: the same user without a sandbox is obeyed
"""


def scene(s):
    from harness import boxes
    other = s.t.workspace({"secret": s.token})
    s.t.write(s.t.directory, {"other": other})
    s.options += ["--ro", s.t.runtime_dir]
    s.args = {"boxes": s.t.runtime_dir + "/boxes", "secret": other + "/secret"}
    s.t.defer(boxes.clean, s.t)

    def start_later():
        while not os.path.exists(s.ws + "/go"):
            time.sleep(0.02)
        os.chdir(other)
        os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
        os.execve(s.t.ward_path, [s.t.ward_path, "run", "-d"], s.t.environment())
    import os
    import time
    if os.path.isdir(s.args["boxes"]) is False:
        s.t.run("mkdir", "-m", "700", s.args["boxes"], check=True)
    s.t.background(start_later)


def attack(a):
    def drive(path):
        c = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        c.settimeout(3)
        c.connect(path)
        words = b"\0cat\0" + a["secret"].encode() + b"\0"
        c.send(struct.pack("<HHIii", 0x7764, 0, 2, 2, 0) + words)
        answer, fds, _, _ = socket.recv_fds(c, 4096, 4)
        print(answer[:16], fds)
        c.recv(4096)
        print(os.read(fds[0], 4096).decode())
    open("go", "w").close()
    deadline = time.time() + 10
    while time.time() < deadline:
        found = [f"{a['boxes']}/{name}/control" for name in os.listdir(a["boxes"])]
        found = [path for path in found if os.path.exists(path)]
        if found:
            time.sleep(0.2)
            attempt(drive, found[0])
            print("saw the socket")
            return
        time.sleep(0.02)
    print("no socket was seen")


def escaped(s, r):
    s.t.check("saw the socket" in r.out, "the attack saw no socket, so nothing was shown")
    return s.token in r.out
