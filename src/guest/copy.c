/*
 * The inner side of ward cp: ward-init's own code in a child of its own, with the sandbox's rights
 * and nothing of ward-init's open. "get" writes a tree to standard output as records
 * (protocol/guest.h),
 * "put" makes files of records from standard input. Whatever a name leads to, it leads there
 * inside: a link that is changed meanwhile harms nothing outside. Device files and the
 * like are not copied; modes lose everything but permissions.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/raw.h"
#include "guest/guest.h"

#define CHUNK_BYTES 65536
#define DIRENTS_BYTES 4096

struct copy {
	char path[GUEST_COPY_NAME_MAX + 1]; /* of the present record */
	size_t len;
	bool failed; /* some record was an error */
	char *chunk; /* CHUNK_BYTES */
};

struct guest_dirent {
	uint64_t ino;
	int64_t offset;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

/* SYS_write to 1 or SYS_read from 0, until all of it is moved. */
static bool move_all(long call, char *at, size_t n)
{
	while (n) {
		long done = raw_call(call, call == SYS_write, at, n);

		if (done <= 0 && done != -EINTR)
			return false;
		if (done > 0) {
			at += done;
			n -= (size_t)done;
		}
	}
	return true;
}

static bool write_all(const void *bytes, size_t n)
{
	return move_all(SYS_write, (char *)(uintptr_t)bytes, n); /* which only reads it */
}

static bool read_all(void *bytes, size_t n)
{
	return move_all(SYS_read, bytes, n);
}

/* If there is no reader any more, there is nothing to report to. */
static void put(const struct copy *c, struct guest_copy *r)
{
	r->magic = GUEST_COPY_MAGIC;
	r->name_len = (uint32_t)c->len;
	if (!write_all(r, sizeof(*r)) || !write_all(c->path, c->len))
		guest_exit(1);
}

static void put_error(struct copy *c, long error)
{
	struct guest_copy r = { .type = GUEST_COPY_ERROR, .error = (uint32_t)-error };

	c->failed = true;
	put(c, &r);
}

/* Exactly as many bytes as were announced: zeros where the file became shorter meanwhile. */
static void put_content(struct copy *c, int fd, uint64_t size)
{
	while (size) {
		size_t want = size < CHUNK_BYTES ? (size_t)size : CHUNK_BYTES;
		long n = raw_call(SYS_read, fd, c->chunk, want);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			for (n = 0; n < (long)want; n++)
				c->chunk[n] = 0;
		if (!write_all(c->chunk, (size_t)n))
			guest_exit(1);
		size -= (uint64_t)n;
	}
}

static void get_file(struct copy *c, int dir_fd, const char *name, int follow)
{
	struct guest_copy r = { .type = GUEST_COPY_FILE };
	long fd = raw_call(SYS_openat, dir_fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | follow);
	struct stat st;
	long err = fd < 0 ? fd : raw_call(SYS_fstat, fd, &st);

	if (err == 0 && !S_ISREG(st.st_mode))
		err = -EINVAL;
	if (err < 0) {
		put_error(c, err);
	} else {
		r.mode = st.st_mode & 0777;
		r.size = (uint64_t)st.st_size;
		r.mtime_s = st.st_mtim.tv_sec;
		put(c, &r);
		put_content(c, (int)fd, r.size);
	}
	if (fd >= 0)
		raw_call(SYS_close, fd);
}

static void get_link(struct copy *c, int dir_fd, const char *name)
{
	struct guest_copy r = { .type = GUEST_COPY_LINK };
	long n = raw_call(SYS_readlinkat, dir_fd, name, c->chunk, GUEST_COPY_NAME_MAX);

	if (n < 0) {
		put_error(c, n);
		return;
	}
	r.size = (uint64_t)n;
	put(c, &r);
	if (!write_all(c->chunk, (size_t)n))
		guest_exit(1);
}

static void get(struct copy *c, int dir_fd, const char *name, int follow, unsigned deep);

/* The name's part of the path; false when it is too long. */
static bool enter(struct copy *c, const char *name)
{
	size_t n = raw_strlen(name), slash = c->len > 0;

	if (c->len + slash + n > GUEST_COPY_NAME_MAX)
		return false;
	if (slash)
		c->path[c->len] = '/';
	for (size_t i = 0; i < n; i++)
		c->path[c->len + slash + i] = name[i];
	c->len += slash + n;
	return true;
}

static void get_entries(struct copy *c, int fd, unsigned deep)
{
	_Alignas(8) char entries[DIRENTS_BYTES];
	size_t len = c->len;
	long n;

	while ((n = raw_call(SYS_getdents64, fd, entries, sizeof(entries))) > 0)
		for (long at = 0; at < n;) {
			const struct guest_dirent *d = (const void *)(entries + at);
			const char *s = d->name;

			at += d->bytes;
			if (s[0] == '.' && (!s[1] || (s[1] == '.' && !s[2])))
				continue;
			if (enter(c, s))
				get(c, fd, s, O_NOFOLLOW, deep + 1);
			else
				put_error(c, -ENAMETOOLONG);
			c->len = len;
		}
	if (n < 0)
		put_error(c, n);
}

static void get_dir(struct copy *c, int dir_fd, const char *name, int follow, unsigned deep)
{
	struct guest_copy r = { .type = GUEST_COPY_DIR };
	long fd = raw_call(SYS_openat, dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | follow);
	struct stat st;
	long err = fd < 0 ? fd : raw_call(SYS_fstat, fd, &st);

	if (err == 0 && deep >= GUEST_COPY_DEEP)
		err = -ELOOP;
	if (err < 0) {
		put_error(c, err);
	} else {
		r.mode = st.st_mode & 0777;
		put(c, &r);
		get_entries(c, (int)fd, deep);
	}
	if (fd >= 0)
		raw_call(SYS_close, fd);
}

static void get(struct copy *c, int dir_fd, const char *name, int follow, unsigned deep)
{
	struct stat st;
	long err = raw_call(SYS_newfstatat, dir_fd, name, &st, follow ? AT_SYMLINK_NOFOLLOW : 0);

	if (err < 0)
		put_error(c, err);
	else if (S_ISDIR(st.st_mode))
		get_dir(c, dir_fd, name, follow, deep);
	else if (S_ISREG(st.st_mode))
		get_file(c, dir_fd, name, follow);
	else if (S_ISLNK(st.st_mode))
		get_link(c, dir_fd, name);
	else
		put_error(c, -EINVAL);
}

/* ---- into the sandbox ---- */

static long take_content(struct copy *c, int fd, uint64_t size)
{
	while (size) {
		size_t want = size < CHUNK_BYTES ? (size_t)size : CHUNK_BYTES;

		if (!read_all(c->chunk, want))
			return -EPIPE;
		for (size_t done = 0; done < want;) {
			long n = raw_call(SYS_write, fd, c->chunk + done, want - done);

			if (n < 0 && n != -EINTR)
				return n;
			done += n > 0 ? (size_t)n : 0;
		}
		size -= want;
	}
	return 0;
}

static long make_file(struct copy *c, const char *path, const struct guest_copy *r)
{
	/* what is there goes first: a link would lead elsewhere, and others may have the old file
	 * open */
	long err = raw_call(SYS_unlinkat, AT_FDCWD, path, 0), fd;

	if (err < 0 && err != -ENOENT)
		return err;
	fd = raw_call(SYS_openat, AT_FDCWD, path,
		      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, r->mode & 0777);
	if (fd < 0)
		return fd;
	err = take_content(c, (int)fd, r->size);
	if (err == 0)
		/* where it is refused, the umask has its way */
		raw_call(SYS_fchmod, fd, r->mode & 0777);
	raw_call(SYS_close, fd);
	return err;
}

static long make_link(struct copy *c, const char *path, const struct guest_copy *r)
{
	if (r->size > GUEST_COPY_NAME_MAX || !read_all(c->chunk, (size_t)r->size))
		return -EPIPE;
	c->chunk[r->size] = 0;
	raw_call(SYS_unlinkat, AT_FDCWD, path, 0);
	return raw_call(SYS_symlinkat, c->chunk, AT_FDCWD, path);
}

static long make_dir(const char *path, const struct guest_copy *r)
{
	long err = raw_call(SYS_mkdirat, AT_FDCWD, path, (r->mode & 0777) | 0700);
	struct stat st;

	if (err == -EEXIST &&
	    raw_call(SYS_newfstatat, AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISDIR(st.st_mode))
		err = 0;
	return err;
}

/* Where the records go: PATH itself, or PATH/NAME where PATH is a directory. */
static bool choose_place(const char *path, const char *name, char *place, size_t *ret_len)
{
	size_t n = raw_strlen(path), m = raw_strlen(name), at = 0;
	struct stat st;
	bool inside = *name && raw_call(SYS_newfstatat, AT_FDCWD, path, &st, 0) == 0 &&
		      S_ISDIR(st.st_mode);

	if (n + m + 2 > GUEST_COPY_NAME_MAX)
		return false;
	while (at < n) {
		place[at] = path[at];
		at++;
	}
	if (inside) {
		place[at++] = '/';
		for (size_t i = 0; i < m; i++)
			place[at++] = name[i];
	}
	place[at] = 0;
	*ret_len = at;
	return true;
}

/* One record; 1 after the last. */
static long take(struct copy *c, char *place, size_t len)
{
	struct guest_copy r;

	if (!read_all(&r, sizeof(r)) || r.magic != GUEST_COPY_MAGIC ||
	    r.name_len > GUEST_COPY_NAME_MAX || !read_all(c->path, r.name_len))
		return -EPIPE;
	c->len = r.name_len;
	if (r.type == GUEST_COPY_END)
		return 1;
	if (len + 1 + c->len > GUEST_COPY_NAME_MAX)
		return -ENAMETOOLONG;
	if (c->len)
		place[len++] = '/';
	for (size_t i = 0; i < c->len; i++)
		place[len + i] = c->path[i];
	place[len + c->len] = 0;
	return r.type == GUEST_COPY_DIR    ? make_dir(place, &r)
	       : r.type == GUEST_COPY_FILE ? make_file(c, place, &r)
	       : r.type == GUEST_COPY_LINK ? make_link(c, place, &r)
					   : -EINVAL;
}

static void put_tree(struct copy *c, const char *path, const char *name)
{
	char place[2 * GUEST_COPY_NAME_MAX + 4];
	size_t len = 0;
	long r = choose_place(path, name, place, &len) ? 0 : -ENAMETOOLONG;

	while (r == 0)
		r = take(c, place, len);
	if (r < 0)
		put_error(c, r);
}

int guest_copy(const char *what, const char *path, const char *name)
{
	char chunk[CHUNK_BYTES];
	struct guest_copy end = { .type = GUEST_COPY_END };
	struct copy c;

	c.len = 0;
	c.failed = false;
	c.chunk = chunk;
	if (what[0] == 'g')
		get(&c, AT_FDCWD, path, 0, 0);
	else
		put_tree(&c, path, name);
	c.len = 0;
	put(&c, &end);
	return c.failed ? 1 : 0;
}
