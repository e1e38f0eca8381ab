/*
 * Myers' difference in linear space. In: two texts. Out: hunks with three lines of context. Pure
 * functions; the texts are untrusted, so memory is linear in their size and time is bounded: a
 * piece that needs more than COST_MAX edits is taken as replaced.
 *
 * Lines become numbers first (equal lines, equal numbers). What is equal at the beginning and end
 * of a piece is cut off; the middle is split where a search from both ends meets, and each half is
 * a piece again.
 */
#include "base/diff.h"

#include <errno.h>
#include <string.h>

#define COST_MAX 1500

struct side {
	const char *text;
	size_t len;
	size_t *starts; /* count + 1 offsets */
	uint32_t *ids;
	bool *changed;
	size_t count;
};

struct table {
	struct slot {
		const char *line;
		size_t len;
		uint32_t id;
	} * slots;
	size_t mask;
	uint32_t next;
};

struct search {
	const uint32_t *a, *b;
	bool *a_changed, *b_changed;
	ptrdiff_t *forward, *backward; /* furthest reach on each diagonal */
	ptrdiff_t middle;              /* index of diagonal 0 */
};

bool diff_is_text(const char *bytes, size_t n)
{
	return n == 0 || !memchr(bytes, '\0', n);
}

/* ---- lines and numbers ---- */

static size_t count_lines(const char *text, size_t n)
{
	size_t count = 0;

	for (size_t at = 0; at < n; count++) {
		const char *newline = memchr(text + at, '\n', n - at);

		at = newline ? (size_t)(newline - text) + 1 : n;
	}
	return count;
}

static int split(struct side *s, const char *text, size_t n)
{
	size_t count = count_lines(text, n), at = 0;

	*s = (struct side){ .text = text, .len = n, .count = count };
	s->starts = calloc(count + 1, sizeof(*s->starts));
	s->ids = reallocarray(NULL, count + 1, sizeof(*s->ids));
	s->changed = calloc(count + 1, sizeof(*s->changed));
	if (!s->starts || !s->ids || !s->changed)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const char *newline = memchr(text + at, '\n', n - at);

		s->starts[i] = at;
		at = newline ? (size_t)(newline - text) + 1 : n;
	}
	s->starts[count] = n;
	return 0;
}

static void side_free(struct side *s)
{
	free(s->starts);
	free(s->ids);
	free(s->changed);
}

static uint64_t hash_line(const char *line, size_t n)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (unsigned char)line[i]) * 0x100000001b3u;
	return hash ^ hash >> 29;
}

static void number_lines(struct side *s, struct table *t)
{
	for (size_t i = 0; i < s->count; i++) {
		const char *line = s->text + s->starts[i];
		size_t n = s->starts[i + 1] - s->starts[i];
		size_t at = (size_t)hash_line(line, n) & t->mask;

		while (t->slots[at].line &&
		       (t->slots[at].len != n || memcmp(t->slots[at].line, line, n) != 0))
			at = (at + 1) & t->mask;
		if (!t->slots[at].line)
			t->slots[at] = (struct slot){ line, n, t->next++ };
		s->ids[i] = t->slots[at].id;
	}
}

static int number_both(struct side *a, struct side *b)
{
	struct table t = { .mask = 15 };

	while (t.mask < 2 * (a->count + b->count))
		t.mask = t.mask * 2 + 1;
	t.slots = calloc(t.mask + 1, sizeof(*t.slots));
	if (!t.slots)
		return -ENOMEM;
	number_lines(a, &t);
	number_lines(b, &t);
	free(t.slots);
	return 0;
}

/* ---- the search ---- */

struct box {
	ptrdiff_t a_from, a_to, b_from, b_to;
};

/* One step of the search from the beginning; true: it has met the other one, at *x, *y. */
static bool step_forward(struct search *s, const struct box *box, ptrdiff_t d, ptrdiff_t delta,
			 ptrdiff_t *x, ptrdiff_t *y)
{
	ptrdiff_t n = box->a_to - box->a_from, m = box->b_to - box->b_from;
	ptrdiff_t *v = s->forward + s->middle;

	for (ptrdiff_t k = -d; k <= d; k += 2) {
		ptrdiff_t i = k == -d || (k != d && v[k - 1] < v[k + 1]) ? v[k + 1] : v[k - 1] + 1,
			  j = i - k;

		while (i < n && j < m && j >= 0 && s->a[box->a_from + i] == s->b[box->b_from + j])
			i++, j++;
		v[k] = i;
		if (delta & 1 && k >= delta - (d - 1) && k <= delta + (d - 1) &&
		    i + s->backward[s->middle + delta - k] >= n) {
			*x = i;
			*y = j;
			return j >= 0 && j <= m && i <= n;
		}
	}
	return false;
}

static bool step_backward(struct search *s, const struct box *box, ptrdiff_t d, ptrdiff_t delta,
			  ptrdiff_t *x, ptrdiff_t *y)
{
	ptrdiff_t n = box->a_to - box->a_from, m = box->b_to - box->b_from;
	ptrdiff_t *v = s->backward + s->middle;

	for (ptrdiff_t k = -d; k <= d; k += 2) {
		ptrdiff_t i = k == -d || (k != d && v[k - 1] < v[k + 1]) ? v[k + 1] : v[k - 1] + 1,
			  j = i - k;

		while (i < n && j < m && j >= 0 &&
		       s->a[box->a_to - 1 - i] == s->b[box->b_to - 1 - j])
			i++, j++;
		v[k] = i;
		if (!(delta & 1) && k >= delta - d && k <= delta + d &&
		    i + s->forward[s->middle + delta - k] >= n) {
			*x = n - i;
			*y = m - j;
			return *y >= 0 && *y <= m && *x >= 0;
		}
	}
	return false;
}

/* Where the piece is split; false: it costs too much. */
static bool find_middle(struct search *s, const struct box *box, ptrdiff_t *x, ptrdiff_t *y)
{
	ptrdiff_t n = box->a_to - box->a_from, m = box->b_to - box->b_from, delta = n - m;
	ptrdiff_t d_max = (n + m + 1) / 2;

	if (d_max > COST_MAX)
		d_max = COST_MAX;
	s->forward[s->middle + 1] = s->backward[s->middle + 1] = 0;
	for (ptrdiff_t d = 0; d <= d_max; d++)
		if (step_forward(s, box, d, delta, x, y) || step_backward(s, box, d, delta, x, y))
			return true;
	return false;
}

static void mark(bool *changed, ptrdiff_t from, ptrdiff_t to)
{
	for (; from < to; from++)
		changed[from] = true;
}

static void compare(struct search *s, struct box box)
{
	ptrdiff_t x, y;

	while (box.a_from < box.a_to && box.b_from < box.b_to &&
	       s->a[box.a_from] == s->b[box.b_from])
		box.a_from++, box.b_from++;
	while (box.a_from < box.a_to && box.b_from < box.b_to &&
	       s->a[box.a_to - 1] == s->b[box.b_to - 1])
		box.a_to--, box.b_to--;
	if (box.a_from == box.a_to || box.b_from == box.b_to || !find_middle(s, &box, &x, &y) ||
	    (x == 0 && y == 0) || (x == box.a_to - box.a_from && y == box.b_to - box.b_from)) {
		mark(s->a_changed, box.a_from, box.a_to);
		mark(s->b_changed, box.b_from, box.b_to);
		return;
	}
	compare(s, (struct box){ box.a_from, box.a_from + x, box.b_from, box.b_from + y });
	compare(s, (struct box){ box.a_from + x, box.a_to, box.b_from + y, box.b_to });
}

static int compare_sides(struct side *a, struct side *b)
{
	size_t room = 2 * (COST_MAX + 4);
	auto_free ptrdiff_t *reach = calloc(2 * room, sizeof(*reach));
	struct search s = { .a = a->ids,
			    .b = b->ids,
			    .a_changed = a->changed,
			    .b_changed = b->changed,
			    .forward = reach,
			    .middle = COST_MAX + 3 };

	if (!reach)
		return -ENOMEM;
	s.backward = reach + room;
	compare(&s, (struct box){ 0, (ptrdiff_t)a->count, 0, (ptrdiff_t)b->count });
	return 0;
}

/* ---- hunks ---- */

static int tell_line(const struct side *s, size_t i, char sign, const struct diff_ops *ops,
		     void *ctx)
{
	size_t from = s->starts[i], to = s->starts[i + 1];
	bool whole = to > from && s->text[to - 1] == '\n';

	return ops->line(ctx, sign, s->text + from, to - from - whole, whole);
}

/* One hunk: lines [i, i_end) of a and [j, j_end) of b, in step where nothing changed. */
static int tell_hunk(const struct side *a, const struct side *b, size_t i, size_t i_end, size_t j,
		     size_t j_end, const struct diff_ops *ops, void *ctx)
{
	int status =
		ops->hunk(ctx, i_end > i ? i + 1 : i, i_end - i, j_end > j ? j + 1 : j, j_end - j);

	while (status >= 0 && (i < i_end || j < j_end)) {
		if (i < i_end && a->changed[i])
			status = tell_line(a, i++, '-', ops, ctx);
		else if (j < j_end && b->changed[j])
			status = tell_line(b, j++, '+', ops, ctx);
		else
			status = tell_line(a, (j++, i++), ' ', ops, ctx);
	}
	return status;
}

/* Where the change that begins at i, j, or at most two contexts behind it, ends on side a; *j
 * follows. */
static size_t end_of_hunk(const struct side *a, const struct side *b, size_t i, size_t *j)
{
	size_t end_i = i, end_j = *j, equal = 0;

	while ((i < a->count || *j < b->count) && equal <= 2 * DIFF_CONTEXT) {
		if (i < a->count && a->changed[i]) {
			i++;
		} else if (*j < b->count && b->changed[*j]) {
			++*j;
		} else {
			i++;
			++*j;
			equal++;
			continue;
		}
		equal = 0;
		end_i = i;
		end_j = *j;
	}
	*j = end_j;
	return end_i;
}

static int tell_all(const struct side *a, const struct side *b, const struct diff_ops *ops,
		    void *ctx)
{
	size_t i = 0, j = 0;
	int status = 0;

	while (status >= 0 && (i < a->count || j < b->count)) {
		size_t from_i, from_j, end_i, end_j, before, after;

		if (!(i < a->count && a->changed[i]) && !(j < b->count && b->changed[j])) {
			i++;
			j++;
			continue;
		}
		end_j = j;
		end_i = end_of_hunk(a, b, i, &end_j);
		before = i < DIFF_CONTEXT ? i : DIFF_CONTEXT;
		after = a->count - end_i < DIFF_CONTEXT ? a->count - end_i : DIFF_CONTEXT;
		from_i = i - before;
		from_j = j - before;
		status = tell_hunk(a, b, from_i, end_i + after, from_j, end_j + after, ops, ctx);
		i = end_i;
		j = end_j;
	}
	return status;
}

/* Both sides split, numbered and compared; side_free() in any case. */
static int compare_texts(const char *old_text, size_t old_len, const char *new_text, size_t new_len,
			 struct side *a, struct side *b)
{
	int status = split(a, old_text, old_len);

	if (status == 0)
		status = split(b, new_text, new_len);
	if (status == 0)
		status = number_both(a, b);
	return status == 0 ? compare_sides(a, b) : status;
}

int diff_texts(const char *old_text, size_t old_len, const char *new_text, size_t new_len,
	       const struct diff_ops *ops, void *ctx, struct diff_counts *ret_counts)
{
	struct side a = { 0 }, b = { 0 };
	int status = compare_texts(old_text, old_len, new_text, new_len, &a, &b);

	if (status == 0 && ret_counts) {
		*ret_counts = (struct diff_counts){ 0 };
		for (size_t i = 0; i < a.count; i++)
			ret_counts->removed += a.changed[i];
		for (size_t i = 0; i < b.count; i++)
			ret_counts->added += b.changed[i];
	}
	if (status == 0 && ops)
		status = tell_all(&a, &b, ops, ctx);
	side_free(&a);
	side_free(&b);
	return status < 0 ? status : 0;
}

/* ---- regions ---- */

static int collect(const struct side *a, const struct side *b, struct diff_regions *r)
{
	size_t cap = 0, i = 0, j = 0;

	while (i < a->count || j < b->count) {
		struct diff_region one = { .old_from = i, .new_from = j };

		while (i < a->count && a->changed[i])
			i++;
		while (j < b->count && b->changed[j])
			j++;
		if (i == one.old_from && j == one.new_from) {
			i++;
			j++;
			continue;
		}
		one.old_to = i;
		one.new_to = j;
		if (r->len == cap) {
			struct diff_region *grown;

			cap = cap ? cap * 2 : 16;
			grown = reallocarray(r->items, cap, sizeof(*grown));
			if (!grown)
				return -ENOMEM;
			r->items = grown;
		}
		r->items[r->len++] = one;
	}
	return 0;
}

int diff_find_regions(const char *old_text, size_t old_len, const char *new_text, size_t new_len,
		      struct diff_regions *ret)
{
	struct side a = { 0 }, b = { 0 };
	struct diff_regions r = { 0 };
	int status = compare_texts(old_text, old_len, new_text, new_len, &a, &b);

	if (status == 0)
		status = collect(&a, &b, &r);
	if (status == 0) {
		r.old_starts = take_ptr(a.starts);
		r.new_starts = take_ptr(b.starts);
		r.old_count = a.count;
		r.new_count = b.count;
		*ret = r;
	} else {
		free(r.items);
	}
	side_free(&a);
	side_free(&b);
	return status;
}

void diff_regions_clear(struct diff_regions *r)
{
	free(r->items);
	free(r->old_starts);
	free(r->new_starts);
	*r = (struct diff_regions){ 0 };
}
