/*
 * Editing a policy file. In: a document's bytes, a field, a value. Out: the document with that
 * value added, as the smallest change of its text. The tree's positions (node.h) say where;
 * comments, order, quotes and line ends of everything else are not touched, because no byte of it
 * is written anew.
 *
 * What is put in goes where a person would write it: behind the last entry of its list, behind the
 * last key of its map, in the style that is there (brackets, or a line with its indentation). A
 * field or group that is missing is made. A policy can be laid out in unforeseen ways, so the
 * result is believed only after it was read: it must be valid, and say what the old one said and
 * this value, field by field. Otherwise it is refused, and nothing is lost but the comfort. Pure
 * functions, fuzzed (fuzz/edit.c).
 */
#include "policy/policy_edit.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "policy/policy_value.h"

#define INDENT 2
#define LINES_MAX 4 /* entries of a new list that have a line each */
#define SPLICES_MAX 2

/* Bytes that take the place of others. */
struct splice {
	size_t at, removed;
	struct buf text; /* owned */
};

struct edit {
	const char *bytes;
	size_t n;
	bool json;
	const char *newline;
	struct splice splices[SPLICES_MAX]; /* in the order of their places */
	size_t count;
};

/* The offset of a character. */
static size_t byte_at(const struct edit *d, size_t character)
{
	size_t i = 0;

	for (; i < d->n; i++)
		if (((unsigned char)d->bytes[i] & 0xc0) != 0x80 && character-- == 0)
			break;
	return i;
}

static struct buf *splice(struct edit *d, size_t at, size_t removed)
{
	struct splice *s = &d->splices[d->count < SPLICES_MAX ? d->count++ : SPLICES_MAX - 1];

	s->at = at;
	s->removed = removed;
	return &s->text;
}

/* -- values */

static bool is_digits(const char *s)
{
	size_t n = strlen(s);

	return n && n < 19 && strspn(s, "0123456789") == n && (*s != '0' || n == 1);
}

/* bare: digits may stand as a number. */
static void put_value(const struct edit *d, const struct node *n, bool bare, struct buf *out)
{
	const char *between = "";

	switch (n->kind) {
	case NODE_NULL:
		buf_puts(out, "null");
		break;
	case NODE_BOOL:
	case NODE_NUMBER:
		buf_puts(out, n->text);
		break;
	case NODE_WORD:
	case NODE_STRING:
		if (bare && is_digits(n->text))
			buf_puts(out, n->text);
		else if (d->json)
			json_quote(out, n->text);
		else
			policy_scalar_text(out, n->text);
		break;
	case NODE_LIST:
	case NODE_MAP:
		buf_puts(out, n->kind == NODE_LIST ? "[" : "{");
		for (const struct node *c = n->first; c; c = c->next, between = ", ") {
			buf_puts(out, between);
			if (c->key && d->json)
				json_quote(out, c->key);
			else if (c->key)
				policy_scalar_text(out, c->key);
			if (c->key)
				buf_puts(out, ": ");
			put_value(d, c, c->kind != NODE_STRING, out);
		}
		buf_puts(out, n->kind == NODE_LIST ? "]" : "}");
		break;
	}
}

/* The entries of a value for a list: several of them, or one. */
static void put_entries(const struct edit *d, const struct schema_row *row,
			const struct node *value, const char *between, struct buf *out)
{
	bool bare = row->type == TYPE_INGRESS;

	if (value->kind != NODE_LIST) {
		put_value(d, value, bare, out);
		return;
	}
	for (const struct node *c = value->first; c; c = c->next) {
		put_value(d, c, bare, out);
		if (c->next)
			buf_puts(out, between);
	}
}

static void put_key(const struct edit *d, const char *key, struct buf *out)
{
	if (d->json)
		json_quote(out, key);
	else
		buf_puts(out, key);
	buf_puts(out, ": ");
}

/* The whole value of a field, in brackets where it is a list. */
static void put_field(const struct edit *d, const struct schema_row *row, const struct node *value,
		      struct buf *out)
{
	bool list = policy_is_list(row), number = schema_held(row->type) == HELD_NUMBER;

	buf_puts(out, list ? "[" : "");
	if (list)
		put_entries(d, row, value, ", ", out);
	else
		put_value(d, value, number, out);
	buf_puts(out, list ? "]" : "");
}

/* -- places */

/* Where the line break of the line is that has this offset; the end of the text where there is
 * none. */
static size_t line_end(const struct edit *d, size_t at)
{
	const char *newline = at < d->n ? memchr(d->bytes + at, '\n', d->n - at) : NULL;
	size_t end = newline ? (size_t)(newline - d->bytes) : d->n;

	return end > at && newline && d->bytes[end - 1] == '\r' ? end - 1 : end;
}

static size_t line_start(const struct edit *d, size_t at)
{
	while (at > 0 && d->bytes[at - 1] != '\n')
		at--;
	return at;
}

static size_t skip_blanks(const struct edit *d, size_t at)
{
	while (at < d->n && (d->bytes[at] == ' ' || d->bytes[at] == '\t'))
		at++;
	return at;
}

/* Where what a node says ends. */
static size_t node_end(const struct node *n)
{
	while (!n->flow && (n->kind == NODE_LIST || n->kind == NODE_MAP) && n->last)
		n = n->last;
	return n->to;
}

/* A place for new lines behind the one that a node ends in: the text is put between *ret_before and
 * *ret_behind. */
static struct buf *behind_line(struct edit *d, size_t at, bool *ret_own)
{
	/* a text of several lines has eaten its line break */
	*ret_own = at > 0 && d->bytes[at - 1] == '\n';
	return splice(d, *ret_own ? at : line_end(d, at), 0);
}

static void put_line(const struct edit *d, struct buf *out, size_t indent, const char *text,
		     bool own)
{
	buf_printf(out, "%s%*s%s%s", own ? "" : d->newline, (int)indent, "", text,
		   own ? d->newline : "");
}

/* One more entry in brackets. Where the last one begins a line the new one does too, and a comment
 * stays where it was. */
static void add_in_brackets(struct edit *d, const struct node *n, const char *text)
{
	size_t from, begin, end, rest;

	if (!n->last) {
		buf_puts(splice(d, byte_at(d, n->from) + 1, 0), text);
		return;
	}
	from = byte_at(d, n->last->key ? n->last->key_from : n->last->from);
	begin = line_start(d, from);
	end = byte_at(d, n->last->to);
	if (skip_blanks(d, begin) != from) {
		buf_printf(splice(d, end, 0), ", %s", text);
		return;
	}
	rest = skip_blanks(d, end);
	if (rest < d->n && d->bytes[rest] == ',') {
		buf_printf(splice(d, line_end(d, rest), 0), "%s%.*s%s,", d->newline,
			   (int)(from - begin), d->bytes + begin, text);
	} else if (rest == line_end(d, end) || (!d->json && d->bytes[rest] == '#')) {
		buf_puts(splice(d, end, 0), ",");
		buf_printf(splice(d, line_end(d, end), 0), "%s%.*s%s", d->newline,
			   (int)(from - begin), d->bytes + begin, text);
	} else {
		buf_printf(splice(d, end, 0), ",%s%.*s%s", d->newline, (int)(from - begin),
			   d->bytes + begin, text);
	}
}

static void add_lines_to_list(struct edit *d, const struct schema_row *row, const struct node *n,
			      const struct node *value)
{
	size_t indent = byte_at(d, n->from) - line_start(d, byte_at(d, n->from));
	const struct node *entry = value->kind == NODE_LIST ? value->first : value;
	bool own;
	struct buf *out = behind_line(d, byte_at(d, node_end(n)), &own);

	for (; entry; entry = value->kind == NODE_LIST ? entry->next : NULL) {
		auto_buf text = { 0 };

		buf_puts(&text, "- ");
		put_entries(d, row, entry, "", &text);
		put_line(d, out, indent, buf_text(&text), own);
		out->failed |= text.failed;
	}
}

/* "name: value" as lines of a map without brackets. */
static void put_field_lines(struct edit *d, const struct schema_row *row, const char *name,
			    const struct node *value, size_t indent, bool own, struct buf *out)
{
	const struct node *entry = value->kind == NODE_LIST ? value->first : value;
	auto_buf text = { 0 };

	if (!policy_is_list(row) || value->count > LINES_MAX) {
		buf_printf(&text, "%s: ", name);
		put_field(d, row, value, &text);
		put_line(d, out, indent, buf_text(&text), own);
		out->failed |= text.failed;
		return;
	}
	buf_printf(&text, "%s:", name);
	put_line(d, out, indent, buf_text(&text), own);
	for (; entry; entry = value->kind == NODE_LIST ? entry->next : NULL) {
		text.len = 0;
		buf_puts(&text, "- ");
		put_entries(d, row, entry, "", &text);
		put_line(d, out, indent + INDENT, buf_text(&text), own);
	}
	out->failed |= text.failed;
}

/* The field is there: one entry more, or another value. */
static void change_field(struct edit *d, const struct schema_row *row, const struct node *n,
			 const struct node *value)
{
	size_t from = byte_at(d, n->from), to = byte_at(d, n->to);
	auto_buf text = { 0 };
	struct buf *out;

	if (policy_is_list(row) && n->kind == NODE_LIST && !n->flow) {
		add_lines_to_list(d, row, n, value);
		return;
	}
	if (policy_is_list(row) && n->kind == NODE_LIST) {
		put_entries(d, row, value, ", ", &text);
		add_in_brackets(d, n, buf_text(&text));
		d->splices[0].text.failed |= text.failed;
		return;
	}
	out = splice(d, from, to - from);
	if (from == to)
		buf_puts(out, " "); /* nothing stood behind the colon */
	/* one word, which becomes the first of a list */
	if (n->kind != NODE_NULL && (row->type == TYPE_ENUMS || (row->type == TYPE_TOOLCHAINS &&
								 strcmp(n->text, "none") != 0))) {
		buf_printf(out, "[%.*s, ", (int)(to - from), d->bytes + from);
		put_entries(d, row, value, ", ", out);
		buf_puts(out, "]");
		return;
	}
	put_field(d, row, value, out);
}

/* The map has no such key. */
static void add_field(struct edit *d, const struct schema_row *row, const char *name,
		      const struct node *map, const struct node *value)
{
	auto_buf text = { 0 };
	struct buf *out;
	bool own;

	if (map->flow) {
		put_key(d, name, &text);
		put_field(d, row, value, &text);
		add_in_brackets(d, map, buf_text(&text));
		d->splices[0].text.failed |= text.failed;
		return;
	}
	out = behind_line(d, byte_at(d, node_end(map)), &own);
	put_field_lines(d, row, name, value, map->first->key_column - 1, own, out);
}

/* The key of a group, with nothing in it: everything may be commented out. */
static void fill_group(struct edit *d, const struct schema_row *row, const char *name,
		       const struct node *group, bool flow, const struct node *value)
{
	size_t from = byte_at(d, group->from), to = byte_at(d, group->to);
	struct buf *out;

	if (!flow && from == to) {
		out = splice(d, line_end(d, from), 0);
		put_field_lines(d, row, name, value, group->key_column - 1 + INDENT, false, out);
		return;
	}
	out = splice(d, from, to - from);
	buf_puts(out, from == to ? " {" : "{");
	put_key(d, name, out);
	put_field(d, row, value, out);
	buf_puts(out, "}");
}

/* Whether the rest of the text holds nothing but comments: then new keys go to its end. */
static bool is_rest(const struct edit *d, size_t at)
{
	while (at < d->n) {
		size_t begin = skip_blanks(d, at);

		if (begin < d->n && d->bytes[begin] != '#' && d->bytes[begin] != '\n' &&
		    d->bytes[begin] != '\r')
			return false;
		at = line_end(d, begin);
		at += at < d->n && d->bytes[at] == '\r';
		at += at < d->n;
	}
	return true;
}

/* A group and a field in it, at the end. */
static void add_group(struct edit *d, const struct schema_row *row, const char *group,
		      const char *name, const struct node *root, const struct node *value)
{
	size_t end = root ? byte_at(d, node_end(root)) : 0,
	       indent = root && root->first ? root->first->key_column - 1 : 0;
	auto_buf text = { 0 };
	struct buf *out;
	bool own;

	if (root && root->flow) {
		put_key(d, group, &text);
		buf_puts(&text, "{");
		put_key(d, name, &text);
		put_field(d, row, value, &text);
		buf_puts(&text, "}");
		add_in_brackets(d, root, buf_text(&text));
		d->splices[0].text.failed |= text.failed;
		return;
	}
	if (!root || is_rest(d, end == 0 || d->bytes[end - 1] == '\n' ? end : line_end(d, end)))
		end = d->n;
	own = end == 0 || d->bytes[end - 1] == '\n';
	out = splice(d, own ? end : line_end(d, end), 0);
	buf_printf(&text, "%s:", group);
	put_line(d, out, indent, buf_text(&text), own);
	put_field_lines(d, row, name, value, indent + INDENT, own, out);
	if (!own && end == d->n)
		buf_puts(out, d->newline);
	out->failed |= text.failed;
}

/* -- the whole */

static void place_value(struct edit *d, const struct schema_row *row, const struct node *root,
			const struct node *value)
{
	const char *path = row->row.path, *dot = strchr(path, '.'), *name = dot ? dot + 1 : path;
	char group[32] = "";
	const struct node *map = root, *field;

	snprintf(group, sizeof(group), "%.*s", dot ? (int)(dot - path) : 0, path);
	if (dot)
		map = root ? node_get(root, group) : NULL;
	field = map && map->kind == NODE_MAP ? node_get(map, name) : NULL;
	if (field)
		change_field(d, row, field, value);
	else if (map && map->kind == NODE_MAP && (map->flow || map->first))
		add_field(d, row, name, map, value);
	else if (map && dot)
		fill_group(d, row, name, map, root->flow, value);
	else if (dot)
		add_group(d, row, group, name, root, value);
	else
		/* an empty document */
		put_field_lines(d, row, name, value, 0, true, splice(d, 0, 0));
}

static void put_result(const struct edit *d, struct buf *out)
{
	size_t at = 0;

	for (size_t i = 0; i < d->count; i++) {
		buf_add(out, d->bytes + at, d->splices[i].at - at);
		buf_add(out, buf_text(&d->splices[i].text), d->splices[i].text.len);
		at = d->splices[i].at + d->splices[i].removed;
		out->failed |= d->splices[i].text.failed;
	}
	buf_add(out, d->bytes + at, d->n - at);
}

static void edit_clear(struct edit *d)
{
	for (size_t i = 0; i < SPLICES_MAX; i++)
		buf_free(&d->splices[i].text);
}

static int read_policy(struct policy *p, const char *name, const uint8_t *bytes, size_t n,
		       struct ward_err *e)
{
	struct policy_errors errors = { 0 };
	int r = policy_defaults(p, e);

	if (r == 0) {
		r = policy_read(p, name, bytes, n, POLICY_FILE, &errors);
		if (r == -EINVAL && errors.lines.len) {
			ward_fail(e, EINVAL, "%.600s", errors.lines.items[0]);
			ward_remedy(e, "fix the file first; ward check shows all errors");
		} else if (r < 0) {
			ward_fail(e, -r, "cannot read the policy: %s", strerror(-r));
		}
	}
	strv_free(&errors.lines);
	return r;
}

/* Whether both say the same in every field. -ENOMEM counts as no. */
static bool is_same(const struct policy *a, const struct policy *b)
{
	for (unsigned i = 0; i < POLICY_FIELDS; i++) {
		auto_free char *left = policy_text(a, (enum policy_field)i),
			       *right = policy_text(b, (enum policy_field)i);

		if (!left || !right || strcmp(left, right) != 0)
			return false;
	}
	return true;
}

static const struct node *find_field(const struct node *root, const char *path)
{
	const char *dot = strchr(path, '.');
	auto_free char *group = dot ? strndup(path, (size_t)(dot - path)) : NULL;
	const struct node *map = !root || root->kind != NODE_MAP ? NULL
				 : group                         ? node_get(root, group)
								 : root;

	return map && map->kind == NODE_MAP ? node_get(map, dot ? dot + 1 : path) : NULL;
}

/* Finds the place and puts the value there; whole: the field as it shall be. */
static int make(const char *name, const uint8_t *bytes, size_t n, enum policy_field field,
		const char *value, const char *whole, struct buf *out, struct ward_err *e)
{
	const struct schema_row *row = schema_row(field);
	const char *first = memchr(bytes, '\n', n);
	struct edit d = { .bytes = (const char *)bytes,
			  .n = n,
			  .json = policy_is_json(name, bytes, n),
			  .newline = "\n" };
	struct reader r = { .name = name, .e = e };
	auto_node root = NULL;
	auto_node entry = NULL;

	if (first && first > d.bytes && first[-1] == '\r')
		d.newline = "\r\n";
	root = d.json ? json_read(&r, bytes, n) : yaml_read(&r, bytes, n);
	if (policy_is_list(row) && !find_field(root, row->row.path) &&
	    (row->type == TYPE_TOOLCHAINS ||
	     (strlen(row->row.fallback) > 2 && *row->row.fallback == '[')))
		value = whole; /* a file's value takes the place of the default */
	entry = policy_value_tree(&r, row, value);
	if (r.count || !entry || (entry->kind == NODE_LIST && !entry->first))
		return ward_fail(e, EINVAL, "%s: the value is empty", row->row.path);
	if (root && root->kind != NODE_MAP)
		node_free(take_ptr(root)); /* comments only, or null */
	place_value(&d, row, root, entry);
	put_result(&d, out);
	edit_clear(&d);
	return out->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

static int refuse(enum policy_field field, const char *value, struct ward_err *e)
{
	ward_fail(e, EINVAL, "ward found no place to insert it without changing anything else");
	return ward_remedy(e, "add it by hand: %s: %.300s", policy_row(field)->path, value);
}

/* Makes the new document and believes it only if it says what was wanted. */
static int make_checked(const char *name, const uint8_t *bytes, size_t n, enum policy_field field,
			const char *value, const struct policy *wanted, struct buf *out,
			struct ward_err *e)
{
	struct policy made = { 0 };
	struct ward_err ignored = { 0 };
	auto_free char *whole = policy_text(wanted, field);
	auto_buf text = { 0 };
	int r = whole ? make(name, bytes, n, field, value, whole, &text, e)
		      : ward_fail(e, ENOMEM, "out of memory");

	if (r < 0)
		return r;
	if (read_policy(&made, name, (const uint8_t *)buf_text(&text), text.len, &ignored) < 0 ||
	    !is_same(&made, wanted))
		r = refuse(field, value, e);
	policy_clear(&made);
	if (r == 0)
		buf_add(out, buf_text(&text), text.len);
	return r;
}

int policy_edit(const char *name, const uint8_t *bytes, size_t n, const char *field,
		const char *value, struct buf *out, struct ward_err *e)
{
	enum policy_field found = schema_find(field);
	bool list = found != POLICY_FIELDS && policy_is_list(schema_row(found));
	struct policy old = { 0 }, wanted = { 0 };
	int r = read_policy(&old, name, bytes, n, e);

	if (r == 0)
		r = read_policy(&wanted, name, bytes, n, e);
	if (r == 0)
		r = policy_set(&wanted, field, value, list, POLICY_FILE, e);
	if (r == 0 && schema_row(found)->type == TYPE_COMMANDS)
		r = refuse(found, value, e);
	if (r == 0 && (is_same(&old, &wanted) || (schema_row(found)->type == TYPE_MOUNTS &&
						  !policy_field_widens(&old, &wanted, found, 0)))) {
		buf_add(out, bytes, n);
		r = 1;
	}
	if (r == 0)
		r = make_checked(name, bytes, n, found, value, &wanted, out, e);
	policy_clear(&old);
	policy_clear(&wanted);
	return r < 0 || !out->failed ? r : ward_fail(e, ENOMEM, "out of memory");
}
