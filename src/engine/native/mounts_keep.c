/*
 * Guards outlive the sandbox. In: a dead sandbox whose mount namespace a descriptor still holds,
 * and its trees in which something is hidden or protected. Out: the namespace can go, and a process
 * that has a descriptor of such a tree still finds the guards on it. Runs in the supervisor, or in
 * the process that takes the mounts apart (mount_reaper.c); raw system calls only.
 *
 * A process of the sandbox can have given a directory's descriptor to another sandbox that works in
 * the same tree, through a socket that one of them made there. The kernel takes a namespace apart
 * mount by mount: the descriptor would lead to the bare tree then. What it keeps together is a tree
 * of mounts whose mount point is removed. From within the namespace that is refused, and the mount
 * points may lie where the sandbox could move them; so a process enters, puts all these trees onto
 * one point of ward's own and leaves a descriptor of its directory, and the caller outside removes
 * that point. That directory can be written through a mount of its own, which no other process has:
 * the one that the sandbox knows stays read-only, or who was handed a descriptor of it would rename
 * the point in time.
 *
 * The trees become read-only before: no process may write there by such a descriptor after the
 * sweep. That is refused where a file is open for writing, and all who could have one are dead: it
 * was handed on, too, which the run's result tells. A nested sandbox has had mounts of its own,
 * which cannot be found any more: they become read-only where they are of a review's overlay, which
 * does so itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clone.h"
#include "base/raw.h"
#include "engine/native/native.h"

/* of 10 ms: what was under way in a dead process's sockets is closed by a thread of the kernel's */
#define CLOSE_WAITS 20
#define POINT                                                                                      \
	"pts" /* in /dev, which the sandbox cannot change; what is mounted there stays beneath */

/* The file system of a tree, in all its mounts. -EPERM: it is not ward's. */
static long close_whole(int tree_fd)
{
	long fd = raw_call(SYS_fspick, tree_fd, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH);
	long r = fd < 0 ? fd : raw_call(SYS_fsconfig, fd, FSCONFIG_SET_FLAG, "ro", 0, 0);

	if (r == 0)
		r = raw_call(SYS_fsconfig, fd, FSCONFIG_CMD_RECONFIGURE, 0, 0, 0);
	if (fd >= 0)
		raw_call(SYS_close, fd);
	return r;
}

static bool is_busy(const struct native_keep *k, int tree_fd)
{
	struct mount_attr closed = { .attr_set = MOUNT_ATTR_RDONLY };
	bool busy = k->review && close_whole(tree_fd) == -EBUSY;

	return raw_call(SYS_mount_setattr, tree_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &closed,
			sizeof(closed)) == -EBUSY ||
	       busy;
}

/* Inside, with the caller's descriptors. */
static int gather(void *argument)
{
	struct native_keep *k = argument;
	struct mount_attr writable = { .attr_clr = MOUNT_ATTR_RDONLY };
	long r = native_enter_mounts(k->ns_fd), own_fd;
	/* for all trees: a sandbox must not make its end long */
	unsigned waits = k->met ? CLOSE_WAITS : 0;

	own_fd = r < 0 ? r
		       : raw_call(SYS_open_tree, AT_FDCWD, "/dev",
				  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	r = own_fd < 0 ? own_fd
		       : raw_call(SYS_mount_setattr, own_fd, "", AT_EMPTY_PATH, &writable,
				  sizeof(writable));
	for (size_t i = 0; r == 0 && i < k->count; i++) {
		const struct timespec moment = { .tv_nsec = 10000000 };
		bool busy;

		while ((busy = is_busy(k, k->fds[i])) && waits > 0) {
			raw_call(SYS_nanosleep, &moment, 0);
			waits--;
		}
		k->busy |= k->met && busy;
		/* one that the sandbox itself has removed is together already */
		raw_call(SYS_move_mount, k->fds[i], "", AT_FDCWD, "/dev/" POINT,
			 MOVE_MOUNT_F_EMPTY_PATH);
	}
	k->dev_fd = r < 0 ? -1 : (int)own_fd;
	return 0;
}

void native_keep_together(struct native_memory *m)
{
	struct native_keep *k = &m->keep;
	struct clone_child inside = { .flags = CLONE_VM | CLONE_FILES | CLONE_VFORK,
				      .quiet = true,
				      .stack = k->stack,
				      .stack_bytes = sizeof(k->stack),
				      .main = gather,
				      .argument = k };
	long pid;

	if (!sync_claim(&m->child.sync.keep_claimed))
		return;
	k->dev_fd = -1;
	if (k->count == 0 || k->ns_fd < 0)
		return;
	pid = clone_start(&inside);
	if (pid > 0)
		raw_call(SYS_wait4, pid, 0, __WCLONE, 0);
	if (k->dev_fd < 0)
		return;
	raw_call(SYS_unlinkat, k->dev_fd, POINT, AT_REMOVEDIR);
	raw_call(SYS_close, k->dev_fd);
}

/* Whether a sandbox in another tree could have been handed a descriptor of this one's: they meet in
 * a second tree that both write to. */
static bool meets_others(const struct plan *p)
{
	size_t count = 0;

	for (size_t i = 0; i < p->mount_count; i++)
		count += p->mounts[i].writable && !p->mounts[i].review && !p->mounts[i].view &&
			 (p->mounts[i].from_policy || p->mounts[i].volume);
	return count > 1;
}

bool native_keeps(const struct plan *p, const struct guard_root *g)
{
	return g->step_count > 0 || p->review || (g->writable && meets_others(p));
}

bool native_keeps_any(const struct plan *p)
{
	for (size_t i = 0; i < p->live->root_count; i++)
		if (native_keeps(p, &p->live->roots[i]))
			return true;
	return false;
}

void native_keep_begin(const struct plan *p, struct running *run)
{
	struct native_keep *k = &((struct native_memory *)run->child)->keep;
	char path[64];

	if (run->mounts_fd < 0) { /* it did not come with ready */
		snprintf(path, sizeof(path), "/proc/%d/ns/mnt", run->init_pid);
		run->mounts_fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	k->ns_fd = run->mounts_fd;
	k->review = p->review;
	k->met = p->review || meets_others(p); /* what is reviewed must not change any more */
}

void native_keep_end(struct running *run)
{
	struct native_memory *m = run->child;

	if (!m)
		return;
	if (run->reaper_pid <= 0) /* else the reaper does it */
		native_keep_together(m);
	run->trees_busy = m->keep.busy;
	for (size_t i = 0; i < m->keep.count;
	     i++) /* the supervisor's; the reaper has the list, too */
		raw_call(SYS_close, m->keep.fds[i]);
	own_close_fd(&run->mounts_fd);
	run->mounts_fd = -1;
}
