"""A run whose root is an image: its files in place of the host's, its wishes within the policy, and
no link of it followed by ward."""
import json
import os
import subprocess

from harness import images, timeout
from harness.boxes import box
from harness.images import directory, docker, hard, imported, Layout, link, listed, put, tar


def busybox(t, name="base", wish=None, *more):
    """Imports a small root and returns its digest."""
    layer = tar(*images.busybox_root(), *more)
    return imported(t, put(t, f"{name}.tar", docker([layer], tags=[f"{name}:latest"], wish=wish)))[
        "digest"]


def sh(t, ws, script, *options, rc=0, image="base", **more):
    """Runs a shell of the image."""
    r = t.ward("run", "--image", image, *options, "--", "sh", "-c", script, cwd=ws, **more)
    t.equal(r.rc, rc, f"{script}: {r.err}")
    return r


def test_the_images_files_and_nothing_of_the_hosts(t):
    busybox(t)
    ws = t.workspace({"mine": "WORK\n"})
    r = sh(t, ws, "cat /etc/image-name mine; ls /usr /lib /etc/alternatives /opt; cat "
           "/root/secret; id -u; echo $HOME; ls -d /bin/busybox")
    t.equal(r.out.split(), ["MADE-OF-BUSYBOX", "WORK", "/usr:", "bin", "INSIDE-THE-IMAGE", "1000",
                            "/home/agent", "/bin/busybox"])
    r = sh(t, ws, "for f in /etc/x /bin/x /x /root/x /var/x; do touch $f 2>/dev/null && echo $f; "
           "done; touch /tmp/a ~/a new && echo fine")
    t.equal(r.out, "fine\n", "read-only but for the private places and the workspace")
    t.check(os.path.exists(os.path.join(ws, "new")), "the workspace is the real one")
    r = t.ward("run", "--image", "base", "--", "python3", cwd=ws)
    t.check(r.rc == 127 and "the image has no such program" in r.err, r)
    r = sh(t, ws, "cat /etc/passwd /etc/group /etc/resolv.conf /etc/hosts; readlink /etc/mtab; ls "
           "-a /.ward /dev")
    t.check("agent:x:1000" in r.out and "127.0.0.53" in r.out and "/proc/self/mounts" in r.out
            and "urandom" in r.out, r.out)


def test_the_image_knows_its_users(t):
    busybox(t, "base", None,
            ("etc/passwd", "root:x:0:0:r:/:/bin/sh\nwww:x:33:33:w:/w:/bin/sh\nagent:x:77:77::/:/x\n"
             "node:x:1000:1000::/:/x\nbad line\n\x1bu:x:5:5::/:/x\n"),
            ("etc/group", "www:x:33:\nroot:x:0:\n"))
    r = sh(t, t.workspace(), "cat /etc/passwd /etc/group")
    t.equal([line.split(":")[0] + line.split(":")[2] for line in r.out.splitlines()],
            ["root0", "agent1000", "nobody65534", "www33", "root0", "agent1000", "nogroup65534",
             "www33"])


def test_what_the_image_wishes(t):
    wish = {"Env": ["PATH=/special:/bin", "FROM_IMAGE=yes", "BOTH=image", "HOME=/nowhere",
                    "WARD=0"],
            "Entrypoint": ["sh", "-c", "pwd; echo $FROM_IMAGE $BOTH $HOME $WARD $PATH $0"],
            "Cmd": ["argument"], "WorkingDir": "/made/for/it", "User": "postgres"}
    busybox(t, "base", wish)
    ws = t.workspace()
    own = ("--env", "BOTH=policy")
    r = t.ward("run", "--image", "base", *own, cwd=ws)
    t.equal(r.out.splitlines(), ["/made/for/it", "yes policy /home/agent 1 /special:/bin argument"],
            r.err)
    r = t.ward("run", "--image", "base", "-C", ws, cwd=ws)
    t.equal(r.out.splitlines()[0], ws, "-C is the caller's word")
    t.equal(sh(t, ws, "pwd; echo $FROM_IMAGE").out.split(), [ws, "yes"],
            "a command of one's own starts in the workspace")
    r = t.ward("run", "--image", "base", "-C", "/etc", "--", "pwd", cwd=ws)
    t.equal(r.out, "/etc\n", r.err)
    plan = json.loads(t.ward("plan", "--json", "--image", "base", "--", "true", cwd=ws).out)
    t.check(any("postgres" in n for n in plan["notes"])
            and plan["image_digest"] == listed(t)["base:latest"]["digest"], plan["notes"])
    imported(t, put(t, "plain.tar", tar(*images.busybox_root())), "--name", "plain")
    r = t.ward("run", "--image", "plain", cwd=ws)
    t.check(r.rc == 125 and "no command given, and the image has none" in r.err, r)


def test_an_image_by_its_path(t):
    entries = images.busybox_root()
    ws = t.workspace()
    archive = put(t, "root.tar", tar(*entries))
    t.equal(sh(t, ws, "cat /etc/image-name", image=archive).out, "MADE-OF-BUSYBOX\n")
    before = set(listed(t))
    t.equal(sh(t, ws, "echo again", image=archive).out, "again\n")
    t.equal(set(listed(t)), before, "imported once")
    put(t, "root.tar", tar(*entries, ("etc/other", "OTHER\n")))
    t.equal(sh(t, ws, "cat /etc/other", image="../root.tar").out, "OTHER\n",
            "a file that has changed is another image")
    layout = Layout([tar(*entries)]).write(t.fresh_dir("layout"))
    t.equal(sh(t, ws, "cat /etc/image-name", image=layout).out, "MADE-OF-BUSYBOX\n")
    top = t.fresh_dir("root")
    t.run("tar", "-C", top, "-xf", archive, check=True)
    count = len(listed(t))
    t.equal(sh(t, ws, "cat /etc/other; touch /etc/new 2>&1 || echo closed",
               image=top).out.splitlines()[0::2], ["OTHER", "closed"], "in place, read-only")
    t.equal(len(listed(t)), count, "a directory is not copied")
    r = t.ward("run", "--image", put(t, "bad.tar", b"no archive"), "--", "true", cwd=ws)
    t.check(r.rc == 125 and "tar archive" in r.err and "cannot import" in r.err, r)
    for image, why in (("/", "whole host"), ("/nonexistent-root", "cannot open"),
                       ("nobodys/image:7", "ward image pull nobodys/image:7"),
                       ("0123456789abcdef", "there is no image")):
        r = t.ward("run", "--image", image, "--", "true", cwd=ws)
        t.check(r.rc == 125 and why in r.err, f"{image}: {r}")


def test_a_found_policy_cannot_choose_the_root(t):
    busybox(t)
    ws = t.workspace({"ward.yaml": "version: 1\nimage: base\n"})
    r = t.ward("run", "--", "true", cwd=ws)
    t.check(r.rc == 125 and "ward trust" in r.err, r)
    t.equal(t.ward("trust", "--yes", cwd=ws).rc, 0)
    t.equal(t.ward("run", "--", "cat", "/etc/image-name", cwd=ws).out, "MADE-OF-BUSYBOX\n")
    os.rename(os.path.join(ws, "ward.yaml"), os.path.join(t.directory, "p.yaml"))
    r = t.ward("run", "-p", os.path.join(t.directory, "p.yaml"), "--image", "host", "--", "true",
               cwd=ws)
    t.check(r.rc == 125 and "--widen" in r.err, r)


def test_links_of_an_image_lead_ward_nowhere(t):
    """Where ward makes or mounts something, a hostile image has links to a directory of the
    host's."""
    outside = t.fresh_dir("outside")
    t.write(outside, {"CANARY": "UNTOUCHED\n"})
    before = os.stat(outside).st_mtime_ns
    ws = t.workspace()
    first = ws.split("/")[1]
    places = ["etc", "tmp", "home", "proc", "dev", "var", ".ward", "run", "sys", "mnt", first]
    layer = tar(*((n, link(outside)) for n in dict.fromkeys(places)), *images.busybox_root()[:20])
    imported(t, put(t, "evil.tar", layer), "--name", "evil")
    script = ("cat /etc/passwd /tmp/CANARY /home/CANARY /var/CANARY /proc/self/comm 2>&1; ls /dev "
              "/home; touch /tmp/x ~/y z; ls " + outside)
    for options in ((), ("--review",), ("--set", "filesystem.home=kept", "--set",
                                        "filesystem.caches=[pip]"), ("--allow", "example.com")):
        r = sh(t, ws, script, *options, image="evil", rc=1)
        t.check("UNTOUCHED" not in r.out and "agent:x" in r.out, r.out)
    t.equal(os.listdir(outside), ["CANARY"], "outside")
    t.equal(os.stat(outside).st_mtime_ns, before, "outside")
    t.check(os.path.exists(os.path.join(ws, "z")), "the workspace itself is there")


def test_detached_exec_copy_and_hold(t):
    busybox(t)
    ws = t.workspace()
    name = box(t, "--image", "base", "--name", "held", cwd=ws)
    t.equal(t.ward("exec", name, "cat", "/etc/image-name").out, "MADE-OF-BUSYBOX\n")
    t.equal(t.ward("cp", f"{name}:/etc/image-name", os.path.join(t.directory, "copied")).rc, 0)
    t.equal(t.read(t.directory, "copied"), "MADE-OF-BUSYBOX\n")
    r = t.ward("image", "rm", "base")
    t.check(r.rc == 125 and "in use" in r.err, r)
    t.check(listed(t)["base:latest"]["in_use"], "in use")
    t.equal(t.ward("stop", "--timeout", "0.2", name).rc, 0)
    t.equal(t.ward("image", "rm", "base").rc, 0)


def test_review_limits_and_terminal_over_an_image(t):
    busybox(t)
    ws = t.workspace({"a": "old\n"})
    sh(t, ws, "echo new > a", "--review")
    t.equal(t.read(ws, "a"), "old\n")
    t.check("M a" in " ".join(t.ward("diff", cwd=ws).out.split()), "diff")
    t.equal(t.ward("apply", cwd=ws).rc, 0)
    t.equal(t.read(ws, "a"), "new\n")
    r = t.ward("run", "--image", "base", "--timeout", "0.3", "--", "sleep", "20", cwd=ws)
    t.equal(r.rc, 124)
    r = t.ward("run", "--image", "base", "-t", "--", "sh", "-c", "[ -t 0 ] && echo TERMINAL",
               cwd=ws)
    t.check("TERMINAL" in r.out, r)
    r = t.ward("run", "--image", "base", "--", "sh", "-c", "exit 7", cwd=ws, report=True)
    t.equal((r.rc, r.report["exit"]["code"], r.report["engine"]), (7, 7, "native"))


def test_roots_of_two_libraries(t):
    """A program linked with musl and its loader, and one of the host's with glibc: whatever the
    image brings is used."""
    hello = put(t, "hello.c",
                b'#include <stdio.h>\nint main(void) { puts("HELLO-FROM-MUSL"); return 0; }\n')
    program = os.path.join(t.directory, "hello")
    t.run("musl-gcc", "-o", program, hello, check=True)
    with open(program, "rb") as f, open("/lib/ld-musl-x86_64.so.1", "rb") as loader:
        layer = tar(("hello", {"data": f.read(), "mode": 0o755}),
                    ("lib/ld-musl-x86_64.so.1", {"data": loader.read(), "mode": 0o755}))
    imported(t, put(t, "musl.tar", layer), "--name", "musl")
    t.equal(t.ward("run", "--image", "musl", "--", "/hello", cwd=t.workspace()).out,
            "HELLO-FROM-MUSL\n")
    needed = [w for line in subprocess.run(["ldd", "/bin/bash"], capture_output=True,
                                           text=True).stdout.splitlines() for w in line.split()
              if w.startswith("/")]
    entries = [("lib", link("usr/lib")), ("lib64", link("usr/lib64")), ("bin", link("usr/bin"))]
    for path in ["/bin/bash", *needed]:
        with open(path, "rb") as f:
            entries.append((path.lstrip("/") if path.startswith("/usr") else "usr" + path,
                            {"data": f.read(), "mode": 0o755}))
    imported(t, put(t, "glibc.tar", tar(*entries)), "--name", "glibc")
    t.equal(t.ward("run", "--image", "glibc", "--", "bash", "-c", "echo GLIBC-$((40+2)); ls",
                   cwd=t.workspace()).out, "GLIBC-42\n")


def test_inspection_reaches_an_image(t):
    """The authority of an inspected sandbox is put into the image's root, through none of its
    links."""
    outside = t.fresh_dir("outside")
    busybox(t, "base", None, ("etc/ssl", link(outside)), ("etc/pki/tls", link(outside)))
    ws = t.workspace()
    policy = put(t, "inspect.yaml", b"version: 1\nimage: base\nnetwork: {mode: restricted, "
                 b"egress_allowlist: [{host: inspected.example, mode: inspect}]}\n")
    r = t.ward("run", "-p", policy, "--", "sh", "-c",
               "head -c 27 $SSL_CERT_FILE; ls /etc/ssl/certs | wc -l", cwd=ws)
    t.check(r.rc == 0 and r.out.startswith("-----BEGIN CERTIFICATE-----")
            and int(r.out.split("-----")[-1]) > 0, r)
    t.equal(os.listdir(outside), [], "outside")
