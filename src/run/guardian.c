/*
 * Starting and dismissing the guardian. In: the sandbox's pidfd. Out: a tiny process in a session
 * of its own (see guest/init.c) that holds the other end of a pipe. It has the supervisor's rights,
 * because it must be able to remove the run's cgroup and to sweep the workspace, but it does
 * nothing until the supervisor is gone.
 */
#include "run/guardian.h"

#include <errno.h>
#include <fcntl.h>

int guardian_start(struct sidecar *g, int pid_fd)
{
	static const char *const argv[] = { "ward-guardian", "ward", "recover", NULL };
	auto_fd self = open("/proc/self/exe", O_PATH | O_CLOEXEC);

	return self < 0 ? -errno : sidecar_start(g, argv, (int[]){ pid_fd, self }, 2);
}
