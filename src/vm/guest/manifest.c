/*
 * The manifest of all trees, one behind the other: one entry a name, with what stat said when the
 * tree had been made. A file counts as changed when its inode, size, mode or one of its times is
 * another: the time of change cannot be set, so nothing that was written stays behind. It lies in a
 * memfd of pid 1's, which no command can open.
 */
#include "vm/guest/manifest.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

bool manifest_begin(FILE *out, const char *path)
{
	struct manifest_entry e = { .name_len = (uint32_t)strlen(path) };

	return fwrite(&e, sizeof(e), 1, out) == 1 && fwrite(path, 1, e.name_len, out) == e.name_len;
}

bool manifest_add(FILE *out, const char *name, const struct stat *st)
{
	struct manifest_entry e = { .name_len = (uint32_t)strlen(name),
				    .mode = (uint32_t)st->st_mode,
				    .inode = (uint64_t)st->st_ino,
				    .size = (uint64_t)st->st_size,
				    .mtime_s = st->st_mtim.tv_sec,
				    .ctime_s = st->st_ctim.tv_sec,
				    .mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
				    .ctime_ns = (uint32_t)st->st_ctim.tv_nsec };

	return fwrite(&e, sizeof(e), 1, out) == 1 && fwrite(name, 1, e.name_len, out) == e.name_len;
}

static int compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
	int r = memcmp(a, b, a_len < b_len ? a_len : b_len);

	return r ? r : (a_len > b_len) - (a_len < b_len);
}

static int by_name(const void *a, const void *b)
{
	const struct manifest_item *x = a, *y = b;

	return compare(x->name, x->entry.name_len, y->name, y->entry.name_len);
}

static bool read_items(struct manifest *m, size_t size, const char *path)
{
	size_t room = 0;
	bool wanted = false;

	for (size_t at = 0; at < size;) {
		struct manifest_item item = { 0 };

		if (size - at < sizeof(item.entry))
			return false;
		memcpy(&item.entry, m->bytes + at, sizeof(item.entry));
		at += sizeof(item.entry);
		if (item.entry.name_len > size - at)
			return false;
		item.name = m->bytes + at;
		at += item.entry.name_len;
		if (!item.entry.mode)
			wanted = item.entry.name_len == strlen(path) &&
				 memcmp(item.name, path, item.entry.name_len) == 0;
		if (!item.entry.mode || !wanted)
			continue;
		if (m->count == room) {
			struct manifest_item *more =
				realloc(m->items, (room = room ? 2 * room : 256) * sizeof(item));

			if (!more)
				return false;
			m->items = more;
		}
		m->items[m->count++] = item;
	}
	qsort(m->items, m->count, sizeof(*m->items), by_name);
	return true;
}

bool manifest_load(int fd, const char *path, struct manifest *m)
{
	struct stat st;

	*m = (struct manifest){ 0 };
	if (fstat(fd, &st) < 0)
		return false;
	if (!st.st_size)
		return true;
	m->bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	return m->bytes != MAP_FAILED && read_items(m, (size_t)st.st_size, path);
}

struct manifest_item *manifest_find(const struct manifest *m, const char *name, size_t n)
{
	size_t low = 0, high = m->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int r = compare(name, n, m->items[middle].name, m->items[middle].entry.name_len);

		if (r == 0)
			return &m->items[middle];
		if (r < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

bool manifest_same(const struct manifest_item *item, const struct stat *st)
{
	const struct manifest_entry *e = &item->entry;

	if (S_ISDIR(st->st_mode))
		return e->mode == st->st_mode;
	return e->mode == st->st_mode && e->inode == st->st_ino &&
	       e->size == (uint64_t)st->st_size && e->mtime_s == st->st_mtim.tv_sec &&
	       e->mtime_ns == (uint32_t)st->st_mtim.tv_nsec && e->ctime_s == st->st_ctim.tv_sec &&
	       e->ctime_ns == (uint32_t)st->st_ctim.tv_nsec;
}
