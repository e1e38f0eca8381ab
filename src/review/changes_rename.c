/*
 * Renames in a review. In: the list of changes. Out: pairs of a deleted and an added file of the
 * same content: the overlay knows no renames across the workspace, so a person would see two
 * changes where there was one. Runs in the verbs with the user's rights. Only files of the same
 * size are read; the hash is a quick one that an agent can fool, so what it pairs is compared byte
 * by byte.
 */
#include "review/changes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/rename.h"

#define CHUNK_BYTES 65536

static int open_side(const struct review *r, const struct change *c)
{
	const char *name;
	auto_fd dir = changes_open_parent(c->kind == CHANGE_DELETED ? r->workspace_fd : r->upper_fd,
					  c->path, &name);
	int fd;

	if (dir < 0)
		return dir;
	if (c->kind != CHANGE_DELETED)
		return changes_open_file(dir, name);
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* FNV-1a over the content; false: it cannot be read. */
static bool hash_file(const struct review *r, const struct change *c, char *chunk,
		      uint64_t *ret_hash)
{
	auto_fd fd = open_side(r, c);
	uint64_t hash = 0xcbf29ce484222325u;
	ssize_t n;

	if (fd < 0)
		return false;
	while ((n = read(fd, chunk, CHUNK_BYTES)) > 0)
		for (ssize_t i = 0; i < n; i++)
			hash = (hash ^ (unsigned char)chunk[i]) * 0x100000001b3u;
	*ret_hash = hash;
	return n == 0;
}

static bool is_candidate(const struct change *c)
{
	if (c->kind == CHANGE_DELETED)
		return S_ISREG(c->old_mode) && c->old_size > 0;
	return c->kind == CHANGE_ADDED && S_ISREG(c->new_mode) && c->new_size > 0;
}

static size_t gather(const struct changes *c, struct rename_file *files)
{
	size_t n = 0;

	for (size_t i = 0; i < c->len; i++) {
		const struct change *x = &c->items[i];
		const char *slash = strrchr(x->path, '/');

		if (is_candidate(x))
			files[n++] = (struct rename_file){
				.size = x->kind == CHANGE_DELETED ? x->old_size : x->new_size,
				.name = slash ? slash + 1 : x->path,
				.index = i,
				.deleted = x->kind == CHANGE_DELETED,
			};
	}
	return rename_narrow(files, n);
}

static bool same_bytes(const struct review *r, const struct change *a, const struct change *b)
{
	auto_fd a_fd = open_side(r, a), b_fd = open_side(r, b);

	return a_fd >= 0 && b_fd >= 0 && changes_same_content(a_fd, b_fd, a->old_size) == 1;
}

int changes_find_renames(const struct review *r, struct changes *c, uint64_t budget,
			 struct ward_err *e)
{
	auto_free struct rename_file *files = calloc(c->len + 1, sizeof(*files));
	auto_free char *chunk = malloc(CHUNK_BYTES);
	size_t n, kept = 0;

	if (!files || !chunk)
		return ward_fail(e, ENOMEM, "out of memory");
	n = gather(c, files);
	for (size_t i = 0; i < n; i++) {
		if (files[i].size > budget)
			continue;
		budget -= files[i].size;
		if (hash_file(r, &c->items[files[i].index], chunk, &files[i].hash))
			files[kept++] = files[i];
	}
	rename_pair(files, kept);
	for (size_t i = 0; i < kept; i++) {
		struct change *from = &c->items[files[i].index], *to;

		if (!files[i].deleted || files[i].twin == RENAME_NONE)
			continue;
		to = &c->items[files[i].twin];
		if (!same_bytes(r, from, to))
			continue;
		from->twin = (uint32_t)files[i].twin;
		to->twin = (uint32_t)files[i].index;
		c->renames++;
	}
	return 0;
}
