/*
 * A tree on its way back: what differs from the manifest, as records that standard output
 * announces. In a child of pid 1's, as the guest's root, after every command has ended. What is
 * gone comes first, children before parents, then what is new or changed, parents before children.
 * Sockets, pipes and devices are not sent; holes neither.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vm/disk.h"
#include "vm/guest/agent.h"
#include "vm/guest/manifest.h"
#include "vm/tree.h"

struct teller {
	struct disk_writer out;
	struct manifest manifest;
	bool only_look; /* the first walk: mark what is still there */
	int deep;
	size_t len;
	char path[TREE_NAME_MAX + 1];
	char chunk[TREE_CHUNK_MAX];
};

static void put(struct teller *t, const void *bytes, size_t n)
{
	disk_put(&t->out, bytes, n);
	if (t->out.error)
		_exit(1); /* it has no reader */
}

static void put_head(struct teller *t, const char *name, size_t name_len, struct tree_head *h)
{
	h->magic = TREE_MAGIC;
	h->name_len = (uint32_t)name_len;
	put(t, h, sizeof(*h));
	put(t, name, name_len);
}

static void put_error(struct teller *t, int error)
{
	struct tree_head h = { .type = TREE_ERROR, .code = (uint32_t)error };

	put_head(t, t->path, t->len, &h);
}

static struct tree_head head_of(enum tree_type type, const struct stat *st)
{
	return (struct tree_head){ .type = (uint16_t)type,
				   .mode = (uint16_t)(st->st_mode & 0777),
				   .mtime_s = st->st_mtim.tv_sec,
				   .mtime_ns = (uint32_t)st->st_mtim.tv_nsec };
}

static void put_extent(struct teller *t, int fd, off_t at, off_t end)
{
	while (at < end) {
		size_t want = end - at < TREE_CHUNK_MAX ? (size_t)(end - at) : TREE_CHUNK_MAX;
		ssize_t n = pread(fd, t->chunk, want, at);
		struct tree_chunk c = { .offset = (uint64_t)at, .len = (uint32_t)n };

		if (n <= 0)
			return;
		put(t, &c, sizeof(c));
		put(t, t->chunk, (size_t)n);
		at += n;
	}
}

static void tell_file(struct teller *t, int dir_fd, const char *name, const struct stat *st)
{
	struct tree_head h = head_of(TREE_FILE, st);
	struct tree_chunk end = { 0 };
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	off_t at = 0, size = st->st_size;

	if (fd < 0) {
		put_error(t, errno);
		return;
	}
	h.size = (uint64_t)size;
	put_head(t, t->path, t->len, &h);
	while (at < size) {
		off_t data = lseek(fd, at, SEEK_DATA),
		      hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);

		if (data < 0 || data >= size)
			break;
		if (hole < 0 || hole > size)
			hole = size;
		put_extent(t, fd, data, hole);
		at = hole;
	}
	put(t, &end, sizeof(end));
	close(fd);
}

static void tell_link(struct teller *t, int dir_fd, const char *name, const struct stat *st)
{
	struct tree_head h = head_of(TREE_LINK, st);
	ssize_t n = readlinkat(dir_fd, name, t->chunk, TREE_NAME_MAX);

	if (n <= 0) {
		put_error(t, n < 0 ? errno : EINVAL);
		return;
	}
	h.size = (uint64_t)n;
	put_head(t, t->path, t->len, &h);
	put(t, t->chunk, (size_t)n);
}

static void walk(struct teller *t, int dir_fd, const char *name);

static void walk_entries(struct teller *t, int fd)
{
	DIR *d = fdopendir(fd);
	size_t len = t->len;

	if (!d) {
		close(fd);
		put_error(t, errno);
		return;
	}
	for (struct dirent *each = readdir(d); each; each = readdir(d)) {
		size_t n = strlen(each->d_name);

		if (strcmp(each->d_name, ".") == 0 || strcmp(each->d_name, "..") == 0)
			continue;
		if (len + 1 + n > TREE_NAME_MAX) {
			put_error(t, ENAMETOOLONG);
			continue;
		}
		t->len = len + (size_t)snprintf(t->path + len, sizeof(t->path) - len, "%s%s",
						len ? "/" : "", each->d_name);
		walk(t, dirfd(d), each->d_name);
		t->path[len] = '\0';
		t->len = len;
	}
	closedir(d);
}

static void walk_dir(struct teller *t, int dir_fd, const char *name, const struct stat *st,
		     bool known, bool same)
{
	struct tree_head h = head_of(TREE_DIR, st);
	int fd = t->deep >= TREE_DEEP
			 ? -1
			 : openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0) {
		put_error(t, t->deep >= TREE_DEEP ? ELOOP : errno);
		return;
	}
	if (!t->only_look && !known)
		put_head(t, t->path, t->len, &h);
	t->deep++;
	walk_entries(t, fd);
	t->deep--;
	if (!t->only_look && (!known || !same)) {
		h.type = TREE_DIR_END;
		put_head(t, t->path, t->len, &h);
	}
}

static void walk(struct teller *t, int dir_fd, const char *name)
{
	struct manifest_item *item = manifest_find(&t->manifest, t->path, t->len);
	bool known, same;
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			put_error(t, errno);
		return;
	}
	known = item && ((item->entry.mode ^ st.st_mode) & S_IFMT) == 0;
	same = known && manifest_same(item, &st);
	if (known)
		item->seen = true;
	if (S_ISDIR(st.st_mode))
		walk_dir(t, dir_fd, name, &st, known, same);
	else if (t->only_look || same)
		return;
	else if (S_ISREG(st.st_mode))
		tell_file(t, dir_fd, name, &st);
	else if (S_ISLNK(st.st_mode))
		tell_link(t, dir_fd, name, &st);
	else
		put_error(t, EOPNOTSUPP);
}

/* The manifest is sorted, so backwards children come before their directory. */
static void tell_gone(struct teller *t)
{
	for (size_t i = t->manifest.count; i > 0; i--) {
		const struct manifest_item *item = &t->manifest.items[i - 1];
		struct tree_head h = { .type = TREE_GONE };

		if (!item->seen)
			put_head(t, item->name, item->entry.name_len, &h);
	}
}

static bool tell_tree(struct teller *t, const char *path, int manifest_fd)
{
	struct tree_head end = { .type = TREE_END };

	if (!manifest_load(manifest_fd, path, &t->manifest))
		return false;
	t->only_look = true;
	walk(t, AT_FDCWD, path);
	tell_gone(t);
	t->only_look = false;
	walk(t, AT_FDCWD, path);
	put_head(t, "", 0, &end);
	return true;
}

int tree_out_main(const char *paths, size_t count, int manifest_fd, int disk_fd)
{
	static struct teller t;

	if (disk_writer_begin(&t.out, 1, 0, disk_fd) < 0)
		return 1;
	for (size_t i = 0; i < count; i++, paths += strlen(paths) + 1)
		if (!tell_tree(&t, paths, manifest_fd))
			return 1;
	return disk_writer_end(&t.out) == 0 ? 0 : 1;
}
