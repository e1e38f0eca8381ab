/*
 * The end of the sandbox's mounts, beside the end of the run. The kernel takes a mount namespace
 * apart when the last who holds it lets go, and lets that one wait for every processor: ward-init's
 * end would take several times as long, and the supervisor with the sweep and the records behind
 * it. So, where processors are idle, a process of its own holds the namespace and lets go of it as
 * soon as ward-init is dead. It begins while the sandbox is being built, when the supervisor has
 * nothing to do, and is for short commands: if one lasts, it is ended.
 *
 * Before that it takes the old root away: it waits for the kernel where nobody inside sees it.
 *
 * That process shares the supervisor's memory, but has nothing else of it: every descriptor but
 * those it needs is closed, and it ends with the supervisor. It is waited for before ward itself
 * ends, so whoever waited for ward finds no mount of the sandbox's that keeps a file system busy.
 * Where the kernel has no such descriptors (before Linux 6.11), all is done in turn.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clone.h"
#include "base/raw.h"
#include "engine/native/native.h"

#define GET_MNT_NAMESPACE _IO(0xff, 3) /* PIDFD_GET_MNT_NAMESPACE, which headers do not have yet */

/* The lowest of its own descriptors from here on; UINT_MAX: none. */
static unsigned next_own(const struct native_holder *h, unsigned from)
{
	unsigned next = UINT_MAX;

	for (size_t i = 0; i < h->keep->count + 2; i++) {
		unsigned fd = (unsigned)(i == 0   ? h->pid_fd
					 : i == 1 ? h->ns_fd
						  : h->keep->fds[i - 2]);

		if (fd >= from && fd < next)
			next = fd;
	}
	return next;
}

static void close_others(const struct native_holder *h)
{
	unsigned from = 0, own = next_own(h, 0);

	for (; own != UINT_MAX; from = own + 1, own = next_own(h, from))
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

/* The old root goes from here: see helper.c. */
static void take_old_root(const struct native_holder *h)
{
	struct native_child *c = h->child;
	struct pollfd dead = { .fd = h->pid_fd, .events = POLLIN };
	const struct timespec a_while = { .tv_nsec = 20000000 };
	long r = 0;

	while (!__atomic_load_n(&c->entered, __ATOMIC_ACQUIRE) && r == 0)
		if (raw_call(SYS_futex, &c->entered, FUTEX_WAIT, 0, &a_while, 0, 0) == -ETIMEDOUT &&
		    raw_call(SYS_poll, &dead, 1, 0) > 0)
			r = -ESRCH;
	r = r < 0 ? r : native_enter_mounts(h->ns_fd);
	if (r == 0)
		native_take_old_root(c);
	else
		native_miss_old_root(c, r);
}

static int hold(void *argument)
{
	const struct native_holder *h = argument;
	struct pollfd dead = { .fd = h->pid_fd, .events = POLLIN };

	raw_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	close_others(h);
	if (h->child->outside)
		take_old_root(h);
	while (raw_call(SYS_poll, &dead, 1, -1) == -EINTR)
		;
	native_keep_together(h->keep);
	return 0; /* to leave is to let go */
}

void native_hold_mounts(struct running *run)
{
	const struct native_memory *m = run->child;
	/* a namespace: stage "view" is past */
	bool has_own = __atomic_load_n(&m->child.base_fd, __ATOMIC_ACQUIRE) >= 0;
	long fd = has_own ? raw_call(SYS_ioctl, run->pid_fd, GET_MNT_NAMESPACE, 0) : -ENOSYS;

	run->mounts_fd = fd < 0 ? -1 : (int)fd;
}

void native_begin_holder(struct running *run)
{
	/* native_discard() leaves it to the end of ward: it is used till then */
	struct native_memory *m = run->child;
	struct clone_child child = { .flags = CLONE_VM,
				     .stack = m->holder_stack,
				     .stack_bytes = sizeof(m->holder_stack),
				     .main = hold,
				     .argument = &m->holder };
	long pid;

	if (run->mounts_fd < 0)
		return;
	m->holder = (struct native_holder){ run->pid_fd, run->mounts_fd, &m->child, &m->keep };
	pid = clone_start(&child);
	/* a limit of processes has no room for it: the helper takes the old root away */
	if (pid < 0)
		m->child.outside = false;
	native_set(&m->child.held);
	if (m->keep.count == 0) { /* else ours is for the case that the run lasts */
		own_close_fd(&run->mounts_fd);
		run->mounts_fd = -1;
	}
	run->mounts_pid = pid < 0 ? 0 : (pid_t)pid;
}

/* Until the old root is gone, for which the child waits. False: whoever takes it away was
 * killed. */
static bool wait_for_old_root(const struct running *run, const struct native_child *c)
{
	struct pollfd dead = { .fd = run->pid_fd, .events = POLLIN };

	while (__atomic_load_n(&c->old_root_left, __ATOMIC_ACQUIRE) == NATIVE_NOT_YET &&
	       poll(&dead, 1, 1) <= 0)
		if (waitpid(run->mounts_pid, NULL, WNOHANG) == run->mounts_pid)
			return false;
	return true;
}

void native_end_holder(struct running *run)
{
	struct native_memory *m = run->child;

	if (run->mounts_pid > 0 && m->child.outside && !wait_for_old_root(run, &m->child)) {
		run->mounts_pid = 0;
		if (__atomic_load_n(&m->child.old_root_left, __ATOMIC_ACQUIRE) == NATIVE_NOT_YET)
			__atomic_store_n(&m->child.old_root_left, -ECHILD, __ATOMIC_RELEASE);
	}
	/* one that is at it must not be stopped halfway: what it has begun would go on in the
	 * memory that the next one uses */
	if (run->mounts_pid <= 0 || __atomic_exchange_n(&m->keep.taken, true, __ATOMIC_ACQ_REL))
		return;
	kill(run->mounts_pid, SIGKILL);
	while (waitpid(run->mounts_pid, NULL, 0) < 0 && errno == EINTR)
		;
	run->mounts_pid = 0;
	m->keep.taken = false;
}
