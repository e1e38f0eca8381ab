/*
 * Hidden and protected files. In: the steps that the scan found, parents before children. Out:
 * mounts over them in the sandbox's view. Runs in the child before pivot_root, and again
 * (native_remount) in a short-lived helper that has joined the sandbox's user and mount namespaces,
 * when a process outside has replaced an over-mounted file.
 *
 * The tree may be changing under us (another sandbox works in it): every path is opened through no
 * link at all, and what is mounted is what was opened. A thing that has gone since the scan needs
 * no guard; a link in its place is an error, and nothing starts.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/raw.h"
#include "engine/native/native.h"

/* Something stands where a directory was: a link is worth another word than a file. */
static long refuse_point(int fd, long error)
{
	struct stat st;

	return error == -ENOTDIR && raw_call(SYS_fstat, fd, &st) == 0 && S_ISLNK(st.st_mode)
		       ? -ELOOP
		       : error;
}

/* One component at a time: for where an outer filter hides openat2. */
static long walk_nolink(int dir_fd, const char *path)
{
	long at = raw_call(SYS_openat, dir_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[256];

	while (at >= 0 && *path) {
		size_t n = 0;
		long next;

		for (; *path && *path != '/'; path++) {
			if (n >= sizeof(name) - 1)
				return -ENAMETOOLONG;
			name[n++] = *path;
		}
		name[n] = '\0';
		while (*path == '/')
			path++;
		next = raw_call(SYS_openat, at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			next = refuse_point((int)at, next);
		raw_call(SYS_close, at);
		at = next;
	}
	return at;
}

long native_open_nolink(int dir_fd, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	long fd;

	do
		fd = raw_call(SYS_openat2, dir_fd, path, &how, sizeof(how));
	while (fd == -EAGAIN || fd == -EINTR);
	return fd == -ENOSYS || fd == -EPERM ? walk_nolink(dir_fd, path) : fd;
}

/* The mount that a step puts over what was opened at `at`. */
static long make_cover(int at, int empty_fd, enum guard_action action)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	struct stat st;
	long tree, r = raw_call(SYS_fstat, at, &st);

	if (r < 0)
		return r;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	if (action == GUARD_HIDE)
		tree = raw_call(SYS_open_tree, empty_fd,
				S_ISDIR(st.st_mode) ? NATIVE_EMPTY_DIR : NATIVE_EMPTY_FILE,
				OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	else
		tree = raw_call(SYS_open_tree, at, "",
				AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0 || action == GUARD_PIN)
		return tree;
	r = raw_call(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
		     sizeof(attr));
	if (r < 0) {
		raw_call(SYS_close, tree);
		return r;
	}
	return tree;
}

/* Does one step on the tree at root_fd; empty_fd is the root that has ward's empty file and
 * directory. */
static long do_step(int root_fd, int empty_fd, const struct guard_step *step)
{
	long at = native_open_nolink(root_fd, step->path), tree, r;

	if (at < 0)
		return at == -ENOENT || at == -ENOTDIR ? 0 : at;
	tree = make_cover((int)at, empty_fd, step->action);
	r = tree;
	if (tree >= 0) {
		r = raw_call(SYS_move_mount, tree, "", at, "",
			     MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
		raw_call(SYS_close, tree);
	}
	raw_call(SYS_close, at);
	return r;
}

/* Whether g lies in another guarded tree and stays with that. */
static bool is_in_another(const struct plan *p, const struct guard_root *g)
{
	for (size_t i = 0; i < p->live->root_count; i++) {
		const struct guard_root *other = &p->live->roots[i];
		size_t n = 0;

		while (other->target[n] && other->target[n] == g->target[n])
			n++;
		if (other != g && native_keeps(p, other) && !other->target[n] &&
		    g->target[n] == '/')
			return true;
	}
	return false;
}

/* For the supervisor: see mounts_keep.c. The namespace goes with the first: from outside it cannot
 * be opened at every moment. */
static long keep(struct native_child *c, int root_fd)
{
	if (c->kept_count == 0)
		c->view_fd = (int)raw_call(SYS_openat, c->base_fd, "proc/self/ns/mnt",
					   O_RDONLY | O_CLOEXEC);
	if (c->kept_count >= ARRAY_LEN(c->kept_fds))
		return -E2BIG;
	c->kept_fds[c->kept_count++] = root_fd;
	return 0;
}

static long guard_tree(struct native_child *c, const struct guard_root *g)
{
	long r = 0, root_fd;

	if (!native_keeps(c->plan, g))
		return 0;
	c->failed_path = g->target;
	root_fd = native_open_nolink(c->base_fd, g->target + 1);
	if (root_fd < 0)
		return root_fd;
	for (size_t i = 0; i < g->step_count && r == 0; i++) {
		if (g->steps[i].action == GUARD_VIEW)
			continue; /* mounted already, with the other mounts */
		c->failed_path = g->steps[i].path;
		r = do_step((int)root_fd, c->base_fd, &g->steps[i]);
	}
	if (r == 0 && !c->bundle && !is_in_another(c->plan, g))
		return keep(c, (int)root_fd);
	raw_call(SYS_close, root_fd);
	return r;
}

long native_guards(struct native_child *c)
{
	long r = 0;

	for (size_t i = 0; i < c->plan->live->root_count && r == 0; i++)
		r = guard_tree(c, &c->plan->live->roots[i]);
	return r;
}

/* Whether something is mounted on it already: then the mount outlived the change, and one more
 * would be stacked. */
static bool is_covered(int root_fd, const char *path)
{
	struct statx self, above;
	char parent[4096];
	size_t n = raw_strlen(path), cut = n;
	long at, up, r;

	while (cut && path[cut - 1] != '/')
		cut--;
	if (n >= sizeof(parent))
		return false;
	for (size_t i = 0; i < cut; i++)
		parent[i] = path[i];
	parent[cut ? cut - 1 : 0] = '\0';
	at = native_open_nolink(root_fd, path);
	up = native_open_nolink(root_fd, cut ? parent : ".");
	if (at < 0 || up < 0)
		return false;
	r = raw_call(SYS_statx, at, "", AT_EMPTY_PATH, STATX_MNT_ID, &self);
	if (r == 0)
		r = raw_call(SYS_statx, up, "", AT_EMPTY_PATH, STATX_MNT_ID, &above);
	raw_call(SYS_close, at);
	raw_call(SYS_close, up);
	return r == 0 && self.stx_mnt_id != above.stx_mnt_id;
}

/* In a process of its own: joins the sandbox's namespaces and does the steps there. Its exit code
 * is the errno. */
static _Noreturn void remount_inside(const struct running *run, const struct native_view *view,
				     const struct guard_root *g, const size_t *steps, size_t count)
{
	long r = raw_call(SYS_setns, view ? view->user_fd : run->pid_fd,
			  view ? CLONE_NEWUSER : CLONE_NEWUSER | CLONE_NEWNS),
	     top_fd, root_fd;

	if (r == 0 && view)
		r = raw_call(SYS_setns, view->mount_fd, CLONE_NEWNS);
	top_fd = r < 0 ? r : raw_call(SYS_openat, AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	root_fd = top_fd < 0 ? top_fd : native_open_nolink((int)top_fd, g->target + 1);

	r = root_fd < 0 ? root_fd : 0;
	for (size_t i = 0; i < count && r == 0; i++)
		if (!is_covered((int)root_fd, g->steps[steps[i]].path))
			r = do_step((int)root_fd, (int)top_fd, &g->steps[steps[i]]);
	_exit(r < 0 ? (int)-r : 0);
}

int native_remount_in(const struct native_view *view, struct running *run,
		      const struct guard_root *g, const size_t *steps, size_t count,
		      struct ward_err *e)
{
	pid_t pid = fork();
	int status = 0;

	if (pid < 0)
		return ward_fail_errno(e, "cannot start the helper that remounts protected files");
	if (pid == 0)
		remount_inside(run, view, g, steps, count);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return ward_fail(e, WIFEXITED(status) ? WEXITSTATUS(status) : EIO,
				 "cannot protect replaced files in %s again", g->path);
	return 0;
}

int native_remount(const struct plan *p, struct running *run, const struct guard_root *g,
		   const size_t *steps, size_t count, struct ward_err *e)
{
	(void)p;
	return native_remount_in(NULL, run, g, steps, count, e);
}
