/*
 * /proc: a fresh one for the sandbox's own pid namespace, with tables/proc.def taken away. Where
 * the kernel refuses a fresh one (ours is inside a container whose own /proc has parts masked) the
 * outer one is bound, and the result says so; it is read-only then, because it has the entries of
 * outer processes. Runs in the child before pivot_root: the kernel gives a new proc only while an
 * unmasked one is in view.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/raw.h"
#include "engine/native/native.h"

enum proc_action { READONLY, MASK, MASK_DIR };
enum proc_when { ALWAYS, ROOT };

static const struct proc_row {
	const char *path; /* from the new root, which is the working directory */
	enum proc_action action;
	enum proc_when when;
} proc_rows[] = {
#define PROC(name, action, when) { "proc/" name, action, when },
#include "proc.def"
};

static long clone_tree(int dir_fd, const char *path)
{
	return raw_call(SYS_open_tree, dir_fd, path,
			AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}

/* Covers path with a bind of source; 0 also where there is no such thing. */
static long cover(const char *source, const char *path, bool *ret_done)
{
	long r = raw_call(SYS_mount, source, path, 0, MS_BIND | MS_REC, 0);

	*ret_done = r == 0;
	return r == -ENOENT ? 0 : r;
}

/* Closes what was just mounted at path. */
static long close_mount(const char *path)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					       MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC };

	return raw_call(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE, &attr, sizeof(attr));
}

/* A bind has the flags of the mount that its source lies in, so only the first mask of a sort has
 * to be closed: it is the source of the others. masks[0] is a file, masks[1] a directory. A mount
 * that the kernel refuses costs more than ten that it makes, so the table says which of the two it
 * is; where a kernel differs, the other one is taken. */
static long mask(const char *path, int sort, const char *masks[2], bool closed[2])
{
	bool done = false;
	long r = cover(masks[sort], path, &done);

	if (r == -ENOTDIR) {
		sort = !sort;
		r = cover(masks[sort], path, &done);
	}
	if (r < 0 || !done || closed[sort])
		return r;
	closed[sort] = true;
	masks[sort] = path;
	return close_mount(path);
}

static long take_away(struct native_child *c)
{
	const char *masks[2] = { NATIVE_EMPTY_FILE, NATIVE_EMPTY_DIR };
	bool closed[2] = { false, false }, done;
	long r = 0;

	for (size_t i = 0; i < ARRAY_LEN(proc_rows) && r == 0; i++) {
		const struct proc_row *row = &proc_rows[i];

		if (row->when == ROOT && c->ids.mode != IDS_ROOT)
			continue;
		c->failed_path = row->path;
		if (row->action != READONLY) {
			r = mask(row->path, row->action == MASK_DIR, masks, closed);
			continue;
		}
		r = cover(row->path, row->path, &done);
		if (r == 0 && done)
			r = close_mount(row->path);
	}
	return r;
}

static long mount_proc(struct native_child *c)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					       MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC };
	long r =
		raw_call(SYS_mount, "proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	long tree;

	if (r != -EPERM)
		return r;
	tree = clone_tree(AT_FDCWD, "/proc");
	if (tree < 0)
		return tree;
	r = raw_call(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
		     sizeof(attr));
	if (r < 0)
		return r;
	c->proc_bound = true;
	c->layer_notes[LAYER_PROC] =
		"the kernel refused a fresh /proc (the outer one is masked): the sandbox sees the "
		"outer one, with the names of outer processes";
	return native_attach((int)tree, c->base_fd, "proc");
}

long native_proc(struct native_child *c)
{
	long r, fd;

	c->failed_path = "/proc";
	r = mount_proc(c);
	if (r < 0)
		return r;
	fd = raw_call(SYS_openat, c->base_fd, "proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fd;
	c->proc_fd = (int)fd;
	/* as root the supervisor has more to do before anybody else can begin */
	return c->ids_sent ? native_masks(c) : 0;
}

long native_masks(struct native_child *c)
{
	long r = c->layers[LAYER_PROC] == LAYER_IN_FORCE ? 0 : take_away(c);

	if (r == 0)
		c->layers[LAYER_PROC] = LAYER_IN_FORCE;
	return r;
}

/* The strict set sees processes only: a second proc over the first one. */
static long cover_with_strict(struct native_child *c)
{
	long r = raw_call(SYS_mount, "proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
			  "subset=pid"),
	     fd;

	if (r == -EPERM)
		return 0; /* no fresh one is to be had here: native_proc() has said so */
	fd = r < 0 ? r
		   : raw_call(SYS_openat, c->base_fd, "proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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

	if (c->bundle)
		return 0; /* the runtime mounts it */
	c->failed_path = "/proc";
	/* an inner sandbox must write its id maps */
	if (c->proc_bound && policy->proc_nesting)
		return raw_call(SYS_mount_setattr, c->proc_fd, "", AT_EMPTY_PATH, &writable,
				sizeof(writable));
	return policy->proc_syscalls == SYSCALLS_STRICT ? cover_with_strict(c) : 0;
}
