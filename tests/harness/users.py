"""Who runs what: root, or the ordinary user that the tests make once.

A test process started by root acts as the test's user (real and effective id) and keeps 0 as its
saved id, so that `with as_root():` can look at the host; what it starts has lost that for good (see
drop()).
"""
import contextlib
import ctypes
import os
import pwd
import subprocess

# another name lets several trees run their tests at the same time
NAME = os.environ.get("WARD_TEST_USER", "wardtest")
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36

IS_ROOT = os.geteuid() == 0


def ensure():
    """Makes the ordinary user when root runs the tests and it is missing; returns its passwd
    entry."""
    try:
        return pwd.getpwnam(NAME)
    except KeyError:
        subprocess.run(["useradd", "-m", "-s", "/bin/bash", NAME], check=True,
                       stdout=subprocess.DEVNULL)
        return pwd.getpwnam(NAME)


def entry(who):
    """The passwd entry of "root" or "user"."""
    if not IS_ROOT:
        return pwd.getpwuid(os.getuid())
    return pwd.getpwuid(0) if who == "root" else pwd.getpwnam(NAME)


def become(person):
    """This process acts as person from now on, and can become root again if it was."""
    if not IS_ROOT or person.pw_uid == 0:
        return
    os.initgroups(person.pw_name, person.pw_gid)
    os.setresgid(person.pw_gid, person.pw_gid, 0)
    os.setresuid(person.pw_uid, person.pw_uid, 0)
    LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


def drop(person):
    """Between fork and exec: becomes person for good."""
    if IS_ROOT and person.pw_uid != 0:
        os.setresgid(person.pw_gid, person.pw_gid, person.pw_gid)
        os.setresuid(person.pw_uid, person.pw_uid, person.pw_uid)
        LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


@contextlib.contextmanager
def as_root():
    """Root's rights for a look at the host. Only where root runs the tests."""
    if not IS_ROOT:
        raise RuntimeError("root's rights are needed: run the tests as root, or mark the test "
                           "needs(\"root\")")
    uid, gid = os.geteuid(), os.getegid()
    os.seteuid(0)
    os.setegid(0)
    try:
        yield
    finally:
        os.setegid(gid)
        os.seteuid(uid)


def whole():
    """Options of subprocess.run() for a program that root's rights are for, within as_root(): root
    in every id. bash gives up rights where they differ, and node trusts no variable."""
    return {"user": 0, "group": 0, "extra_groups": []} if IS_ROOT else {}


def setpriv(person):
    """Command prefix that becomes person for good from a shell of root."""
    if not IS_ROOT or person.pw_uid == 0:
        return []
    return ["setpriv", "--reuid", str(person.pw_uid), "--regid", str(person.pw_gid),
            "--init-groups"]
