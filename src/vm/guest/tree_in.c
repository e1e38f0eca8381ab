/*
 * A tree on its way into the guest: records that standard input announces become files at its path,
 * the same as outside, all of them the user's. In a child of pid 1's, as the guest's root, before
 * any command runs. A directory becomes a tmpfs of its own. What was made is remembered in the
 * manifest; the first failure ends it, because a command must not see half a tree.
 *
 * Where the native sandbox has a mount that is read-only, or hides a file, there is a mount here,
 * too, so that a command gets the same errors as everywhere: EROFS when it writes, EBUSY when it
 * takes the name away. They are made last, the outer ones before the inner ones.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vm/disk.h"
#include "vm/guest/agent.h"
#include "vm/guest/manifest.h"
#include "vm/tree.h"

/* A place that is a mount of its own. */
struct point {
	char *path;
	bool read_only, top; /* top: it is one already, a tree's tmpfs */
};

struct maker {
	const struct agent *agent;
	/* of the present tree; those that are still to come stand behind it */
	const char *path;
	size_t left;
	int dir_fd; /* the tree's top */
	int file_fd;
	struct tree_head head; /* of the present file */
	char name[TREE_NAME_MAX + 1];
	FILE *manifest;
	struct point *points;
	size_t point_count;
};

static int make_parents(const char *path)
{
	char copy[TREE_NAME_MAX + 1];

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *at = copy + 1; *at; at++)
		if (*at == '/') {
			*at = '\0';
			if (mkdir(copy, 0755) < 0 && errno != EEXIST)
				return -errno;
			*at = '/';
		}
	return 0;
}

static int make_top(struct maker *m)
{
	if (mkdir(m->path, 0755) < 0 && errno != EEXIST)
		return -errno;
	if (mount("tree", m->path, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=90%") < 0)
		return -errno;
	m->dir_fd = open(m->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return m->dir_fd < 0 ? -errno : 0;
}

/* A tree that is one file: its name is the path itself. */
static const char *place(const struct maker *m, const char *name)
{
	return *name ? name : m->path;
}

static int remember(struct maker *m, const char *name, const struct tree_head *h, bool keep_mode)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
				     { .tv_sec = h->mtime_s, .tv_nsec = h->mtime_ns } };
	const char *at = *name || h->type != TREE_DIR_END ? place(m, name) : ".";
	struct stat st;

	if (fchownat(m->dir_fd, at, m->agent->setup.uid, m->agent->setup.gid, AT_SYMLINK_NOFOLLOW) <
	    0)
		return -errno;
	if (keep_mode && fchmodat(m->dir_fd, at, h->mode & 0777, 0) < 0)
		return -errno;
	if (h->type != TREE_CLOSED && utimensat(m->dir_fd, at, times, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (fstatat(m->dir_fd, at, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return manifest_add(m->manifest, name, &st) ? 0 : -ENOMEM;
}

static int take_closed(struct maker *m, const char *name)
{
	int fd = openat(m->dir_fd, place(m, name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);
	struct stat st;
	int r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return r < 0 || manifest_add(m->manifest, name, &st) ? r : -ENOMEM;
}

/* ---- mounts ---- */

static int note_point(struct maker *m, const char *name, const struct tree_head *h)
{
	struct point *more;
	char *path = NULL;

	if (h->code == TREE_NO_MOUNT)
		return 0;
	more = realloc(m->points, (m->point_count + 1) * sizeof(*more));
	if (!more || asprintf(&path, "%s%s%s", m->path, *name ? "/" : "", name) < 0)
		return -ENOMEM;
	m->points = more;
	m->points[m->point_count++] = (struct point){ .path = path,
						      .read_only = h->code == TREE_READ_ONLY,
						      .top = !*name && h->type == TREE_DIR };
	return 0;
}

static int mount_points(struct maker *m)
{
	for (size_t i = 0; i < m->point_count; i++) {
		m->path = m->points[i].path; /* for the message */
		if (!m->points[i].top && mount(m->path, m->path, NULL, MS_BIND | MS_REC, NULL) < 0)
			return -errno;
	}
	for (size_t i = 0; i < m->point_count; i++) {
		unsigned long read_only = m->points[i].read_only ? MS_RDONLY : 0;

		m->path = m->points[i].path;
		if (mount(NULL, m->path, NULL,
			  MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | read_only, NULL) < 0)
			return -errno;
	}
	return 0;
}

static int begin_tree(struct maker *m)
{
	if (m->path[0] != '/')
		return -EINVAL;
	return manifest_begin(m->manifest, m->path) ? make_parents(m->path) : -ENOMEM;
}

static int end_tree(struct maker *m)
{
	if (m->dir_fd >= 0)
		close(m->dir_fd);
	m->dir_fd = AT_FDCWD;
	if (!--m->left)
		return 0;
	m->path += strlen(m->path) + 1;
	return begin_tree(m);
}

static int take_head(void *ctx, const struct tree_head *h, const char *name)
{
	struct maker *m = ctx;

	int r = h->type == TREE_DIR || h->type == TREE_FILE || h->type == TREE_CLOSED
			? note_point(m, name, h)
			: 0;

	if (r < 0)
		return r;
	if (h->type == TREE_END)
		return end_tree(m);
	if (h->type == TREE_DIR)
		return !*name ? make_top(m) : mkdirat(m->dir_fd, name, 0700) < 0 ? -errno : 0;
	if (h->type == TREE_DIR_END)
		return remember(m, name, h, true);
	if (h->type == TREE_CLOSED)
		return take_closed(m, name);
	if (h->type != TREE_FILE)
		return -EPROTO;
	m->head = *h;
	snprintf(m->name, sizeof(m->name), "%s", name);
	if (!*name)
		unlink(m->path); /* what the image has there */
	m->file_fd =
		openat(m->dir_fd, place(m, name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return m->file_fd < 0 || ftruncate(m->file_fd, (off_t)h->size) < 0 ? -errno : 0;
}

static int take_link(void *ctx, const struct tree_head *h, const char *name, const char *target)
{
	struct maker *m = ctx;

	return symlinkat(target, m->dir_fd, place(m, name)) < 0 ? -errno
								: remember(m, name, h, false);
}

static int take_chunk(void *ctx, uint64_t offset, const void *bytes, size_t n)
{
	const struct maker *m = ctx;
	const char *at = bytes;

	while (n) {
		ssize_t done = pwrite(m->file_fd, at, n, (off_t)offset);

		if (done < 0)
			return -errno;
		at += done;
		offset += (uint64_t)done;
		n -= (size_t)done;
	}
	return 0;
}

static int take_file_end(void *ctx)
{
	struct maker *m = ctx;

	close(m->file_fd);
	m->file_fd = -1;
	return remember(m, m->name, &m->head, true);
}

static const struct tree_sink sink = {
	.head = take_head, .link = take_link, .chunk = take_chunk, .file_end = take_file_end
};

static int take_records(void *ctx, const void *bytes, size_t n)
{
	return tree_read(ctx, bytes, n);
}

int tree_in_main(const struct agent *a, const char *paths, size_t count, int manifest_fd,
		 int disk_fd)
{
	struct maker m = { .agent = a,
			   .path = paths,
			   .left = count,
			   .dir_fd = AT_FDCWD,
			   .file_fd = -1,
			   .manifest = fdopen(manifest_fd, "w") };
	static struct tree_reader reader;
	int r = m.manifest && ftruncate(manifest_fd, 0) == 0 && lseek(manifest_fd, 0, SEEK_SET) == 0
			? begin_tree(&m)
			: -EINVAL;

	umask(0);
	reader = (struct tree_reader){ .sink = &sink,
				       .ctx = &m,
				       .bytes_max = UINT64_MAX,
				       .records_max = UINT64_MAX,
				       .more = count - 1 };
	if (r == 0)
		r = disk_read_all(0, 1, disk_fd, take_records, &reader);
	if (r == 0 && reader.at != TREE_AT_END)
		r = -EPROTO;
	if (r == 0 && fflush(m.manifest) != 0)
		r = -errno;
	if (r == 0) {
		reader.name[0] = '\0';
		r = mount_points(&m);
	}
	if (r < 0)
		dprintf(2, "%s/%s: %s%s\n", m.path, reader.name, strerror(-r),
			r == -ENOSPC || r == -ENOMEM ? ": the machine is out of memory; give it "
						       "more with --set vm.memory=SIZE"
						     : "");
	return r < 0 ? 1 : 0;
}
