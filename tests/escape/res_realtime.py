"""Takes the processors with real-time priority.

layer: no capabilities
control: root without a sandbox gets it
"""
ENGINES = ("native", "oci", "vm")
ENGINES_WHY = "what it reaches is the inner runtime's own kernel, not the host's"
CONTROL = "root"


def attack(a):
    for policy in (os.SCHED_FIFO, os.SCHED_RR):
        try:
            os.sched_setscheduler(0, policy, os.sched_param(1))
            print("got:", policy)
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        except OSError as error:
            print(error)
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -5)
        print("got: priority")
    except OSError as error:
        print(error)


def escaped(s, r):
    return "got:" in r.out
