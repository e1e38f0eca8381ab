"""From its first instruction on: reads the arguments of every process, while somebody outside keeps
ward's memory locked.

Pid 1 has ward's memory, and with it ward's arguments, until it is ward-init. The kernel takes a
lock on that memory on the way there: whoever has it makes that moment long.

layer: pid namespace
control: without a sandbox the arguments of a process of the same user are read
"""
from harness import engines, first

ENGINES = ("native", "oci")
ENGINES_WHY = "the first processes behind it never had ward's memory"
NEEDS = ("cc",)
ROUNDS = 150
ATTACK = r"""
static void attack(long argc, char **argv)
{
	char path[64];

	for (int turn = 0; turn < 20; turn++)
		for (long i = 1; i < argc; i++) {
			join(path, "/proc/", argv[i], "/cmdline");
			show(AT_FDCWD, path);
		}
}
"""
# Runs a command again and again, with its memory locked most of the time.
LOCK = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int began = 0;

	for (int i = atoi(argv[1]); i > 0; i--) {
		char path[64], byte;
		int go[2], fd, status;
		pid_t pid;

		if (pipe2(go, O_CLOEXEC) < 0 || (pid = fork()) < 0)
			return 1;
		if (pid == 0) {
			read(go[0], &byte, 1);
			execv(argv[2], argv + 2);
			_exit(127);
		}
		snprintf(path, sizeof(path), "/proc/%d/clear_refs", pid);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		write(go[1], "g", 1);
		while (waitpid(pid, &status, WNOHANG) == 0)
			if (fd < 0 || write(fd, "4", 1) < 0)
				usleep(50);
		began += WIFEXITED(status) && WEXITSTATUS(status) == 0;
		close(fd);
		close(go[0]);
		close(go[1]);
	}
	printf("%d began\n", began);
	return 0;
}
"""


def run(s):
    inside = first.program(s, ATTACK)
    if s.control:
        pid = s.t.popen(["sh", "-c", "read x # " + s.token, "sh"], stdin=-1).pid
        return s.token in s.t.run(inside, str(pid)).out
    rounds = engines.rounds(ROUNDS)
    # an argument of ward's that nothing inside is told
    argv = s.t.ward_argv("run", "-w", s.ws, "--report", f"{s.outside}/{s.token}", "--", inside,
                         *map(str, range(1, 9)))
    r = s.t.run(s.t.compile(LOCK), str(rounds), *argv, cwd=s.ws, timeout=240)
    s.t.contains(r.out, f"{rounds} began", "the attack's starts")
    return s.token in r.out


def test(t):
    import sys
    from harness import escape
    escape.run_both(t, sys.modules[__name__], run)
