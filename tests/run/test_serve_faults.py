"""ward serve where the machine does not behave: a registry that is locked, a clock that is set,
descriptors that are used up."""
import os
import shutil
import signal
import socket
import sqlite3
import struct
import time

from harness import context, native_only
from harness.serve import Box, Server, messages

# the calendar's clock, with the seconds of a file on top
CLOCK = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile long *shift;
__attribute__((constructor)) static void open_shift(void)
{
	int fd = open(getenv("CLOCK_SHIFT"), O_RDONLY);
	void *at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (at != MAP_FAILED)
		shift = at;
}
int clock_gettime(clockid_t id, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, id, ret);
	if (id == CLOCK_REALTIME && shift)
		ret->tv_sec += *shift;
	return r;
}
"""


def test_serve_locked_registry(t):
    """While another process has it, nothing is created, nobody else waits, and what changed is
    written afterwards."""
    s = Server(t)
    box = s.create()
    c, r = box.start("/bin/cat")
    events = messages(r)
    pid = next(events)["event"]["start"]["pid"]
    db = sqlite3.connect(os.path.join(s.state, "registry.db"), isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")
    begin = time.monotonic()
    r = s.ask("POST", "/v2/sandboxes", {"templateID": "base"})
    t.equal((r.status, "registry" in r.json["message"]), (503, True))
    t.equal(s.ask("GET", "/v2/sandboxes").status, 200)
    # paused, although that cannot be written yet
    t.equal(s.ask("POST", f"/sandboxes/{box.id}/pause", {}).status, 204)
    t.equal(time.monotonic() - begin < 4, True)
    db.execute("ROLLBACK")
    s.wait_log("registry_written_again")
    db.close()
    s.process.send_signal(signal.SIGKILL)
    s.process.wait(20)
    s.start()
    t.equal(s.ask("GET", f"/sandboxes/{box.id}").json["state"], "paused")
    t.equal(s.ask("POST", f"/v2/sandboxes/{box.id}/connect", {}).status, 201)
    t.equal(box.sh(f"kill -0 {pid} && echo lives")[1], "lives\n")
    t.equal(s.create().sh("echo new")[1], "new\n")
    c.close()


@native_only("a library in front of wardd's own, which a sanitizer does not allow")
def test_serve_clock_is_set(t):
    """A calendar that is set forward ends no sandbox, and one that is set back keeps none."""
    if not shutil.which("cc"):
        raise context.Skipped("no C compiler")
    place = t.fresh_dir("clock")
    t.write(place, {"clock.c": CLOCK, "shift": "\0" * 4096})
    t.run("cc", "-shared", "-fPIC", "-o", "clock.so", "clock.c", cwd=place, check=True)

    def set_clock(seconds):
        with open(os.path.join(place, "shift"), "r+b") as f:
            f.write(struct.pack("q", seconds))

    s = Server(t, env={"LD_PRELOAD": os.path.join(place, "clock.so"),
                       "CLOCK_SHIFT": os.path.join(place, "shift")})
    box, short = s.create(timeout=60), s.create(timeout=4)
    before = s.ask("GET", f"/sandboxes/{box.id}").json["endAt"]
    set_clock(7200)
    s.wait_log("clock_was_set")
    t.equal(box.sh("echo alive")[1], "alive\n")
    t.equal(s.ask("GET", f"/sandboxes/{box.id}").json["endAt"] > before, True)
    set_clock(-7200)
    t.wait_until(lambda: s.log().count("clock_was_set") == 2, 20)
    t.equal(s.ask("GET", f"/sandboxes/{box.id}").json["endAt"] < before, True)
    t.wait_until(lambda: s.ask("GET", f"/sandboxes/{short.id}").status == 404, 20)
    t.equal(box.sh("echo alive")[1], "alive\n")


def test_serve_without_descriptors(t):
    """Clients that ask nothing give way; a sandbox is still made."""
    s = Server(t, before=("prlimit", "--nofile=80:80"))
    held = []
    for n in range(200):
        held.append(socket.create_connection(("127.0.0.1", s.port), timeout=30))
        if n % 50 == 49:
            t.equal(s.ask("GET", "/v2/sandboxes").status, 200)
    made = [s.create() for _ in range(3)]
    t.equal(made[-1].sh("echo here")[1], "here\n")
    c, r = made[0].start("/bin/cat")
    refused = None
    while not refused:
        r = s.ask("POST", "/v2/sandboxes", {"templateID": "base"})
        refused = r if r.status != 201 else None
        t.check(len(made) < 20, "no create is refused")
        made.append(made[-1] if refused else Box(s, r.json))
    t.equal((refused.status, "descriptors" in refused.json["message"]), (503, True))
    t.equal(made[-1].sh("echo here")[1], "here\n")
    c.close()
    for c in held:
        c.close()
