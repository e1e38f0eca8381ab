/*
 * The new root. In: the system's mounts, then the plan's. Out: a tmpfs that holds only them,
 * read-only where nothing else was asked for. Runs in the child, with the capabilities of its own
 * user namespace, before pivot_root; raw system calls only.
 *
 * native_root() makes an empty one, native_system() attaches what every sandbox has,
 * native_late_mounts() what the plan adds, and then the root itself becomes read-only. /tmp and the
 * like are directories of it that stay writable. Mount points are only ever created in ward's own
 * tmpfs mounts, never in a directory of the host's.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/raw.h"
#include "engine/native/native.h"
#include "guest/image.h"
#include "plan/inner.h"

/* Makes the directories above target. */
static long make_parents(int dir_fd, const char *target)
{
	char path[4096];
	size_t n = 0;

	for (const char *at = target; *at; at++) {
		if (n >= sizeof(path) - 1)
			return -ENAMETOOLONG;
		if (*at == '/' && n) {
			long r;

			path[n] = '\0';
			r = raw_call(SYS_mkdirat, dir_fd, path, 0755);
			if (r < 0 && r != -EEXIST && r != -EROFS)
				return r;
		}
		path[n++] = *at;
	}
	return 0;
}

/* Makes a thing at target, and the directories above it only if they turn out to be missing. */
static long make_dir(int dir_fd, const char *target)
{
	long r = raw_call(SYS_mkdirat, dir_fd, target, 0755);

	if (r != -ENOENT)
		return r;
	r = make_parents(dir_fd, target);
	return r < 0 ? r : raw_call(SYS_mkdirat, dir_fd, target, 0755);
}

static long make_link(int dir_fd, const char *target, const char *content)
{
	long r = raw_call(SYS_symlinkat, content, dir_fd, target);

	if (r != -ENOENT)
		return r;
	r = make_parents(dir_fd, target);
	return r < 0 ? r : raw_call(SYS_symlinkat, content, dir_fd, target);
}

long native_create_file(int dir_fd, const char *target, const char *text, size_t n, unsigned mode)
{
	long fd =
		raw_call(SYS_openat, dir_fd, target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	long r;

	if (fd == -ENOENT) {
		r = make_parents(dir_fd, target);
		if (r < 0)
			return r;
		fd = raw_call(SYS_openat, dir_fd, target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
			      mode);
	}
	if (fd < 0)
		return fd;
	r = n ? raw_call(SYS_write, fd, text, n) : 0;
	raw_call(SYS_close, fd);
	if (r < 0)
		return r;
	return (size_t)r == n ? 0 : -ENOSPC;
}

/* An empty file to mount on: mknod makes one without opening it. */
static long make_file(int dir_fd, const char *target)
{
	long r = raw_call(SYS_mknodat, dir_fd, target, S_IFREG | 0444, 0);

	if (r != -ENOENT)
		return r;
	r = make_parents(dir_fd, target);
	return r < 0 ? r : raw_call(SYS_mknodat, dir_fd, target, S_IFREG | 0444, 0);
}

long native_make_point(int dir_fd, const char *target, bool is_file)
{
	long r = is_file ? make_file(dir_fd, target) : make_dir(dir_fd, target);

	return r == -EEXIST || r == -EROFS ? 0 : r;
}

long native_attach(int tree_fd, int dir_fd, const char *target)
{
	return raw_call(SYS_move_mount, tree_fd, "", dir_fd, target, MOVE_MOUNT_F_EMPTY_PATH);
}

/* The plan saw this very file or directory; whatever has been put in its place since is refused. */
static long open_checked(const struct plan_mount *m)
{
	long fd = raw_call(SYS_openat, AT_FDCWD, m->source, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	long r;

	if (fd < 0)
		return fd;
	r = raw_call(SYS_fstat, fd, &st);
	if (r == 0 && (st.st_dev != m->dev || st.st_ino != m->ino))
		r = -ESTALE;
	if (r == 0)
		r = raw_call(SYS_open_tree, fd, "",
			     AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	raw_call(SYS_close, fd);
	return r;
}

static long open_source(struct native_child *c, const struct plan_mount *m)
{
	if (m->tree_fd >= 0)
		return c->tree_fds[c->next_tree++]; /* they came in this order */
	if (m->from_policy)
		return open_checked(m);
	return raw_call(SYS_open_tree, AT_FDCWD, m->source,
			AT_RECURSIVE | AT_SYMLINK_NOFOLLOW | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}

/* Attaches onto something that is in another bind: opened through no link, and never created. */
static long attach_in_bind(int tree_fd, int base_fd, const char *target)
{
	long point = native_open_nolink(base_fd, target), r;

	if (point < 0)
		return point;
	r = raw_call(SYS_move_mount, tree_fd, "", point, "",
		     MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
	raw_call(SYS_close, point);
	return r;
}

/* Attaches a bind, recursively: a remount would leave what is mounted below it as it was. */
static long attach_bind(struct native_child *c, const struct plan_mount *m)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					       (m->writable ? 0 : MOUNT_ATTR_RDONLY) |
					       (m->noexec ? MOUNT_ATTR_NOEXEC : 0) };
	const char *target = m->target + 1;
	long tree = open_source(c, m), r;

	if (tree < 0)
		return tree;
	if (m->review)
		return native_attach_review(c, m, tree);
	r = raw_call(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
		     sizeof(attr));
	if (r == 0 && !m->in_bind)
		r = native_make_point(c->base_fd, target, m->is_file);
	if (r == 0)
		r = m->in_bind ? attach_in_bind((int)tree, c->base_fd, target)
			       : native_attach((int)tree, c->base_fd, target);
	return r; /* exec closes the tree's descriptor with all the others */
}

/* One call where a tree of its own would take three and a descriptor; native_system() makes it
 * read-only with all others. */
static long bind_system(struct native_child *c, const struct plan_mount *m)
{
	const char *target = m->target + 1;
	long r = native_make_point(c->base_fd, target, m->is_file);

	return r < 0 ? r : raw_call(SYS_mount, m->source, target, 0, MS_BIND | MS_REC, 0);
}

static long make_system(struct native_child *c, const struct plan_mount *m)
{
	const char *target = m->target + 1;

	c->failed_path = m->target;
	if (m->kept)
		return 0;
	switch (m->kind) {
	case MOUNT_BIND:
		return bind_system(c, m);
	case MOUNT_LINK:
		return make_link(c->base_fd, target, m->source);
	case MOUNT_FILE:
		return native_create_file(c->base_fd, target, m->source, raw_strlen(m->source),
					  m->mode);
	case MOUNT_TMPFS:
	case MOUNT_PROC:
	case MOUNT_DEV:
		break; /* stages of their own */
	}
	return 0;
}

/* All that every sandbox sees of /etc, in one piece. As root the supervisor has opened it: the
 * child has no right to the path. */
static long mount_etc(struct native_child *c, int tree_fd)
{
	long r = raw_call(SYS_mkdirat, c->base_fd, "etc", 0755);

	c->failed_path = c->system->etc.path;
	if (r < 0)
		return r;
	return tree_fd >= 0 ? native_attach(tree_fd, c->base_fd, "etc")
			    : raw_call(SYS_mount, c->system->etc.path, "etc", 0, MS_BIND, 0);
}

long native_make_own(struct native_child *c, const struct plan_mount *m)
{
	const char *target = m->target + 1;

	if (m->kind == MOUNT_LINK)
		return make_link(c->base_fd, target, m->source);
	return native_create_file(c->base_fd, target, m->source, raw_strlen(m->source), m->mode);
}

static long make_own_files(struct native_child *c)
{
	size_t n = (size_t)(guest_init_end - guest_init_begin);
	long r = raw_call(SYS_mkdirat, c->base_fd, ".ward", 0755);

	if (r == 0)
		/* what cannot be read is not dumpable, either */
		r = native_create_file(c->base_fd, NATIVE_INIT, guest_init_begin, n, 0111);
	if (r == 0)
		r = raw_call(SYS_mknodat, c->base_fd, NATIVE_EMPTY_FILE, S_IFREG, 0);
	return r < 0 ? r : raw_call(SYS_mkdirat, c->base_fd, NATIVE_EMPTY_DIR, 0);
}

/* It could have come with the others, but then the supervisor would have waited for it. As root the
 * child waits for its maps next, so that this costs nothing. */
long native_view(struct native_child *c)
{
	(void)c;
	return raw_call(SYS_unshare, CLONE_NEWNS);
}

long native_root(struct native_child *c)
{
	long r = raw_call(SYS_mount, 0, "/", 0, MS_REC | MS_PRIVATE, 0);

	c->failed_path = c->base;
	if (r == 0)
		r = raw_call(SYS_mount, "ward", c->base, "tmpfs", MS_NOSUID | MS_NODEV,
			     c->root_options);
	if (r < 0)
		return r;
	c->base_fd = (int)raw_call(SYS_openat, AT_FDCWD, c->base, O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = c->base_fd < 0 ? c->base_fd : make_own_files(c);
	if (r == 0)
		r = raw_call(SYS_mkdirat, c->base_fd, "proc", 0555);
	if (r == 0)
		r = raw_call(SYS_mkdirat, c->base_fd, "dev", 0755);
	return r < 0 ? r : raw_call(SYS_fchdir, c->base_fd);
}

/* What every sandbox sees; the supervisor has listed it meanwhile. The first of all mounts, so that
 * one call reaches them: there is nothing yet that must stay writable but the root itself. */
long native_system(struct native_child *c)
{
	struct mount_attr closed = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
						 MOUNT_ATTR_NODEV };
	struct mount_attr writable = { .attr_clr = MOUNT_ATTR_RDONLY };
	int tree_fd = -1;
	long r = native_wait_tree(c, &tree_fd);

	if (r == 0 && c->system->image)
		return native_image(c, c->system->image);
	if (r == 0 && c->system->etc.path)
		r = mount_etc(c, tree_fd);
	for (size_t i = 0; r == 0 && i < c->system->mount_count; i++)
		r = make_system(c, &c->system->mounts[i]);
	if (r == 0)
		r = raw_call(SYS_mount_setattr, c->base_fd, "", AT_EMPTY_PATH | AT_RECURSIVE,
			     &closed, sizeof(closed));
	if (r == 0)
		r = raw_call(SYS_mount_setattr, c->base_fd, "", AT_EMPTY_PATH, &writable,
			     sizeof(writable));
	if (r == 0)
		c->layers[LAYER_MOUNT] = LAYER_IN_FORCE;
	return r;
}

/* Under the watch the supervisor looks at what the private file systems hold. */
static long pass_tmpfs(struct native_child *c, const char *target)
{
	long fd;

	if (!c->plan->watch || c->tmpfs_count >= ARRAY_LEN(c->tmpfs_fds))
		return 0;
	fd = raw_call(SYS_openat, c->base_fd, target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fd;
	c->tmpfs_fds[c->tmpfs_count++] = (int)fd;
	return 0;
}

static long mount_tmpfs(struct native_child *c, const char *target, unsigned long flags,
			const char *options)
{
	long r =
		raw_call(SYS_mount, "ward", target, "tmpfs", MS_NOSUID | MS_NODEV | flags, options);

	return r < 0 ? r : pass_tmpfs(c, target);
}

/* A directory of the root that stays writable: a mount of its own, but no file system, which would
 * take several times as long to make and to take apart. Nothing can be linked or moved from one
 * mount to another. */
static long open_private(struct native_child *c, const char *target, unsigned mode, bool noexec)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					       (noexec ? MOUNT_ATTR_NOEXEC : 0),
				   .attr_clr = MOUNT_ATTR_RDONLY };
	long r = raw_call(SYS_mount, target, target, 0, MS_BIND, 0);

	if (r == 0)
		r = raw_call(SYS_mount_setattr, c->base_fd, target, 0, &attr, sizeof(attr));
	if (r == 0)
		r = raw_call(SYS_fchmodat, c->base_fd, target, mode);
	return r < 0 ? r : pass_tmpfs(c, target);
}

static char *put_option(char *at, const char *name, uint64_t value)
{
	while (*name)
		*at++ = *name++;
	return raw_put_number(at, value);
}

/* What the root itself holds comes on top. */
static long limit_private(struct native_child *c)
{
	struct statfs fs;
	char options[80];
	long r = raw_call(SYS_fstatfs, c->base_fd, &fs);

	c->failed_path = "/";
	if (r < 0)
		return r;
	put_option(put_option(options, "size=",
			      c->private_bytes + (fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize),
		   ",nr_inodes=", c->private_inodes + (fs.f_files - fs.f_ffree));
	return raw_call(SYS_mount, 0, ".", 0, MS_REMOUNT | MS_NOSUID | MS_NODEV, options);
}

static long make_late(struct native_child *c, const struct plan_mount *m, const char *options)
{
	const char *target = m->target + 1;
	long r;

	c->failed_path = m->target;
	if (m->kept)
		return 0;
	if (m->kind == MOUNT_BIND)
		return attach_bind(c, m);
	if (m->kind == MOUNT_LINK)
		return make_link(c->base_fd, target, m->source);
	if (m->kind == MOUNT_FILE)
		return native_create_file(c->base_fd, target, m->source, raw_strlen(m->source),
					  m->mode);
	r = native_make_point(c->base_fd, target, false);
	if (m->kind == MOUNT_PROC && r == 0)
		return raw_call(SYS_mount, "proc", target, "proc",
				MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	if (r < 0)
		return r;
	return c->private_bytes ? open_private(c, target, m->mode, m->noexec)
				: mount_tmpfs(c, target, m->noexec ? MS_NOEXEC : 0, options);
}

long native_late_mounts(struct native_child *c)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	const struct plan *p = c->plan;
	long r = 0;

	if (p->spec->policy.proc_nesting)
		native_bound_namespaces();
	for (size_t i = 0; i < p->mount_count && r == 0; i++)
		if (!p->mounts[i].system)
			r = make_late(c, &p->mounts[i], c->tmpfs_options[i]);
	if (r == 0)
		r = c->private_bytes ? open_private(c, "dev/shm", 01777, true)
				     : mount_tmpfs(c, "dev/shm", MS_NOEXEC, c->shm_options);
	if (r == 0)
		r = native_late_proc(c);
	if (r == 0 && p->commands)
		r = native_commands(c);
	if (r == 0 && p->proposals)
		r = native_create_file(c->base_fd, NATIVE_ASK, guest_ask_begin,
				       (size_t)(guest_ask_end - guest_ask_begin), 0555);
	if (r == 0 && plan_has_client(p))
		r = native_create_file(c->base_fd, NATIVE_CLIENT, guest_stand_in_begin,
				       (size_t)(guest_stand_in_end - guest_stand_in_begin), 0555);
	if (r == 0 && c->private_bytes)
		r = limit_private(c);
	/* nothing more is made in the root itself */
	return r < 0 ? r
		     : raw_call(SYS_mount_setattr, c->base_fd, "", AT_EMPTY_PATH, &attr,
				sizeof(attr));
}

/* The old root goes; from here on nothing of the host but the plan's mounts exists. */
long native_pivot(struct native_child *c)
{
	/* the helper may have */
	long r = sync_get(&c->sync.root_entered) ? 0 : native_enter_root(c);

	if (r == 0)
		r = native_leave_old_root(c);
	if (r == 0)
		r = raw_call(SYS_chdir, "/");
	if (r == 0 && c->plan->spec->inner && c->plan->spec->inner->own_view)
		r = raw_call(SYS_mount, 0, "/", 0, MS_REC | MS_SHARED, 0);
	if (r < 0)
		return r;
	c->failed_path = c->plan->cwd;
	return raw_call(SYS_chdir, c->plan->cwd);
}
