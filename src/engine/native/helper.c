/*
 * The helper: a second process that builds beside the child where processors are idle. It shares
 * memory and descriptors, has the child's rights (the capabilities of the sandbox's own user
 * namespace) and is gone before anything of the sandbox's runs.
 *
 * Two pieces of work are as long as everything else and need nothing of each other: the network
 * namespace, which is the kernel's slowest part of a start, and the stages that
 * tables/native_stages.def calls EITHER's: the plan's mounts. Whoever is free takes the next one.
 * With three processors the helper begins at once, with the network. With two it waits, on the
 * supervisor's, until the supervisor has given the word and steps back: then the child is in the
 * midst of the network namespace, and the helper mounts. It stays off the child's processor: the
 * kernel would wake it there at times, behind the network namespace, which lets nobody in between.
 * If the supervisor takes long (a large workspace is being looked through) the child comes to both
 * first, and if it is late with the first thing that the child needs of it (the machine is busy
 * with what ran before), the child makes the network namespace meanwhile. Without a helper the
 * child does them in turn.
 *
 * The helper takes the old root away, too, when the child has left it: the kernel lets whoever does
 * that wait for every processor, and the child puts on its last layers meanwhile. Where somebody
 * outside holds the sandbox's mounts (mounts_end.c) that one does it: nobody inside sees that
 * process, so the command need not wait for the kernel then.
 *
 * A helper that is killed says nothing: a network namespace that it owed is made by the child,
 * mounts that it had begun end the start.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clone.h"
#include "base/raw.h"
#include "engine/native/native.h"

/* about a tenth of a millisecond: sleeping and being woken would take a good part of that */
#define SPINS 4000

/* The other one works on a processor of its own and is done soon, as a rule. */
static void spin(const uint32_t *futex)
{
	for (int i = 0; i < SPINS && !__atomic_load_n(futex, __ATOMIC_ACQUIRE); i++)
		__builtin_ia32_pause();
}

void native_wait_for(uint32_t *futex)
{
	while (!__atomic_load_n(futex, __ATOMIC_ACQUIRE))
		raw_call(SYS_futex, futex, FUTEX_WAIT, 0, 0, 0, 0);
}

void native_set(uint32_t *futex)
{
	__atomic_store_n(futex, 1, __ATOMIC_RELEASE);
	/* helper and holder may wait for the same */
	raw_call(SYS_futex, futex, FUTEX_WAKE, INT_MAX, 0, 0, 0);
}

static bool take(bool *taken)
{
	return !__atomic_exchange_n(taken, true, __ATOMIC_ACQ_REL);
}

static void make_net(struct native_child *c)
{
	native_net_make(c);
	native_set(&c->net_done);
}

static void do_either(struct native_child *c)
{
	/* the working directory is the helper's own */
	long r = raw_call(SYS_fchdir, c->base_fd);

	if (r == 0)
		r = native_either(c, &c->helper_stage);
	/* the way out is opened with the old root in view, by the child */
	if (r == 0 && !c->net.on) {
		c->helper_stage = "pivot";
		r = native_enter_root(c);
	}
	if (r == 0 && !c->net.on) {
		c->helper_stage = "landlock";
		r = native_landlock_rules(c);
	}
	c->helper_error = r;
	native_set(&c->either_done);
}

/* ".." leads from the root to what lies over it. */
static bool is_old_root_gone(void)
{
	struct stat root, over;

	return raw_call(SYS_newfstatat, AT_FDCWD, "/", &root, 0) == 0 &&
	       raw_call(SYS_newfstatat, AT_FDCWD, "/..", &over, 0) == 0 &&
	       root.st_dev == over.st_dev && root.st_ino == over.st_ino;
}

/* What lies over the new root is the old one, whoever entered it: pivot_root moves every process of
 * the namespace. Nobody looks for it twice: beneath it is the new one. */
void native_take_old_root(struct native_child *c)
{
	if (__atomic_load_n(&c->entered, __ATOMIC_ACQUIRE) && take(&c->old_root_taken))
		__atomic_store_n(&c->old_root_left, raw_call(SYS_umount2, "/", MNT_DETACH),
				 __ATOMIC_RELEASE);
}

void native_miss_old_root(struct native_child *c, long error)
{
	if (take(&c->old_root_taken))
		__atomic_store_n(&c->old_root_left, error, __ATOMIC_RELEASE);
}

static int help(void *argument)
{
	struct native_child *c = argument;

	native_wait_for(&c->go);
	__atomic_store_n(&c->helping, true, __ATOMIC_RELEASE);
	if (take(&c->net_taken))
		make_net(c);
	native_wait_for(&c->system_done);
	if (take(&c->either_taken))
		do_either(c);
	if (c->go_at_once) /* else the supervisor waits for this processor */
		spin(&c->entered);
	native_wait_for(&c->entered);
	if (c->outside)
		native_wait_for(&c->held);
	if (!c->outside)
		native_take_old_root(c);
	return 0;
}

/* where somebody else has it, a new process waits for milliseconds */
#define AT_ONCE_NS 500000

uint64_t native_now(void)
{
	struct timespec now = { 0 };

	raw_call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void native_look_around(struct native_child *c)
{
	unsigned cpu = c->cpu;

	__atomic_store_n(&c->began, true, __ATOMIC_RELEASE);
	if (!c->apart && c->launched_ns && raw_call(SYS_getcpu, &cpu, 0, 0) == 0 && cpu != c->cpu)
		c->apart = native_now() - c->launched_ns < AT_ONCE_NS;
}

void native_put_on(const struct native_child *c, long pid, const cpu_set_t *where)
{
	if (raw_call(SYS_sched_setaffinity, pid, sizeof(*where), where) >= 0)
		raw_call(SYS_sched_setaffinity, pid, sizeof(c->cpus), &c->cpus);
}

void native_move_away(const struct native_child *c, long pid)
{
	cpu_set_t others = c->cpus;
	unsigned cpu;

	if (!c->apart || raw_call(SYS_getcpu, &cpu, 0, 0) < 0)
		return;
	CPU_CLR(cpu, &others);
	native_put_on(c, pid, &others);
}

long native_helper_begin(struct native_child *c)
{
	struct clone_child helper = { .flags = CLONE_VM | CLONE_FILES,
				      .stack = c->helper_stack,
				      .stack_bytes = sizeof(c->helper_stack),
				      .main = help,
				      .argument = c };
	long r;

	if (!c->apart || c->alone)
		return 0;
	c->helper_error = -ECHILD; /* what one that is killed leaves behind */
	r = clone_start(&helper);
	if (r == -EAGAIN)
		return 0; /* a limit of processes has no room for it */
	if (r < 0)
		return r;
	raw_call(SYS_sched_setaffinity, r, sizeof(c->here), &c->here); /* for its short life */
	__atomic_store_n(&c->helper_pid, r, __ATOMIC_RELEASE);
	return 0;
}

void native_helper_go(struct native_child *c)
{
	native_set(&c->go);
}

void native_give_way(struct native_child *c)
{
	enum { TURNS = 8 }; /* others may wait for this processor, too */

	native_helper_go(c);
	for (int i = 0; i < TURNS && __atomic_load_n(&c->helper_pid, __ATOMIC_ACQUIRE) > 0 &&
			!__atomic_load_n(&c->helping, __ATOMIC_ACQUIRE);
	     i++)
		sched_yield();
}

/* Until what the helper has taken is done; false: it was killed before. */
static bool wait_for_helper(struct native_child *c, uint32_t *done)
{
	const struct timespec a_while = { .tv_nsec = 20000000 };

	spin(done);
	while (!__atomic_load_n(done, __ATOMIC_ACQUIRE)) {
		if (raw_call(SYS_futex, done, FUTEX_WAIT, 0, &a_while, 0, 0) != -ETIMEDOUT)
			continue;
		if (c->helper_pid) /* somebody else has its processor */
			raw_call(SYS_sched_setaffinity, c->helper_pid, sizeof(c->cpus), &c->cpus);
		if (c->helper_pid &&
		    raw_call(SYS_wait4, c->helper_pid, 0, WNOHANG | __WALL, 0) != c->helper_pid)
			continue;
		c->helper_pid = 0;
		if (!c->outside)
			native_take_old_root(c);
		if (!c->outside && c->old_root_left < 0)
			/* behind Landlock nobody can: that it is dead is the reason */
			c->old_root_left = -ECHILD;
		return __atomic_load_n(done, __ATOMIC_ACQUIRE); /* its last deed */
	}
	return true;
}

long native_share(struct native_child *c)
{
	if (c->helper_pid)
		native_set(&c->system_done);
	return 0;
}

long native_net_take(struct native_child *c)
{
	if (!take(&c->net_taken))
		return 0;
	c->net_own = true;
	make_net(c);
	return 0; /* native_net_enter() looks how that went */
}

/* the supervisor is about to say it, as a rule; what the helper does later cannot begin before
 * that */
#define SOON_NS 100000

static bool said_soon(const struct native_child *c)
{
	struct pollfd said = { .fd = c->control_fd, .events = POLLIN };
	uint64_t until = c->apart ? native_now() + SOON_NS : 0;

	do {
		if (raw_call(SYS_poll, &said, 1, 0) != 0)
			return true;
	} while (until && native_now() < until);
	return false;
}

/* With three processors it is the helper's: that is at it already, or will be in a moment. */
long native_net_ahead(struct native_child *c)
{
	return (c->helper_pid && c->go_at_once) || said_soon(c) ? 0 : native_net_take(c);
}

long native_meet(struct native_child *c)
{
	if (take(&c->either_taken)) {
		c->failed_path = NULL;
		return 0; /* the stages that follow do it */
	}
	c->helped = true;
	if (wait_for_helper(c, &c->either_done) && c->helper_error == 0)
		return 0;
	if (c->helper_stage)
		c->failed_stage = c->helper_stage;
	return c->helper_error;
}

long native_net_enter(struct native_child *c)
{
	long r = 0;

	if (c->layers[LAYER_NET] == LAYER_IN_FORCE)
		return 0;
	if (!c->net_own && wait_for_helper(c, &c->net_done) && c->net_fd >= 0)
		r = raw_call(SYS_setns, c->net_fd, CLONE_NEWNET);
	else if (!c->net_own)
		r = -ECHILD;
	if (r < 0) {
		c->net_own = true;
		native_net_make(c); /* no helper any more, or an outer filter */
	}
	if (c->net_fd < 0)
		return c->net_fd;
	c->layers[LAYER_NET] = LAYER_IN_FORCE;
	return 0;
}

long native_enter_root(struct native_child *c)
{
	long r = raw_call(SYS_fchdir, c->base_fd);

	if (r == 0)
		r = raw_call(SYS_pivot_root, ".", ".");
	if (r < 0)
		return r;
	native_set(&c->entered);
	return 0;
}

long native_leave_old_root(struct native_child *c)
{
	long r;

	if (c->helper_pid > 0) {
		native_helper_go(c); /* there is nothing else for it to do */
		return 0;
	}
	native_take_old_root(c); /* with somebody outside, whoever is first */
	r = __atomic_load_n(&c->old_root_left, __ATOMIC_ACQUIRE);
	return c->outside && r == NATIVE_NOT_YET ? 0 : r; /* it is at it */
}

/* It is out of everybody's reach before the kernel is done with it, which takes a while: who does
 * that is not seen in here, and need not be waited for. Without a supervisor nobody does any
 * more. */
static long wait_until_gone(const struct native_child *c)
{
	/* half a minute: the kernel makes a little more of each */
	enum { SPUN = 100, TURNS = 300000 };
	const struct timespec a_while = { .tv_nsec = 30000 };
	struct pollfd supervisor = { .fd = c->control_fd };

	for (int i = 0; i < SPUN + TURNS &&
			__atomic_load_n(&c->old_root_left, __ATOMIC_ACQUIRE) == NATIVE_NOT_YET;
	     i++) {
		struct timespec left = a_while; /* the kernel writes into it */

		if (is_old_root_gone())
			return 0;
		raw_call(SYS_sched_yield); /* it may have been put on our processor */
		if (i >= SPUN && raw_call(SYS_ppoll, &supervisor, 1, &left, 0, 8) > 0)
			return -ECONNRESET;
	}
	return is_old_root_gone() ? 0 : __atomic_load_n(&c->old_root_left, __ATOMIC_ACQUIRE);
}

/* As late as can be: its own end takes the helper a while. */
long native_end_helper(struct native_child *c)
{
	long r;

	do
		r = c->helper_pid > 0 ? raw_call(SYS_wait4, c->helper_pid, 0, __WALL, 0) : 0;
	while (r == -EINTR);
	r = c->outside ? wait_until_gone(c) : c->old_root_left;
	return r == NATIVE_NOT_YET ? -ECHILD : r; /* whoever owed that was killed */
}
