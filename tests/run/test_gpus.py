"""Graphics processors: exactly those that the policy names exist inside. The machine's own are not
used: a mount namespace of the test has a /dev with nodes that are called like theirs, and what
their drivers say of them. (bench/gpu.py tries real ones.)"""
import json
import os

from harness import images, only_root, only_user
from harness.images import imported, put, tar

# zero and full in place of processors 0 and 1 (NVIDIA, on the bus in the other order), and of an
# AMD one
FAKE = r"""
set -e
d=$(mktemp -d); mount -t tmpfs -o mode=755 fake $d
for n in null:3 zero:5 full:7 random:8 urandom:9; do mknod -m 666 $d/${n%:*} c 1 ${n#*:}; done
mknod -m 666 $d/tty c 5 0; mkdir $d/pts $d/shm $d/dri; mount --bind /dev/pts $d/pts; ln -s pts/ptmx $d/ptmx
mknod -m 666 $d/nvidia0 c 1 5; mknod -m 666 $d/nvidia1 c 1 7; mknod -m 666 $d/nvidiactl c 1 3; mknod -m 666 $d/nvidia-uvm c 1 3; mknod -m 666 $d/nvidia-uvm-tools c 1 3; mknod -m 600 $d/sda b 8 0
mknod -m 660 $d/dri/renderD128 c 1 5; chgrp 4242 $d/dri/renderD128; mknod -m 666 $d/dri/card0 c 1 5; mknod -m 666 $d/kfd c 1 3
mount --move $d /dev; rmdir $d
mount -t tmpfs -o mode=755 fake /proc/driver; cd /proc/driver; mkdir -p nvidia/gpus/0000:01:00.0 nvidia/gpus/0000:02:00.0
printf 'Model: \t\t First H\nDevice Minor: \t 1\n' > nvidia/gpus/0000:01:00.0/information; printf 'Model: \t\t Second H\nDevice Minor: \t 0\n' > nvidia/gpus/0000:02:00.0/information
printf 'A: 1\nModifyDeviceFiles: 1\nB: 2\n' > nvidia/params; echo DRIVER-VERSION > nvidia/version; echo ONLY-THE-HOSTS > nvidia/registry
mount -t tmpfs -o mode=755 fake /sys/class; mkdir -p /sys/class/drm/renderD128 /sys/class/drm/card0 /sys/class/x/0000:09:00.0
echo 0x1002 > /sys/class/x/0000:09:00.0/vendor; ln -s ../../x/0000:09:00.0 /sys/class/drm/renderD128/device
cd /; eval "$CHANGE"; cd "$WS"; exec "$@"
"""
# what is in /dev beside that which every sandbox has
NODES = ("cd /dev; for n in * */*; do if [ -c $n ] && [ ! -L $n ]; then echo $n; fi; done | grep "
         "-v -x -E 'null|zero|full|u?random|tty|console|fd/.*|pts/.*'; ")


def fake(t, ws, *args, change="", **more):
    wrap = ["unshare", "-m", "env", f"CHANGE={change}", f"WS={ws}", "sh", "-c", FAKE, "sh"]
    return t.ward(*args, cwd=ws, wrap=wrap, **more)


def inside(t, ws, gpus, script, *options, rc=0, **more):
    r = fake(t, ws, "run", *options, "--gpus", gpus, "--", "sh", "-c", script, **more)
    t.equal(r.rc, rc, r.err)
    return r


def test_only_the_named_ones_exist(t):
    ws = t.workspace()
    nvidia = ["nvidia-uvm", "nvidiactl"]
    for gpus, nodes, facts in (("none", [], []), ("0", ["nvidia1"] + nvidia, ["0000:01:00.0"]),
                               ("1", ["nvidia0"] + nvidia, ["0000:02:00.0"]),
                               ("0,1", ["nvidia0", "nvidia1"] + nvidia,
                                ["0000:01:00.0", "0000:02:00.0"])):
        r = inside(t, ws, gpus, NODES + "echo =; ls /proc/driver/nvidia/gpus 2>/dev/null; true")
        got, _, said = r.out.partition("=\n")
        t.equal(sorted(got.split()), sorted(nodes), f"nodes of {gpus}")
        t.equal(said.split(), facts, f"facts of {gpus}")


def test_a_node_is_the_device_and_nothing_can_be_changed(t):
    ws = t.workspace()
    script = """head -c 2 /dev/nvidia0 | od -An -tx1; cp /etc/hostname /dev/nvidia1
echo == ; cat /proc/driver/nvidia/params /proc/driver/nvidia/version; cat /proc/driver/nvidia/registry
touch /dev/new; rm /dev/nvidia0; chmod 600 /dev/nvidia0; touch /proc/driver/nvidia/new; ls -d /sys /dev/kfd /dev/sda; true"""
    r = inside(t, ws, "0,1", script)
    bytes_read, _, rest = r.out.partition("==\n")
    t.equal(bytes_read.split(), ["00", "00"], "nvidia0 is the zero device")
    t.contains(r.err, "No space left", "nvidia1 is the full device")
    t.equal(rest.split("\n"), ["A: 1", "ModifyDeviceFiles: 0", "B: 2", "DRIVER-VERSION", ""])
    t.equal(r.err.count("Read-only file system"), 4, r.err)
    t.check("ONLY-THE-HOSTS" not in r.out and r.err.count("No such file") == 4, r.err)


@only_root
def test_roots_agent_gets_a_node_of_its_own_where_a_group_owns_it(t):
    ws = t.workspace()
    r = inside(t, ws, "2", NODES + "ls -l /dev/dri/renderD128; head -c 1 /dev/dri/renderD128 | od "
               "-An -tx1; chmod 666 /dev/dri/renderD128; ls /.ward/node; true")
    words = r.out.split()
    t.equal(words[:2], ["kfd", "dri/renderD128"])
    t.contains(r.out, "crw-------")
    t.equal(words[-1], "00", r.out + r.err)
    t.contains(r.err, "Read-only file system")


@only_user
def test_a_user_needs_the_group_of_a_render_node(t):
    ws = t.workspace()
    r = inside(t, ws, "2", "true", rc=125)
    t.check("the agent may not open /dev/dri/renderD128" in r.err and "group" in r.err, r.err)
    r = inside(t, ws, "2", "head -c 1 /dev/dri/renderD128 | od -An -tx1; ls /dev/dri",
               change=f"chgrp {os.stat(ws).st_gid} /dev/dri/renderD128")
    t.equal(r.out.split(), ["00", "renderD128"])


def test_what_is_not_there_is_refused(t):
    ws = t.workspace()
    real = os.path.exists("/proc/driver/nvidia")	# beneath those that the test shows instead
    for gpus, change, why, remedy in (("3", "", "there is no GPU 3: the last one is 2",
                                       "ward doctor"),
                                      ("0", "rm /dev/nvidia1", "has no device node /dev/nvidia1",
                                       "nvidia-modprobe -c 1"),
                                      ("0", "rm /dev/nvidia-uvm", "there is no /dev/nvidia-uvm",
                                       "modprobe nvidia-uvm"),
                                      ("0", "rm /dev/nvidia1; touch /dev/nvidia1",
                                       "has no device node /dev/nvidia1", "nvidia-modprobe"),
                                      ("all", "umount /proc/driver /sys/class; rm /dev/nvidia[01]",
                                       "this machine has no GPU", "gpus: none")):
        if gpus == "all" and real:
            continue
        r = inside(t, ws, gpus, "touch RAN", rc=125, change=change)
        t.check(why in r.err and remedy in r.err, f"{gpus} {change}: {r.err}")
    t.check(not os.path.exists(os.path.join(ws, "RAN")), "nothing was started")
    r = t.ward("run", "--gpus", "abc", "--", "true", cwd=ws)
    t.check(r.rc == 125 and "resources.gpus: expected none, all or a list of numbers" in r.err,
            r.err)
    r = t.ward("run", "--gpus", "0,x", "--", "true", cwd=ws)
    t.check(r.rc == 125 and "resources.gpus[1]: expected a whole number, from 0 to 63" in r.err,
            r.err)


def test_doctor_and_plan_show_them(t):
    ws = t.workspace()
    found = json.loads(fake(t, ws, "doctor", "--json").out)["gpus"]
    t.equal([(g["number"], g["vendor"], g["model"], g["node"], g["pci"]) for g in found],
            [(0, "NVIDIA", "First H", "/dev/nvidia1", "0000:01:00.0"),
             (1, "NVIDIA", "Second H", "/dev/nvidia0", "0000:02:00.0"),
             (2, "AMD", None, "/dev/dri/renderD128", "0000:09:00.0")])
    t.contains(fake(t, ws, "doctor").out,
               "\n  0                 First H, /dev/nvidia1, 0000:01:00.0")
    plan = json.loads(fake(t, ws, "plan", "--json", "--gpus", "1").out)
    t.equal((plan["gpus"], sorted(plan["devices"])),
            (["1: Second H /dev/nvidia0 at 0000:02:00.0"],
             ["/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidiactl"]))
    t.contains(fake(t, ws, "doctor", change="umount /proc/driver /sys/class; rm -rf /dev/nvidia* "
                    "/dev/dri").out, "\nGPUs\n  none found\n")
    # by the nodes alone where the driver says nothing
    found = json.loads(fake(t, ws, "doctor", "--json",
                            change="umount /proc/driver /sys/class").out)["gpus"]
    t.equal([g["node"] for g in found], ["/dev/nvidia0", "/dev/nvidia1"])


def test_an_image_gets_the_driver(t):
    imported(t, put(t, "base.tar", tar(*images.busybox_root())), "--name", "base")
    ws = t.workspace()
    change = """mount -t tmpfs -o mode=755 fake /run; mkdir -p /run/opengl-driver/lib; cd /run/opengl-driver/lib
echo THE-DRIVER > libcuda.so.9.9; ln -s libcuda.so.9.9 libcuda.so.1; ln -s /etc/passwd libnvidia-ml.so.1; echo OTHER > libother.so; echo PTX > libnvidia-ptxjitcompiler.so.9; echo NO > libnvidia-cfg.so.1; chmod 600 libnvidia-cfg.so.1"""
    if os.path.exists("/usr/lib/x86_64-linux-gnu/libcuda.so.1"):
        t.skip("this machine has a driver of its own")
    r = inside(t, ws, "0", NODES + "ls /.ward/gpu; cat $LD_LIBRARY_PATH/libcuda.so.1", "--image",
               "base", change=change)
    t.equal(r.out.split(), ["nvidia-uvm", "nvidia1", "nvidiactl", "libcuda.so.1", "libcuda.so.9.9",
                            "libnvidia-ptxjitcompiler.so.9", "THE-DRIVER"])
    r = inside(t, ws, "0", "ls /.ward/gpu", "--image", "base", rc=1)


def test_oci_has_them_too(t):
    ws = t.workspace()
    for runtime in ("runc", "crun"):
        options = ("--isolation", "oci", "--set", f"oci.runtime={runtime}")
        r = inside(t, ws, "0", NODES + "head -c 1 /dev/nvidia0 | od -An -tx1; chmod 600 "
                   "/dev/nvidia0 || true", *options, change="umount /proc/driver /sys/class")
        t.equal(sorted(r.out.split()), ["00", "nvidia-uvm", "nvidia0", "nvidiactl"], r.err)
        t.contains(r.err, "Read-only file system")
    # a node of the agent's own as root; a user needs the group
    r = inside(t, ws, "2", "head -c 1 /dev/dri/renderD128 | od -An -tx1", "--isolation", "oci",
               rc=0 if t.as_user == "root" else 125, change="umount /proc/driver")
    t.contains(r.out + r.err, "00" if t.as_user == "root" else "the agent may not open")
