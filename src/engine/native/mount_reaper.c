/*
 * The mount reaper: a process beside the supervisor that takes the sandbox's mounts apart. The
 * kernel takes a mount namespace apart when its last holder closes it, and makes that process wait
 * for every processor: ward-init's end would take several times as long, and the supervisor with
 * the sweep and the records behind it. So, where processors are idle, a process of its own holds
 * the namespace and ends as soon as ward-init is dead. It starts while the sandbox is being built,
 * when the supervisor has nothing to do, and is for short commands: if one runs for long, the
 * reaper is ended.
 *
 * Before that it unmounts the old root: it waits for the kernel where no process inside sees it.
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

static bool is_sandbox_dead(void *argument)
{
	const struct native_reaper *reaper = argument;
	struct pollfd dead = { .fd = reaper->pid_fd, .events = POLLIN };

	return raw_call(SYS_poll, &dead, 1, 0) > 0;
}

/* The duty of the old root's owner: see helper.c. */
static void unmount_old_root(struct native_reaper *reaper)
{
	const struct sync_peer sandbox = { .is_dead = is_sandbox_dead, .argument = reaper };
	struct native_child *c = &reaper->memory->child;
	long r = sync_wait(&c->sync, SYNC_ROOT_ENTERED_OUTSIDE, &sandbox);

	if (r == 0)
		r = native_enter_mounts(reaper->ns_fd);
	(void)!native_unmount_old_root(c, r);
}

static int reap_mounts(void *argument)
{
	struct native_reaper *reaper = argument;
	struct pollfd dead = { .fd = reaper->pid_fd, .events = POLLIN };

	raw_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	close_others(reaper);
	if (sync_get(&reaper->memory->child.sync.old_root_owner) != OLD_ROOT_BUILDER)
		unmount_old_root(reaper);
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
	/* a limit of processes may have no room for it */
	if (sync_get(&m->child.sync.old_root_owner) == OLD_ROOT_UNDECIDED)
		sync_set(&m->child.sync.old_root_owner,
			 pid < 0 ? OLD_ROOT_BUILDER : OLD_ROOT_REAPER);
	if (m->keep.count == 0) { /* else the supervisor's is for a run that takes long */
		own_close_fd(&run->mounts_fd);
		run->mounts_fd = -1;
	}
	run->reaper_pid = pid < 0 ? 0 : (pid_t)pid;
}

/* The reaper, or the sandbox that waits for what the reaper does. */
static bool is_reaper_or_sandbox_dead(void *argument)
{
	struct running *run = argument;
	struct pollfd sandbox = { .fd = run->pid_fd, .events = POLLIN };

	if (waitpid(run->reaper_pid, NULL, WNOHANG) == run->reaper_pid) {
		run->reaper_pid = 0;
		return true;
	}
	return poll(&sandbox, 1, 0) > 0;
}

/* The child waits for the old root, so the reaper must not be ended before. If it was killed, the
 * supervisor answers in its place. */
static void wait_for_old_root(struct running *run, struct native_child *c)
{
	const struct sync_peer peer = { .is_dead = is_reaper_or_sandbox_dead, .argument = run };

	if (sync_wait(&c->sync, SYNC_OLD_ROOT_OUTSIDE, &peer) < 0 && run->reaper_pid == 0)
		(void)!native_unmount_old_root(c, -ECHILD);
}

void native_stop_reaper(struct running *run)
{
	struct native_memory *m = run->child;
	struct native_sync *s = &m->child.sync;

	if (run->reaper_pid > 0 && sync_get(&s->old_root_owner) == OLD_ROOT_REAPER)
		wait_for_old_root(run, &m->child);
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
