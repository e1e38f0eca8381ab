/*
 * /proc: a fresh one for the sandbox's own pid namespace, with tables/proc.def taken away. Where the kernel refuses a
 * fresh one (ours is inside a container whose own /proc has parts masked) the outer one is bound, and the result says
 * so; it is read-only then, because it has the entries of outer processes. Runs in the child before pivot_root: the
 * kernel gives a new proc only while an unmasked one is in view.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/raw.h"
#include "engine/native/native.h"

enum proc_action { READONLY, MASK };
enum proc_when { ALWAYS, ROOT };

static const struct proc_row {
	const char *name;
	enum proc_action action;
	enum proc_when when;
} proc_rows[] = {
#define PROC(name, action, when) { name, action, when },
#include "proc.def"
#undef PROC
};

static long clone_tree(int dir_fd, const char *path)
{
	return raw_call(SYS_open_tree, dir_fd, path,
			AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}

static long take_away(struct native_child *c, int proc_fd, const struct proc_row *row)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					       MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC };
	struct stat st;
	long tree, r;

	if (row->action == READONLY) {
		tree = clone_tree(proc_fd, row->name);
	} else {
		r = raw_call(SYS_newfstatat, proc_fd, row->name, &st, AT_SYMLINK_NOFOLLOW);
		if (r < 0)
			return r == -ENOENT ? 0 : r;
		tree = clone_tree(c->base_fd,
				  S_ISDIR(st.st_mode) ? NATIVE_EMPTY_DIR : NATIVE_EMPTY_FILE);
	}
	if (tree < 0)
		return tree == -ENOENT ? 0 : tree;
	r = raw_call(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr));
	if (r == 0)
		r = native_attach((int)tree, proc_fd, row->name);
	return r;
}

static long mount_proc(struct native_child *c)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					       MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC };
	long r = raw_call(SYS_mount, "proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	long tree;

	if (r != -EPERM)
		return r;
	tree = clone_tree(AT_FDCWD, "/proc");
	if (tree < 0)
		return tree;
	r = raw_call(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr));
	if (r < 0)
		return r;
	c->proc_bound = true;
	c->layer_notes[LAYER_PROC] = "the kernel refused a fresh /proc (the outer one is masked): the "
				     "outer one is seen, with the names of outer processes";
	return native_attach((int)tree, c->base_fd, "proc");
}

long native_proc(struct native_child *c)
{
	bool root = c->ids.mode == IDS_ROOT;
	long r, fd;

	c->failed_path = "/proc";
	r = mount_proc(c);
	if (r < 0)
		return r;
	fd = raw_call(SYS_openat, c->base_fd, "proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fd;
	c->proc_fd = (int)fd;
	for (size_t i = 0; i < ARRAY_LEN(proc_rows) && r == 0; i++) {
		c->failed_path = proc_rows[i].name;
		if (proc_rows[i].when == ALWAYS || root)
			r = take_away(c, (int)fd, &proc_rows[i]);
	}
	if (r == 0)
		c->layers[LAYER_PROC] = LAYER_IN_FORCE;
	return r;
}

/* The strict set sees processes only: a second proc over the first one. */
static long cover_with_strict(struct native_child *c)
{
	long r = raw_call(SYS_mount, "proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid"), fd;

	if (r == -EPERM)
		return 0;	/* no fresh one is to be had here: native_proc() has said so */
	fd = r < 0 ? r : raw_call(SYS_openat, c->base_fd, "proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fd;
	raw_call(SYS_close, c->proc_fd);
	c->proc_fd = (int)fd;
	return 0;
}

long native_late_proc(struct native_child *c)
{
	struct mount_attr writable = { .attr_clr = MOUNT_ATTR_RDONLY };
	const struct policy *policy = &c->plan->spec->policy;

	c->failed_path = "/proc";
	/* an inner sandbox must write its id maps */
	if (c->proc_bound && policy->proc_nesting)
		return raw_call(SYS_mount_setattr, c->proc_fd, "", AT_EMPTY_PATH, &writable, sizeof(writable));
	return policy->proc_syscalls == SYSCALLS_STRICT ? cover_with_strict(c) : 0;
}
