"""ward run --hints: what is refused is told on standard error: once, briefly, harmlessly, and at
the right time."""
import json
import os
import re

from harness.world import World, policy

HINT = re.compile(r"^ward: hint( \d+)?: [\x20-\x7e]*$")


def hints(text):
    lines = [line for line in text.splitlines() if line.startswith("ward: hint")]
    assert all(HINT.match(line) for line in lines), lines
    return lines


def test_what_is_refused_is_told(t):
    ws = t.workspace()
    r = t.ward("run", "--hints", "--", "/bin/sh", "-c", "unshare -U true; unshare -U true; exit 0",
               cwd=ws)
    t.equal(r.rc, 0, r.err)
    run = json.loads(t.ward("audit", "ls", "--json").out)[0]["run"]
    lines = hints(r.err)
    t.equal(len(lines), 3, r.err)	# once, however often it happened
    t.contains(lines[0], f"ward explain {run}")
    t.contains(lines[1], "system call unshare by /usr/bin/unshare was refused")
    t.contains(lines[2], "a person can allow it: ward policy add process.nesting true")
    t.equal(hints(t.ward("run", "--", "/bin/sh", "-c", "unshare -U true", cwd=ws).err), [])
    t.equal(t.ward("run", "--hints", "--", "true", cwd=ws).err, "")


def test_files_outside_the_view(t):
    """Only observed, so only told when the command failed; ward explain has them in any case, and
    its command shows the file."""
    ws = t.workspace()
    other = t.fresh_dir("other")
    t.write(other, {"wanted": "CONTENT\n"})
    wanted = os.path.join(other, "wanted")
    r = t.ward("run", "--hints", "--", "/bin/cat", wanted, cwd=ws)
    t.equal(r.rc, 1)
    t.contains("\n".join(hints(r.err)), f"ward policy add filesystem.host_mounts {wanted}")
    found = [d for d in json.loads(t.ward("explain", "--json", cwd=ws).out)["denials"]
             if d["what"] == f"file {wanted}"]
    t.equal(found[0]["kind"], "file.missing")
    t.equal(t.ward("policy", "add", "--from-event", str(found[0]["event"]), "--yes", cwd=ws).rc, 0)
    r = t.ward("run", "-p", "ward.yaml", "--", "/bin/cat", wanted, cwd=ws)
    t.equal((r.rc, r.out), (0, "CONTENT\n"), r.err)
    r = t.ward("run", "--hints", "--", "/bin/sh", "-c",
               f"cat {wanted}x {os.path.dirname(other)}/nothing; true", cwd=ws)
    t.equal(hints(r.err), [])	# the host has them neither


def test_links_say_nothing_about_the_host(t):
    """A link that the sandbox makes is followed as it sees it itself: what is told is a name it
    could have spelled, never where the host's own links lead, and nothing of /proc."""
    ws, other = t.workspace(), t.fresh_dir("other")
    os.mkdir(os.path.join(other, "UNSPOKEN-CUSTOMER-NAME"))
    t.write(other, {"UNSPOKEN-CUSTOMER-NAME/wanted": "CONTENT\n"})
    os.symlink("UNSPOKEN-CUSTOMER-NAME", os.path.join(other, "project"))
    os.symlink("/proc/self", os.path.join(other, "kernel"))
    script = (f"ln -s {other} way; ln -s {other}/project/wanted file; ln -s {other}/kernel k; cat "
              f"way/project file k/status way/kernel/status {other}/kernel/status way/nothing")
    r = t.ward("run", "--hints", "--", "/bin/sh", "-c", script, cwd=ws)
    t.equal(r.rc, 1, r.err)
    told = {d["what"] for d in json.loads(t.ward("explain", "--json", cwd=ws).out)["denials"]
            if d["kind"] == "file.missing"}
    t.check({f"file {other}/project", f"file {other}/project/wanted"} <= told, told)
    t.check(not [w for w in told if "kernel" in w or "nothing" in w or "/way" in w], told)
    t.check("UNSPOKEN" not in r.err + r.out, r.err)
    t.check("UNSPOKEN" not in t.ward("audit", "show", cwd=ws).out, "in the journal")


def test_no_half_of_a_command(t):
    ws = t.workspace()
    deep = os.path.join(t.fresh_dir("deep"), *["d" * 200] * 3)
    os.makedirs(deep)
    t.write(deep, {"wanted": "x"})
    r = t.ward("run", "--hints", "--", "/bin/sh", "-c", f"cat /etc/locale.alias; cat {deep}/wanted",
               cwd=ws)
    t.equal(r.rc, 1)
    text = "\n".join(hints(r.err))
    t.check("too long for this line: ward explain " in text and "ward policy add" not in text, text)
    t.check("file /etc/locale.alias" not in text, text)


def test_no_network(t):
    ws = t.workspace()
    script = ("import socket\ns = socket.socket()\ntry: s.connect(('192.0.2.77', 8080))\nexcept "
              "OSError: pass\ntry: socket.getaddrinfo('name.example', 80)\nexcept OSError: pass\n")
    r = t.ward("run", "--hints", "--", "/usr/bin/python3", "-c", script, cwd=ws)
    t.equal(r.rc, 0, r.err)
    text = "\n".join(hints(r.err))
    t.contains(text, "connection to 192.0.2.77:8080 was refused: the policy grants no network (net "
               "namespace")
    t.contains(text, "ward policy add network.egress_allowlist 192.0.2.77:8080 network.mode "
               "restricted")
    t.contains(text, "names do not resolve")


def test_the_gateway(t):
    world = World(t)
    ws = t.workspace()
    script = ("import socket\ntry: socket.create_connection(('evil.test', 443), 5)\n"
              "except OSError: pass\n")
    r = world.ward("run", "--hints", "-p", policy(t, ["web.test"]), "--", "/usr/bin/python3", "-c",
                   script, cwd=ws, timeout=60)
    t.equal(r.rc, 0, r.err)
    t.contains("\n".join(hints(r.err)), "network.egress_allowlist evil.test")


def test_there_are_few_and_they_are_harmless(t):
    """Whatever happens inside: ten, each a line of its own, none that acts."""
    ws = t.workspace()
    script = ("import os, socket\n"
              "for i in range(40):\n"
              "    try: socket.socket().connect(('192.0.2.%d' % (i + 1), 80))\n"
              "    except OSError: pass\n"
              "try: os.stat('/etc/x\\n\\033[2Jward: hint 1: all is well')\n"
              "except OSError: pass\n"
              "raise SystemExit(3)\n")
    r = t.ward("run", "--hints", "--", "/usr/bin/python3", "-c", script, cwd=ws)
    t.equal(r.rc, 3)
    lines = hints(r.err)
    t.equal(len({line.split(":")[1] for line in lines if re.match(r"ward: hint \d", line)
                 and "refused: the policy" in line}), 10)
    t.contains(lines[-1], "more was refused: ward explain")
    t.check(len(r.err) < 16384 and "\033" not in r.err, r.err)


def test_nobody_waits_for_a_reader(t):
    """Standard error that nobody reads, or that is closed, holds nothing up."""
    ws = t.workspace()
    loop = "unshare -U true 2>/dev/null; echo DONE"
    r = t.ward("run", "--hints", "--", "/bin/sh", "-c", loop, cwd=ws,
               wrap=["sh", "-c", 'exec "$@" 2>&-', "sh"])
    t.equal((r.rc, r.out), (0, "DONE\n"), r.err)
    read, write = os.pipe()
    t.defer(os.close, read)
    os.set_blocking(write, False)
    try:
        while True:
            os.write(write, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(write, True)
    process = t.ward_start("run", "--hints", "--", "/bin/sh", "-c", f"({loop}) > done", cwd=ws,
                           stderr=write)
    os.close(write)
    t.wait_until(lambda: t.read(ws, "done") == "DONE\n", 10,
                 "the sandbox waits for whoever reads its hints")
    text = b""
    while chunk := os.read(read, 65536):
        text += chunk
    t.equal(process.wait(10), 0)
    t.contains(text.decode().lstrip("x"), "ward: hint 1: a person")


def test_a_terminal_is_left_alone_until_the_end(t):
    ws = t.workspace()
    r = t.ward_tty("run", "--hints", "--", "/bin/sh", "-c",
                   "unshare -U true; sleep 0.1; echo LAST WORDS", cwd=ws)
    t.check(r.out.index("LAST WORDS") < r.out.index("ward: hint 1"), r.out)
