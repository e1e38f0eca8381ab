"""ward-vm's side of the guest's port beside guests that lie, flood, stall and send back what they
must not."""
import os
import struct
import time

from harness import host, vm


def check_memory(t, g):
    """No more than a window for each stream and what a program takes anyhow; AddressSanitizer takes
    more."""
    kib = g.memory()
    t.check(kib < (100000 if host.missing("plain") else 3000), f"{kib} KiB")


def lie(t, words, speak, command=("sleep", "1000")):
    """speak(guest, channel) once the command was started: the session ends with an error that has
    these words."""
    g = vm.FakeGuest(t, command=command)
    kind, channel = g.started()
    t.equal(kind, vm.RUN, "what is started")
    speak(g, channel)
    r = g.finish()
    t.equal(r.rc, 125, f"{words}: {r}")
    t.check(words in r.err, f"{words} is said: {r}")


def test_lies(t):
    lie(t, "invalid frame", lambda g, c: g.raw(b"\0" * 12))
    lie(t, "invalid frame", lambda g, c: g.raw(struct.pack("<HBBII", 0x5657, 6, 1, c, 0xffffffff)))
    lie(t, "not open", lambda g, c: g.send("DATA", c + 1, 1, b"x"))
    lie(t, "after the end", lambda g, c: (g.send("EOF", c, 1), g.send("DATA", c, 1, b"x")))
    lie(t, "more than a window", lambda g, c: g.number("WINDOW", c, 0xffffffff))
    lie(t, "unsolicited", lambda g, c: g.send("QUIET"))
    lie(t, "unsolicited", lambda g, c: g.send("ECHO", payload=b"ECHO"))
    lie(t, "ended before", lambda g, c: g.sock.close())
    g = vm.FakeGuest(t, command=("true",))
    _, channel = g.started()
    g.number("EXIT", channel, 0)
    g.number("EXIT", channel, 0)
    r = g.finish()
    t.equal(r.rc, 125, f"an end that is told twice: {r}")


def test_flood(t):
    read_fd, write_fd = os.pipe()
    g = vm.FakeGuest(t, command=("yes",), stdout=write_fd)
    os.close(write_fd)
    _, channel = g.started()
    for _ in range(8):	# more than a window and the pipe, which nobody reads
        g.send("DATA", channel, 1, b"y" * 32768)
    r = g.finish()
    t.equal(r.rc, 125, f"a flood without credit: {r}")
    t.check("credit" in r.err, f"it is said: {r}")
    os.close(read_fd)


def test_nobody_reads_outside(t):
    """A party that does not read stops the guest; memory stays within a window."""
    read_fd, write_fd = os.pipe()
    g = vm.FakeGuest(t, command=("yes",), stdout=write_fd)
    os.close(write_fd)
    _, channel = g.started()
    credit, sent = vm.WINDOW, 0
    g.sock.settimeout(2)
    try:
        while True:
            while credit:
                n = min(credit, 32768)
                g.send("DATA", channel, 1, b"y" * n)
                credit, sent = credit - n, sent + n
            kind, _, _, payload = g.frame()
            if kind == "WINDOW":
                credit += struct.unpack("<I", payload)[0]
    except TimeoutError:
        pass
    t.check(vm.WINDOW <= sent <= vm.WINDOW + 65536 + 32768,
            f"{sent} bytes went out though nobody reads")
    check_memory(t, g)
    g.sock.settimeout(30)
    got = 0
    while got < sent:
        got += len(os.read(read_fd, 65536))
    os.close(read_fd)	# and now nobody ever will
    for _ in range(2):
        g.send("DATA", channel, 1, b"y" * 1000)
    g.until("BROKEN")
    g.number("EXIT", channel, 13)
    g.until("QUIESCE")
    g.send("QUIET")
    t.equal(g.finish().rc, -13, "the end of a command that wrote to nobody")


def with_a_full_pipe(t):
    """A machine with a tree and two commands, of which the second writes more into a pipe than
    anybody reads."""
    ws = t.workspace({"file": "ORIGINAL\n"})
    socket_path = os.path.join(t.fresh_dir("sock"), "s")
    g = vm.FakeGuest(t, "--tree", ws, "--exec-socket", socket_path)
    g.take_tree()
    _, first = g.started()
    read_fd, write_fd = os.pipe()
    ask = [vm.driver(t), "exec", socket_path, "--", "yes"]
    other = t.popen(ask, stdout=write_fd)
    os.close(write_fd)
    _, channel = g.started()
    for _ in range(4):
        g.send("DATA", channel, 1, b"y" * 32768)
    return ws, g, first, channel, ask, other, read_fd


def test_another_does_not_read(t):
    """One more command whose output nobody reads does not keep the machine from ending, nor files
    from coming back."""
    ws, g, first, channel, ask, other, read_fd = with_a_full_pipe(t)
    _, seen, _, payload = g.until("WINDOW")	# the pipe is full
    g.send("DATA", channel, 1, b"y" * min(32768, struct.unpack("<I", payload)[0]))
    g.number("EXIT", first, 0)
    g.until("QUIESCE")
    t.equal((seen, g.until("BROKEN")[1]), (channel, channel), "what is not waited for")
    g.number("EXIT", channel, 9)
    g.send("QUIET")
    g.give_tree(vm.file_record("file", b"CHANGED\n") + vm.record(vm.END, ""))
    r = g.finish()
    t.equal((r.rc, r.err, t.read(ws, "file")), (0, "", "CHANGED\n"), f"{r}")
    t.equal(t.finish(other, ask, timeout=30).rc, -9, "the end of the other")
    os.close(read_fd)


def pending(pid, number):
    """Whether a signal waits for a process to take it."""
    with open(f"/proc/{pid}/status") as f:
        rows = dict(line.split(":\t", 1) for line in f)
    return bool((int(rows["SigPnd"], 16) | int(rows["ShdPnd"], 16)) >> (number - 1) & 1)


def test_hang_up_of_another(t):
    """A hang-up for one more command that has just ended, with output that waits, is not one for
    the machine: it goes on, and its files come back."""
    ws, g, first, channel, ask, other, read_fd = with_a_full_pipe(t)
    g.until("WINDOW")	# the pipe is full, and more waits
    g.number("EXIT", channel, 0)
    for number in (1, 15):
        other.send_signal(number)
        # noqa: B023
        t.wait_until(lambda: other.poll() is not None or not pending(other.pid, number), 10,
                     "the signal is passed on")
    third = t.popen([*ask[:-1], "true"])
    _, seen = g.started()	# what came before is heard by now
    g.number("EXIT", seen, 3 << 8)
    t.equal(t.finish(third, ask, timeout=30).rc, 3, "a third command")
    while os.read(read_fd, 65536):
        pass
    t.equal(t.finish(other, ask, timeout=30).rc, 0, "the end of the other")
    g.number("EXIT", first, 0)
    g.until("QUIESCE")
    g.send("QUIET")
    g.give_tree(vm.file_record("file", b"CHANGED\n") + vm.record(vm.END, ""))
    r = g.finish()
    t.equal((r.rc, r.err, t.read(ws, "file")), (0, "", "CHANGED\n"), f"{r}")
    os.close(read_fd)


def test_socket_of_another(t):
    """A name that is taken is not taken away from whoever has it."""
    socket_path = os.path.join(t.fresh_dir("sock"), "s")
    with open(socket_path, "w") as f:
        f.write("ANOTHER'S\n")
    r = vm.FakeGuest(t, "--exec-socket", socket_path).finish()
    t.check(r.rc == 125 and "making the socket" in r.err and t.read(socket_path) == "ANOTHER'S\n",
            f"{r}")


def test_signals_of_the_end(t):
    """The guest says which signal ended the command, or what is no end at all; none of them stops
    whoever ends like it."""
    for number, expected in ((15, -15), (11, -11), (19, 147), (20, 148), (17, 145), (28, 156),
                             (125 << 8, 125), (0x137f, 255), (0xffff, 255), (0xffffffff, 255),
                             (64, -64), (0x80 | 11, -11)):
        g = vm.FakeGuest(t)
        g.end_command(number)
        t.equal(g.finish().rc, expected, f"signal {number}")


def test_guest_does_not_read(t):
    """A guest that takes nothing is sent a window of each stream, and no memory is lost to it."""
    with open("/dev/zero", "rb") as zero:
        g = vm.FakeGuest(t, command=("cat",), stdin=zero)
        g.started()
        for number in (1, 10, 15, 12) * 50:	# signals that cannot be delivered
            g.process.send_signal(number)
        time.sleep(1)
        check_memory(t, g)
        data = 0
        try:
            while True:
                g.sock.settimeout(30 if data < vm.WINDOW else 1)
                kind, _, _, payload = g.frame()
                data += len(payload) if kind == "DATA" else 0
        except TimeoutError:
            pass
        t.equal(data, vm.WINDOW, "bytes that were sent without credit")
        g.sock.close()
        t.equal(g.finish().rc, 125, "its end")


def back(t, records, status=0):
    """A workspace whose guest sends these records back; (result, workspace)."""
    ws = t.workspace({"file": "ORIGINAL\n", "dir/inner": "x\n"})
    g = vm.FakeGuest(t, "--tree", ws)
    t.check(b"ORIGINAL" in g.take_tree(), "the tree that came")
    g.end_command(status)
    g.give_tree(b"".join(records(ws)) + vm.record(vm.END, ""))
    return g.finish(), ws


def test_files_come_back(t):
    r, ws = back(t, lambda ws: [vm.record(vm.GONE, "dir/inner"), vm.record(vm.GONE, "dir"),
                                vm.file_record("file", b"CHANGED\n", 0o6755),
                                vm.record(vm.DIR, "new", mode=0o555),
                                vm.file_record("new/deep", b"n" * 100000),
                                vm.record(vm.DIR_END, "new", mode=0o555),
                                vm.record(vm.LINK, "link", 3, more=b"new")])
    t.equal((r.rc, r.err), (0, ""), "a copy back")
    t.equal(t.read(ws, "file"), "CHANGED\n", "a file")
    t.equal(os.stat(f"{ws}/file").st_mode & 0o7777, 0o755, "its mode: permissions and no more")
    t.equal(os.stat(f"{ws}/file").st_mtime_ns, 1600000000000000005, "its time")
    t.equal((t.read(ws, "new/deep"), os.stat(f"{ws}/new").st_mode & 0o777), ("n" * 100000, 0o555),
            "a new directory")
    t.equal(os.readlink(f"{ws}/link"), "new", "a link")
    t.check(not os.path.exists(f"{ws}/dir"), "what is gone")
    t.equal(sorted(os.listdir(ws)), ["file", "link", "new"], "and nothing else")
    os.chmod(f"{ws}/new", 0o755)


def with_disk(t, announce, content=b"", answers=0):
    """A workspace whose guest announces these pieces, with this on the device; (result,
    workspace)."""
    ws = t.workspace({"file": "ORIGINAL\n", "large": "L" * 1500000})
    path = os.path.join(t.fresh_dir("disk"), "disk")
    with open(path, "wb") as f:
        f.truncate(vm.SLOTS * vm.SLOT_BYTES)
    os.chmod(path, 0o666)
    with open(path, "r+b", buffering=0) as disk:
        g = vm.FakeGuest(t, "--tree", ws, "--disk", path)
        t.equal(g.take_tree(disk).count(b"L" * 60000), 22, "the tree that came over the device")
        g.end_command()
        disk.seek(0)
        disk.write(content)
        g.give_pieces(b"".join(struct.pack("<II", *piece) for piece in announce), answers=answers)
        r = g.finish()
        t.equal(os.stat(path).st_size, vm.SLOTS * vm.SLOT_BYTES, "the device does not grow")
    return r, ws


def test_over_the_device(t):
    """Trees over the block device, both ways; and what a guest may not announce."""
    records = vm.file_record("file", b"C" * 1000000) + vm.record(vm.END, "")
    whole = [(i % vm.SLOTS, min(vm.SLOT_BYTES, len(records) - i * vm.SLOT_BYTES))
             for i in range(-(-len(records) // vm.SLOT_BYTES))]
    r, ws = with_disk(t, whole, records, answers=len(whole))
    t.check((r.rc, r.err) == (0, "") and t.read(ws, "file") == "C" * 1000000, f"{r}")
    lies = [[(1, 10)], [(0, 10), (0, 10)], [(vm.SLOTS, 10)], [(0xfffffffe, 10)], [(0, 0)],
            [(0, vm.SLOT_BYTES + 1)], [(0, 0xffffffff)], [(vm.INLINE, 32769)], [(vm.INLINE, 0)]]
    for lie in lies:
        r, ws = with_disk(t, lie, records)
        t.check(r.rc == 125 and t.read(ws, "file") == "ORIGINAL\n", f"{lie}: {r}")
    r, ws = with_disk(t, whole[:2], records, answers=2)
    t.check(r.rc == 125 and "stopped during the copy" in r.err
            and t.read(ws, "file") == "ORIGINAL\n", f"cut off: {r}")
    ws = t.workspace({"file": "ORIGINAL\n"})
    g = vm.FakeGuest(t, "--tree", ws)
    g.take_tree()
    g.end_command()
    g.give_pieces(struct.pack("<II", 0, 100))
    r = g.finish()
    t.check(r.rc == 125 and "malformed data" in r.err, f"a slot of a device that is not there: {r}")


def test_announcements_without_end(t):
    """A guest that announces one slot after the other, without end: nobody's memory grows."""
    ws = t.workspace({"file": "ORIGINAL\n"})
    path = os.path.join(t.fresh_dir("disk"), "disk")
    with open(path, "wb") as f:
        f.truncate(vm.SLOTS * vm.SLOT_BYTES)
    os.chmod(path, 0o666)
    g = vm.FakeGuest(t, "--tree", ws, "--disk", path)
    g.take_tree()
    g.end_command()
    _, channel = g.started()
    head = vm.record(vm.FILE, "endless", 1 << 61)
    at, slots = 0, []
    with open(path, "r+b", buffering=0) as disk:
        g.send("DATA", channel, 1, vm.pieces(head))
        for i in range(200):	# 50 MB of one file
            body = struct.pack("<QII", at, 65536, 0) + bytes(65536)
            disk.seek(i % vm.SLOTS * vm.SLOT_BYTES)
            disk.write(body)
            at += 65536
            g.send("DATA", channel, 1, struct.pack("<II", i % vm.SLOTS, len(body)))
            answered = g.until("DATA")
            slots.append(answered[1])
    t.equal(set(slots), {channel}, "an answer for each")
    check_memory(t, g)
    g.sock.close()
    r = g.finish()
    t.equal((r.rc, sorted(os.listdir(ws))), (125, ["file"]), f"{r}")


def test_nothing_leaves_the_tree(t):
    outside = t.fresh_dir("outside")
    t.write(outside, {"victim": "SAFE\n"})
    for name in ("../victim", "/tmp/VICTIM-OF-A-GUEST", "a/../../victim", "dir//x"):
        r, ws = back(t, lambda ws, name=name: [vm.file_record(name, b"EVIL\n")])
        t.equal(r.rc, 125, f"{name}: {r}")
        t.check("malformed data" in r.err, f"{name}: {r}")
    r, ws = back(t, lambda ws: [vm.record(vm.LINK, "way", len(outside), more=outside.encode()),
                                vm.file_record("way/victim", b"EVIL\n"),
                                vm.record(vm.GONE, "way/victim"),
                                vm.record(vm.DIR_END, "way", mode=0o777),
                                vm.record(vm.DIR, "way/sub"),
                                vm.record(vm.LINK, "way/link", 1, more=b"x"),
                                vm.file_record("fine", b"FINE\n")])
    t.equal(r.rc, 125, f"files that not copied back, and a command that went well: {r}")
    t.equal(r.err.count("not copied back"), 5, f"a line for each: {r}")
    t.equal((t.read(outside, "victim"), os.listdir(outside)), ("SAFE\n", ["victim"]),
            "what is outside")
    t.equal(t.read(ws, "fine"), "FINE\n", "the rest came back")
    r, ws = back(t, lambda ws: [vm.file_record("way/x", b"x")], status=7 << 8)
    t.equal(r.rc, 7, f"the command's own failure stays: {r}")


def test_terminal_escapes_in_names(t):
    r, _ = back(t, lambda ws: [vm.record(vm.ERROR, "a\x1b[2Jb\nward: FORGED", code=5)])
    t.check("\x1b" not in r.err and "\nward: FORGED" not in r.err and r.rc == 125, f"{r}")


def has_nameless(directory):
    """Whether its file system has files without a name."""
    try:
        os.close(os.open(directory, os.O_TMPFILE | os.O_WRONLY, 0o600))
    except OSError:
        return False
    return True


def test_tree_that_is_gone(t):
    """One tree was removed outside meanwhile: that is said, and the others come back."""
    trees = [t.workspace({"file": "ORIGINAL\n"}) for _ in range(3)]
    for gone, expected in enumerate([["ORIGINAL\n", "NEW0\n", "NEW0\n"],
                                     ["NEW1\n", "NEW0\n", "NEW1\n"]]):
        g = vm.FakeGuest(t, *(word for tree in trees for word in ("--tree", tree)))
        g.take_tree()
        os.rename(trees[gone], trees[gone] + ".away")
        g.end_command()
        g.give_tree(b"".join(vm.file_record("file", b"NEW%d\n" % gone)
                             + vm.record(vm.DIR_END, "", mode=0o755) + vm.record(vm.END, "")
                             for _ in trees))
        r = g.finish()
        os.rename(trees[gone] + ".away", trees[gone])
        t.check(r.rc == 125 and f"{trees[gone]}/file: No such file" in r.err
                and "malformed data" not in r.err, f"{r}")
        t.equal([t.read(tree, "file") for tree in trees], expected, f"{r}")


def test_cut_off_in_the_middle(t):
    ws = t.workspace({"file": "ORIGINAL\n"})
    g = vm.FakeGuest(t, "--tree", ws)
    g.take_tree()
    g.end_command()
    _, channel = g.started()
    g.send("DATA", channel, 1, vm.pieces(vm.file_record("file", b"HALF" * 1000))[:2000])
    time.sleep(0.2)
    if has_nameless(ws):
        t.equal(os.listdir(ws), ["file"], "a kill at this moment would leave nothing")
    g.sock.close()
    r = g.finish()
    t.equal(r.rc, 125, f"{r}")
    t.equal((t.read(ws, "file"), os.listdir(ws)), ("ORIGINAL\n", ["file"]),
            "an old file or a new one, never half")


def test_protected_places(t):
    ws = t.workspace({"closed/file": "KEPT\n"})
    with t.root():
        os.chown(f"{ws}/closed", 0, 0)
        os.chmod(f"{ws}/closed", 0o555)
    if t.as_user == "root":
        t.run("chattr", "+i", f"{ws}/closed", check=True)
        t.defer(lambda: t.run("chattr", "-i", f"{ws}/closed", check=True))
    g = vm.FakeGuest(t, "--tree", ws)
    g.take_tree()
    g.end_command()
    g.give_tree(vm.file_record("closed/file", b"EVIL\n") + vm.file_record("open", b"OPEN\n")
                + vm.record(vm.END, ""))
    r = g.finish()
    t.equal(r.rc, 125, f"{r}")
    t.check("closed/file: it is protected" in r.err, f"it is said: {r}")
    t.equal((t.read(ws, "closed/file"), t.read(ws, "open")), ("KEPT\n", "OPEN\n"), "what is there")
