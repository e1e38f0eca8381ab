/*
 * The table of tools.yaml as data. In: tables/tools.def, at compile time. Out: rows that the reader
 * walks, and the life of the structs that are made from them. Pure functions over constant data.
 */
#include "tools/table.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "policy/schema.h"

/* What stands in place of a default. */
#define OPTIONAL ""
#define REQUIRED "", .required = true

static const struct tools_key keys[] = {
#define KEY(o, n, m, t, v, d, h)                                                                   \
	{ .object = OBJECT_##o,                                                                    \
	  .type = KEY_##t,                                                                         \
	  .offset = offsetof(struct tool_##o, m),                                                  \
	  .name = n,                                                                               \
	  .values = v,                                                                             \
	  .fallback = d },
#include "tools.def"
};

static const struct {
	const char *name;
	size_t size;
} objects[] = {
#define OBJECT(n, h) { #n, sizeof(struct tool_##n) },
#include "tools.def"
};

const struct tools_key *tools_next_key(enum tools_object object, const struct tools_key *key)
{
	const struct tools_key *at = key ? key + 1 : keys;

	for (; at < keys + ARRAY_LEN(keys); at++)
		if (at->object == object)
			return at;
	return NULL;
}

enum tools_object tools_object_of(const struct tools_key *key)
{
	unsigned i = 0;

	while (i < TOOLS_OBJECTS && strcmp(objects[i].name, key->values) != 0)
		i++;
	return (enum tools_object)i;
}

size_t tools_object_size(enum tools_object object)
{
	return objects[object].size;
}

static enum schema_type number_type(enum tools_type type)
{
	return type == KEY_SIZE      ? TYPE_SIZE
	       : type == KEY_CPUS    ? TYPE_CPUS
	       : type == KEY_SECONDS ? TYPE_SECONDS
				     : TYPE_UINT;
}

void tools_object_init(enum tools_object object, void *ret)
{
	const struct tools_key *key = NULL;

	memset(ret, 0, objects[object].size);
	((struct tool_head *)ret)->name = "";
	while ((key = tools_next_key(object, key))) {
		void *member = (char *)ret + key->offset;
		unsigned index = 0;

		if (key->type == KEY_PART)
			tools_object_init(tools_object_of(key), member);
		if (key->type == KEY_BOOL)
			*(bool *)member = strcmp(key->fallback, "true") == 0;
		if (key->type == KEY_TEXT && *key->fallback)
			*(const char **)member = key->fallback;
		if (key->type == KEY_ENUM &&
		    schema_word(key->values, key->fallback, strlen(key->fallback), &index))
			*(unsigned *)member = index;
		if (key->type >= KEY_UINT && key->type <= KEY_SECONDS &&
		    schema_number(number_type(key->type), key->values, key->fallback, member) < 0)
			*(uint64_t *)member = 0;
	}
}

static void clear_list(enum tools_object object, struct tools_list *list)
{
	for (size_t i = 0; i < list->len; i++)
		tools_object_clear(object, (char *)list->items + i * objects[object].size);
	free(list->items);
}

void tools_object_clear(enum tools_object object, void *what)
{
	const struct tools_key *key = NULL;

	while ((key = tools_next_key(object, key))) {
		void *member = (char *)what + key->offset;

		if (key->type == KEY_PART)
			tools_object_clear(tools_object_of(key), member);
		else if (key->type == KEY_MAP || key->type == KEY_LIST)
			clear_list(tools_object_of(key), member);
		else if (key->type == KEY_STRINGS || key->type == KEY_RULES)
			strv_free(member);
		else if (key->type == KEY_PAIRS)
			free(((struct tools_list *)member)->items);
		else if (key->type == KEY_JSON)
			free(*(char **)member);
	}
	memset(what, 0, objects[object].size);
}

const char *tools_word(const char *object, const char *name, unsigned index, char ret[32])
{
	ret[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		size_t len = 0;
		const char *word;

		if (strcmp(objects[keys[i].object].name, object) != 0 ||
		    strcmp(keys[i].name, name) != 0)
			continue;
		word = schema_nth_word(keys[i].values, index, &len);
		if (word && len < 32) {
			memcpy(ret, word, len);
			ret[len] = '\0';
		}
	}
	return ret;
}
