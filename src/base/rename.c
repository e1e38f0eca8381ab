/*
 * Renames. In: deleted and added files with size and hash. Out: pairs. Pure functions; sorting,
 * then one pass over each group, so a hundred thousand equal files cost no more than as many
 * different ones.
 */
#include "base/rename.h"

#include <stdlib.h>
#include <string.h>

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_content(const void *a, const void *b)
{
	const struct rename_file *x = a, *y = b;
	int order = compare_numbers(x->size, y->size);

	if (!order)
		order = compare_numbers(x->hash, y->hash);
	if (!order)
		order = strcmp(x->name, y->name);
	if (!order)
		order = (int)y->deleted - (int)x->deleted;
	return order ? order : compare_numbers(x->index, y->index);
}

static int by_size(const void *a, const void *b)
{
	return compare_numbers(((const struct rename_file *)a)->size,
			       ((const struct rename_file *)b)->size);
}

size_t rename_narrow(struct rename_file *files, size_t n)
{
	size_t kept = 0, end;

	if (n)
		qsort(files, n, sizeof(*files), by_size);
	for (size_t at = 0; at < n; at = end) {
		bool deleted = false, added = false;

		for (end = at; end < n && files[end].size == files[at].size; end++) {
			deleted |= files[end].deleted;
			added |= !files[end].deleted;
		}
		if (!deleted || !added)
			continue;
		memmove(files + kept, files + at, (end - at) * sizeof(*files));
		kept += end - at;
	}
	return kept;
}

static void join(struct rename_file *a, struct rename_file *b)
{
	a->twin = b->index;
	b->twin = a->index;
}

/* Within a group of one content, sorted by name: first those that kept their name, then whatever is
 * left, in order. */
static void pair_group(struct rename_file *files, size_t n)
{
	size_t from = 0, to = 0;

	for (size_t at = 0, end; at < n; at = end) {
		size_t added;

		for (end = at; end < n && strcmp(files[end].name, files[at].name) == 0; end++)
			;
		for (added = at; added < end && files[added].deleted; added++)
			;
		for (size_t i = at; i < added && added + (i - at) < end; i++)
			join(&files[i], &files[added + (i - at)]);
	}
	for (;;) {
		while (from < n && (!files[from].deleted || files[from].twin != RENAME_NONE))
			from++;
		while (to < n && (files[to].deleted || files[to].twin != RENAME_NONE))
			to++;
		if (from >= n || to >= n)
			return;
		join(&files[from], &files[to]);
	}
}

void rename_pair(struct rename_file *files, size_t n)
{
	size_t end;

	for (size_t i = 0; i < n; i++)
		files[i].twin = RENAME_NONE;
	if (n)
		qsort(files, n, sizeof(*files), by_content);
	for (size_t at = 0; at < n; at = end) {
		for (end = at; end < n && files[end].size == files[at].size &&
			       files[end].hash == files[at].hash;
		     end++)
			;
		pair_group(files + at, end - at);
	}
}
