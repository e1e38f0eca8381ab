/*
 * The tree that an image is unpacked into. In: clean paths of entry.c in the order of the archive.
 * Out: files beneath one directory. Runs in the confined worker; no other process writes there
 * meanwhile.
 *
 * The directory of an entry is opened with the tree's root as the root of the lookup (openat2,
 * RESOLVE_IN_ROOT): links that older layers made, "/lib" to "usr/lib", lead where they will lead
 * inside, and never out. The last part of a path is never followed: what lies there is removed
 * first, so that nothing is written through a link or into a file that has other names. All files
 * belong to whom ward runs as and have one of two modes, 0644 and 0755 (directories 0755): an image
 * is data that the sandbox may read as a whole, and its own ids and modes, set-id bits among them,
 * are only noted.
 */
#include "image/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/io.h"
#include "base/path.h"
#include "base/remove.h"

#define OWNERS_FLUSH 65536
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY)

void tree_begin(struct tree *t, int root_fd, int owners_fd, struct tree_count *count,
		uint64_t max_bytes, uint64_t max_entries)
{
	*t = (struct tree){ .root_fd = root_fd,
			    .owners_fd = owners_fd,
			    .count = count,
			    .max_bytes = max_bytes,
			    .max_entries = max_entries,
			    .parent_fd = -1 };
}

static void forget_parent(struct tree *t)
{
	own_close_fd(&t->parent_fd);
	t->parent_fd = -1;
}

void tree_next_layer(struct tree *t)
{
	t->older = true;
	if (t->touched.slots)
		memset(t->touched.slots, 0, t->touched.cap * sizeof(uint64_t));
	t->touched.len = 0;
}

/* -- what the present layer has touched */

static uint64_t digest(const char *path, size_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)path[i]) * UINT64_C(0x100000001b3);
	h ^= h >> 32;
	return h ? h : 1;
}

static bool is_touched(const struct tree *t, const char *path)
{
	uint64_t h = digest(path, strlen(path));

	if (!t->touched.cap)
		return false;
	for (size_t i = h % t->touched.cap; t->touched.slots[i]; i = (i + 1) % t->touched.cap)
		if (t->touched.slots[i] == h)
			return true;
	return false;
}

/* True: it was there already, and so was everything above it. */
static bool put_touched(struct tree_touched *s, uint64_t h)
{
	size_t i = h % s->cap;

	for (; s->slots[i]; i = (i + 1) % s->cap)
		if (s->slots[i] == h)
			return true;
	s->slots[i] = h;
	s->len++;
	return false;
}

static int grow_touched(struct tree_touched *s)
{
	struct tree_touched grown = { .cap = s->cap ? 2 * s->cap : 4096 };

	if (s->cap && s->len + ENTRY_DEPTH_MAX < s->cap / 2)
		return 0;
	grown.slots = calloc(grown.cap, sizeof(uint64_t));
	if (!grown.slots)
		return -ENOMEM;
	for (size_t i = 0; i < s->cap; i++)
		if (s->slots[i])
			put_touched(&grown, s->slots[i]);
	free(s->slots);
	*s = grown;
	return 0;
}

static int touch(struct tree *t, const char *path, struct ward_err *e)
{
	if (!t->older)
		return 0;
	if (grow_touched(&t->touched) < 0)
		return ward_fail(e, ENOMEM, "out of memory");
	for (size_t n = strlen(path); n;) {
		if (put_touched(&t->touched, digest(path, n)))
			break;
		while (n && path[--n] != '/')
			;
	}
	return 0;
}

/* -- opening */

int tree_open(int root_fd, const char *path, int flags)
{
	struct open_how how = { .flags = (unsigned)(flags | O_CLOEXEC),
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	struct ward_err unused = { 0 };
	long fd;

	if (!*path)
		path = ".";
	do
		fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	/* a process mounts or renames, anywhere, while ".." is resolved */
	while (fd < 0 && (errno == EAGAIN || errno == EINTR));
	if (fd >= 0)
		return (int)fd;
	if (errno != ENOSYS)
		return -errno;
	/* an outer sandbox has no openat2: without links then */
	return path_open_nolink(root_fd, path, flags, &unused);
}

static int count_entry(struct tree *t, struct ward_err *e)
{
	if (t->count->entries++ < t->max_entries)
		return 0;
	ward_fail(e, EFBIG, "the image has more than %llu files",
		  (unsigned long long)t->max_entries);
	return ward_remedy(e, "if you trust its origin, raise --max-files");
}

static int fail_parent(int error, const char *dir, struct ward_err *e)
{
	switch (error) {
	case ENOTDIR:
		return ward_fail(e, EINVAL, "its directory %s is a file", dir);
	case ELOOP:
		return ward_fail(e, EINVAL, "its directory %s is a circular link", dir);
	case EEXIST:
	case ENOENT:
		return ward_fail(e, EINVAL, "its directory %s is a link that leads nowhere", dir);
	default:
		return ward_fail(e, error, "cannot open its directory %s: %s", dir,
				 strerror(error));
	}
}

/* Opens the directory of that path from the root, making what is missing. Returns the
 * descriptor. */
static int open_dirs(struct tree *t, const char *dir, struct ward_err *e)
{
	int fd = tree_open(t->root_fd, dir, DIR_FLAGS);
	char prefix[ENTRY_PATH_MAX];
	auto_fd at = -1;

	if (fd >= 0)
		return fd;
	if (fd != -ENOENT)
		return fail_parent(-fd, dir, e);
	for (const char *end = strchr(dir, '/');; end = strchr(end + 1, '/')) {
		size_t n = end ? (size_t)(end - dir) : strlen(dir);
		int next;

		memcpy(prefix, dir, n);
		prefix[n] = '\0';
		next = tree_open(t->root_fd, prefix, DIR_FLAGS);
		if (next == -ENOENT) {
			int r = count_entry(t, e);

			if (r < 0)
				return r;
			if (mkdirat(at >= 0 ? at : t->root_fd, entry_base(prefix), 0755) < 0)
				return fail_parent(errno, prefix, e);
			next = tree_open(t->root_fd, prefix, DIR_FLAGS);
		}
		if (next < 0)
			return fail_parent(-next, prefix, e);
		own_close_fd(&at);
		at = next;
		if (!end)
			return take_fd(&at);
	}
}

/* The directory that path is in; borrowed, valid until the next call. */
static int open_parent(struct tree *t, const char *path, struct ward_err *e)
{
	const char *base = entry_base(path);
	size_t n = base == path ? 0 : (size_t)(base - path) - 1;

	if (t->parent_fd >= 0 && strlen(t->parent) == n && memcmp(t->parent, path, n) == 0)
		return t->parent_fd;
	forget_parent(t);
	memcpy(t->parent, path, n);
	t->parent[n] = '\0';
	t->parent_fd = open_dirs(t, t->parent, e);
	return t->parent_fd;
}

/* -- removing */

int tree_remove(int dir_fd, const char *name)
{
	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	/* links can make it deeper than any name */
	return errno == EISDIR || errno == EPERM ? remove_tree_at(dir_fd, name) : -errno;
}

/* Removes in the directory (taken) what the present layer has not touched. path has room behind its
 * n bytes. */
static int remove_older(struct tree *t, int fd, char *path, size_t n)
{
	auto_dir dir = fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	while (r == 0 && (entry = readdir(dir))) {
		size_t len = strlen(entry->d_name);
		int inner;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (n + len + 2 > ENTRY_PATH_MAX)
			return -ENAMETOOLONG;
		path[n] = '/';
		memcpy(path + n + (n > 0), entry->d_name, len + 1);
		if (!is_touched(t, path)) {
			r = tree_remove(fd, entry->d_name);
			continue;
		}
		inner = openat(fd, entry->d_name, DIR_FLAGS | O_NOFOLLOW | O_CLOEXEC);
		if (inner >= 0)
			r = remove_older(t, inner, path, n + (n > 0) + len);
	}
	return r;
}

/* Whether the directory was made opaque before: then nothing older is in it, and a mark that comes
 * again and again costs nothing. */
static bool is_opaque(struct tree *t, const char *path)
{
	uint64_t h = ~digest(path, strlen(path));

	return put_touched(&t->touched, h ? h : 1);
}

int tree_opaque(struct tree *t, const char *path, struct ward_err *e)
{
	char at[ENTRY_PATH_MAX];
	int fd, r = touch(t, path, e);

	if (r < 0 || !t->older || is_opaque(t, path))
		return r;
	fd = tree_open(t->root_fd, path, DIR_FLAGS | O_NOFOLLOW);
	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP
			       ? 0
			       : ward_fail(e, -fd, "cannot open it: %s", strerror(-fd));
	memcpy(at, path, strlen(path) + 1);
	forget_parent(t);
	r = remove_older(t, fd, at, strlen(path));
	return r < 0 ? ward_fail(e, -r, "cannot remove older files: %s", strerror(-r)) : 0;
}

int tree_whiteout(struct tree *t, const char *path, struct ward_err *e)
{
	char dir[ENTRY_PATH_MAX];
	auto_fd parent = -1;
	int r;

	if (!t->older)
		return 0;
	if (is_touched(t, path))
		/* the layer has one of its own there, the older one goes */
		return tree_opaque(t, path, e);
	memcpy(dir, path, strlen(path) + 1);
	dir[entry_base(path) == path ? 0 : entry_base(path) - path - 1] = '\0';
	parent = tree_open(t->root_fd, dir, DIR_FLAGS);
	if (parent < 0)
		return parent == -ENOENT || parent == -ENOTDIR
			       ? 0
			       : ward_fail(e, -parent, "cannot open its directory: %s",
					   strerror(-parent));
	forget_parent(t);
	r = tree_remove(parent, entry_base(path));
	return r < 0 ? ward_fail(e, -r, "cannot remove the older one: %s", strerror(-r)) : 0;
}

/* -- making */

static unsigned stored_mode(unsigned mode)
{
	return mode & 0111 ? 0755 : 0644;
}

static int flush_owners(struct tree *t, struct ward_err *e)
{
	int r = t->owners.failed ? -ENOMEM
				 : io_write_all(t->owners_fd, buf_text(&t->owners), t->owners.len);

	t->owners.len = 0;
	return r < 0 ? ward_fail(e, -r, "cannot record the owners: %s", strerror(-r)) : 0;
}

/* Notes an id or a mode that the file here does not have. */
static int note_owner(struct tree *t, const char *path, unsigned stored, const struct tree_meta *m,
		      struct ward_err *e)
{
	unsigned mode = m->mode & 07777;

	if (mode & 06000)
		t->count->set_id++;
	if (t->owners_fd < 0 || (m->uid == 0 && m->gid == 0 && mode == stored))
		return 0;
	buf_printf(&t->owners, "%o %llu %llu %s", mode, (unsigned long long)m->uid,
		   (unsigned long long)m->gid, path);
	buf_add(&t->owners, "", 1);
	return t->owners.len >= OWNERS_FLUSH ? flush_owners(t, e) : 0;
}

/* Makes room at the path; *ret_dir is its directory. */
static int begin_entry(struct tree *t, const char *path, int *ret_dir, struct ward_err *e)
{
	int r = count_entry(t, e);

	if (r == 0)
		r = touch(t, path, e);
	if (r < 0)
		return r;
	*ret_dir = open_parent(t, path, e);
	return *ret_dir < 0 ? *ret_dir : 0;
}

static int clear_place(struct tree *t, int dir_fd, const char *path, struct ward_err *e)
{
	int r = tree_remove(dir_fd, entry_base(path));

	if (r < 0)
		return ward_fail(e, -r, "cannot replace the existing file: %s", strerror(-r));
	(void)t;
	return 0;
}

int tree_add_dir(struct tree *t, const char *path, const struct tree_meta *m, struct ward_err *e)
{
	int dir_fd = -1, r = begin_entry(t, path, &dir_fd, e);
	struct stat st;

	if (r < 0)
		return r;
	if (fstatat(dir_fd, entry_base(path), &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISDIR(st.st_mode))
			return note_owner(t, path, 0755, m, e);
		r = clear_place(t, dir_fd, path, e);
	}
	if (r == 0 && mkdirat(dir_fd, entry_base(path), 0755) < 0)
		r = ward_fail_errno(e, "cannot make the directory");
	return r < 0 ? r : note_owner(t, path, 0755, m, e);
}

int tree_add_symlink(struct tree *t, const char *path, const char *target,
		     const struct tree_meta *m, struct ward_err *e)
{
	int dir_fd = -1, r = begin_entry(t, path, &dir_fd, e);

	if (r == 0 && (!*target || strlen(target) >= ENTRY_PATH_MAX))
		r = ward_fail(e, EINVAL,
			      "the link leads to nothing, or its target is longer than 4095 bytes");
	if (r == 0)
		r = clear_place(t, dir_fd, path, e);
	if (r == 0 && symlinkat(target, dir_fd, entry_base(path)) < 0)
		r = ward_fail_errno(e, "cannot make the link");
	return r < 0 ? r
		     : note_owner(t, path, 0777,
				  &(struct tree_meta){ .mode = 0777, .uid = m->uid, .gid = m->gid },
				  e);
}

int tree_add_hardlink(struct tree *t, const char *path, const char *to, struct ward_err *e)
{
	int dir_fd = -1, r = begin_entry(t, path, &dir_fd, e);
	char dir[ENTRY_PATH_MAX];
	auto_fd from = -1;
	struct stat st;

	if (r < 0)
		return r;
	if (strcmp(path, to) == 0)
		return ward_fail(e, EINVAL, "the hard link leads to itself");
	memcpy(dir, to, strlen(to) + 1);
	dir[entry_base(to) == to ? 0 : entry_base(to) - to - 1] = '\0';
	from = tree_open(t->root_fd, dir, DIR_FLAGS);
	if (from < 0 || fstatat(from, entry_base(to), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return ward_fail(e, ENOENT,
				 "the hard link leads to %s, which the image does not have", to);
	if (S_ISDIR(st.st_mode))
		return ward_fail(e, EINVAL, "the hard link leads to %s, which is a directory", to);
	r = clear_place(t, dir_fd, path, e);
	if (r == 0 && linkat(from, entry_base(to), dir_fd, entry_base(path), 0) < 0)
		r = ward_fail_errno(e, "cannot make the hard link");
	return r;
}

int tree_add_file(struct tree *t, const char *path, uint64_t bytes, const struct tree_meta *m,
		  int *ret_fd, struct ward_err *e)
{
	int dir_fd = -1, r = begin_entry(t, path, &dir_fd, e);
	uint64_t total;

	if (r < 0)
		return r;
	if (__builtin_add_overflow(t->count->bytes, bytes, &total) || total > t->max_bytes) {
		ward_fail(e, EFBIG, "with this file the image has more than %llu bytes",
			  (unsigned long long)t->max_bytes);
		return ward_remedy(e, "if you trust its origin, raise --max-size");
	}
	t->count->bytes = total;
	r = clear_place(t, dir_fd, path, e);
	if (r == 0)
		r = note_owner(t, path, stored_mode(m->mode), m, e);
	if (r < 0)
		return r;
	*ret_fd =
		openat(dir_fd, entry_base(path),
		       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, stored_mode(m->mode));
	return *ret_fd < 0 ? ward_fail_errno(e, "cannot make the file") : 0;
}

int tree_finish_file(int fd, const struct tree_meta *m, struct ward_err *e)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, m->mtime };

	if (fchmod(fd, stored_mode(m->mode)) < 0 || (futimens(fd, times) < 0 && errno != EINVAL))
		return ward_fail_errno(e, "cannot set its mode and time");
	return 0;
}

int tree_skip(struct tree *t, struct ward_err *e)
{
	t->count->skipped++;
	return count_entry(t, e);
}

int tree_end(struct tree *t, struct ward_err *e)
{
	int r = t->owners_fd >= 0 ? flush_owners(t, e) : 0;

	tree_free(t);
	return r;
}

void tree_free(struct tree *t)
{
	forget_parent(t);
	free(t->touched.slots);
	t->touched = (struct tree_touched){ 0 };
	buf_free(&t->owners);
}
