/*
 * Channels between a sandbox and its children. In: the canonical line of one that struct policy
 * holds. Out: struct policy_channel. Pure functions, no rights. What a channel does at run time:
 * src/cli/children/channel.c.
 */
#include "policy/policy_channel.h"

#include <errno.h>
#include <string.h>

#include "policy/policy_value.h"
#include "policy/schema.h"

#define DEFAULT_BYTES 4096
#define DEFAULT_RATE 60

/* Names only: each is compared with those of children, or is the parent's. */
static bool copy_names(const struct node *map, const char *key, struct strv *ret)
{
	const struct node *n = node_get(map, key);

	for (const struct node *c = n && n->kind == NODE_LIST ? n->first : NULL; c; c = c->next) {
		if (!c->text || strlen(c->text) >= CHANNEL_NAME_TEXT)
			return false;
		strv_add(ret, c->text);
	}
	return ret->len && !ret->failed;
}

static bool copy_number(const struct node *map, const char *key, enum schema_type type,
			const char *values, uint64_t fallback, uint64_t *ret)
{
	const char *text = value_text_of(map, key);

	*ret = fallback;
	return !text || schema_number(type, values, text, ret) == 0;
}

static bool take_apart(const struct node *map, struct policy_channel *ret)
{
	const char *name = value_text_of(map, "name"), *schema = value_text_of(map, "schema");

	if (!name || strlen(name) >= sizeof(ret->name) || !schema)
		return false;
	memcpy(ret->name, name, strlen(name) + 1);
	ret->schema = strdup(schema);
	return ret->schema && copy_names(map, "from", &ret->from) &&
	       copy_names(map, "to", &ret->to) &&
	       copy_number(map, "max_bytes", TYPE_SIZE, "1..64Ki", DEFAULT_BYTES,
			   &ret->max_bytes) &&
	       copy_number(map, "per_minute", TYPE_UINT, "1..6000", DEFAULT_RATE, &ret->per_minute);
}

int policy_channel_read(const char *line, struct policy_channel *ret, struct ward_err *e)
{
	struct reader reader = { .name = "channel", .e = e };
	auto_node map = json_read(&reader, (const uint8_t *)line, strlen(line));

	*ret = (struct policy_channel){ 0 };
	if (map && map->kind == NODE_MAP && take_apart(map, ret))
		return 0;
	return ward_fail(e, EINVAL, "not a channel: %.200s", line);
}

void policy_channel_clear(struct policy_channel *c)
{
	strv_free(&c->from);
	strv_free(&c->to);
	free(c->schema);
	*c = (struct policy_channel){ 0 };
}
