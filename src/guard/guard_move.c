/*
 * Moving. In: one name in a directory that an agent has written to. Out: the same thing somewhere
 * else. Runs in the supervisor (or in ward quarantine) with the user's rights, when the sandbox is
 * dead.
 *
 * Everything goes by descriptor and single name. A set-id file loses its bits first, so that the
 * hole is closed even if the move then fails. A rename is tried first; the owner's own lack of
 * rights (a planted directory without write permission) is lifted for it and put back. Another file
 * system means a copy: of each file holes stay holes, it is synced, and only then the original is
 * removed, so that a crash or a full disk can double a file but never lose one.
 */
#include "guard/guard_move.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/walk.h"

static int fail_move(struct ward_err *e, const char *name)
{
	return ward_fail_errno(e, "cannot move %s", name);
}

/* Changes the mode of what path_fd (O_PATH) is. */
static int chmod_fd(int path_fd, mode_t mode)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	return chmod(link, mode);
}

static int strip_set_id(int dir_fd, const char *name, struct ward_err *e)
{
	auto_fd fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_move(e, name);
	if (!S_ISREG(st.st_mode) || !(st.st_mode & 06000))
		return 0;
	return chmod_fd(fd, st.st_mode & 01777) < 0 ? fail_move(e, name) : 0;
}

static int rename_new(int dir_fd, const char *name, int to_fd, const char *to_name)
{
	struct stat st;

	if (renameat2(dir_fd, name, to_fd, to_name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* a file system without NOREPLACE */
	if (fstatat(to_fd, to_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return -EEXIST;
	return renameat(dir_fd, name, to_fd, to_name) == 0 ? 0 : -errno;
}

/* Renames with the owner's rights lifted: a directory wants write permission on itself and on where
 * it lies. */
static int rename_forced(int dir_fd, const char *name, int to_fd, const char *to_name)
{
	auto_fd fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat dir, st;
	int status;

	if (fd < 0 || fstat(fd, &st) < 0 || fstat(dir_fd, &dir) < 0)
		return -errno;
	if ((dir.st_mode & 0300) != 0300 && fchmod(dir_fd, (dir.st_mode & 07777) | 0700) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode) && (st.st_mode & 0700) != 0700 &&
	    chmod_fd(fd, (st.st_mode & 07777) | 0700) < 0)
		return -errno;
	status = rename_new(dir_fd, name, to_fd, to_name);
	if (S_ISDIR(st.st_mode) && (st.st_mode & 0700) != 0700 &&
	    chmod_fd(fd, st.st_mode & 07777) < 0 && !status)
		status = -errno;
	if ((dir.st_mode & 0300) != 0300 && fchmod(dir_fd, dir.st_mode & 07777) < 0 && !status)
		status = -errno;
	return status;
}

int guard_move(int dir_fd, const char *name, int to_fd, const char *to_name, struct ward_err *e)
{
	int status = strip_set_id(dir_fd, name, e);

	if (status < 0)
		return status;
	status = rename_new(dir_fd, name, to_fd, to_name);
	if (status == -EACCES || status == -EPERM)
		status = rename_forced(dir_fd, name, to_fd, to_name);
	if (status == -EXDEV)
		return guard_copy_move(dir_fd, name, to_fd, to_name, e);
	errno = -status;
	return status < 0 ? fail_move(e, name) : 0;
}

/* Copies the bytes between two open files; holes stay holes. */
static int copy_bytes(int from, int to)
{
	char chunk[65536];
	off_t at = 0;

	for (;;) {
		off_t data = lseek(from, at, SEEK_DATA), hole;

		if (data < 0 && errno == ENXIO)
			return 0;
		if (data < 0)
			data = at; /* a file system that knows no holes */
		hole = lseek(from, data, SEEK_HOLE);
		for (at = data; hole < 0 || at < hole;) {
			size_t want = hole >= 0 && hole - at < (off_t)sizeof(chunk)
					      ? (size_t)(hole - at)
					      : sizeof(chunk);
			ssize_t n = pread(from, chunk, want, at);

			if (n == 0)
				return 0;
			n = n < 0 ? n : pwrite(to, chunk, (size_t)n, at);
			if (n < 0)
				return -errno;
			at += n;
		}
	}
}

/* Opens a regular file for reading, although its owner may not. */
static int open_forced(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	auto_fd path_fd = -1;
	struct stat st;

	if (fd >= 0 || errno != EACCES)
		return fd < 0 ? -errno : fd;
	path_fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (path_fd < 0 || fstat(path_fd, &st) < 0 ||
	    chmod_fd(path_fd, (st.st_mode & 01777) | 0400) < 0)
		return -errno;
	fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int guard_copy_held(int from, const struct stat *st, int to_fd, const char *to_name)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	auto_fd to = -1;
	int status;

	to = openat(to_fd, to_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	status = copy_bytes(from, to);
	if (status == 0 &&
	    (ftruncate(to, st->st_size) < 0 ||
	     (geteuid() == 0 && fchown(to, st->st_uid, st->st_gid) < 0) ||
	     fchmod(to, st->st_mode & 0777) < 0 || futimens(to, times) < 0 || fsync(to) < 0))
		status = -errno;
	if (status < 0)
		/* our own incomplete copy; the original is still there */
		unlinkat(to_fd, to_name, 0);
	return status;
}

static int copy_file(int dir_fd, const char *name, int to_fd, const char *to_name,
		     const struct stat *st)
{
	auto_fd from = open_forced(dir_fd, name);

	return from < 0 ? from : guard_copy_held(from, st, to_fd, to_name);
}

static int copy_link(int dir_fd, const char *name, int to_fd, const char *to_name,
		     const struct stat *st)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(dir_fd, name, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	if (symlinkat(target, to_fd, to_name) < 0)
		return -errno;
	if (geteuid() == 0 &&
	    fchownat(to_fd, to_name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

/* Copies anything but a directory, then removes the original. */
static int move_file(int dir_fd, const char *name, int to_fd, const char *to_name)
{
	struct stat st;
	int status;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISREG(st.st_mode))
		status = copy_file(dir_fd, name, to_fd, to_name, &st);
	else if (S_ISLNK(st.st_mode))
		status = copy_link(dir_fd, name, to_fd, to_name, &st);
	else
		status = mknodat(to_fd, to_name, (st.st_mode & S_IFMT) | 0600, st.st_rdev) < 0
				 ? -errno
				 : 0;
	if (status < 0)
		return status;
	return unlinkat(dir_fd, name, 0) < 0 ? -errno : 0;
}

/* A directory on its way: where its parts go now. */
struct copy {
	int to_fd; /* owned */
	struct ward_err *e;
};

static int copy_opened(void *ctx, struct walk_dir *d)
{
	struct copy *c = ctx;
	struct stat st;

	if (fstat(d->fd, &st) < 0 || fchmod(c->to_fd, (st.st_mode & 0777) | 0700) < 0)
		return fail_move(c->e, d->path);
	if (geteuid() == 0 && fchown(c->to_fd, st.st_uid, st.st_gid) < 0)
		return fail_move(c->e, d->path);
	/* it will be emptied and removed */
	if ((st.st_mode & 0300) != 0300 && fchmod(d->fd, 0700) < 0)
		return fail_move(c->e, d->path);
	return 0;
}

static int copy_entry(void *ctx, struct walk_dir *d, const struct walk_entry *entry)
{
	struct copy *c = ctx;
	int status;

	if (entry->type == DT_DIR)
		return 1;
	status = move_file(d->fd, entry->name, c->to_fd, entry->name);
	if (status < 0) {
		errno = -status;
		return fail_move(c->e, entry->path);
	}
	return 0;
}

static int copy_enter(void *ctx, const struct walk_dir *d unused_arg,
		      const struct walk_entry *entry, unsigned *mark unused_arg)
{
	struct copy *c = ctx;
	int next;

	if (mkdirat(c->to_fd, entry->name, 0700) < 0)
		return fail_move(c->e, entry->path);
	next = openat(c->to_fd, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0)
		return fail_move(c->e, entry->path);
	close(c->to_fd);
	c->to_fd = next;
	return 1;
}

static int copy_leave(void *ctx, const struct walk_dir *d, const char *name)
{
	struct copy *c = ctx;
	int up = openat(c->to_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (up < 0)
		return fail_move(c->e, name);
	close(c->to_fd);
	c->to_fd = up;
	return unlinkat(d->fd, name, AT_REMOVEDIR) < 0 ? fail_move(c->e, name) : 0;
}

static const struct walk_ops copy_ops = {
	.opened = copy_opened,
	.entry = copy_entry,
	.enter = copy_enter,
	.leave = copy_leave,
	.force = true,
};

static int move_dir(int dir_fd, const char *name, int to_fd, const char *to_name,
		    struct ward_err *e)
{
	unsigned mode;
	auto_fd from = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct copy c = { .e = e };
	int status;

	if (from < 0 && errno == EACCES)
		from = walk_force_open(dir_fd, name, &mode);
	if (from < 0 || mkdirat(to_fd, to_name, 0700) < 0)
		return fail_move(e, name);
	c.to_fd = openat(to_fd, to_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (c.to_fd < 0)
		return fail_move(e, name);
	status = walk_tree(from, &copy_ops, &c, 0, e);
	close(c.to_fd);
	if (status < 0)
		return status;
	return unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 ? fail_move(e, name) : 0;
}

int guard_copy_move(int dir_fd, const char *name, int to_fd, const char *to_name,
		    struct ward_err *e)
{
	struct stat st, dir;
	int status;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || fstat(dir_fd, &dir) < 0)
		return fail_move(e, name);
	if ((dir.st_mode & 0300) != 0300 && fchmod(dir_fd, (dir.st_mode & 07777) | 0700) < 0)
		return fail_move(e, name);
	if (S_ISDIR(st.st_mode)) {
		status = move_dir(dir_fd, name, to_fd, to_name, e);
	} else {
		status = move_file(dir_fd, name, to_fd, to_name);
		errno = -status;
		status = status < 0 ? fail_move(e, name) : 0;
	}
	if ((dir.st_mode & 0300) != 0300 && fchmod(dir_fd, dir.st_mode & 07777) < 0 && !status)
		return fail_move(e, name);
	return status;
}

int guard_open_parent(int base_fd, const char *path, unsigned mode, const char **ret_name,
		      struct ward_err *e)
{
	auto_fd at = openat(base_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_MAX + 1];

	if (at < 0)
		return ward_fail_errno(e, "cannot open a directory");
	for (;;) {
		size_t n = strcspn(path, "/");
		int next;

		if (n == 0 || n > NAME_MAX || (n <= 2 && strncmp(path, "..", n) == 0))
			return ward_fail(e, EINVAL, "%s is not inside the directory", path);
		if (!path[n]) {
			*ret_name = path;
			return take_fd(&at);
		}
		memcpy(name, path, n);
		name[n] = '\0';
		path += n + 1;
		if (mkdirat(at, name, mode) < 0 && errno != EEXIST)
			return ward_fail_errno(e, "cannot make directory %s", name);
		next = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return ward_fail_errno(e, "cannot open directory %s", name);
		close(at);
		at = next;
	}
}
