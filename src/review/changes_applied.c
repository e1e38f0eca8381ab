/*
 * What was applied of a review that is still there. In: the lines of its file "applied": a time and
 * a path each. Out: when a path was applied last; later changes there are measured from that time,
 * since the change of the workspace was ward's own. Reading is a pure function over bytes.
 */
#include "review/changes_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "guard/guard_internal.h"

static int by_path(const void *a, const void *b)
{
	const struct applied_path *x = a, *y = b;
	int order = strcmp(x->path, y->path);

	return order ? order : (x->ns > y->ns) - (x->ns < y->ns);
}

static int add(struct applied_list *l, char *line)
{
	char *end = NULL;
	uint64_t ns = strtoull(line, &end, 10);

	if (end == line || *end != ' ' || !end[1])
		return 0; /* a line that was cut off says nothing */
	if (l->len == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 16;
		struct applied_path *grown = reallocarray(l->items, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		l->items = grown;
		l->cap = cap;
	}
	guard_unescape(end + 1);
	l->items[l->len] = (struct applied_path){ strdup(end + 1), ns };
	return l->items[l->len].path ? (l->len++, 0) : -ENOMEM;
}

int changes_applied_read(const char *text, size_t n, struct applied_list *ret_list)
{
	int status = 0;

	*ret_list = (struct applied_list){ 0 };
	for (size_t at = 0; at < n && status == 0;) {
		const char *newline = memchr(text + at, '\n', n - at);
		auto_free char *line =
			newline ? strndup(text + at, (size_t)(newline - (text + at))) : NULL;

		if (!newline)
			break; /* the last one was not finished */
		status = line ? add(ret_list, line) : -ENOMEM;
		at = (size_t)(newline - text) + 1;
	}
	if (status < 0)
		changes_applied_clear(ret_list);
	else if (ret_list->len)
		qsort(ret_list->items, ret_list->len, sizeof(*ret_list->items), by_path);
	return status;
}

void changes_applied_clear(struct applied_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		free(l->items[i].path);
	free(l->items);
	*l = (struct applied_list){ 0 };
}

uint64_t changes_applied_at(const struct applied_list *l, const char *path)
{
	size_t low = 0, high = l->len;

	while (low < high) { /* the first one behind every line of this path */
		size_t middle = low + (high - low) / 2;

		if (strcmp(l->items[middle].path, path) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low && strcmp(l->items[low - 1].path, path) == 0 ? l->items[low - 1].ns : 0;
}

void changes_applied_line(struct buf *out, const char *path, uint64_t ns)
{
	buf_printf(out, "%" PRIu64 " ", ns);
	guard_escape(out, path);
	buf_puts(out, "\n");
}
