/*
 * The mount reaper: a process beside the supervisor that takes the sandbox's mounts apart. The
 * kernel takes a mount namespace apart when its last holder closes it, and makes that process wait
 * for every processor: ward-init's end would take several times as long, and the supervisor with
 * the sweep and the records behind it. So, where processors are idle, a process of its own holds
 * the namespace and ends as soon as ward-init is dead. It starts while the sandbox is being built,
 * when the supervisor has nothing to do, and is for short commands: if one runs for long, the
 * reaper is ended.
 *
 * The reaper shares the supervisor's memory, but has nothing else of it: every descriptor but those
 * it needs is closed, and it ends with the supervisor. The supervisor waits for it before ward
 * itself ends, so that no mount of the sandbox's keeps a file system busy after that. Where the
 * kernel has no such descriptors (before Linux 6.11), all is done in turn.
 */
#include <errno.h>
#include <limits.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/clone.h"
#include "base/raw.h"
#include "engine/native/native.h"
#include "start_tricks.h"

#define GET_MNT_NAMESPACE _IO(0xff, 3) /* PIDFD_GET_MNT_NAMESPACE, which headers do not have yet */

/* The lowest of its own descriptors from here on; UINT_MAX: none. */
static unsigned next_own(const struct native_reaper *reaper, unsigned from)
{
	const struct native_keep *keep = &reaper->memory->keep;
	unsigned next = UINT_MAX;

	for (size_t i = 0; i < keep->count + 2; i++) {
		unsigned fd = (unsigned)(i == 0   ? reaper->pid_fd
					 : i == 1 ? reaper->ns_fd
						  : keep->fds[i - 2]);

		if (fd >= from && fd < next)
			next = fd;
	}
	return next;
}

static void close_others(const struct native_reaper *reaper)
{
	unsigned from = 0, own = next_own(reaper, 0);

	for (; own != UINT_MAX; from = own + 1, own = next_own(reaper, from))
		if (own > from)
			raw_call(SYS_close_range, from, own - 1, 0);
	raw_call(SYS_close_range, from, ~0U, 0);
}

long native_enter_mounts(int ns_fd)
{
	long user_fd = raw_call(SYS_ioctl, ns_fd, NS_GET_USERNS, 0);
	long r = user_fd < 0 ? user_fd : raw_call(SYS_setns, user_fd, CLONE_NEWUSER);

	if (r == 0)
		r = raw_call(SYS_setns, ns_fd, CLONE_NEWNS);
	if (user_fd >= 0)
		raw_call(SYS_close, user_fd);
	return r;
}

static int reap_mounts(void *argument)
{
	struct native_reaper *reaper = argument;
	struct pollfd dead = { .fd = reaper->pid_fd, .events = POLLIN };

	raw_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	close_others(reaper);
	while (raw_call(SYS_poll, &dead, 1, -1) == -EINTR)
		;
	native_keep_together(reaper->memory);
	return 0; /* the namespace's last descriptor closes here */
}

void native_pin_mounts(struct running *run)
{
	const struct native_memory *m = run->child;
	/* a namespace: stage "view" is past */
	bool has_own = TRICK_REAPER && __atomic_load_n(&m->child.base_fd, __ATOMIC_ACQUIRE) >= 0;
	long fd = has_own ? raw_call(SYS_ioctl, run->pid_fd, GET_MNT_NAMESPACE, 0) : -ENOSYS;

	run->mounts_fd = fd < 0 ? -1 : (int)fd;
}

void native_start_reaper(struct running *run)
{
	/* native_discard() leaves it to the end of ward: it is used till then */
	struct native_memory *m = run->child;
	struct clone_child child = { .flags = CLONE_VM,
				     .stack = m->reaper_stack,
				     .stack_bytes = sizeof(m->reaper_stack),
				     .main = reap_mounts,
				     .argument = &m->reaper };
	long pid;

	if (run->mounts_fd < 0)
		return;
	m->reaper = (struct native_reaper){ run->pid_fd, run->mounts_fd, m };
	pid = clone_start(&child);
	if (m->keep.count == 0) { /* else the supervisor's is for a run that takes long */
		own_close_fd(&run->mounts_fd);
		run->mounts_fd = -1;
	}
	/* a limit of processes may have no room for it */
	run->reaper_pid = pid < 0 ? 0 : (pid_t)pid;
}

void native_stop_reaper(struct running *run)
{
	struct native_memory *m = run->child;
	struct native_sync *s = &m->child.sync;

	/* one that is at work must not be stopped halfway: what it has begun would go on in the
	 * memory that the next one uses */
	if (run->reaper_pid <= 0 || !sync_claim(&s->keep_claimed))
		return;
	kill(run->reaper_pid, SIGKILL);
	while (waitpid(run->reaper_pid, NULL, 0) < 0 && errno == EINTR)
		;
	run->reaper_pid = 0;
	s->keep_claimed = false;
}
