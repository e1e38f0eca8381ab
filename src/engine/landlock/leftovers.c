/*
 * Leftovers of the Landlock level. Runs in the supervisor, with its rights, after the sandbox's
 * init is dead. ward-init kills its whole Landlock domain, so there is something to do only if it
 * was itself killed from outside (the kernel's OOM killer). Its children are the supervisor's then.
 * They are known by their filters: inherited, never fewer, and the supervisor's other child (the
 * guardian) does not have them.
 */
#include "engine/landlock/leftovers.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/io.h"

#define ROUNDS_MAX 100000

/* The number behind a key of /proc/PID/status; -1: none. */
static long status_number(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtol(at + strlen(key), NULL, 10) : -1;
}

static bool is_leftover(pid_t pid, pid_t parent, long filters)
{
	auto_buf text = { 0 };
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (io_read_file(AT_FDCWD, path, 16384, &text) < 0)
		return false;
	return status_number(buf_text(&text), "\nPPid:\t") == parent &&
	       status_number(buf_text(&text), "\nSeccomp_filters:\t") > filters;
}

/* One pass over the processes; how many were killed. */
static unsigned kill_children(pid_t init_pid, long filters)
{
	auto_dir proc = opendir("/proc");
	struct dirent *entry;
	unsigned count = 0;

	while (proc && (entry = readdir(proc))) {
		pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;

		if (pid <= 1 || pid == init_pid || !is_leftover(pid, getpid(), filters))
			continue;
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		count++;
	}
	return count;
}

void leftovers_kill(pid_t init_pid)
{
	auto_buf own = { 0 };
	long filters;

	if (io_read_file(AT_FDCWD, "/proc/self/status", 16384, &own) < 0)
		return;
	filters = status_number(buf_text(&own), "\nSeccomp_filters:\t");
	if (filters < 0)
		return;
	for (unsigned rounds = 0; rounds < ROUNDS_MAX; rounds++)
		if (kill_children(init_pid, filters) == 0)
			return;
}
