/*
 * Makes the files of an archive (archive.h) in a new sandbox, before anything else runs in it. In:
 * bytes that a program of another sandbox may have written. Out: files, links and directories of
 * this sandbox, made with its rights and within its limits; a path never goes through a link.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/io.h"
#include "base/path.h"
#include "envd/archive_run.h"
#include "protocol/envd.h"

/* A directory, whose rights and time are set at the end: they may forbid to write into it. */
struct later {
	uint8_t root;
	mode_t mode;
	struct timespec changed;
	char *path;
};

struct load {
	int fd, root_fds[ARCHIVE_ROOTS];
	int file_fd; /* of the last FILE; -1: none */
	struct later now;
	struct later *dirs;
	size_t dir_count, dir_room;
	char bytes[ARCHIVE_BYTES + 1];
};

bool archive_roots(struct archive_roots *ret)
{
	struct person p, root;

	if (person_find(NULL, &p) < 0 || strcmp(p.home, "/") == 0)
		return false;
	snprintf(ret->path[0], sizeof(ret->path[0]), "%s", p.home);
	snprintf(ret->path[1], sizeof(ret->path[1]), "/tmp");
	snprintf(ret->path[2], sizeof(ret->path[2]), "%s",
		 person_find("root", &root) == 0 ? root.home : "");
	return true;
}

/* The directory that a path's last name is in; *ret_name is that name. */
static int open_parent(struct load *l, uint8_t root, char *path, const char **ret_name)
{
	struct ward_err e = { 0 };
	char *slash = strrchr(path, '/');
	int fd;

	*ret_name = slash ? slash + 1 : path;
	if (!slash)
		return fcntl(l->root_fds[root], F_DUPFD_CLOEXEC, 3);
	*slash = '\0';
	fd = path_open_nolink(l->root_fds[root], path, O_PATH | O_DIRECTORY, &e);
	*slash = '/';
	return fd;
}

static int finish_file(struct load *l)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, l->now.changed };
	int r = 0;

	if (l->file_fd < 0)
		return 0;
	if (fchmod(l->file_fd, l->now.mode) < 0 || futimens(l->file_fd, times) < 0)
		r = -errno;
	if (close(l->file_fd) < 0 && r == 0)
		r = -errno;
	l->file_fd = -1;
	return r;
}

static int make_dir(struct load *l, const struct archive_record *r, char *path)
{
	struct later *d;
	const char *name;
	auto_fd parent = -1;

	if (*path) {
		parent = open_parent(l, r->root, path, &name);
		if (parent < 0 || (mkdirat(parent, name, 0700) < 0 && errno != EEXIST))
			return parent < 0 ? parent : -errno;
	}
	if (l->dir_count == l->dir_room) {
		size_t room = l->dir_room ? 2 * l->dir_room : 64;

		d = reallocarray(l->dirs, room, sizeof(*d));
		if (!d)
			return -ENOMEM;
		l->dirs = d;
		l->dir_room = room;
	}
	d = &l->dirs[l->dir_count];
	*d = l->now;
	d->path = strdup(*path ? path : ".");
	if (!d->path)
		return -ENOMEM;
	l->dir_count++;
	return 0;
}

/* What ward itself has put there in each sandbox is replaced. */
static int open_place(struct load *l, uint8_t root, char *path, const char **ret_name)
{
	int fd = open_parent(l, root, path, ret_name);

	if (fd >= 0 && unlinkat(fd, *ret_name, 0) < 0 && errno != ENOENT) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

static int make_file(struct load *l, const struct archive_record *r, char *path)
{
	const char *name;
	auto_fd parent = open_place(l, r->root, path, &name);

	if (parent < 0)
		return parent;
	l->file_fd =
		openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return l->file_fd < 0 ? -errno : 0;
}

static int make_other(struct load *l, const struct archive_record *r, char *path, char *second)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, l->now.changed };
	const char *name, *old;
	auto_fd parent = open_place(l, r->root, path, &name), from = -1;
	int done;

	if (parent < 0)
		return parent;
	if (r->type == ARCHIVE_HARD) {
		from = open_parent(l, r->root, second, &old);
		return from < 0 ? from : linkat(from, old, parent, name, 0) < 0 ? -errno : 0;
	}
	done = r->type == ARCHIVE_LINK ? symlinkat(second, parent, name)
				       : mkfifoat(parent, name, r->mode & 0777);
	if (done == 0)
		done = utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW);
	return done < 0 ? -errno : 0;
}

static int make_named(struct load *l, const struct archive_record *r)
{
	const char *path, *second;
	size_t n;
	int done;

	if (!archive_names(r, l->bytes, &path, &second, &n))
		return -EBADMSG;
	if (r->type == ARCHIVE_ATTRIBUTE) {
		/* a file system without such attributes is no reason to have no files */
		if (l->file_fd >= 0)
			(void)!fsetxattr(l->file_fd, path, second, n, 0);
		return 0;
	}
	done = finish_file(l);
	l->now = (struct later){ .root = r->root,
				 .mode = r->mode,
				 .changed = { r->number, (long)r->nanos } };
	if (done < 0)
		return done;
	if (r->type == ARCHIVE_DIR)
		return make_dir(l, r, l->bytes);
	if (r->type == ARCHIVE_FILE)
		return make_file(l, r, l->bytes);
	return make_other(l, r, l->bytes, l->bytes + (second - l->bytes));
}

/* 1: that was the last one. */
static int take_record(struct load *l)
{
	struct archive_record r;
	uint8_t head[ARCHIVE_HEADER];
	int done = io_read_exactly(l->fd, head, sizeof(head));

	if (done < 0)
		return done == -EPIPE ? -EBADMSG : done;
	if (!archive_read(head, &r))
		return -EBADMSG;
	done = io_read_exactly(l->fd, l->bytes, r.bytes);
	if (done < 0)
		return done == -EPIPE ? -EBADMSG : done;
	l->bytes[r.bytes] = '\0';
	if (r.type == ARCHIVE_BEGIN)
		return 0;
	if (r.type == ARCHIVE_END)
		return finish_file(l) < 0 ? -EIO : 1;
	if (r.type == ARCHIVE_DATA)
		return l->file_fd < 0
			       ? -EBADMSG
			       : io_write_at(l->file_fd, l->bytes, r.bytes, (uint64_t)r.number);
	if (r.type == ARCHIVE_SIZE)
		return l->file_fd < 0 ? -EBADMSG : ftruncate(l->file_fd, r.number) < 0 ? -errno : 0;
	return make_named(l, &r);
}

/* Those that were made last, which lie in others, first. */
static int finish_dirs(struct load *l)
{
	int r = 0;

	while (l->dir_count) {
		struct later *d = &l->dirs[--l->dir_count];
		const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, d->changed };
		struct ward_err e = { 0 };
		auto_fd fd =
			path_open_nolink(l->root_fds[d->root], d->path, O_RDONLY | O_DIRECTORY, &e);

		/* the roots themselves may belong to ward */
		if (strcmp(d->path, ".") != 0 &&
		    (fd < 0 || fchmod(fd, d->mode) < 0 || futimens(fd, times) < 0))
			r = -EIO;
		free(d->path);
	}
	free(l->dirs);
	return r;
}

int archive_load(int fd)
{
	struct load *l = calloc(1, sizeof(*l));
	struct archive_roots roots;
	int r = 0;

	if (!l || !archive_roots(&roots))
		return ENVD_FAILED;
	l->fd = fd;
	l->file_fd = -1;
	umask(0);
	for (int i = 0; r == 0 && i < ARCHIVE_ROOTS; i++) {
		l->root_fds[i] = open(roots.path[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* without a "root" here its files have no place: they are an error */
		r = l->root_fds[i] < 0 && *roots.path[i] ? -errno : 0;
	}
	while (r == 0)
		r = take_record(l);
	if (r > 0)
		r = finish_dirs(l);
	free(l);
	return r == 0          ? 0
	       : r == -ENOSPC  ? ENVD_NO_SPACE
	       : r == -EBADMSG ? ENVD_BAD_ARCHIVE
			       : ENVD_FAILED;
}
