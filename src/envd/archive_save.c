/*
 * Writes the sandbox's files as an archive (archive.h). In: the home, /tmp and the home of "root",
 * while all other processes are stopped, so nothing changes under the walk. Out: the stream, to a
 * pipe whose other end is a file outside. Holes stay holes; hard links stay links; sockets are left
 * out, a program makes its own anew; what is mounted there is not of the sandbox, and is left out,
 * too.
 */
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/io.h"
#include "base/walk.h"
#include "envd/archive_run.h"
#include "protocol/envd.h"

#define FLUSH_AT (256 * 1024)

/* A file with several names, as it was met first. */
struct met {
	ino_t inode;
	char path[];
};

struct save {
	int fd;
	uint8_t root;
	dev_t device;
	struct buf out;
	void *met; /* a tree of tsearch() */
	char chunk[ARCHIVE_BYTES];
};

static int flush(struct save *s, struct ward_err *e)
{
	int r = s->out.failed ? -ENOMEM : io_write_all(s->fd, buf_text(&s->out), s->out.len);

	s->out.len = 0;
	return r < 0 ? ward_fail(e, -r, "cannot write the archive: %s", strerror(-r)) : 0;
}

static void put(struct save *s, enum archive_type type, const struct stat *st, int64_t number,
		const void *bytes, size_t n)
{
	struct archive_record r = {
		.type = (uint8_t)type, .root = s->root, .bytes = (uint32_t)n, .number = number
	};
	uint8_t head[ARCHIVE_HEADER];

	if (st) {
		r.mode = (uint16_t)(st->st_mode & 01777);
		r.number = st->st_mtim.tv_sec;
		r.nanos = (uint32_t)st->st_mtim.tv_nsec;
	}
	archive_write(head, &r);
	buf_add(&s->out, head, sizeof(head));
	buf_add(&s->out, bytes, n);
}

/* A record of two names. */
static void put_two(struct save *s, enum archive_type type, const struct stat *st, const char *path,
		    const char *second, size_t n)
{
	auto_buf both = { 0 };

	buf_add(&both, path, strlen(path) + 1);
	buf_add(&both, second, n);
	s->out.failed |= both.failed;
	if (!both.failed && both.len <= ARCHIVE_BYTES)
		put(s, type, st, 0, both.data, both.len);
}

static void put_attributes(struct save *s, int fd)
{
	char names[4096];
	ssize_t n = flistxattr(fd, names, sizeof(names)), got;

	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
		if (strncmp(names + at, "user.", 5) != 0)
			continue;
		got = fgetxattr(fd, names + at, s->chunk, sizeof(s->chunk) - 256);
		if (got >= 0)
			put_two(s, ARCHIVE_ATTRIBUTE, NULL, names + at, s->chunk, (size_t)got);
	}
}

/* What is between two holes. */
static int put_data(struct save *s, int fd, off_t at, off_t end, struct ward_err *e)
{
	while (at < end) {
		size_t want = sizeof(s->chunk) < (size_t)(end - at) ? sizeof(s->chunk)
								    : (size_t)(end - at);
		ssize_t n = pread(fd, s->chunk, want, at);
		int r = 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return ward_fail_errno(e, "cannot read a file");
		if (n == 0)
			return 0;
		put(s, ARCHIVE_DATA, NULL, at, s->chunk, (size_t)n);
		if (s->out.len >= FLUSH_AT)
			r = flush(s, e);
		if (r < 0)
			return r;
		at += n;
	}
	return 0;
}

static int put_content(struct save *s, int fd, off_t size, struct ward_err *e)
{
	off_t at = 0;
	int r = 0;

	while (r == 0 && at < size) {
		off_t data = lseek(fd, at, SEEK_DATA), hole;

		if (data < 0 && errno == ENXIO)
			break; /* a hole up to the end */
		if (data < 0)
			data = at;
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole < 0)
			hole = size;
		r = put_data(s, fd, data, hole, e);
		at = hole;
	}
	put(s, ARCHIVE_SIZE, NULL, size, NULL, 0);
	return r;
}

/* A file that its owner may not read is readable for the moment. */
static int open_file(int dir_fd, const char *name, const struct stat *st, struct ward_err *e)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 && errno == EACCES && fchmodat(dir_fd, name, st->st_mode | S_IRUSR, 0) == 0) {
		fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		(void)!fchmodat(dir_fd, name, st->st_mode & 07777, 0);
	}
	return fd >= 0 ? fd : ward_fail_errno(e, "cannot read %s", name);
}

static int by_inode(const void *a, const void *b)
{
	const struct met *one = a, *other = b;

	return one->inode < other->inode ? -1 : one->inode > other->inode;
}

/* The path under which the file was there before; NULL: it was not, and is remembered. */
static const char *met_before(struct save *s, ino_t inode, const char *path)
{
	size_t n = strlen(path) + 1;
	struct met *m = malloc(sizeof(*m) + n), **found;

	if (!m) {
		s->out.failed = true;
		return NULL;
	}
	m->inode = inode;
	memcpy(m->path, path, n);
	found = tsearch(m, &s->met, by_inode);
	s->out.failed |= !found;
	if (found && *found == m)
		return NULL;
	free(m);
	return found ? (*found)->path : NULL;
}

static int put_file(struct save *s, const struct walk_dir *d, const struct walk_entry *entry,
		    const struct stat *st, struct ward_err *e)
{
	const char *before = st->st_nlink > 1 ? met_before(s, st->st_ino, entry->path) : NULL;
	auto_fd fd = -1;

	if (before) {
		put_two(s, ARCHIVE_HARD, st, entry->path, before, strlen(before));
		return 0;
	}
	fd = open_file(d->fd, entry->name, st, e);
	if (fd < 0)
		return fd;
	put(s, ARCHIVE_FILE, st, 0, entry->path, entry->path_len);
	put_attributes(s, fd);
	return put_content(s, fd, st->st_size, e);
}

static void put_link(struct save *s, const struct walk_dir *d, const struct walk_entry *entry,
		     const struct stat *st)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(d->fd, entry->name, target, sizeof(target) - 1);

	if (n > 0)
		put_two(s, ARCHIVE_LINK, st, entry->path, target, (size_t)n);
}

struct walking {
	struct save *s;
	struct ward_err *e;
};

static int put_entry(void *ctx, struct walk_dir *d, const struct walk_entry *entry)
{
	struct walking *w = ctx;
	struct save *s = w->s;
	struct stat st;
	int r = 0;

	if (entry->path_len >= PATH_MAX)
		return ward_fail(w->e, ENAMETOOLONG, "a path is longer than 4 KiB");
	if (fstatat(d->fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return ward_fail_errno(w->e, "cannot look at %s", entry->name);
	if (st.st_dev != s->device)
		return 0;
	if (S_ISREG(st.st_mode))
		r = put_file(s, d, entry, &st, w->e);
	else if (S_ISLNK(st.st_mode))
		put_link(s, d, entry, &st);
	else if (S_ISFIFO(st.st_mode))
		put(s, ARCHIVE_FIFO, &st, 0, entry->path, entry->path_len);
	else if (S_ISDIR(st.st_mode))
		put(s, ARCHIVE_DIR, &st, 0, entry->path, entry->path_len);
	if (r == 0 && s->out.len >= FLUSH_AT)
		r = flush(s, w->e);
	return r < 0 ? r : S_ISDIR(st.st_mode);
}

static int save_root(struct save *s, const char *path, struct ward_err *e)
{
	static const struct walk_ops ops = { .entry = put_entry, .force = true };
	struct walking w = { s, e };
	auto_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return ward_fail_errno(e, "cannot open %s", path);
	s->device = st.st_dev;
	put(s, ARCHIVE_DIR, &st, 0, "", 0);
	r = walk_tree(fd, &ops, &w, 0, e);
	tdestroy(s->met, free);
	s->met = NULL;
	return r;
}

static int save_all(struct save *s, struct ward_err *e)
{
	struct archive_roots roots;
	int r = archive_roots(&roots) ? 0 : ward_fail(e, ENOENT, "the user has no home");

	put(s, ARCHIVE_BEGIN, NULL, ARCHIVE_VERSION, NULL, 0);
	for (s->root = 0; r == 0 && s->root < ARCHIVE_ROOTS; s->root++)
		r = *roots.path[s->root] ? save_root(s, roots.path[s->root], e) : 0;
	s->root = 0;
	put(s, ARCHIVE_END, NULL, 0, NULL, 0);
	return r < 0 ? r : flush(s, e);
}

int archive_save(int fd)
{
	struct save *s = calloc(1, sizeof(*s));
	struct ward_err e = { 0 };
	struct hold h;
	int r;

	signal(SIGPIPE, SIG_IGN); /* the program that waits for it may be gone */
	if (!s)
		return ENVD_FAILED;
	if (!hold_begin(&h)) {
		free(s);
		return ENVD_NOT_STOPPED;
	}
	s->fd = fd;
	r = save_all(s, &e);
	hold_end(&h);
	buf_free(&s->out);
	free(s);
	return r == 0 ? 0 : r == -ENAMETOOLONG ? ENVD_TOO_LONG : ENVD_FAILED;
}
