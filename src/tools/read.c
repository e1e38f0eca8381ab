/*
 * The reader of tools.yaml. In: a document's bytes, untrusted. Out: struct tools, or every error at
 * once, each with place, expectation, what stands there and the nearest known name. The document
 * becomes a tree by the policy's readers, the tree is walked along tables/tools.def, and
 * sound.c checks what goes together. Nothing is ignored: an unknown key is an error. Pure
 * functions, fuzzed (fuzz/tools.c).
 */
#include "tools/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "policy/policy_value.h"

#define OBJECTS_MAX 256 /* of one list */

static void read_object(struct reader *r, const char *path, enum tools_object object,
			const struct node *n, void *ret);

/* A name that people type, models call and messages show. */
static bool is_name(const char *s)
{
	static const char first[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	static const char more[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

	return *s && strchr(first, *s) && strspn(s, more) == strlen(s) &&
	       strlen(s) <= TOOLS_NAME_MAX;
}

/* A name that is none is not read any further: it must not get into the paths of messages. */
static bool check_name(struct reader *r, const char *path, const struct node *n)
{
	auto_buf shown = { 0 };

	if (is_name(n->key))
		return true;
	text_escape(&shown, n->key);
	reader_error(r, (struct place){ n->key_line, n->key_column },
		     "letters, digits and _ - ., at most 64, the first a letter, digit or _",
		     "%s: \"%.80s\" cannot be a name", path, buf_text(&shown));
	return false;
}

static void read_list(struct reader *r, const char *path, const struct tools_key *key,
		      const struct node *n, struct tools_list *ret)
{
	enum tools_object object = tools_object_of(key);
	bool map = key->type == KEY_MAP;
	size_t size = tools_object_size(object);
	char here[VALUE_PATH];

	if (n->kind != (map ? NODE_MAP : NODE_LIST)) {
		value_error(r, path, n, map ? "a map of names" : "a list", NULL);
		return;
	}
	if (n->count > OBJECTS_MAX) {
		reader_error(r, (struct place){ n->line, n->column }, NULL,
			     "%s: at most %d entries", path, OBJECTS_MAX);
		return;
	}
	if (ret->items || !n->first)
		return;
	ret->items = calloc(n->count, size);
	if (!ret->items) {
		reader_out_of_memory(r);
		return;
	}
	for (const struct node *c = n->first; c; c = c->next) {
		void *item = (char *)ret->items + ret->len * size;

		if (map && !check_name(r, path, c))
			continue;
		if (map) {
			value_key_path(here, path, c->key);
		} else {
			value_index_path(here, path, (unsigned)ret->len);
		}
		tools_object_init(object, item);
		ret->len++;
		read_object(r, here, object, c, item);
	}
}

static void read_pairs(struct reader *r, const char *path, const struct node *n,
		       struct tools_list *ret)
{
	struct tool_pair *items;
	char here[VALUE_PATH];

	if (n->kind != NODE_MAP) {
		value_error(r, path, n, "a map of names and texts", NULL);
		return;
	}
	if (ret->items || !n->first)
		return;
	items = calloc(n->count, sizeof(*items));
	if (!items) {
		reader_out_of_memory(r);
		return;
	}
	ret->items = items;
	for (const struct node *c = n->first; c; c = c->next) {
		if (!check_name(r, path, c))
			continue;
		value_key_path(here, path, c->key);
		items[ret->len].head = (struct tool_head){ c, c->key };
		items[ret->len].text = "";
		(void)!value_string(r, here, "", c, &items[ret->len].text);
		ret->len++;
	}
}

static void read_number(struct reader *r, const char *path, const struct tools_key *key,
			const struct node *n, uint64_t *ret)
{
	static const enum schema_type types[] = { [KEY_UINT] = TYPE_UINT,
						  [KEY_SIZE] = TYPE_SIZE,
						  [KEY_CPUS] = TYPE_CPUS,
						  [KEY_SECONDS] = TYPE_SECONDS };

	(void)!value_number(r, path, types[key->type], key->values, n, ret);
}

static void read_scalar(struct reader *r, const char *path, const struct node *n, const char **ret)
{
	if (n->text)
		*ret = n->text;
	else
		value_error(r, path, n, "text, a number, true or false", NULL);
}

static void read_json(struct reader *r, const struct node *n, char **ret)
{
	auto_buf text = { 0 };

	tools_json(n, &text);
	free(*ret);
	*ret = buf_take(&text);
	if (!*ret)
		reader_out_of_memory(r);
}

static void read_key(struct reader *r, const char *path, const struct tools_key *key,
		     const struct node *n, void *member)
{
	const char *shape = strcmp(key->values, "long") == 0 ? "" : key->values;
	bool flag;

	if (key->type == KEY_TEXT) {
		(void)!value_string(r, path, shape, n, member);
	} else if (key->type == KEY_ENUM) {
		(void)!value_enum(r, path, key->values, n, member);
	} else if (key->type == KEY_BOOL) {
		(void)!value_bool(r, path, n, member);
	} else if (key->type == KEY_SAID) {
		if (value_bool(r, path, n, &flag))
			*(enum tools_said *)member = flag ? SAID_TRUE : SAID_FALSE;
	} else if (key->type == KEY_STRINGS) {
		value_strings(r, path, shape, n, member);
	} else if (key->type == KEY_RULES) {
		item_objects(r, path, "rule", n, member);
	} else if (key->type == KEY_JSON) {
		read_json(r, n, member);
	} else if (key->type == KEY_SCALAR) {
		read_scalar(r, path, n, member);
	} else if (key->type == KEY_PAIRS) {
		read_pairs(r, path, n, member);
	} else if (key->type == KEY_MAP || key->type == KEY_LIST) {
		read_list(r, path, key, n, member);
	} else if (key->type == KEY_PART) {
		read_object(r, path, tools_object_of(key), n, member);
	} else {
		read_number(r, path, key, n, member);
	}
}

static void read_object(struct reader *r, const char *path, enum tools_object object,
			const struct node *n, void *ret)
{
	const struct tools_key *key = NULL;
	auto_strv known = { 0 };
	char here[VALUE_PATH];

	*(struct tool_head *)ret = (struct tool_head){ n, n->key ? n->key : "" };
	if (n->kind != NODE_MAP) {
		value_error(r, *path ? path : "tools.yaml", n, "a map", NULL);
		return;
	}
	while ((key = tools_next_key(object, key))) {
		const struct node *value = node_get(n, key->name);

		strv_add(&known, key->name);
		if (!value && key->required)
			reader_error(r, (struct place){ n->line, n->column }, NULL,
				     "%s%sthe key \"%s\" is missing", path, *path ? ": " : "",
				     key->name);
		if (!value)
			continue;
		if (*path)
			value_key_path(here, path, key->name);
		else
			snprintf(here, sizeof(here), "%s", key->name);
		read_key(r, here, key, value, (char *)ret + key->offset);
	}
	for (const struct node *c = n->first; c; c = c->next)
		if (!strv_has(&known, c->key))
			value_unknown_key(r, path, c, &known);
	if (known.failed)
		reader_out_of_memory(r);
}

int tools_read(struct tools *ret, const char *name, const uint8_t *bytes, size_t n,
	       struct policy_errors *errors)
{
	struct reader r = { .name = name, .errors = errors };
	struct tools_context c = { .r = &r, .t = ret };

	*ret = (struct tools){ 0 };
	tools_object_init(OBJECT_file, &ret->file);
	if (n > TOOLS_BYTES_MAX)
		reader_error(&r, (struct place){ 1, 1 }, NULL,
			     "a tools.yaml has at most %d bytes, this has %zu", TOOLS_BYTES_MAX, n);
	else
		ret->root = policy_is_json(name, bytes, n) ? json_read(&r, bytes, n)
							   : yaml_read(&r, bytes, n);
	if (ret->root)
		read_object(&r, "", OBJECT_file, ret->root, &ret->file);
	else if (!r.count)
		reader_error(&r, (struct place){ 1, 1 }, "ward tool init writes a first draft",
			     "the document is empty");
	if (ret->root && !r.count)
		tools_check_sound(&c);
	if (errors->lines.failed)
		return -ENOMEM;
	return r.count ? -EINVAL : 0;
}

void tools_free(struct tools *t)
{
	if (!t->root && !t->file.head.name)
		return;
	tools_object_clear(OBJECT_file, &t->file);
	node_free(t->root);
	t->root = NULL;
}

static void *find(const struct tools_list *list, size_t size, const char *name)
{
	for (size_t i = 0; i < list->len; i++) {
		void *item = (char *)list->items + i * size;

		if (strcmp(((struct tool_head *)item)->name, name) == 0)
			return item;
	}
	return NULL;
}

const struct tool_tool *tools_find(const struct tools *t, const char *name)
{
	return find(&t->file.tools, sizeof(struct tool_tool), name);
}

const struct tool_agent *tools_find_agent(const struct tools *t, const char *name)
{
	return find(&t->file.agents, sizeof(struct tool_agent), name);
}

const struct tool_server *tools_find_server(const struct tools *t, const char *name)
{
	return find(&t->file.servers, sizeof(struct tool_server), name);
}

const struct tool_param *tools_find_param(const struct tool_tool *tool, const char *name)
{
	return find(&tool->parameters, sizeof(struct tool_param), name);
}

struct place tools_place(const struct tool_head *head, const char *key)
{
	const struct node *n = head->node, *child;

	if (!n)
		return (struct place){ 1, 1 };
	child = key && n->kind == NODE_MAP ? node_get(n, key) : NULL;
	if (child)
		return (struct place){ child->line, child->column };
	return n->key ? (struct place){ n->key_line, n->key_column }
		      : (struct place){ n->line, n->column };
}
