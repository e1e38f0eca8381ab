"""From its first instruction on: looks for the host's tree, which lay over the new root until just
before.

layer: mount namespace
control: the same user without a sandbox reads the file in the same ways
"""
from harness import engines, first

NEEDS = ("cc",)
ROUNDS = 100
# by processors, sets of system calls, network
KINDS = ([], ["--set", "process.syscalls=strict"], ["--set", "process.syscalls=build"],
         ["--set", "process.nesting=true"], ["--allow", "example.com"])
ATTACK = r"""
static void attack(long argc, char **argv)
{
	static const char *const ways[] = { "/..",
					    "/../..",
					    "/proc/self/root/..",
					    "/proc/self/cwd/../../../../../../../..",
					    "/proc/1/root",
					    "/proc/1/root/..",
					    "/proc/1/cwd",
					    "/proc/2/root",
					    "/proc/2/cwd",
					    "/proc/3/root",
					    "../../../../../../../../..",
					    "/proc/thread-self/root/.." };
	char path[4096];

	for (int turn = 0; turn < 20; turn++) {
		long root_fd, up_fd;

		for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
			join(path, ways[i], argv[1], "");
			if (show(AT_FDCWD, path))
				return;
		}
		root_fd = CALL(openat, AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
		up_fd = CALL(openat, root_fd, "..", O_PATH | O_DIRECTORY, 0);
		if (show(up_fd, argv[1] + 1))
			return;
		CALL(close, up_fd, 0, 0, 0);
		CALL(close, root_fd, 0, 0, 0);
	}
}
"""


def run(s):
    inside, path = first.program(s, ATTACK), s.secret()
    if s.control:
        return s.token in s.t.run(inside, path, cwd=s.ws).out
    kinds = KINDS if not engines.asked() else KINDS[:1]
    for options in kinds:
        for _ in range(engines.rounds(ROUNDS) // len(kinds)):
            r = s.t.ward("run", "-w", s.ws, *options, "--", inside, path, cwd=s.ws,
                         timeout=s.timeout)
            s.t.contains(r.err, "[attack began]", "what was said")
            if s.token in r.out:
                return True
            del s.t.log[20:]
    return False


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
