"""filesystem.scratch: private, empty, writable directories beside /tmp and the home."""


def run(t, scratch, script, more=""):
    ws = t.workspace({"ward.yaml": f"version: 1\nfilesystem: {{scratch: {scratch}}}\n{more}"})
    return t.ward("run", "-p", "ward.yaml", "--", "sh", "-c", script, cwd=ws)


def test_scratch(t):
    r = run(t, "[/run, /srv/a/b]",
            "ls -A /run /srv/a/b; echo x >/run/x; cp /bin/true /srv/a/b/; /srv/a/b/true && "
            "cat /run/x; touch /srv/a/y 2>/dev/null || touch /srv/z 2>/dev/null || echo kept; "
            "stat -c '%U %a' /run")
    t.equal((r.rc, r.out), (0, "/run:\n\n/srv/a/b:\nx\nkept\nagent 755\n"))
    # the next run has nothing of it, nor has the host
    r = run(t, "[/run]", "ls -A /run")
    t.equal((r.rc, r.out), (0, ""))
    r = run(t, "[]", "touch /run/x 2>/dev/null || echo no")
    t.equal(r.out, "no\n")


def test_scratch_counts_as_memory(t):
    r = run(t, "[/srv]", "head -c 60000000 /dev/zero >/srv/big; echo $?",
            "resources: {memory_limit: 32Mi}\n")
    t.check(r.rc != 0 or r.out.strip() != "0", r)


def test_scratch_is_refused(t):
    for path, word in (("/usr/x", "/usr"), ("/", "not the path"), ("/etc/x", "/etc"),
                       ("/etc", "/etc"), ("/tmp/x", "/tmp"), ("/home", "/home"),
                       ("/home/agent/x", "/home"), ("/proc", "/proc"), ("/dev/x", "/dev"),
                       ("/.ward/x", "/.ward"), ("x", "not the path"), ("/a/../b", "not the path"),
                       ("/a/", "not the path"), ("/var", "/var/tmp"), ("/var/tmp", "/var/tmp")):
        r = run(t, f'["{path}"]', "true")
        t.equal((path, r.rc), (path, 125))
        t.contains(r.err, "filesystem.scratch")
        t.contains(r.err, word)
    ws = t.workspace({})
    t.write(ws, {"ward.yaml": f'version: 1\nfilesystem: {{scratch: ["{ws}/x"]}}\n'})
    r = t.ward("run", "-p", "ward.yaml", "--", "true", cwd=ws)
    t.equal((r.rc, "would cover" in r.err), (125, True))
    r = run(t, "[" + ", ".join(f"/s{n}" for n in range(9)) + "]", "true")
    t.equal((r.rc, "at most 8" in r.err), (125, True))
    r = run(t, "[/s, /s/t]", "true")
    t.equal((r.rc, "would cover" in r.err), (125, True))
