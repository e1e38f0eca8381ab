/*
 * The reader of policies. In: a document's bytes, or one value of the command line. Out: fields of
 * struct policy set, each with its origin, or every error at once, each with place, expectation,
 * what stands there and the nearest known name. The document becomes a tree (yaml.c, json_read.c),
 * the tree is walked along the table (schema.c). Nothing is ignored: an unknown key is an error.
 * Pure functions over untrusted bytes, fuzzed (fuzz/policy.c).
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/text.h"
#include "policy/policy_value.h"

struct context {
	struct reader *r;
	struct policy *p;
	enum policy_source source;
	bool append; /* lists: behind what is there */
};

static void set_text(struct context *c, const struct schema_row *row, const struct node *n)
{
	char **member = schema_member(c->p, row);
	const char *text;
	char *copy;

	if (!value_string(c->r, row->row.path, row->row.values, n, &text))
		return;
	copy = text ? strdup(text) : NULL;
	if (text && !copy) {
		reader_out_of_memory(c->r);
		return;
	}
	free(*member);
	*member = copy;
}

/* The new entries go behind the old ones, or take their place. */
static void move_list(struct context *c, struct strv *to, struct strv *from)
{
	if (!c->append && !from->failed) {
		strv_free(to);
		*to = *from;
		*from = (struct strv){ 0 };
	}
	for (size_t i = 0; i < from->len; i++)
		if (!strv_has(to, from->items[i]))
			strv_add(to, from->items[i]);
	if (from->failed || to->failed)
		reader_out_of_memory(c->r);
}

/* Types that are a list of numbers, or a word in place of it. */
static const struct numbers_type {
	enum schema_type type;
	const char *none, *all; /* all is kept as an entry; NULL: there is no such word */
	const char *range, *expected;
	bool pairs; /* an entry may be two numbers with a colon between them */
} numbers_types[] = {
	{ TYPE_INGRESS, "deny_all", NULL, "1..65535", "deny_all or a list of ports", true },
	{ TYPE_GPUS, "none", "all", "0..63", "none, all or a list of numbers", false },
};

static const struct numbers_type *numbers_type(enum schema_type type)
{
	for (size_t i = 0; i < ARRAY_LEN(numbers_types); i++)
		if (numbers_types[i].type == type)
			return &numbers_types[i];
	return NULL;
}

static bool is_numbers_word(const struct numbers_type *t, const struct node *n)
{
	return n->text &&
	       (strcmp(n->text, t->none) == 0 || (t->all && strcmp(n->text, t->all) == 0));
}

/* A word alone that is neither a number nor one of those: the command line has no brackets that
 * would tell a list. */
static bool is_other_word(const struct numbers_type *t, const struct node *only)
{
	return t->all && only && !only->next && only->text &&
	       strspn(only->text, "-0123456789") != strlen(only->text);
}

/* "8080:3000"; two equal numbers are one. */
static void read_pair(struct context *c, const char *path, const struct numbers_type *t,
		      const struct node *n, struct strv *list)
{
	const char *colon = strchr(n->text, ':');
	auto_free char *first = strndup(n->text, (size_t)(colon - n->text));
	uint64_t a, b;

	if (!first)
		reader_out_of_memory(c->r);
	else if (schema_number(TYPE_UINTS, t->range, first, &a) < 0 ||
		 schema_number(TYPE_UINTS, t->range, colon + 1, &b) < 0)
		value_error(c->r, path, n,
			    "a port from 1 to 65535, or HOST:SANDBOX, two of them with a colon",
			    "for instance 8080:3000: port 8080 of this host's loopback leads to "
			    "3000 inside");
	else if (a == b)
		strv_addf(list, "%llu", (unsigned long long)a);
	else
		strv_addf(list, "%llu:%llu", (unsigned long long)a, (unsigned long long)b);
}

static void read_numbers(struct context *c, const struct schema_row *row,
			 const struct numbers_type *t, const struct node *n, struct strv *list)
{
	char here[VALUE_PATH];
	unsigned i = 0;
	uint64_t number;

	if (is_numbers_word(t, n)) {
		if (strcmp(n->text, t->none) != 0)
			strv_add(list, n->text);
		return;
	}
	if (n->kind != NODE_LIST || is_other_word(t, n->first)) {
		value_error(c->r, row->row.path, n->kind == NODE_LIST ? n->first : n, t->expected,
			    NULL);
		return;
	}
	for (const struct node *child = n->first; child; child = child->next) {
		value_index_path(here, row->row.path, i++);
		if (t->pairs && (child->kind == NODE_WORD || child->kind == NODE_STRING) &&
		    child->text && strchr(child->text, ':'))
			read_pair(c, here, t, child, list);
		else if (value_number(c->r, here, TYPE_UINTS, t->range, child, &number))
			strv_addf(list, "%llu", (unsigned long long)number);
	}
}

/* auto, none, or a list of names, of which auto may be one. */
static void read_toolchains(struct context *c, const struct schema_row *row, const struct node *n,
			    struct strv *list)
{
	if (n->kind == NODE_LIST)
		value_strings(c->r, row->row.path, row->row.values, n, list);
	else if (n->text && strcmp(n->text, "auto") == 0)
		strv_add(list, n->text);
	else if (!n->text || strcmp(n->text, "none") != 0)
		value_error(c->r, row->row.path, n, "auto, none or a list of names",
			    "put it in [ ]");
}

/* The words that stand for a whole list of toolchains. */
static bool is_toolchains_word(const struct schema_row *row, const struct node *n)
{
	return row->type == TYPE_TOOLCHAINS && n->text &&
	       (strcmp(n->text, "auto") == 0 || strcmp(n->text, "none") == 0);
}

static void set_list(struct context *c, const struct schema_row *row, const struct node *n)
{
	static const char *const objects[SCHEMA_TYPES] = {
		[TYPE_RULES] = "rule",   [TYPE_GRANTS] = "grant",     [TYPE_SSH] = "ssh",
		[TYPE_SINKS] = "sink",   [TYPE_PRICES] = "price",     [TYPE_WATCH] = "watch",
		[TYPE_LABELS] = "label", [TYPE_CHANNELS] = "channel",
	};
	const struct numbers_type *numbers = numbers_type(row->type);
	const char *path = row->row.path;
	auto_strv list = { 0 };
	unsigned before = c->r->count;

	if (objects[row->type])
		item_objects(c->r, path, objects[row->type], n, &list);
	else if (row->type == TYPE_COMMANDS)
		item_commands(c->r, path, n, &list);
	else if (numbers)
		read_numbers(c, row, numbers, n, &list);
	else if (row->type == TYPE_TOOLCHAINS)
		read_toolchains(c, row, n, &list);
	else if (row->type == TYPE_ENUMS)
		value_enums(c->r, path, row->row.values, n, &list);
	else if (strcmp(row->row.values, "layer") == 0)
		value_words(c->r, path, row->row.values, n, &list);
	else
		value_strings(c->r, path, row->row.values, n, &list);
	if (c->r->count == before)
		move_list(c, schema_member(c->p, row), &list);
}

static void set_mounts(struct context *c, const struct schema_row *row, const struct node *n)
{
	struct policy_mounts *member = schema_member(c->p, row);
	struct policy_mounts list = { 0 };
	unsigned before = c->r->count;

	item_mounts(c->r, row->row.path, n, &list);
	if (c->r->count == before) {
		if (!c->append)
			policy_mounts_free(member);
		for (size_t i = 0; i < list.len; i++)
			if (policy_mounts_add(member, list.items[i].path, list.items[i].at,
					      list.items[i].writable) < 0)
				reader_out_of_memory(c->r);
	}
	policy_mounts_free(&list);
}

static void set_field(struct context *c, enum policy_field field, const struct node *n)
{
	const struct schema_row *row = schema_row(field);
	void *member = schema_member(c->p, row);
	const char *path = row->row.path;

	switch (schema_held(row->type)) {
	case HELD_TEXT:
		set_text(c, row, n);
		break;
	case HELD_INDEX:
		value_enum(c->r, path, row->row.values, n, member);
		break;
	case HELD_FLAG:
		value_bool(c->r, path, n, member);
		break;
	case HELD_NUMBER:
		value_number(c->r, path, row->type, row->row.values, n, member);
		break;
	case HELD_LIST:
		set_list(c, row, n);
		break;
	case HELD_MOUNTS:
		set_mounts(c, row, n);
		break;
	}
	c->p->origin[field] = (struct policy_origin){ c->source, c->r->errors ? n->line : 0,
						      c->r->errors ? n->column : 0, c->p->file };
}

/* The name of a field within its group. */
static const char *field_name(const char *path)
{
	const char *dot = strchr(path, '.');

	return dot ? dot + 1 : path;
}

static bool in_group(const char *path, const char *group)
{
	size_t n = strlen(group);

	return *group ? strncmp(path, group, n) == 0 && path[n] == '.' : !strchr(path, '.');
}

/* Every key that may stand in the group ("": at the top). */
static void list_keys(const char *group, struct strv *out)
{
	size_t count;
	const struct schema_group *groups = schema_groups(&count);

	for (unsigned i = 0; i < POLICY_FIELDS; i++)
		if (in_group(policy_row((enum policy_field)i)->path, group))
			strv_add(out, field_name(policy_row((enum policy_field)i)->path));
	for (size_t i = 0; !*group && i < count; i++)
		strv_add(out, groups[i].name);
}

/* An unknown key; one that belongs elsewhere is shown its place. */
static void unknown_key(struct context *c, const char *group, const struct node *n)
{
	auto_strv known = { 0 };
	auto_buf hint = { 0 };

	for (unsigned i = 0; i < POLICY_FIELDS; i++) {
		const char *path = policy_row((enum policy_field)i)->path;

		if (strcmp(field_name(path), n->key) == 0)
			buf_printf(&hint, "%s%s", hint.len ? " or " : "did you mean ", path);
	}
	if (hint.len) {
		buf_puts(&hint, "?");
		reader_error(c->r, (struct place){ n->key_line, n->key_column }, buf_text(&hint),
			     "%s%s%s: unknown key", group, *group ? "." : "", n->key);
		return;
	}
	list_keys(group, &known);
	value_unknown_key(c->r, group, n, &known);
}

static void read_group(struct context *c, const char *group, const struct node *n)
{
	char path[VALUE_PATH];

	if (n->kind == NODE_NULL)
		return; /* everything in it is commented out */
	if (n->kind != NODE_MAP) {
		value_error(c->r, group, n, "a map", NULL);
		return;
	}
	for (const struct node *child = n->first; child; child = child->next) {
		enum policy_field field;

		value_key_path(path, group, child->key);
		field = schema_find(path);
		if (field == POLICY_FIELDS)
			unknown_key(c, group, child);
		else
			set_field(c, field, child);
	}
}

static bool is_group(const char *key)
{
	size_t count;
	const struct schema_group *groups = schema_groups(&count);

	for (size_t i = 0; i < count; i++)
		if (strcmp(groups[i].name, key) == 0)
			return true;
	return false;
}

static void read_root(struct context *c, const struct node *root)
{
	if (root->kind == NODE_NULL)
		return;
	if (root->kind != NODE_MAP) {
		value_error(c->r, "policy", root,
			    "a map with keys such as filesystem and resources", NULL);
		return;
	}
	for (const struct node *n = root->first; n; n = n->next) {
		enum policy_field field = schema_find(n->key);

		if (is_group(n->key))
			read_group(c, n->key, n);
		else if (field != POLICY_FIELDS && !strchr(n->key, '.'))
			set_field(c, field, n);
		else
			unknown_key(c, "", n);
	}
}

static bool has_suffix(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	return n >= m && strcmp(name + n - m, suffix) == 0;
}

/* YAML by its name; else a document that begins with { is JSON. */
bool policy_is_json(const char *name, const uint8_t *bytes, size_t n)
{
	if (has_suffix(name, ".yaml") || has_suffix(name, ".yml"))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!memchr(" \t\r\n", bytes[i], 4))
			return bytes[i] == '{';
	return false;
}

int policy_read(struct policy *p, const char *name, const uint8_t *bytes, size_t n,
		enum policy_source source, struct policy_errors *errors)
{
	struct reader r = { .name = name, .errors = errors };
	struct context c = { .r = &r, .p = p, .source = source };
	auto_node root = NULL;

	if (n > NODE_BYTES_MAX)
		reader_error(&r, (struct place){ 1, 1 }, NULL,
			     "a policy has at most %d bytes, this has %zu", NODE_BYTES_MAX, n);
	else
		root = policy_is_json(name, bytes, n) ? json_read(&r, bytes, n)
						      : yaml_read(&r, bytes, n);
	if (root)
		read_root(&c, root);
	if (errors->lines.failed)
		return -ENOMEM;
	return r.count ? -EINVAL : 0;
}

bool policy_is_list(const struct schema_row *row)
{
	return schema_held(row->type) == HELD_LIST || schema_held(row->type) == HELD_MOUNTS;
}

/* [2001:db8::1]:443, with or without a port or a prefix length: an entry, and no list. */
static bool is_bracketed_address(const char *value)
{
	size_t n = strspn(value + 1, "0123456789abcdefABCDEF:./");
	const char *end = value + 1 + n, *colon = memchr(value + 1, ':', n);

	if (*value != '[' || *end != ']' || !colon ||
	    !memchr(colon + 1, ':', (size_t)(end - colon - 1)))
		return false;
	return !end[1] || (end[1] == ':' && end[2] && !end[2 + strspn(end + 2, "0123456789*")]);
}

/* The value as a tree. Scalars, and one entry of a list, are taken as they are, so that nothing
 * needs quoting; what else begins with [ or { is JSON or YAML. */
struct node *policy_value_tree(struct reader *r, const struct schema_row *row, const char *value)
{
	struct ward_err ignored;
	struct reader quiet = { .name = "", .e = &ignored };
	struct place at = { 0, 0 };
	const uint8_t *bytes = (const uint8_t *)value;
	struct node *n;

	if (policy_is_list(row) && (*value == '[' || *value == '{') &&
	    !is_bracketed_address(value)) {
		n = json_read(&quiet, bytes, strlen(value));
		if (n && !quiet.count)
			return n;
		node_free(n);
		return yaml_read(r, bytes, strlen(value));
	}
	if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)
		return node_new(r, row->type == TYPE_BOOL ? NODE_BOOL : NODE_STRING, at, value,
				strlen(value));
	if (strcmp(value, "null") == 0 || strcmp(value, "~") == 0)
		return node_new(r, policy_is_list(row) ? NODE_STRING : NODE_NULL, at, value,
				strlen(value));
	return node_new(r, NODE_WORD, at, value, strlen(value));
}

/* "0,2": numbers need no brackets. */
static void add_entries(struct reader *r, struct node *list, const char *text)
{
	for (size_t n; r->count == 0; text += n + 1) {
		struct node *entry;

		n = strcspn(text, ",");
		entry = node_new(r, NODE_WORD, (struct place){ 0, 0 }, text, n);
		if (entry)
			node_add(r, list, entry);
		if (!text[n])
			break;
	}
}

/* Lists want a list: one entry becomes one. */
static struct node *wrap_entry(struct reader *r, const struct schema_row *row, struct node *n)
{
	const struct numbers_type *numbers = numbers_type(row->type);
	bool whole = n->kind == NODE_LIST || row->type == TYPE_ENUMS ||
		     row->type == TYPE_COMMANDS || is_toolchains_word(row, n) ||
		     (numbers && is_numbers_word(numbers, n));
	struct node *list;

	if (!policy_is_list(row) || whole)
		return n;
	list = node_new(r, NODE_LIST, (struct place){ 0, 0 }, NULL, 0);
	if (list && numbers && n->text) {
		add_entries(r, list, n->text);
		node_free(n);
	} else if (list) {
		node_add(r, list, n);
	} else {
		node_free(n);
	}
	return list;
}

static int unknown_field(const char *field, struct ward_err *e)
{
	unsigned distance = UINT_MAX;
	const char *best = NULL;
	auto_buf shown = { 0 };

	text_escape(&shown, field);
	ward_fail(e, EINVAL, "%.80s: there is no such field", buf_text(&shown));
	for (unsigned i = 0; i < POLICY_FIELDS; i++) {
		const char *path = policy_row((enum policy_field)i)->path;

		if (strcmp(field_name(path), field) == 0)
			return ward_remedy(e, "did you mean \"%s\"?", path);
		text_nearest(field, path, &best, &distance);
		if (!best && !strchr(field, '.'))
			text_nearest(field, field_name(path), &best, &distance);
	}
	for (unsigned i = 0; best && i < POLICY_FIELDS; i++)
		if (strcmp(field_name(policy_row((enum policy_field)i)->path), best) == 0)
			best = policy_row((enum policy_field)i)->path;
	return best ? ward_remedy(e, "did you mean \"%s\"?", best)
		    : ward_remedy(e, "man ward.yaml lists the fields");
}

int policy_set(struct policy *p, const char *field, const char *value, bool append,
	       enum policy_source source, struct ward_err *e)
{
	struct reader r = { .name = "", .e = e };
	struct context c = { .r = &r, .p = p, .source = source, .append = append };
	enum policy_field found = schema_find(field);
	auto_node n = NULL;

	if (found == POLICY_FIELDS)
		return unknown_field(field, e);
	if (append && !policy_is_list(schema_row(found))) {
		ward_fail(e, EINVAL, "%s is not a list", field);
		return ward_remedy(e, "set it: --set %s=VALUE", field);
	}
	n = policy_value_tree(&r, schema_row(found), value);
	if (n)
		n = wrap_entry(&r, schema_row(found), n);
	if (n && !r.count)
		set_field(&c, found, n);
	if (!n && !r.count)
		return ward_fail(e, EINVAL, "%s: the value is empty", field);
	return r.count ? -e->code : 0;
}
