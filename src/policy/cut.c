/*
 * Taking parts out of a document. In: a document's bytes, and the ways to the parts. Out: the
 * document without them, as the smallest change of its text. The tree's positions (node.h) say
 * where; no byte of what remains is written anew.
 *
 * In brackets a part goes with the comma that divides it from its neighbour; in lines it goes with
 * its lines, and with the comment behind it. The rules for that need not cover every way in which a
 * document can be laid out: the result is believed only after it was read, and its tree must be the
 * old one without the parts. Otherwise it is refused. Pure functions, fuzzed (fuzz/cut.c).
 */
#include "policy/cut.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy_value.h"

struct span {
	size_t from, to;
	const char *instead;
};

struct cut {
	const char *bytes;
	size_t n, characters;
	size_t *at;               /* where each character begins, and the end; owned */
	const struct node **gone; /* owned */
	size_t gone_count;
	struct span *spans; /* owned */
	size_t span_count, span_cap;
	bool failed; /* out of memory */
	bool misfit; /* there is no place for a change */
};

/* -- the parts */

static const struct node *child_at(const struct node *n, const char *word, size_t len)
{
	const struct node *c = n->kind == NODE_MAP || n->kind == NODE_LIST ? n->first : NULL;
	char number[24];
	size_t i = 0;

	for (; c; c = c->next, i++) {
		const char *name = c->key;

		if (n->kind == NODE_LIST) {
			snprintf(number, sizeof(number), "%zu", i);
			name = number;
		}
		if (strlen(name) == len && memcmp(name, word, len) == 0)
			return c;
	}
	return NULL;
}

static const struct node *find_part(const struct node *root, const char *way)
{
	const struct node *n = root;

	while (n && *way) {
		size_t len = strcspn(way, "/");

		n = child_at(n, way, len);
		way += len + (way[len] == '/');
	}
	return n == root ? NULL : n;
}

static bool is_gone(const struct cut *d, const struct node *n)
{
	for (size_t i = 0; i < d->gone_count; i++)
		if (d->gone[i] == n)
			return true;
	return false;
}

static int find_parts(struct cut *d, const struct node *root, const struct strv *parts,
		      struct ward_err *e)
{
	for (size_t i = 0; i < parts->len; i++) {
		const struct node *n = root ? find_part(root, parts->items[i]) : NULL;

		if (!n)
			return ward_fail(e, ENOENT, "the document has no %.200s", parts->items[i]);
		if (!is_gone(d, n))
			d->gone[d->gone_count++] = n;
	}
	return 0;
}

/* -- places */

/* Where each character begins: nodes count characters. */
static bool index_characters(struct cut *d)
{
	size_t count = 0;

	d->at = calloc(d->n + 1, sizeof(*d->at));
	if (!d->at)
		return false;
	for (size_t i = 0; i < d->n; i++)
		if (((unsigned char)d->bytes[i] & 0xc0) != 0x80)
			d->at[count++] = i;
	d->at[count] = d->n;
	d->characters = count;
	return true;
}

static size_t byte_at(const struct cut *d, size_t character)
{
	return d->at[character < d->characters ? character : d->characters];
}

/* Behind the line break of the line that has this offset. */
static size_t next_line(const struct cut *d, size_t at)
{
	const char *newline = at < d->n ? memchr(d->bytes + at, '\n', d->n - at) : NULL;

	return newline ? (size_t)(newline - d->bytes) + 1 : d->n;
}

static size_t line_start(const struct cut *d, size_t at)
{
	while (at > 0 && d->bytes[at - 1] != '\n')
		at--;
	return at;
}

static bool is_blank(const struct cut *d, size_t from, size_t to, const char *also)
{
	for (; from < to; from++)
		if (!strchr(" \t", d->bytes[from]) && !strchr(also, d->bytes[from]))
			return false;
	return true;
}

static size_t start_of(const struct cut *d, const struct node *n)
{
	return byte_at(d, n->key ? n->key_from : n->from);
}

static size_t end_of(const struct cut *d, const struct node *n)
{
	while (!n->flow && (n->kind == NODE_LIST || n->kind == NODE_MAP) && n->last)
		n = n->last;
	return byte_at(d, n->to);
}

static void take_out(struct cut *d, size_t from, size_t to, const char *instead)
{
	struct span *grown;

	if (from > to) {
		d->misfit = true;
		return;
	}
	if (d->span_count == d->span_cap) {
		grown = reallocarray(d->spans, d->span_cap * 2 + 16, sizeof(*grown));
		if (!grown) {
			d->failed = true;
			return;
		}
		d->spans = grown;
		d->span_cap = d->span_cap * 2 + 16;
	}
	d->spans[d->span_count++] = (struct span){ from, to, instead };
}

/* -- taking out */

/* One after another that go, first to last: with the comma before the next that stays, or behind
 * the one that stays before. */
static void cut_in_brackets(struct cut *d, const struct node *list)
{
	const struct node *before = NULL, *first = NULL, *last = NULL;

	for (const struct node *c = list->first; c; c = c->next) {
		if (is_gone(d, c)) {
			first = first ? first : c;
			last = c;
			continue;
		}
		if (first)
			take_out(d, start_of(d, first), start_of(d, c), "");
		first = NULL;
		before = c;
	}
	if (first)
		take_out(d, end_of(d, before), end_of(d, last), "");
}

/* The end of the lines of an entry: a text of several lines has eaten its line break. */
static size_t lines_end(const struct cut *d, const struct node *n)
{
	size_t end = end_of(d, n);

	return end > 0 && d->bytes[end - 1] == '\n' ? end : next_line(d, end);
}

static void cut_in_lines(struct cut *d, const struct node *list)
{
	for (const struct node *c = list->first; c; c = c->next) {
		size_t start = start_of(d, c), begin = line_start(d, start);

		if (!is_gone(d, c))
			continue;
		if (is_blank(d, begin, start, list->kind == NODE_LIST ? "-" : ""))
			take_out(d, begin, lines_end(d, c), "");
		else if (c->next && !is_gone(d, c->next))
			/* the first key of a map that is an entry of a list */
			take_out(d, start, start_of(d, c->next), "");
		else
			d->misfit = true;
	}
}

/* Behind the colon of a key. */
static size_t behind_colon(const struct cut *d, const struct node *n)
{
	size_t at = byte_at(d, n->key_from);
	char quote = at < d->n ? d->bytes[at] : '\0';

	if (quote == '"' || quote == '\'') {
		for (at++; at < d->n && d->bytes[at] != quote; at++)
			at += quote == '"' && d->bytes[at] == '\\';
	} else {
		at += strlen(n->key);
	}
	while (at < d->n && d->bytes[at] != ':' && d->bytes[at] != '\n')
		at++;
	return at + 1;
}

/* All of it goes: [] or {} stands for what was there. */
static void empty(struct cut *d, const struct node *n)
{
	const char *nothing = n->kind == NODE_LIST ? " []" : " {}";
	size_t begin = line_start(d, byte_at(d, n->from));

	if (n->flow) {
		take_out(d, byte_at(d, n->from), byte_at(d, n->to), nothing + 1);
	} else if (!n->key || begin <= byte_at(d, n->key_from)) {
		d->misfit = true;
	} else {
		size_t colon = behind_colon(d, n);

		take_out(d, colon, colon, nothing);
		take_out(d, begin, lines_end(d, n), "");
	}
}

static void cut_below(struct cut *d, const struct node *n)
{
	size_t going = 0;

	if (n->kind != NODE_LIST && n->kind != NODE_MAP)
		return;
	for (const struct node *c = n->first; c; c = c->next)
		going += is_gone(d, c);
	if (going && going == n->count) {
		empty(d, n);
		return;
	}
	if (going && n->flow)
		cut_in_brackets(d, n);
	else if (going)
		cut_in_lines(d, n);
	for (const struct node *c = n->first; c; c = c->next)
		if (!is_gone(d, c))
			cut_below(d, c);
}

static int by_place(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->from != y->from ? (x->from > y->from) - (x->from < y->from)
				  : (x->to > y->to) - (x->to < y->to);
}

static void put_result(struct cut *d, struct buf *out)
{
	size_t at = 0;

	if (d->span_count)
		qsort(d->spans, d->span_count, sizeof(*d->spans), by_place);
	for (size_t i = 0; i < d->span_count; i++) {
		const struct span *s = &d->spans[i];

		if (s->from < at || s->to > d->n) {
			d->misfit = true;
			return;
		}
		buf_add(out, d->bytes + at, s->from - at);
		buf_puts(out, s->instead);
		at = s->to;
	}
	buf_add(out, d->bytes + at, d->n - at);
}

/* -- whether it is right */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* Whether b is a without what goes. */
static bool is_rest(const struct cut *d, const struct node *a, const struct node *b)
{
	const struct node *y = b->first;

	if (a->kind != b->kind || !same_text(a->key, b->key) || !same_text(a->text, b->text))
		return false;
	for (const struct node *x = a->first; x; x = x->next) {
		if (is_gone(d, x))
			continue;
		if (!y || !is_rest(d, x, y))
			return false;
		y = y->next;
	}
	return !y;
}

static struct node *read_tree(const char *name, const void *bytes, size_t n, bool json,
			      struct ward_err *e)
{
	struct reader r = { .name = name, .e = e };
	auto_node root = json ? json_read(&r, bytes, n) : yaml_read(&r, bytes, n);

	return r.count ? NULL : take_ptr(root);
}

static int cut_checked(struct cut *d, const char *name, bool json, const struct node *root,
		       struct buf *out, struct ward_err *e)
{
	struct ward_err ignored = { 0 };
	auto_node rest = NULL;
	auto_buf text = { 0 };

	cut_below(d, root);
	put_result(d, &text);
	if (!d->failed && !d->misfit && !text.failed)
		rest = read_tree(name, buf_text(&text), text.len, json, &ignored);
	if (d->failed || text.failed)
		return ward_fail(e, ENOMEM, "out of memory");
	if (!rest || !is_rest(d, root, rest)) {
		ward_fail(e, EINVAL,
			  "%.200s: ward cannot take this out of the text without "
			  "changing anything else",
			  name);
		return ward_remedy(e, "remove it by hand");
	}
	buf_add(out, text.data, text.len);
	return out->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

int document_cut(const char *name, const uint8_t *bytes, size_t n, const struct strv *parts,
		 struct buf *out, struct ward_err *e)
{
	struct cut d = { .bytes = (const char *)bytes, .n = n };
	bool json = policy_is_json(name, bytes, n);
	auto_node root = NULL;
	int r = 0;

	if (parts->len > CUT_PARTS_MAX)
		return ward_fail(e, E2BIG, "more than %d parts", CUT_PARTS_MAX);
	if (!parts->len) {
		buf_add(out, bytes, n);
		return out->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
	}
	root = read_tree(name, bytes, n, json, e);
	if (!root)
		return e->code ? -e->code
			       : ward_fail(e, EINVAL, "%.200s: the document is empty", name);
	d.gone = calloc(parts->len, sizeof(*d.gone));
	if (!d.gone || !index_characters(&d))
		r = ward_fail(e, ENOMEM, "out of memory");
	if (r == 0)
		r = find_parts(&d, root, parts, e);
	if (r == 0)
		r = cut_checked(&d, name, json, root, out, e);
	free(d.gone);
	free(d.at);
	free(d.spans);
	return r;
}
