#!/usr/bin/python3
"""Runs a unit test as an ordinary user: as_user.py PROGRAM. Root becomes nobody; the program is
copied to where nobody can read it."""
import os
import shutil
import subprocess
import sys
import tempfile

NOBODY = 65534


def become_nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def main():
    if os.geteuid() != 0:
        return subprocess.run([sys.argv[1]], check=False).returncode
    with tempfile.TemporaryDirectory(prefix="ward-unit-") as place:
        os.chmod(place, 0o755)
        program = shutil.copy(sys.argv[1], place)
        os.chmod(program, 0o755)
        return subprocess.run([program], cwd="/", preexec_fn=become_nobody, check=False).returncode


sys.exit(main())
