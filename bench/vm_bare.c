/*
 * pid 1 of a guest that does the least that an exec can be: vfork, execve, wait. For bench/vm.py,
 * beside ward-vm-init in the same kernel with the same root: what that takes longer is ward's, the
 * rest is the machine's. In: ECHO and WORDS frames, one at a time. Out: the echo, or EXIT when the
 * program that the WORDS name has ended. It boots with ward's own code and has no limits, no user,
 * no pipes and no output.
 */
#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vm/guest/agent.h"

#define TYPE_AT 2 /* of a frame's head */

/* words: the program's path and a word for it, which may be empty. */
static uint32_t run(char *words)
{
	char *word = words + strlen(words) + 1, *argv[] = { words, *word ? word : NULL, NULL },
	     *envp[] = { NULL };
	int status = 0;
	pid_t pid = vfork();

	if (pid == 0) {
		execve(words, argv, envp);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		boot_die("vfork");
	return (uint32_t)status;
}

static void say(int fd, const void *bytes, size_t n)
{
	if (write(fd, bytes, n) != (ssize_t)n)
		boot_die("the port");
}

int main(void)
{
	static struct agent a;
	const struct vm_ready ready = { .version = VM_VERSION };

	boot_all(&a);
	say(a.port_fd, a.out, wire_put(a.out, VM_READY, 0, 0, &ready, sizeof(ready)));
	for (;;) {
		struct pollfd p = { .fd = a.port_fd, .events = POLLIN };
		ssize_t n = poll(&p, 1, -1) > 0 ? read(a.port_fd, a.in, sizeof(a.in)) : 0;

		if (n > TYPE_AT && a.in[TYPE_AT] == VM_ECHO)
			say(a.port_fd, a.in, (size_t)n);
		if (n > VM_HEAD_BYTES && a.in[TYPE_AT] == VM_WORDS) {
			uint32_t status = run((char *)a.in + VM_HEAD_BYTES);

			say(a.port_fd, a.out,
			    wire_put(a.out, VM_EXIT, 1, 0, &status, sizeof(status)));
		}
	}
}
