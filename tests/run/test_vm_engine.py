"""ward run --isolation vm, with emulation: what a user sees of setup, templates and runs, and what
is left after a kill."""
import json
import os
import re
import shutil
import signal
import time

from harness import by_turns, host, needs, timeout, vm_engine
from harness.boxes import box, clean, supervisor
from harness.images import imported, put, tar
from harness.leaks import descendants
from harness.vm_engine import OPTIONS


def check_refusals(t, ws):
    r = t.ward("run", "--isolation", "vm", "--image", "small", "--", "true", cwd=ws)
    if os.path.exists("/sys/module/kvm_pvm"):
        t.check(r.rc == 125 and "vm.accel: kvm" in r.err and "vm.accel=tcg" in r.err,
                f"kvm that emulates: {r}")
    cases = [
        (("--set", "require.isolation=vm"), "no hardware isolation"),
        (("--set", "vm.memory=4Gi", "--memory", "1Gi"), "vm.memory"),
        (("--memory", "511Mi"), "need 512 MiB"),
        (("--memory", "512Mi", "--set", "vm.cpus=5"), "need 544 MiB"),
        (("--set", "network.ingress=[8080]", "--set", "network.mode=open"), "network.ingress"),
        (("--image", "host"), "ward vm root host"),
    ]
    for words, expected in cases:
        r = t.ward("run", *OPTIONS, *words, "--", "true", cwd=ws)
        t.check(r.rc == 125 and expected in r.err, f"{words}: {r}")


def check_first_boot(t, ws):
    # with the least memory that is not refused
    r = t.ward("run", *OPTIONS, "--memory", "512Mi", "--", "sh", "-c",
               "uname -r; cat in.txt; echo OUT-OF-THE-MACHINE > out.txt; exit 7", cwd=ws,
               report=True, timeout=200)
    t.equal(r.rc, 7, f"exit code ({r.err})")
    t.check("cloud-amd64" in r.out and "INTO-THE-MACHINE" in r.out, f"what it saw: {r.out}")
    t.equal(t.read(ws, "out.txt"), "OUT-OF-THE-MACHINE\n", "a file that came back")
    t.check(r.report["engine"] == "vm" and "no hardware isolation" in r.report["wall"],
            f"the report: {r.report['wall']}")
    t.check(any("no template matches" in n for n in r.report["notes"]),
            f"notes: {r.report['notes']}")


def check_template(t, ws):
    r = t.ward("vm", "template", "build", "--accel", "tcg", "--memory", "256Mi", "--image", "small",
               "--json", timeout=200)
    t.equal(r.rc, 0, f"template build: {r.err}")
    key = json.loads(r.out)["template"]
    listed = json.loads(t.ward("vm", "ls", "--json").out)
    t.equal([x["name"] for x in listed["templates"]], [key], "ward vm ls")
    command = ("sh", "-c", "cat /proc/sys/kernel/random/uuid; date +%s; id -u; cat in.txt; cat "
               "no-such-file; echo MORE >> in.txt; rm out.txt; mkdir d; touch d/new")
    seen = []
    for _ in range(2):
        r = t.ward("run", *OPTIONS, "--", *command, cwd=ws, report=True, timeout=200)
        t.check(any(key[:12] in n for n in r.report["notes"]),
                f"the template is in the notes: {r.report['notes']}")
        lines = r.out.split("\n")
        t.check(abs(int(lines[1]) - time.time()) < 60 and lines[2] == "1000"
                and lines[3] == "INTO-THE-MACHINE", f"clock, id, workspace: {r}")
        t.check("no-such-file" in r.err, f"standard error: {r.err}")
        seen.append(lines[0])
    t.check(seen[0] != seen[1], f"two clones with the same randomness: {seen}")
    t.check("MORE\nMORE\n" in t.read(ws, "in.txt") and t.read(ws, "out.txt") is None
            and t.read(ws, "d", "new") == "", "changes came back")
    return key


def check_rules_hold(t, ws):
    """hide, protect and read-only hold, because only what the native sandbox shows is copied, and
    it is copied back into it."""
    t.write(ws, {"hidden.txt": "SECRET-OF-THE-HOST\n", "kept.txt": "AS-IT-WAS\n"})
    words = ("--set", "filesystem.hide=[hidden.txt]", "--set", "filesystem.protect=[kept.txt]")
    r = t.ward("run", *OPTIONS, *words, "--", "sh", "-c",
               "cat hidden.txt; echo CHANGED > kept.txt; true", cwd=ws, timeout=200)
    t.check("SECRET-OF-THE-HOST" not in r.out + r.err, f"hidden: {r}")
    t.equal(t.read(ws, "kept.txt"), "AS-IT-WAS\n", "a protected file")
    r = t.ward("run", *OPTIONS, "--set", "filesystem.mode=read_only", "--", "sh", "-c",
               "echo CHANGED > kept.txt; touch FROM-A-READ-ONLY-RUN", cwd=ws, timeout=200)
    t.check(t.read(ws, "kept.txt") == "AS-IT-WAS\n" and t.read(ws, "FROM-A-READ-ONLY-RUN") is None,
            f"read-only: {r}")


def check_nested(t):
    """A writable tree comes back, whatever lies around it."""
    home = t.fresh_dir("home")
    t.write(home, {"proj/in.txt": "IN\n", "other.txt": "OTHER\n", "proj/sub/x": "x\n"})
    ws = os.path.join(home, "proj")
    script = f"cat {home}/other.txt in.txt; echo NEW > sub/new; echo LOST > {home}/other.txt; true"
    r = t.ward("run", *OPTIONS, "--ro", home, "--", "sh", "-c", script, cwd=ws, timeout=200)
    t.equal((r.rc, r.out, t.read(ws, "sub/new"), t.read(home, "other.txt")),
            (0, "OTHER\nIN\n", "NEW\n", "OTHER\n"),
            f"a workspace in a read-only directory ({r.err})")
    r = t.ward("run", *OPTIONS, "--set", "filesystem.mode=read_only", "--rw", f"{ws}/sub", "--",
               "sh", "-c", "cat in.txt sub/new; echo AGAIN > sub/new; echo LOST > in.txt; true",
               cwd=ws, timeout=200)
    t.equal((r.rc, r.out, t.read(ws, "sub/new"), t.read(ws, "in.txt")),
            (0, "IN\nNEW\n", "AGAIN\n", "IN\n"),
            f"a writable directory in a read-only workspace ({r.err})")
    if os.path.isdir("/usr/src"):
        r = t.ward("run", *OPTIONS, "--rw", f"{home}/proj:/usr/src", "--", "sh", "-c",
                   "cat /usr/src/in.txt; echo THERE > /usr/src/there", cwd=t.workspace(),
                   timeout=200)
        t.equal((r.rc, r.out, t.read(ws, "there")), (0, "IN\n", "THERE\n"),
                f"a tree in a directory of the system's ({r.err})")


def alive(t, box_id):
    """pids of the machine's processes, by the command line that names its files."""
    found = {}
    with t.root():
        inside = os.readlink(f"/proc/{supervisor(t, box_id)}/ns/user")
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    words = f.read().split(b"\0")
                with open(f"/proc/{pid}/environ", "rb") as f:
                    f.read(1)
                if (words[0] in (b"/.ward/ward-vm",
                                 b"/usr/bin/qemu-system-x86_64")) and os.readlink(
                                     f"/proc/{pid}/ns/user") != inside and descends(
                                         int(pid), supervisor(t, box_id)):
                    found[int(pid)] = os.path.basename(words[0].decode())
            except (OSError, IndexError):
                continue
    return found


def descends(pid, ancestor):
    while pid > 1:
        if pid == ancestor:
            return True
        with open(f"/proc/{pid}/stat") as f:
            pid = int(f.read().rsplit(")", 1)[1].split()[1])
    return False


def check_box(t, ws):
    """ward exec and ward cp, then the machine's monitor is killed: the command has ended for
    everybody, and nothing is left."""
    shared = t.fresh_dir("shared")
    os.makedirs(shared + ws.removeprefix("/tmp"))	# where the workspace is mounted
    name = box(t, *OPTIONS, "--rw", f"{shared}:/tmp", "--", "sleep", "1000", cwd=ws, timeout=60)
    r = t.ward("exec", name, "--", "sh", "-c",
               "echo IN-THE-SAME-MACHINE > /tmp/x; uname -r; exit 3", timeout=200)
    t.check(r.rc == 3 and "cloud-amd64" in r.out, f"exec: {r}")
    t.equal([n for n in os.listdir(shared) if n != ws.split("/")[2]], [],
            "nothing of the machine's own is in what the sandbox shares")
    target = os.path.join(t.fresh_dir(), "copy")
    r = t.ward("cp", f"{name}:/tmp/x", target, timeout=60)
    t.equal((r.rc, t.read(target)), (0, "IN-THE-SAME-MACHINE\n"), f"cp ({r.err})")
    processes = alive(t, name)
    qemu = [pid for pid, comm in processes.items() if comm.startswith("qemu")]
    t.check(len(qemu) == 1 and len(processes) >= 2, f"QEMU and ward-vm: {processes}")
    with t.root():
        with open(f"/proc/{qemu[0]}/status") as f:
            width = next(int(line.split()[1]) for line in f if line.startswith("FDSize:"))
        t.check(width >= 256, "QEMU began with room for its descriptors, and did not have to wait "
                f"for more: {width}")
        os.kill(qemu[0], signal.SIGKILL)
    r = t.ward("wait", name, timeout=60)
    t.check(r.rc != 0, f"a machine that was killed: {r}")
    t.check(not any(os.path.exists(f"/proc/{pid}") for pid in processes),
            f"still there: {processes}")
    clean(t)


@by_turns
@needs("unsanitized")
@timeout(400)
def test_machine(t):
    vm_engine.prepare(t)
    ws = t.workspace({"in.txt": "INTO-THE-MACHINE\n"})
    check_refusals(t, ws)
    check_first_boot(t, ws)
    key = check_template(t, ws)
    check_rules_hold(t, ws)
    check_nested(t)
    check_box(t, ws)
    t.equal(t.ward("vm", "template", "rm", "abcdef").rc, 125, "a template that is not there")
    t.equal(t.ward("vm", "template", "rm", key[:12]).rc, 0, "template rm")
    t.equal(json.loads(t.ward("vm", "ls", "--json").out)["templates"], [], "none is left")


REFUSALS = """test "$HOME" = /home/agent && touch "$HOME/made" && mkdir "$HOME/.cache" && echo HOME-IS-WRITABLE
echo x > kept.txt; rm kept.txt; echo x > other/f; rm other/f; touch other/new; mkdir other/d; echo x > {ro}/f; touch {ro}/new; rm {ro}/f
echo x > .git/hooks/pre-commit; rm -r .git/hooks; rm hidden.txt; cat hidden.txt; echo x > /etc/passwd
echo x > {ro}/inner/f && echo INNER-IS-WRITABLE; echo y > own.txt && rm gone.txt && echo REST-IS-WRITABLE"""


@by_turns
@needs("unsanitized")
@timeout(400)
def test_refuses_as_elsewhere(t):
    """What is read-only, protected or hidden refuses inside the machine, as it does in a native
    sandbox; HOME is there."""
    vm_engine.prepare(t)
    base, ro = t.fresh_dir("base"), t.fresh_dir("ro")
    ws = os.path.join(base, "ws")
    t.write(ws, {"kept.txt": "AS-IT-WAS\n", "other/f": "f\n", "hidden.txt": "HIDDEN\n",
                 "own.txt": "own\n", "gone.txt": "x\n", ".git/HEAD": "ref: refs/heads/main\n",
                 ".git/config": "", ".git/hooks/pre-commit": "#!/bin/sh\n", ".git/objects": None,
                 ".git/refs": None})
    t.write(ro, {"f": "ro\n", "inner/f": "inner\n"})
    words = ("--set", "filesystem.hide=[hidden.txt]", "--set", "filesystem.protect=[kept.txt]",
             "--ro", f"{ws}/other", "--ro", ro, "--rw", f"{ro}/inner", "--", "sh", "-c",
             REFUSALS.format(ro=ro))
    there = t.ward("run", *words, cwd=ws, timeout=60)
    t.write(ws, {"gone.txt": "x\n"})
    here = t.ward("run", *OPTIONS, *words, cwd=ws, timeout=200, report=True)
    t.equal((here.rc, here.out), (0, "HOME-IS-WRITABLE\nINNER-IS-WRITABLE\nREST-IS-WRITABLE\n"),
            here.err)
    t.equal((there.rc, there.out), (here.rc, here.out), there.err)

    def reasons(r):
        return [line.rsplit(": ", 1)[-1] for line in r.err.split("\n") if line
                and not line.startswith(("ward", "note"))]
    t.equal(reasons(here), reasons(there), f"{here.err}\n{there.err}")
    t.equal(here.report["denials"], [], "QEMU's own looking around is no denial")
    t.equal((t.read(ws, "kept.txt"), t.read(ws, "other/f"), t.read(ro, "f"), t.read(ro, "inner/f"),
             t.read(ws, "own.txt"), t.read(ws, "gone.txt")),
            ("AS-IT-WAS\n", "f\n", "ro\n", "x\n", "y\n", None))


@by_turns
@needs("unsanitized")
@timeout(400)
def test_memory_of_the_machine(t):
    """What does not fit is refused before anything starts; what grows beyond it inside has reached
    a limit, which is named."""
    vm_engine.prepare(t)
    ws = t.workspace({"small": "x"})
    with open(os.path.join(ws, "big"), "wb") as f:
        f.write(b"x" * (220 << 20))
    r = t.ward("run", *OPTIONS, "--", "true", cwd=ws, timeout=60)
    t.check(r.rc == 125 and "vm.memory" in r.err and "--set vm.memory=" in r.err
            and r.seconds < 20, r)
    more = re.search(r"vm.memory=(\d+)Mi", r.err).group(1)
    r = t.ward("plan", "--full", *OPTIONS, "--set", f"vm.memory={more}Mi", "--", "true", cwd=ws)
    t.equal(r.rc, 0, f"the remedy: {r.err}")
    r = t.ward("plan", "--full", *OPTIONS, "--set", "filesystem.hide=[big]", "--", "true", cwd=ws)
    t.equal(r.rc, 0, f"what is hidden takes no room: {r.err}")
    os.truncate(os.path.join(ws, "big"), 0)
    os.truncate(os.path.join(ws, "big"), 8 << 30)	# a hole takes none either
    t.equal(t.ward("plan", "--full", *OPTIONS, "--", "true", cwd=ws).rc, 0)
    os.unlink(os.path.join(ws, "big"))
    r = t.ward("run", *OPTIONS, "--", "sh", "-c",
               "echo BEGAN; for i in 1 2 3 4; do dd if=/dev/zero of=/dev/null bs=100M & done; "
               "wait; echo STILL-THERE", cwd=ws, timeout=200, report=True)
    t.equal((r.rc, r.out, r.report["limits"]["memory"]["hit"]), (137, "BEGAN\n", True), r.err)
    t.check("vm.memory" in r.err and "256" in r.err, r.err)
    why = t.ward("explain", r.report["run"], cwd=ws)
    t.check("vm.memory" in why.out and "held by machine" in why.out, why)
    r = t.ward("run", *OPTIONS, "--", "sh", "-c", "kill -9 $$", cwd=ws, timeout=200, report=True)
    t.equal((r.rc, r.report["limits"]["memory"]["hit"]), (137, False),
            f"another SIGKILL is no limit: {r.err}")


@needs("root", "unsanitized")
@timeout(200)
def test_packing_ends_with_the_run(t):
    """A run that is killed while it packs its image's root leaves nobody who goes on with it."""
    vm_engine.prepare(t)
    wrap, _ = instead_of_mkfs(t, "#!/bin/sh\ntrap '' TERM HUP INT\nwhile :; do :; done\n")
    ws = t.workspace()
    process = t.popen(t.ward_argv("run", *OPTIONS, "--", "true", wrap=wrap), root=True, cwd=ws)
    t.wait_until(lambda: any(comm(pid) == "mkfs.erofs" for pid in descendants(process.pid)), 30,
                 "mkfs.erofs does not run")
    started = descendants(process.pid)
    process.kill()
    process.communicate()
    try:
        t.wait_until(lambda: not started & descendants(1), 10, "it goes on")
    finally:
        for pid in started & descendants(1):
            os.kill(pid, signal.SIGKILL)
    t.equal(t.ward("recover").rc, 0)


def test_planted_program(t):
    """What is started outside of a sandbox is the system's own, whatever stands in PATH."""
    planted = t.fresh_dir("planted")
    for name in ("dpkg-deb", "apt-get", "apt-cache", "mkfs.erofs"):
        t.write(planted, {name: f"#!/bin/sh\necho RAN >> {planted}/ran\nexit 1\n"})
        os.chmod(os.path.join(planted, name), 0o755)
    t.write(planted, {"none.deb": "no package"})
    r = t.ward("vm", "setup", "--from", f"{planted}/none.deb",
               env={**os.environ, "PATH": f"{planted}:{os.environ['PATH']}"})
    t.check(r.rc == 125 and "dpkg-deb" in r.err and not os.path.exists(f"{planted}/ran"), f"{r}")


def vm_says(t, cases):
    for words, rc, expected in cases:
        r = t.ward("vm", *words)
        t.check(r.rc == rc and expected in r.err, f"ward vm {words}: {r}")


def test_usage(t):
    vm_says(t, [(("nonsense",), 2, "not one of setup, template, root and ls"),
                (("template",), 2, "build, ls or rm"), (("root",), 2, "the name of an image"),
                (("ls", "extra"), 2, "ls takes no name: extra"),
                (("template", "ls", "extra"), 2, "build, ls or rm"),
                (("root", "host", "extra"), 2, "the name of an image"),
                (("template", "build", "--cpus", "0"), 2, "--cpus"),
                (("template", "build", "--memory", "64Mi"), 2, "at least 96Mi")])


def test_what_is_missing(t):
    if not shutil.which("qemu-system-x86_64"):
        vm_says(t, [(("setup", "--from", "/etc/passwd"), 125, "apt-get install qemu-system-x86")])
        return
    vm_says(t, [(("setup", "--from", "/etc/passwd"), 125, "vmlinuz-RELEASE"),
                (("setup", "--from", "/NO-SUCH-KERNEL"), 125, "No such file"),
                (("template", "build", "--accel", "tcg"), 125, "ward vm setup")])
    if os.path.exists("/sys/module/kvm_pvm"):
        r = t.ward("vm", "template", "build")
        t.check(r.rc == 125 and "kvm_pvm" in r.err and "--accel tcg" in r.err,
                f"what to do without KVM: {r}")
        r = t.ward("run", "--isolation", "[vm, native]", "--", "cat", "/dev/kvm", cwd=t.workspace())
        t.check(r.rc == 1 and "/dev/kvm" in r.err, f"the next of the list, and no device: {r}")
        r = t.ward("run", "--isolation", "[vm, native]", "--set", "require.isolation=vm", "--",
                   "true", cwd=t.workspace())
        t.check(r.rc == 125 and "kvm_pvm" in r.err, f"only a machine will do: {r}")
    r = t.ward("run", "--isolation", "vm", "--set", "vm.accel=tcg", "--", "true", cwd=t.workspace())
    t.check(r.rc == 125 and "ward vm setup" in r.err, f"without a kernel: {r}")


@needs("unsanitized")
def test_template_name(t):
    """Under the name of the sandbox in which templates are made, nothing runs but what makes
    them."""
    vm_engine.prepare(t)
    for words, expected in [((), "only ward-vm template"),
                            (("--set", "require.isolation=vm"), "a native sandbox"),
                            (("--set", "require.isolation=gvisor"), "a native sandbox")]:
        r = t.run("bash", "-c", 'exec -a ward-vm-template "$0" "$@"', host.WARD, "run",
                  "--isolation", "vm", *words, "--", "cat", "/dev/kvm", cwd=t.workspace())
        t.check(r.rc == 125 and expected in r.err, f"{words}: {r}")


def test_no_name_is_not_every_name(t):
    """An unset variable of a script removes nothing."""
    kept = os.path.join(t.state_dir, "vm", "templates", "0123456789abcdef")
    for _ in range(2):
        os.makedirs(kept, 0o700, exist_ok=True)
        r = t.ward("vm", "template", "rm", "")
        t.check(r.rc == 125 and "not the name of a template" in r.err and os.path.isdir(kept), r)
        r = t.ward("vm", "template", "rm", "012345", "")
        t.check(r.rc == 125 and not os.path.isdir(kept), r)
    os.makedirs(kept, 0o700)
    t.equal((t.ward("vm", "template", "rm", "all").rc, os.path.isdir(kept)), (0, False))


BROKEN = """#!/bin/sh
# In the place of mkfs.erofs: what it would be once an image has broken it.
for word; do out=$tree tree=$word; done
{ cat CANARY || echo confined; cat "$tree/INSIDE" /etc/gitconfig; } >"$out" 2>/dev/null
echo x >PLANTED
exit 0
"""


def instead_of_mkfs(t, text):
    """Words before ward that put a script in the place of mkfs.erofs; and the script."""
    program = shutil.which("mkfs.erofs", path="/usr/sbin:/usr/bin")
    if not program:
        t.skip("there is no mkfs.erofs here")
    script = put(t, "mkfs", text.encode())
    os.chmod(script, 0o755)
    return ("unshare", "-m", "sh", "-c", f'mount --bind {script} {program} && exec "$@"',
            "sh"), script


@needs("root", "unsanitized")
def test_a_broken_mkfs_stays_inside(t):
    """An image's tree can break who packs it (mkfs.erofs 1.5 ends with a signal where directories
    lie deep): it can do so in a sandbox alone."""
    outside = t.fresh_dir("outside")
    t.write(outside, {"CANARY": "CANARY\n"})
    t.write(t.home, {".gitconfig": "[user]\n\tname = Somebody\n"})
    wrap, script = instead_of_mkfs(t,
                                   BROKEN.replace("CANARY",
                                                  outside
                                                  + "/CANARY").replace("PLANTED",
                                                                       outside + "/planted"))
    result = os.path.join(t.directory, "control")
    t.equal(t.run(script, "--quiet", result, "/").rc, 0)
    t.check(t.read(t.directory, "control").startswith("CANARY\n")
            and os.path.exists(outside + "/planted"), "without a sandbox it reads and writes")
    os.unlink(outside + "/planted")
    imported(t, put(t, "small.tar", tar(("INSIDE", "x"), (".aiignore", "*\n"))), "--name", "small")
    r = t.ward("vm", "root", "small", wrap=wrap)
    t.equal(r.rc, 0, r.err)
    roots = os.path.join(t.state_dir, "vm", "roots")
    t.equal(t.read(roots, os.listdir(roots)[0]), "confined\nx")
    t.equal(os.listdir(outside), ["CANARY"], "outside")


@needs("root", "unsanitized")
def test_mkfs_ends_with_ward_vm(t):
    """One that an image has broken does not go on when the user has given up."""
    wrap, _ = instead_of_mkfs(t, "#!/bin/sh\ntrap '' TERM HUP INT\nwhile :; do :; done\n")
    imported(t, put(t, "small.tar", tar(("INSIDE", "x"))), "--name", "small")
    for number in (signal.SIGKILL, signal.SIGTERM):
        process = t.popen(t.ward_argv("vm", "root", "small", wrap=wrap), root=True)
        t.wait_until(lambda: any(comm(pid) == "mkfs.erofs" for pid in descendants(process.pid)), 20,
                     "mkfs.erofs does not run")
        started = descendants(process.pid)
        process.send_signal(number)
        process.communicate()
        try:
            t.wait_until(lambda: not started & descendants(1), 10, "it goes on")
        finally:
            for pid in started & descendants(1):
                os.kill(pid, signal.SIGKILL)
    t.equal(t.ward("recover").rc, 0)


@needs("root", "unsanitized")
def test_why_an_image_is_not_packed(t):
    """It is mkfs.erofs that failed, not ward; and how."""
    imported(t, put(t, "small.tar", tar(("INSIDE", "x"))), "--name", "small")
    for end, said in (("kill -SEGV $$", "mkfs.erofs was ended by signal 11 (Segmentation fault)"),
                      ("echo WHY >&2; exit 3", "mkfs.erofs failed with exit status 3: WHY")):
        wrap, _ = instead_of_mkfs(t, f"#!/bin/sh\n{end}\n")
        r = t.ward("vm", "root", "small", wrap=wrap)
        t.equal((r.rc, r.err.split("\n")[1:]), (125, ["ward: the root of small: " + said, ""]))


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return ""
