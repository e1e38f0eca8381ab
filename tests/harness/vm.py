"""The vm engine's two ends for tests: a guest that is no machine but this program, and a real one
under emulation."""
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import time

from . import host, users

TYPES = ("", "READY", "TIME", "SETUP", "WORDS", "START", "DATA", "WINDOW", "EOF", "BROKEN",
         "SIGNAL", "RESIZE", "STOPPED", "EXIT", "ERROR",
         "QUIESCE", "QUIET", "ECHO")
WINDOW = 131072
RUN, COPY, TREE_IN, TREE_OUT = 1, 2, 3, 4
DIR, DIR_END, FILE, LINK, CLOSED, GONE, ERROR, END = range(1, 9)
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def driver(t):
    """The program that does what ward-vm does, where the test's user can run it."""
    path = os.path.join(t.cache, "vm-drive")
    with t.root():
        if not os.path.exists(path):
            part = f"{path}.{os.getpid()}"
            shutil.copy(os.path.join(host.BUILD, "tests/unit/vm-drive"), part)
            os.chmod(part, 0o755)
            os.rename(part, path)
    return path


def record(kind, name, size=0, mode=0o644, more=b"", code=0):
    """One record of a tree, as the guest sends it back."""
    name = name.encode()
    return struct.pack("<IHHIIQqII", 0x31747677, kind, mode, len(name), code, size, 1600000000, 5,
                       0) + name + more


def file_record(name, content, mode=0o644):
    pieces = [(at, content[at:at + 65536]) for at in range(0, len(content), 65536)]
    chunks = b"".join(struct.pack("<QII", at, len(piece), 0) + piece for at, piece in pieces)
    return record(FILE, name, len(content), mode, chunks + bytes(16))


SLOT_BYTES, SLOTS, INLINE = 262144, 4, 0xffffffff


def pieces(data):
    """A tree's records as a guest without a device announces them."""
    return b"".join(struct.pack("<II", INLINE, len(data[at:at + 32768])) + data[at:at + 32768]
                    for at in range(0, len(data), 32768))


def frame(kind, channel=0, stream=0, payload=b""):
    return struct.pack("<HBBII", 0x5657, TYPES.index(kind), stream, channel, len(payload)) + payload


def take_frame(sock, heard):
    """(kind, channel, stream, payload) and what is left of the bytes; None at the end."""
    while True:
        if len(heard) >= 12:
            _, kind, stream, channel, n = struct.unpack("<HBBII", heard[:12])
            if len(heard) >= 12 + n:
                return (TYPES[kind], channel, stream, heard[12:12 + n]), heard[12 + n:]
        try:
            more = sock.recv(65536)
        except ConnectionError:
            more = b""
        if not more:
            return None, b""
        heard += more


class FakeGuest:
    """Sits where a hostile guest would sit; vm-drive connects to it."""

    def __init__(self, t, *options, command=("true",), stdin=subprocess.DEVNULL,
                 stdout=subprocess.PIPE):
        self.path = os.path.join(t.directory, f"port{len(t.started())}")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        listener.listen(1)
        listener.settimeout(30)
        with t.root():
            os.chmod(self.path, 0o666)
        self.argv = [driver(t), self.path, *options, "--", *command]
        self.process = t.popen(self.argv, stdin=stdin, stdout=stdout)
        self.t, self.bytes, self.ended = t, b"", False
        self.sock = listener.accept()[0]
        self.sock.settimeout(30)
        self.send("READY", payload=struct.pack("<I", 3))

    def send(self, kind, channel=0, stream=0, payload=b""):
        self.raw(frame(kind, channel, stream, payload))

    def raw(self, data):
        try:
            self.sock.sendall(data)
        except OSError:
            self.ended = True

    def number(self, kind, channel, number):
        self.send(kind, channel, 0, struct.pack("<I", number))

    def frame(self):
        """(kind, channel, stream, payload), or None at the end."""
        found, self.bytes = take_frame(self.sock, self.bytes)
        return found

    def until(self, kind):
        """The next frame of that kind."""
        while True:
            frame = self.frame()
            if frame is None:
                self.t.fail(f"vm-drive ended while {kind} was waited for: {self.finish()}")
            if frame[0] == kind:
                return frame

    def started(self):
        """(kind, channel) of the next thing that is started."""
        _, channel, _, payload = self.until("START")
        return struct.unpack("<I", payload[:4])[0], channel

    def take_tree(self, disk=None):
        """Takes a tree as the real guest does; returns its bytes. disk: a file that the other side
        has as the device."""
        kind, channel = self.started()
        self.t.equal(kind, TREE_IN, "a tree comes first")
        data, stream, owed = b"", b"", 0
        while True:
            got, _, _, payload = self.frame()
            if got == "EOF":
                self.t.equal(stream, b"", "what is left of the announcements")
                self.number("EXIT", channel, 0)
                return data
            if got == "DATA":
                stream, owed = stream + payload, owed + len(payload)
                while len(stream) >= 8:
                    place, n = struct.unpack("<II", stream[:8])
                    if place == INLINE and len(stream) < 8 + n:
                        break
                    if place == INLINE:
                        data, stream = data + stream[8:8 + n], stream[8 + n:]
                        continue
                    disk.seek(place * SLOT_BYTES)
                    data, stream = data + disk.read(n), stream[8:]
                    self.send("DATA", channel, 1, b"\0")	# the slot is free
                if owed > WINDOW // 4:
                    self.number("WINDOW", channel, owed)
                    owed = 0

    def end_command(self, status=0):
        """The command ends, and everything with it."""
        kind, channel = self.started()
        self.t.equal(kind, RUN, "the command")
        self.number("EXIT", channel, status)
        self.until("QUIESCE")
        self.send("QUIET")

    def give_tree(self, data, status=0):
        self.give_pieces(pieces(data), status)

    def give_pieces(self, data, status=0, answers=0):
        """Announcements; this many slots are waited for."""
        kind, channel = self.started()
        self.t.equal(kind, TREE_OUT, "what changed is asked for")
        for at in range(0, len(data), 32768):
            self.send("DATA", channel, 1, data[at:at + 32768])
        while answers > 0:
            answers -= len(self.until("DATA")[3])
        self.number("EXIT", channel, status)

    def finish(self, timeout=30):
        return self.t.finish(self.process, self.argv, timeout=timeout)

    def memory(self):
        """KiB of memory of their own that vm-drive, its server and whoever copies have."""
        return sum(private_kib(pid) for pid in family(self.process.pid))


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(p) for p in f.read().split()]


def family(pid):
    return [pid, *(p for child in children(pid) for p in family(child))]


def private_kib(pid):
    with users.as_root() if users.IS_ROOT else open(os.devnull):
        with open(f"/proc/{pid}/smaps_rollup") as f:
            return sum(int(line.split()[1]) for line in f if line.startswith("Private_"))


class RealGuest:
    """A Debian kernel under emulation with ward-vm-init and busybox as its root; one boot, many
    commands."""

    def __init__(self, t):
        work = os.path.join(t.cache, "vm-rig")
        image = os.path.join(t.cache, "vm-root.erofs")
        with t.root(), open(os.path.join(t.cache, "vm.lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)	# several tests run at one time
            if not os.path.exists(image):
                make_image(image)
            prepare_rig(work)
        self.t = t
        rig = t.fresh_dir("rig")
        os.mkdir(f"{rig}/root")
        os.symlink(f"{work}/vmlinux", f"{rig}/vmlinux")
        shutil.copytree(f"{work}/modules", f"{rig}/root/modules")
        init = shutil.copy(os.path.join(t.cache, "vm-init"), rig)
        self.port, self.first = f"{rig}/port", True
        self.console = open(f"{rig}/console", "w")
        self.disk = f"{rig}/disk"
        with open(self.disk, "wb") as f:
            f.truncate(SLOTS * SLOT_BYTES)
        t.popen([os.path.join(t.cache, "vm_boot.sh"), init, self.port, image, self.disk],
                stdout=self.console, stderr=self.console,
                env={"WARD_VM_WORK": rig, "WARD_VM_WORDS": "ward.root=/dev/vda ward.disk=/dev/vdb"})
        for _ in range(300):
            if os.path.exists(self.port):
                break
            time.sleep(0.1)

    def argv(self, *options, command):
        more = () if self.first else ("--restored",)
        self.first = False
        return [driver(self.t), self.port, *more, "--uid", "1000", "--disk", self.disk, *options,
                "--", *command]

    def run(self, *options, command, **more):
        return self.t.run(*self.argv(*options, command=command), timeout=60, env={"PATH": "/bin"},
                          cwd="/", **more)


def prepare_rig(work):
    """The kernel, its modules, the init and the script that boots them, once for all tests."""
    cache = os.path.dirname(work)
    if os.path.exists(work):
        return
    kept = os.path.join(host.BUILD, "vm-rig")
    part = work + ".part"
    os.makedirs(kept, exist_ok=True)
    if not os.path.exists(f"{kept}/vmlinux"):
        subprocess.run([f"{TOP}/tools/vm_boot.sh", "--fetch"],
                       env={**os.environ, "WARD_VM_WORK": kept}, check=True,
                       stdout=subprocess.DEVNULL, **users.whole())
    os.makedirs(part, exist_ok=True)
    shutil.copy(f"{kept}/vmlinux", part)
    shutil.copytree(f"{kept}/root/modules", f"{part}/modules", dirs_exist_ok=True)
    shutil.copy(f"{TOP}/tools/vm_boot.sh", cache)
    shutil.copy(os.path.join(host.BUILD, "src/vm/ward-vm-init"), f"{cache}/vm-init")
    subprocess.run(["chmod", "-R", "a+rX", part, f"{cache}/vm_boot.sh", f"{cache}/vm-init"],
                   check=True)
    os.rename(part, work)


def make_image(image):
    """busybox under all its names."""
    tree = image + ".tree"
    shutil.rmtree(tree, ignore_errors=True)
    for name in ("bin", "etc", "tmp", "proc", "sys", "dev", "run", "usr"):
        os.makedirs(f"{tree}/{name}")
    busybox = shutil.which("busybox")
    shutil.copy(busybox, f"{tree}/bin/busybox")
    for applet in subprocess.run([busybox, "--list"], stdout=subprocess.PIPE, text=True,
                                 check=True).stdout.split():
        if applet != "busybox":
            os.symlink("busybox", f"{tree}/bin/{applet}")
    with open(f"{tree}/etc/passwd", "w") as f:
        f.write("root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/:/bin/sh\n")
    subprocess.run(["mkfs.erofs", "--quiet", "-zlz4hc", image + ".part", tree], check=True,
                   stdout=subprocess.DEVNULL)
    os.chmod(image + ".part", 0o644)
    os.rename(image + ".part", image)
    shutil.rmtree(tree)
