/*
 * A review where the kernel makes no overlay of the workspace, or one that could not take over what
 * belongs to others: over a private copy of it. In: the workspace and the empty directory of the
 * layer that it would be mounted on. Out: that directory holds what the workspace does. Runs in the
 * supervisor before the sandbox is built, with the user's rights; the workspace may be changing
 * under us and is read through no link. What the run changes is still measured against the
 * workspace itself, so nothing else knows of the copy, and it goes when the run ends.
 *
 * Modes (set-id bits go), times and links are kept; everything belongs to whom the sandbox runs as;
 * second names become files of their own. What the sandbox could not read in the workspace is
 * there, empty and unreadable: as root the owner, the group and the mode decide, not what root can
 * open. Sockets and devices are left out, and so is what is mounted in the workspace: the sandbox
 * gets those mounts themselves.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "base/walk.h"
#include "base/content.h"
#include "review/review_internal.h"

#define WHAT "files copied"

struct copying {
	int top_fd; /* of the copy */
	int dir_fd; /* the directory of the copy that is being filled, owned */
	bool root;
	uid_t uid; /* whom the copy is for, as root */
	gid_t gid;
	struct progress *progress;
	struct ward_err *e;
};

/* ---- whether it is needed ---- */

/* In namespaces of its own: an overlay of the two, which nothing can be written to. */
static int try_overlay(int workspace_fd, int point_fd)
{
	char options[128], point[32];

	if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 0; /* not the overlay's fault: the sandbox will say what is wrong */
	snprintf(options, sizeof(options), "lowerdir=/proc/self/fd/%d:/proc/self/fd/%d,userxattr",
		 workspace_fd, point_fd);
	snprintf(point, sizeof(point), "/proc/self/fd/%d", point_fd);
	return mount("ward", point, "overlay", MS_RDONLY, options) < 0 ? errno : 0;
}

bool review_overlay_fits(int workspace_fd, int point_fd)
{
	struct statfs fs;
	int status;
	pid_t pid;

	if (fstatfs(workspace_fd, &fs) < 0)
		return true;
	switch ((unsigned long)fs.f_type) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case TMPFS_MAGIC:
		return true; /* known to do */
	default:
		break;
	}
	pid = fork();
	if (pid == 0)
		_exit(try_overlay(workspace_fd, point_fd) ? 1 : 0);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) == 0;
}

struct ids {
	uid_t uid;
	gid_t gid;
	char *path;
};

static int check_ids(void *ctx, struct walk_dir *d, const struct walk_entry *entry)
{
	struct ids *i = ctx;
	struct stat st;

	if (fstatat(d->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (st.st_uid == i->uid && st.st_gid == i->gid))
		return entry->type == DT_DIR;
	i->path = strdup(entry->path);
	return -EOVERFLOW;
}

bool review_ids_fit(int workspace_fd, uid_t uid, gid_t gid, char **ret_path)
{
	static const struct walk_ops ops = { .entry = check_ids };
	auto_fd top = openat(workspace_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct ids i = { .uid = uid, .gid = gid };
	struct ward_err ignored = { 0 };
	int status = top < 0 ? 0 : walk_tree(top, &ops, &i, 0, &ignored);

	*ret_path = i.path;
	return status != -EOVERFLOW;
}

/* ---- the copy ---- */

/* Root can open everything; the sandbox shall read in the copy what it could read in the
 * workspace. */
static bool may_read(const struct copying *c, const struct stat *st)
{
	unsigned needed = S_ISDIR(st->st_mode) ? 05 : 04;

	if (!c->root || st->st_uid == c->uid)
		return true;
	return (st->st_mode >> (st->st_gid == c->gid ? 3 : 0) & needed) == needed;
}

static int fail_at(struct copying *c, const char *path, int error)
{
	ward_fail(c->e, error, "cannot copy %s of the workspace: %s", path, strerror(error));
	return ward_remedy(c->e,
			   "the kernel cannot overlay the workspace's file system, so a review "
			   "needs a copy of it; mount the workspace directly (filesystem.mode: "
			   "read_only or read_write), or free space in WARD_STATE_DIR");
}

/* Owner, mode and times as in the workspace; the modes of directories last, when nothing is put
 * into them any more. */
static int dress(const struct copying *c, int dir_fd, const char *name, const struct stat *st)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };

	if (c->root && fchownat(dir_fd, name, c->uid, c->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISLNK(st->st_mode) &&
	    fchmodat(dir_fd, name, may_read(c, st) ? st->st_mode & 01777 : 0, 0) < 0)
		return -errno;
	return utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int copy_link(const struct copying *c, int from_fd, const char *name, const struct stat *st)
{
	char target[4096];
	ssize_t n = readlinkat(from_fd, name, target, sizeof(target));

	if (n < 0 || n == (ssize_t)sizeof(target))
		return n < 0 ? -errno : -ENAMETOOLONG;
	target[n] = '\0';
	return symlinkat(target, c->dir_fd, name) < 0 ? -errno : dress(c, c->dir_fd, name, st);
}

static int copy_file(const struct copying *c, int from_fd, const char *name, struct stat *st)
{
	auto_fd from =
		openat(from_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	auto_fd to = -1;
	int status = 0;

	if (from < 0 && errno != EACCES && errno != EPERM)
		return -errno;
	if (from >= 0 && (fstat(from, st) < 0 || !S_ISREG(st->st_mode)))
		return -ESTALE;
	to = openat(c->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	if (from >= 0 && !may_read(c, st)) {
		own_close_fd(&from);
		from = -1;
	}
	if (from >= 0)
		status = content_copy(from, to, (uint64_t)st->st_size);
	else
		st->st_mode &= ~(mode_t)0777;
	return status < 0 ? status : dress(c, c->dir_fd, name, st);
}

/* Whether something else is mounted there. */
static bool is_mount(int dir_fd, const char *name)
{
	struct statx sx;

	return statx(dir_fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &sx) == 0 &&
	       sx.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

static int copy_entry(void *ctx, struct walk_dir *d, const struct walk_entry *entry)
{
	struct copying *c = ctx;
	struct stat st;
	int status = 0;

	progress_step(c->progress, WHAT);
	if (fstatat(d->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* gone meanwhile */
	if (S_ISDIR(st.st_mode)) {
		if (mkdirat(c->dir_fd, entry->name, 0700) < 0)
			return fail_at(c, entry->path, errno);
		if (may_read(c, &st))
			return !is_mount(d->fd, entry->name);
		status = dress(c, c->dir_fd, entry->name, &st); /* it stays empty */
		return status < 0 ? fail_at(c, entry->path, -status) : 0;
	}
	if (S_ISREG(st.st_mode) && is_mount(d->fd, entry->name))
		status = mknodat(c->dir_fd, entry->name, S_IFREG | 0600, 0) < 0 ? -errno : 0;
	else if (S_ISREG(st.st_mode))
		status = copy_file(c, d->fd, entry->name, &st);
	else if (S_ISLNK(st.st_mode))
		status = copy_link(c, d->fd, entry->name, &st);
	else if (S_ISFIFO(st.st_mode))
		status = mknodat(c->dir_fd, entry->name, S_IFIFO | 0600, 0) < 0
				 ? -errno
				 : dress(c, c->dir_fd, entry->name, &st);
	return status == 0 || status == -ENOENT ? 0 : fail_at(c, entry->path, -status);
}

static int open_copy_dir(struct copying *c, const char *path, size_t n)
{
	auto_free char *at = strndup(path, n);

	own_close_fd(&c->dir_fd);
	c->dir_fd = at ? path_open_nolink(c->top_fd, *at ? at : ".",
					  O_RDONLY | O_DIRECTORY | O_CLOEXEC, c->e)
		       : -ENOMEM;
	return c->dir_fd < 0 ? c->dir_fd : 0;
}

static int copy_opened(void *ctx, struct walk_dir *d)
{
	return open_copy_dir(ctx, d->path, d->path_len);
}

static int copy_leave(void *ctx, const struct walk_dir *d, const char *name)
{
	struct copying *c = ctx;
	struct stat st;
	int status = open_copy_dir(c, d->path, d->path_len);

	if (status < 0 || fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISDIR(st.st_mode))
		return status;
	status = dress(c, c->dir_fd, name, &st);
	return status < 0 ? fail_at(c, name, -status) : 0;
}

static int copy_unreadable(void *ctx, const struct walk_dir *d, const struct walk_entry *entry)
{
	struct copying *c = ctx;
	int status = open_copy_dir(c, d->path, d->path_len);

	if (status < 0)
		return status;
	return fchmodat(c->dir_fd, entry->name, 0, 0) < 0 ? fail_at(c, entry->path, errno) : 0;
}

int review_copy(int workspace_fd, int copy_fd, uid_t uid, gid_t gid, struct progress *progress,
		struct ward_err *e)
{
	static const struct walk_ops ops = { .opened = copy_opened,
					     .entry = copy_entry,
					     .leave = copy_leave,
					     .unreadable = copy_unreadable };
	struct copying c = { .top_fd = copy_fd,
			     .dir_fd = -1,
			     .root = geteuid() == 0,
			     .uid = uid,
			     .gid = gid,
			     .progress = progress,
			     .e = e };
	auto_fd top = openat(workspace_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	int status;

	if (top < 0 || fstat(top, &st) < 0)
		return ward_fail_errno(e, "cannot read the workspace");
	progress_begin(progress, 0);
	status = walk_tree(top, &ops, &c, 0, e);
	own_close_fd(&c.dir_fd);
	if (status == 0)
		status = dress(&c, copy_fd, ".", &st);
	return status < 0 && !e->code ? fail_at(&c, ".", -status) : status;
}
