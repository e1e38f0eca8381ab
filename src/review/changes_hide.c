/*
 * Hidden names in a review. In: the record's lists and the workspace's .aiignore files. Out:
 * whether a path is hidden. What was hidden from the agent cannot have been changed by it, and what
 * it put under a name that the lists hide is neither shown nor applied. Runs in the verbs with the
 * user's rights. The agent's own .aiignore, in the upper layer, is never asked.
 */
#include "review/changes_internal.h"

#include <errno.h>
#include <string.h>

#include "guard/guard_internal.h"

static void drop_last(struct reading *s)
{
	struct nested_list *last = &s->nested[--s->nested_count];

	ignore_free(last->list);
	free(last->dir);
}

int changes_hide_begin(struct reading *s)
{
	const struct review_record *record = &s->review->record;

	for (size_t i = 0; i < record->hide.len; i++)
		if (ignore_add(&s->hide, record->hide.items[i], strlen(record->hide.items[i])) < 0)
			return ward_fail(s->e, ENOMEM, "out of memory");
	for (size_t i = 0; i < record->hidden.len; i++)
		strv_add(&s->hidden, record->hidden.items[i]);
	if (s->hidden.failed)
		return ward_fail(s->e, ENOMEM, "out of memory");
	strv_sort(&s->hidden);
	return 0;
}

void changes_hide_end(struct reading *s)
{
	while (s->nested_count)
		drop_last(s);
	free(s->nested);
	ignore_free(s->hide);
	strv_free(&s->hidden);
}

/* Whether path (of path_len) lies beneath dir; everything lies beneath "". */
static bool lies_beneath(const char *path, size_t path_len, const char *dir)
{
	size_t n = strlen(dir);

	return n == 0 || (n < path_len && memcmp(path, dir, n) == 0 && path[n] == '/');
}

/* Takes list. */
static int push_list(struct reading *s, struct ignore *list, const char *dir, size_t dir_len)
{
	if (s->nested_count == s->nested_cap) {
		size_t cap = s->nested_cap ? s->nested_cap * 2 : 8;
		struct nested_list *grown = reallocarray(s->nested, cap, sizeof(*grown));

		if (!grown) {
			ignore_free(list);
			return ward_fail(s->e, ENOMEM, "out of memory");
		}
		s->nested = grown;
		s->nested_cap = cap;
	}
	s->nested[s->nested_count++] = (struct nested_list){ list, strndup(dir, dir_len) };
	if (!s->nested[s->nested_count - 1].dir)
		return ward_fail(s->e, ENOMEM, "out of memory");
	return 0;
}

int changes_hide_enter(struct reading *s, const char *path, size_t path_len)
{
	struct ignore *list = NULL;
	int status;

	while (s->nested_count && !lies_beneath(path, path_len, s->nested[s->nested_count - 1].dir))
		drop_last(s);
	if (s->lower_fd < 0)
		return 0;
	status = guard_read_aiignore(s->lower_fd, s->review->record.workspace, &list, s->e);
	if (status < 0 || !list) {
		ignore_free(list);
		return status;
	}
	return push_list(s, list, path, path_len);
}

bool changes_is_hidden(const struct reading *s, const char *path, bool as_dir)
{
	enum ignore_verdict v = ignore_decide(s->hide, path, as_dir);
	size_t n = strlen(path);

	if (guard_list_has(&s->hidden, path, n, '\0') || guard_list_has(&s->hidden, path, n, '/'))
		return true;
	if (v != IGNORE_NONE)
		return v == IGNORE_EXCLUDED;
	for (size_t i = s->nested_count; i-- > 0 && v == IGNORE_NONE;) {
		size_t skip = strlen(s->nested[i].dir);

		if (lies_beneath(path, n, s->nested[i].dir))
			v = ignore_decide(s->nested[i].list, path + skip + (skip ? 1 : 0), as_dir);
	}
	return v == IGNORE_EXCLUDED;
}
