/*
 * The helper: a second process that builds beside the child where processors are idle. It shares
 * memory and descriptors, has the child's rights (the capabilities of the sandbox's own user
 * namespace) and is gone before anything of the sandbox's runs.
 *
 * Two pieces of work are as long as everything else and need nothing of each other: the network
 * namespace, which is the kernel's slowest part of a start, and the stages that
 * tables/native_stages.def calls EITHER's: the plan's mounts. The process that is free claims the
 * next one. With three processors the helper begins at once, with the network. With two it waits,
 * on the supervisor's, until the supervisor has sent the plan: then the child is in the midst of
 * the network namespace, and the helper mounts. It stays off the child's processor: the kernel
 * would wake it there at times, behind the network namespace, which is not preempted. If the
 * supervisor takes long (a large workspace is being scanned) the child comes to both first. Without
 * a helper the child does them in turn.
 *
 * One process unmounts the old root, because the kernel makes the caller wait for every processor:
 * the helper, while the child puts on its last layers; without a helper the child.
 *
 * A helper that is killed reports nothing: a network namespace that it owed is made by the child,
 * mounts that it had begun, or an old root that it owed, end the start. docs/start.md has the
 * sequence, tables/start_sync.def every word.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clone.h"
#include "base/raw.h"
#include "engine/native/native.h"
#include "start_tricks.h"

static void make_net(struct native_child *c)
{
	native_net_make(c);
	sync_set(&c->sync.net_done, 1);
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
	sync_set(&c->sync.mounts_done, 1);
}

/* What lies over the new root is the old one in every process of the namespace: pivot_root moves
 * them all. To be called once: beneath the old root is the new one. */
static long unmount_old_root(struct native_child *c)
{
	c->old_root_error = raw_call(SYS_umount2, "/", MNT_DETACH);
	return c->old_root_error;
}

static int help(void *argument)
{
	struct native_child *c = argument;

	sync_wait(&c->sync, SYNC_HELPER_GO, NULL);
	if (sync_claim(&c->sync.net_claimed))
		make_net(c);
	sync_wait(&c->sync, SYNC_SYSTEM_DONE, NULL);
	if (sync_claim(&c->sync.mounts_claimed))
		do_either(c);
	/* without a processor of its own it must not spin: the supervisor waits for that one */
	sync_wait(&c->sync, c->go_at_once ? SYNC_ROOT_ENTERED_SOON : SYNC_ROOT_ENTERED, NULL);
	unmount_old_root(c);
	return 0;
}

/* where another process has the processor, a new one waits for milliseconds */
#define AT_ONCE_NS 500000

uint64_t native_now(void)
{
	struct timespec now = { 0 };

	raw_call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void native_note_cpu(struct native_child *c)
{
	unsigned cpu = c->cpu;

	__atomic_store_n(&c->child_began, true, __ATOMIC_RELEASE);
	if (!c->parallel && c->launched_ns && raw_call(SYS_getcpu, &cpu, 0, 0) == 0 &&
	    cpu != c->cpu)
		c->parallel = native_now() - c->launched_ns < AT_ONCE_NS;
}

void native_put_on(const struct native_child *c, long pid, const cpu_set_t *where)
{
	if (TRICK_PLACEMENT && raw_call(SYS_sched_setaffinity, pid, sizeof(*where), where) >= 0)
		raw_call(SYS_sched_setaffinity, pid, sizeof(c->cpus), &c->cpus);
}

void native_move_away(const struct native_child *c, long pid)
{
	cpu_set_t others = c->cpus;
	unsigned cpu;

	if (!c->parallel || raw_call(SYS_getcpu, &cpu, 0, 0) < 0)
		return;
	CPU_CLR(cpu, &others);
	native_put_on(c, pid, &others);
}

long native_start_helper(struct native_child *c)
{
	struct clone_child helper = { .flags = CLONE_VM | CLONE_FILES,
				      .stack = c->helper_stack,
				      .stack_bytes = sizeof(c->helper_stack),
				      .main = help,
				      .argument = c };
	long r;

	if (!TRICK_HELPER || !c->parallel || c->no_helper)
		return 0;
	c->helper_error = -ECHILD; /* what one that is killed leaves behind */
	r = clone_start(&helper);
	if (r == -EAGAIN)
		return 0; /* a limit of processes has no room for it */
	if (r < 0)
		return r;
	if (TRICK_PLACEMENT) /* for its short life */
		raw_call(SYS_sched_setaffinity, r, sizeof(c->here), &c->here);
	__atomic_store_n(&c->helper_pid, r, __ATOMIC_RELEASE);
	return 0;
}

void native_allow_helper(struct native_child *c)
{
	sync_set(&c->sync.helper_go, 1);
}

static bool is_helper_dead(void *argument)
{
	struct native_child *c = argument;

	if (c->helper_pid) /* another process has its processor */
		raw_call(SYS_sched_setaffinity, c->helper_pid, sizeof(c->cpus), &c->cpus);
	if (c->helper_pid &&
	    raw_call(SYS_wait4, c->helper_pid, 0, WNOHANG | __WALL, 0) != c->helper_pid)
		return false;
	c->helper_pid = 0;
	return true;
}

/* Until what the helper has claimed is done; false: it was killed before. */
static bool wait_for_helper(struct native_child *c, enum sync_wait wait)
{
	const struct sync_peer helper = { .is_dead = is_helper_dead, .argument = c };

	return sync_wait(&c->sync, wait, &helper) == 0;
}

long native_share(struct native_child *c)
{
	if (c->helper_pid)
		sync_set(&c->sync.system_done, 1);
	return 0;
}

long native_net_take(struct native_child *c)
{
	if (!sync_claim(&c->sync.net_claimed))
		return 0;
	c->net_own = true;
	make_net(c);
	return 0; /* native_net_enter() looks how that went */
}

long native_meet(struct native_child *c)
{
	if (sync_claim(&c->sync.mounts_claimed)) {
		c->failed_path = NULL;
		return 0; /* the stages that follow do it */
	}
	c->helped = true;
	if (wait_for_helper(c, SYNC_MOUNTS_DONE) && c->helper_error == 0)
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
	if (!c->net_own && wait_for_helper(c, SYNC_NET_DONE) && c->net_fd >= 0)
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
	return native_net_names(c);
}

long native_enter_root(struct native_child *c)
{
	long r = raw_call(SYS_fchdir, c->base_fd);

	if (r == 0)
		r = raw_call(SYS_pivot_root, ".", ".");
	if (r < 0)
		return r;
	sync_set(&c->sync.root_entered, 1);
	return 0;
}

long native_leave_old_root(struct native_child *c)
{
	if (c->helper_pid <= 0)
		return unmount_old_root(c);
	native_allow_helper(c); /* the old root is all that is left for it to do */
	return 0;
}

/* As late as can be: its own end takes the helper a while. */
long native_end_helper(struct native_child *c)
{
	long r;

	do
		r = c->helper_pid > 0 ? raw_call(SYS_wait4, c->helper_pid, 0, __WALL, 0) : 0;
	while (r == -EINTR);
	return c->old_root_error;
}
