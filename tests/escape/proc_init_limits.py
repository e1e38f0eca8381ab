"""Takes from pid 1 of its sandbox what it needs to serve the operator (ward exec, cp, pause): its
limits, its processor, its place in the queue. It has the agent's own id.

layer: seccomp
control: in a throw-away pid namespace, where pid 1 belongs to the same user
"""
CONTROL = "unshare -Urpf --mount-proc"
CONTROL_SHELL = '"$@"; exit $?'
ENGINES = ("native", "oci")
ENGINES_WHY = "pid 1 behind it is not what the operator's commands go through"


def attack(a):
    import resource

    def limit(number):
        resource.prlimit(1, number, (0, 0))
        print("took: limit", number)

    def priority(which, who):
        os.setpriority(which, who, 19)
        if os.getpriority(os.PRIO_PROCESS, 1) == 19:
            print("took: priority")

    def queue():
        os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))
        print("took: place in the queue")

    def processor():
        os.sched_setaffinity(1, {min(os.sched_getaffinity(0))})
        print("took: processor")
    for number in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_DATA,
                   resource.RLIMIT_SIGPENDING):
        attempt(limit, number)
    for which, who in ((os.PRIO_PROCESS, 1), (os.PRIO_PGRP, 1), (os.PRIO_USER, 0),
                       (os.PRIO_USER, os.getuid())):
        attempt(priority, which, who)
    attempt(processor)
    attempt(queue)
    attempt(limit, resource.RLIMIT_CPU)


def escaped(s, r):
    return "took:" in r.out
