/*
 * The document tree and the list of errors. In: scalars, lists and maps from the YAML or the JSON
 * reader. Out: one kind of tree for the schema. What a file says is repeated in messages cut and
 * escaped, so that it cannot act on a terminal; at most 100 errors are kept. Pure functions, no
 * rights.
 */
#include "policy/node.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/text.h"

#define ERRORS_MAX 100
#define SHOWN_MAX 60

static void add_line(struct reader *r, struct place at, const char *hint, const char *message)
{
	auto_buf line = { 0 };

	if (r->count == ERRORS_MAX) {
		strv_add(&r->errors->lines, "too many errors; the rest is not listed");
		return;
	}
	if (r->count > ERRORS_MAX)
		return;
	text_escape(&line, r->name);
	buf_printf(&line, ":%u:%u: %s", at.line, at.column, message);
	if (hint)
		buf_printf(&line, "; %s", hint);
	strv_take(&r->errors->lines, buf_take(&line));
}

static void fill_error(struct reader *r, const char *hint, const char *message)
{
	if (r->count)
		return; /* the first one says it */
	ward_fail(r->e, EINVAL, "%s", message);
	if (hint)
		ward_remedy(r->e, "%s", hint);
}

void reader_error(struct reader *r, struct place at, const char *hint, const char *format, ...)
{
	char *message = NULL;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&message, format, ap) < 0)
		message = NULL;
	va_end(ap);
	if (r->errors)
		add_line(r, at, hint, message ? message : "out of memory");
	else
		fill_error(r, hint, message ? message : "out of memory");
	r->count++;
	free(message);
}

void reader_out_of_memory(struct reader *r)
{
	reader_error(r, (struct place){ 1, 1 }, NULL, "out of memory");
}

struct node *node_new(struct reader *r, enum node_kind kind, struct place at, const char *text,
		      size_t n)
{
	size_t len = text ? strnlen(text, n) + 1 : 0;
	struct node *new = calloc(1, sizeof(*new) + len);

	if (!new) {
		reader_out_of_memory(r);
		return NULL;
	}
	if (text) {
		new->text = (char *)(new + 1);
		memcpy(new->text, text, len - 1);
	}
	new->kind = kind;
	new->line = at.line;
	new->column = at.column;
	return new;
}

/* The depth is bounded by NODE_DEPTH_MAX. */
void node_free(struct node *n)
{
	if (!n)
		return;
	for (struct node *child = n->first, *next; child; child = next) {
		next = child->next;
		node_free(child);
	}
	free(n->key);
	free(n);
}

static bool may_add(struct reader *r, const struct node *map, const struct node *child)
{
	struct place at = { child->key_line, child->key_column };
	const struct node *other = node_get(map, child->key);
	auto_buf shown = { 0 };

	if (map->count >= NODE_KEYS_MAX) {
		if (map->count == NODE_KEYS_MAX)
			reader_error(r, at, NULL, "a map may have at most %d keys", NODE_KEYS_MAX);
		return false;
	}
	if (!other)
		return true;
	text_escape(&shown, child->key);
	reader_error(r, at, "remove one of them", "%.80s: duplicate key, first in line %u",
		     buf_text(&shown), other->key_line);
	return false;
}

void node_add(struct reader *r, struct node *parent, struct node *child)
{
	bool refused = child->key && !may_add(r, parent, child);

	parent->count++;
	if (refused) {
		node_free(child);
		return;
	}
	if (parent->last)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
}

const struct node *node_get(const struct node *map, const char *key)
{
	for (const struct node *n = map->first; n; n = n->next)
		if (n->key && strcmp(n->key, key) == 0)
			return n;
	return NULL;
}

void node_show(struct buf *out, const struct node *n)
{
	char cut[SHOWN_MAX + 1];
	size_t len;

	if (n->kind == NODE_LIST || n->kind == NODE_MAP || n->kind == NODE_NULL) {
		buf_puts(out, n->kind == NODE_LIST  ? "a list"
			      : n->kind == NODE_MAP ? "a map"
						    : "null");
		return;
	}
	if (n->kind == NODE_BOOL || n->kind == NODE_NUMBER) {
		buf_printf(out, "%.*s", SHOWN_MAX, n->text);
		return;
	}
	len = strnlen(n->text, SHOWN_MAX);
	if (n->text[len])
		while (len && ((unsigned char)n->text[len] & 0xc0) == 0x80)
			len--;
	memcpy(cut, n->text, len);
	cut[len] = '\0';
	buf_puts(out, "\"");
	text_escape(out, cut);
	buf_puts(out, n->text[len] ? "...\"" : "\"");
}
