"""Changes the real workspace although the run is under review: by writing, mapping, linking,
truncating, renaming, modes and attributes.

layer: review
control: the same user without a sandbox changes it
"""
import os

OPTIONS = ["--review"]


def scene(s):
    s.t.write(s.ws, {"file": "as it was\n", "dir/inner": "as it was\n", "gone": "as it was\n"})
    s.before = look(s)


def look(s):
    found = {}
    for top, _, files in os.walk(s.ws):
        for name in files:
            path = os.path.join(top, name)
            st = os.stat(path)
            found[os.path.relpath(path, s.ws)] = (s.t.read(path), st.st_mode, st.st_mtime_ns,
                                                  st.st_ino, sorted(os.listxattr(path)))
    return found


def attack(a):
    import mmap
    attempt(put, "file", "changed\n")
    attempt(os.link, "dir/inner", "second")
    attempt(put, "second", "changed\n", "a")
    attempt(os.truncate, "dir/inner", 1)
    attempt(os.rename, "dir", "dir2")
    attempt(os.unlink, "gone")
    attempt(os.setxattr, "file", "user.x", b"y")
    attempt(os.utime, "file", (1, 1))
    attempt(os.chmod, "file", 0o600)

    def mapped():
        with open("file", "r+b") as f, mmap.mmap(f.fileno(), 4) as m:
            m[0:4] = b"EVIL"
            m.flush()
    attempt(mapped)
    for path in (".ward/lower", ".ward/layer/lower", ".ward/layer/upper"):
        attempt(put, "/" + path + "/file", "changed\n")


def escaped(s, r):
    return look(s) != s.before
