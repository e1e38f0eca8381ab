/*
 * A directory as an image. In: a directory of the host's. Out: a copy of it in the tree and a
 * digest over names, kinds, modes and content, in the order of the names. Runs in the confined
 * worker with the user's eyes: what the user may not read is an error, not a hole. Other file
 * systems that are mounted in it (a /proc) are left empty; links are copied as links; files with
 * several names keep them.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "image/hash.h"
#include "image/unpack.h"

#define CHUNK (256 * 1024)

/* A file that has more names. */
struct linked {
	ino_t ino;
	char *path;
};

struct copy {
	struct tree *t;
	struct hash list;
	dev_t dev;
	struct linked *linked;
	size_t linked_len, linked_cap;
	char path[ENTRY_PATH_MAX];
	char chunk[CHUNK];
};

static void list_entry(struct copy *c, char kind, unsigned mode, const char *content)
{
	char head[32];

	snprintf(head, sizeof(head), "%c %o ", kind, mode & 07777);
	hash_add(&c->list, head, strlen(head));
	hash_add(&c->list, c->path, strlen(c->path) + 1);
	hash_add(&c->list, content, strlen(content) + 1);
}

static const char *find_linked(const struct copy *c, const struct stat *st)
{
	for (size_t i = 0; st->st_nlink > 1 && i < c->linked_len; i++)
		if (c->linked[i].ino == st->st_ino)
			return c->linked[i].path;
	return NULL;
}

static int keep_linked(struct copy *c, const struct stat *st, struct ward_err *e)
{
	if (st->st_nlink < 2)
		return 0;
	if (c->linked_len == c->linked_cap) {
		size_t cap = c->linked_cap ? 2 * c->linked_cap : 64;
		struct linked *grown = reallocarray(c->linked, cap, sizeof(*grown));

		if (!grown)
			return ward_fail(e, ENOMEM, "out of memory");
		c->linked = grown;
		c->linked_cap = cap;
	}
	c->linked[c->linked_len] = (struct linked){ .ino = st->st_ino, .path = strdup(c->path) };
	return c->linked[c->linked_len++].path ? 0 : ward_fail(e, ENOMEM, "out of memory");
}

static struct tree_meta meta_of(const struct stat *st)
{
	return (struct tree_meta){ .mode = st->st_mode & 07777,
				   .uid = st->st_uid,
				   .gid = st->st_gid,
				   .mtime = st->st_mtim };
}

static int copy_bytes(struct copy *c, int from, int to, uint64_t bytes, char digest[DIGEST_HEX],
		      struct ward_err *e)
{
	struct hash h;
	uint64_t done = 0;
	ssize_t n = 0;
	int r = 0;

	hash_begin(&h);
	while (r == 0 && done < bytes && (n = read(from, c->chunk, sizeof(c->chunk))) > 0) {
		size_t m = (uint64_t)n > bytes - done ? (size_t)(bytes - done) : (size_t)n;

		hash_add(&h, c->chunk, m);
		for (size_t at = 0; at < m && r == 0;) {
			ssize_t w = write(to, c->chunk + at, m - at);

			if (w < 0 && errno != EINTR)
				r = ward_fail_errno(e, "cannot write the copy");
			at += w > 0 ? (size_t)w : 0;
		}
		done += m;
	}
	hash_end(&h, digest);
	if (r == 0 && n < 0)
		r = ward_fail_errno(e, "cannot read it");
	return r;
}

static int copy_open_file(struct copy *c, int from, const struct stat *st, struct ward_err *e)
{
	const char *first = find_linked(c, st);
	char digest[DIGEST_HEX];
	struct tree_meta m = meta_of(st);
	auto_fd to = -1;
	int r;

	if (first) {
		list_entry(c, 'h', 0, first);
		return tree_add_hardlink(c->t, c->path, first, e);
	}
	r = tree_add_file(c->t, c->path, (uint64_t)st->st_size, &m, &to, e);
	if (r == 0)
		r = copy_bytes(c, from, to, (uint64_t)st->st_size, digest, e);
	if (r == 0)
		r = tree_finish_file(to, &m, e);
	if (r == 0)
		r = keep_linked(c, st, e);
	if (r == 0)
		list_entry(c, 'f', m.mode, digest);
	return r;
}

static int copy_file(struct copy *c, int dir_fd, const char *name, struct ward_err *e)
{
	auto_fd from =
		openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
		return ward_fail_errno(e, "cannot open it");
	return copy_open_file(c, from, &st, e);
}

static int copy_link(struct copy *c, int dir_fd, const char *name, const struct stat *st,
		     struct ward_err *e)
{
	struct tree_meta m = meta_of(st);
	char target[ENTRY_PATH_MAX];
	ssize_t n = readlinkat(dir_fd, name, target, sizeof(target) - 1);

	if (n < 0)
		return ward_fail_errno(e, "cannot read the link");
	target[n] = '\0';
	list_entry(c, 'l', 0, target);
	return tree_add_symlink(c->t, c->path, target, &m, e);
}

static int copy_entries(struct copy *c, int dir_fd, size_t n, unsigned depth, struct ward_err *e);

static int copy_inner(struct copy *c, int dir_fd, const char *name, const struct stat *st, size_t n,
		      unsigned depth, struct ward_err *e)
{
	struct tree_meta m = meta_of(st);
	int r = tree_add_dir(c->t, c->path, &m, e), fd;

	list_entry(c, 'd', m.mode, "");
	if (r < 0 || st->st_dev != c->dev)
		return r;
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? ward_fail_errno(e, "cannot open the directory")
		      : copy_entries(c, fd, n, depth, e);
}

static int copy_entry(struct copy *c, int dir_fd, const char *name, size_t n, unsigned depth,
		      struct ward_err *e)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return ward_fail_errno(e, "cannot look at it");
	if (S_ISREG(st.st_mode))
		return copy_file(c, dir_fd, name, e);
	if (S_ISLNK(st.st_mode))
		return copy_link(c, dir_fd, name, &st, e);
	if (S_ISDIR(st.st_mode))
		return copy_inner(c, dir_fd, name, &st, n, depth + 1, e);
	return tree_skip(c->t, e);
}

static int list_names(DIR *dir, struct strv *names, struct ward_err *e)
{
	struct dirent *entry;

	errno = 0;
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			strv_add(names, entry->d_name);
	if (errno || names->failed)
		return ward_fail_errno(e, "cannot read the directory");
	strv_sort(names);
	return 0;
}

/* Takes dir_fd; c->path is its path, of n bytes. */
static int copy_entries(struct copy *c, int dir_fd, size_t n, unsigned depth, struct ward_err *e)
{
	auto_dir dir = fdopendir(dir_fd);
	auto_strv names = { 0 };
	int r;

	if (!dir)
		close(dir_fd);
	r = dir ? list_names(dir, &names, e) : ward_fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < names.len && r == 0; i++) {
		size_t len = strlen(names.items[i]);

		if (n + len + 2 > sizeof(c->path) || depth > ENTRY_DEPTH_MAX)
			return ward_fail(e, ENAMETOOLONG,
					 "%.100s...: its path is too long or too deep", c->path);
		c->path[n] = '/';
		memcpy(c->path + n + (n > 0), names.items[i], len + 1);
		r = copy_entry(c, dir_fd, names.items[i], n + (n > 0) + len, depth, e);
		if (r < 0 && !e->what[0]) {
			auto_buf shown = { 0 };

			text_escape(&shown, c->path);
			ward_wrap(e, "%.300s", buf_text(&shown));
		}
	}
	return r;
}

int copy_into(struct tree *t, int source_fd, const char *path, struct ward_err *e)
{
	struct copy *c = calloc(1, sizeof(*c));
	char unused[DIGEST_HEX];
	struct stat st;
	int r;

	if (!c)
		return ward_fail(e, ENOMEM, "out of memory");
	c->t = t;
	hash_begin(&c->list);
	memcpy(c->path, path, strlen(path) + 1);
	if (fstat(source_fd, &st) < 0) {
		r = ward_fail_errno(e, "cannot look at it");
	} else if (S_ISDIR(st.st_mode)) {
		c->dev = st.st_dev;
		r = copy_inner(c, source_fd, ".", &st, strlen(path), 0, e);
	} else {
		r = S_ISREG(st.st_mode)
			    ? copy_open_file(c, source_fd, &st, e)
			    : ward_fail(e, EINVAL, "it is neither a file nor a directory");
	}
	hash_end(&c->list, unused);
	for (size_t i = 0; i < c->linked_len; i++)
		free(c->linked[i].path);
	free(c->linked);
	free(c);
	return r;
}

int copy_dir(struct tree *t, int source_fd, char ret_digest[DIGEST_HEX], struct ward_err *e)
{
	struct copy *c = calloc(1, sizeof(*c));
	struct stat st;
	int fd, r;

	if (!c)
		return ward_fail(e, ENOMEM, "out of memory");
	c->t = t;
	hash_begin(&c->list);
	fd = openat(source_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		r = ward_fail_errno(e, "cannot open the directory");
		own_close_fd(&fd);
	} else {
		c->dev = st.st_dev;
		r = copy_entries(c, fd, 0, 0, e);
	}
	hash_end(&c->list, ret_digest);
	for (size_t i = 0; i < c->linked_len; i++)
		free(c->linked[i].path);
	free(c->linked);
	free(c);
	return r;
}
