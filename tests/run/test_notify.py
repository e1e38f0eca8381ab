"""ward run --notify: notify-send is started at the end, at a limit and at a burst of denials; never
one that the sandbox could have written, and never so that the run waits for it."""
import json
import os
import signal
import time

STAND_IN = """#!/usr/bin/python3
import json, os, sys
line = json.dumps({"argv": sys.argv[1:], "uid": os.getuid(), "session": os.getsid(0) == os.getppid()
                   or os.getsid(0) != int(os.environ["TEST_SESSION"]),
                   "fds": sorted(int(n) for n in os.listdir("/proc/self/fd"))[:-1],
                   "bus": os.environ.get("DBUS_SESSION_BUS_ADDRESS")})
fd = os.open(%r, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
os.write(fd, (line + "\\n").encode())
"""


def stand_in(t, text=STAND_IN, where=None):
    """A directory for PATH with a notify-send that writes down how it was called, and that file."""
    directory = where or t.fresh_dir("bin")
    log = os.path.join(t.fresh_dir("log"), "calls")
    t.write(directory, {"notify-send": text % log if "%r" in text else text})
    os.chmod(os.path.join(directory, "notify-send"), 0o755)
    return directory, log


def environment(*directories):
    return {"PATH": ":".join([*directories, "/usr/bin", "/bin", "/usr/sbin"]),
            "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent", "TEST_SESSION": str(os.getsid(0))}


def calls(t, log, count):
    """What the stand-in has written, once it is so much: it is not waited for by ward."""
    deadline = time.monotonic() + 60
    while len((t.read(log) or "").splitlines()) < count and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.2)
    found = [json.loads(line) for line in (t.read(log) or "").splitlines()]
    t.equal(len(found), count, found)
    return found


def test_the_end(t):
    directory, log = stand_in(t)
    ws = t.workspace()
    r = t.ward("run", "--notify", "--", "/bin/sh", "-c", "exit 3", cwd=ws,
               env=environment(directory))
    t.equal((r.rc, r.out), (3, ""), r.err)
    call, = calls(t, log, 1)
    t.equal(call["argv"][:3], ["--app-name=ward", "--urgency=normal", "ward: run failed"])
    t.check(call["argv"][3].startswith("sh: exit 3 after ") and len(call["argv"]) == 4, call)
    t.check(call["session"] and call["fds"] == [0, 1, 2]
            and call["bus"] == "unix:path=/nonexistent", call)
    t.equal(call["uid"], t.person.pw_uid)
    r = t.ward("run", "--", "true", cwd=ws, env=environment(directory))
    t.equal(r.rc, 0, r.err)
    calls(t, log, 1)


def test_a_limit_and_a_burst(t):
    directory, log = stand_in(t)
    ws = t.workspace()
    r = t.ward("run", "--notify", "--timeout", "1", "--", "sleep", "60", cwd=ws,
               env=environment(directory))
    t.equal(r.rc, 124, r.err)
    limit, end = sorted(calls(t, log, 2), key=lambda c: c["argv"][2])
    t.equal(limit["argv"][1:], ["--urgency=critical", "ward: limit reached",
                                "sleep reached its limit on timeout"])
    t.equal(end["argv"][2], "ward: run failed")
    os.unlink(log)
    r = t.ward("run", "--notify", "--", "/bin/sh", "-c",
               "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do unshare -U true; done 2>/dev/null;"
               " exit 0", cwd=ws, env=environment(directory))
    t.equal(r.rc, 0, r.err)
    end, burst = sorted(calls(t, log, 2), key=lambda c: c["argv"][2] == "ward: many denials")
    t.equal(burst["argv"][2], "ward: many denials")
    t.check("sh was refused 10 times in a short time, last unshare" in burst["argv"][3], burst)
    t.check(end["argv"][2] == "ward: run finished" and ", 15 denied: ward explain " in
            end["argv"][3], end)


def test_names_are_made_plain(t):
    directory, log = stand_in(t)
    name = "<b>&amp;\\n\033[2J$(id)\u202e"
    ws = t.workspace({name: "#!/bin/sh\nexit 0\n"})
    os.chmod(os.path.join(ws, name), 0o755)
    r = t.ward("run", "--notify", "--", f"./{name}", cwd=ws, env=environment(directory))
    t.equal(r.rc, 0, r.err)
    call, = calls(t, log, 1)
    t.check(call["argv"][3].startswith("?b??amp??n?[2J?(id)???: exit 0 after "), call)


def test_one_that_hangs_holds_nothing_up(t):
    pid_file = os.path.join(t.fresh_dir("pid"), "pid")
    directory, _ = stand_in(t, f"#!/bin/sh\necho $$ > {pid_file}\nexec sleep 300\n")
    r = t.ward("run", "--notify", "--", "true", cwd=t.workspace(), env=environment(directory),
               timeout=120)
    t.equal(r.rc, 0, r.err)
    deadline = time.monotonic() + 60
    while not (t.read(pid_file) or "").strip() and time.monotonic() < deadline:
        time.sleep(0.05)
    pid = int(t.read(pid_file))
    os.kill(pid, 0)			# it hangs still, and ward has ended
    os.kill(pid, signal.SIGKILL)


def test_none_that_the_sandbox_can_write(t):
    """In the workspace, by a link into it, by a relative directory: not used, and said so."""
    ws = t.workspace()
    inside, log = stand_in(t, where=os.path.join(ws, "bin"))
    links = t.fresh_dir("links")
    os.symlink(os.path.join(inside, "notify-send"), os.path.join(links, "notify-send"))
    env = {**environment(), "PATH": f"{inside}:{links}:bin::{t.fresh_dir('empty')}"}
    r = t.ward("run", "--notify", "--", "/bin/true", cwd=ws, env=env, report=True)
    t.equal(r.rc, 0, r.err)
    t.check(any(n.startswith("--notify: no notifications: notify-send is not in PATH")
                for n in r.report["notes"]), r.report["notes"])
    time.sleep(0.5)
    t.equal(t.read(log), None, "it was started")


# a notification server on the session's bus, and the command once it is there
SERVER = """
import subprocess, sys
import dbus, dbus.mainloop.glib, dbus.service
from gi.repository import GLib

NAME = "org.freedesktop.Notifications"

class Server(dbus.service.Object):
    @dbus.service.method(NAME, in_signature="", out_signature="ssss")
    def GetServerInformation(self):
        return ("test", "ward", "1", "1.2")

    @dbus.service.method(NAME, in_signature="", out_signature="as")
    def GetCapabilities(self):
        return ["body"]

    @dbus.service.method(NAME, in_signature="susssasa{sv}i", out_signature="u")
    def Notify(self, app, replaces, icon, title, body, actions, hints, timeout):
        print("SHOWN", app, "|", title, "|", body, "|", int(hints["urgency"]), flush=True)
        GLib.timeout_add(100, loop.quit)
        return 1

dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
bus = dbus.SessionBus()
name = dbus.service.BusName(NAME, bus)
server = Server(bus, "/org/freedesktop/Notifications")
loop = GLib.MainLoop()
GLib.timeout_add_seconds(50, loop.quit)
command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
loop.run()
sys.exit(command.wait())
"""


def test_the_real_one(t):
    """notify-send of libnotify on a bus of its own has its server show these words."""
    ws = t.workspace()
    env = {"PATH": "/usr/bin:/bin:/usr/sbin"}
    r = t.run("dbus-run-session", "--", "/usr/bin/python3", "-c", SERVER,
              *t.ward_argv("run", "--notify", "--", "true"), cwd=ws, env=env, timeout=90)
    t.equal(r.rc, 0, r.err)
    t.check("SHOWN ward | ward: run finished | true: exit 0 after" in r.out, r.out + r.err)
