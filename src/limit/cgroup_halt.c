/*
 * The emergency stop of one sandbox by its cgroup. In: a directory that cgroup_open_named() has
 * checked. Out: its processes run no further instruction (cgroup_halt), then are dead (cgroup_end).
 * Runs in `ward kill --all` and `ward panic`, beside the supervisor, which may hang: nothing is
 * asked of it. Nothing is written to a disk and nothing waits.
 *
 * Version 2 has a freezer in the same directory, and cgroup.kill ends what is frozen. In version 1
 * a process must be moved to the freezer's directory first, which takes milliseconds each; there
 * every process gets a SIGKILL at once, which has the same effect: a process with a SIGKILL pending
 * does not return to its program. pids.max 0 comes first where the directory has it: then the list
 * can only get shorter; elsewhere the end of the first process ends what was forked meanwhile. A
 * number is used only after a second look at the list with the process held by a pidfd.
 */
#include "limit/cgroup_kind.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/pidfd.h>

#include "base/io.h"

#define PIDS_MAX 65536 /* more are ended by the end of their first process */
#define HELD_MAX 128   /* pidfds at a time */

static int compare_pids(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Kills those of a part of the list that are still listed once they are held. */
static void kill_part(int dir_fd, const pid_t *part, size_t count, pid_t *again)
{
	int fds[HELD_MAX];
	ssize_t n;

	for (size_t i = 0; i < count; i++)
		fds[i] = part[i] == getpid() ? -1 : pidfd_open(part[i], 0);
	n = cgroup_read_pids(dir_fd, again, PIDS_MAX);
	n = n > PIDS_MAX ? PIDS_MAX : n;
	if (n > 0)
		qsort(again, (size_t)n, sizeof(*again), compare_pids);
	for (size_t i = 0; i < count; i++) {
		if (fds[i] >= 0 && n > 0 &&
		    bsearch(&part[i], again, (size_t)n, sizeof(*again), compare_pids))
			(void)!pidfd_send_signal(fds[i], SIGKILL, NULL, 0);
		own_close_fd(&fds[i]);
	}
}

static ssize_t kill_listed(int dir_fd)
{
	auto_free pid_t *pids = calloc(PIDS_MAX, sizeof(*pids));
	auto_free pid_t *again = calloc(PIDS_MAX, sizeof(*again));
	ssize_t n = pids && again ? cgroup_read_pids(dir_fd, pids, PIDS_MAX) : -ENOMEM;
	size_t count = n < 0 ? 0 : n > PIDS_MAX ? PIDS_MAX : (size_t)n;

	for (size_t i = 0; i < count; i += HELD_MAX)
		kill_part(dir_fd, pids + i, count - i < HELD_MAX ? count - i : HELD_MAX, again);
	return n;
}

ssize_t cgroup_halt(int dir_fd)
{
	int r = io_write_file(dir_fd, "cgroup.freeze", "1");

	if (r == 0)
		return 1;
	(void)!io_write_file(dir_fd, "pids.max", "0"); /* only that controller has it */
	return kill_listed(dir_fd);
}

void cgroup_end(int dir_fd)
{
	if (io_write_file(dir_fd, "cgroup.kill", "1") < 0 && kill_listed(dir_fd) < 0)
		return; /* it is gone */
	/* v1: what is frozen does not die, and with a SIGKILL pending it executes nothing more */
	(void)!io_write_file(dir_fd, "freezer.state", "THAWED");
}
