/*
 * Entries of a JSON configuration (config.h). In: the bytes of a file. Out: the same bytes with one
 * member more or less. The reader is that of messages: strict, so that what is changed is what the
 * client reads. Comments, which some clients allow, are refused. Pure.
 */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "mcp/config.h"
#include "mcp/message.h"

static const char not_json[] = "it is not plain JSON, which comments and doubled keys are not";

static int no(const char *why, const char **ret_why)
{
	*ret_why = why;
	return -EINVAL;
}

static int read_root(const struct buf *text, struct mcp_span *ret, const char **ret_why)
{
	struct mcp_parts parts;

	if (mcp_split((const uint8_t *)buf_text(text), text->len, &parts, ret_why) != 0)
		return no(not_json, ret_why);
	*ret = parts.items[0];
	return parts.batch || mcp_type(*ret) != '{' ? no("it is no JSON object", ret_why) : 0;
}

static const uint8_t *skip_space(const uint8_t *at)
{
	while (strchr(" \t\r\n", *at) && *at)
		at++;
	return at;
}

/* -- adding */

struct last {
	struct mcp_span value;
};

static bool note_last(void *state, unused_arg const char *key, struct mcp_span value)
{
	((struct last *)state)->value = value;
	return true;
}

static void put_entry(const struct config_entry *entry, struct buf *out)
{
	json_quote(out, entry->name);
	buf_puts(out, entry->type ? ": {\"type\": \"stdio\", \"command\": " : ": {\"command\": ");
	json_quote(out, entry->words->items[0]);
	buf_puts(out, ", \"args\": [");
	for (size_t i = 1; i < entry->words->len; i++) {
		buf_puts(out, i > 1 ? ", " : "");
		json_quote(out, entry->words->items[i]);
	}
	buf_puts(out, "]}");
}

/* The member goes behind the last one, in the form that the first one has. */
static void put_member(const struct buf *text, struct mcp_span object, const struct buf *member,
		       unsigned depth, struct buf *out)
{
	const uint8_t *begin = (const uint8_t *)buf_text(text), *first = skip_space(object.at + 1);
	struct last last = { { NULL, 0 } };
	const uint8_t *at;

	if (!mcp_each(object, note_last, &last) || !last.value.n) {
		buf_add(out, begin, (size_t)(object.at - begin));
		buf_printf(out, "{\n%*s%s\n%*s}", (int)depth * 2, "", buf_text(member),
			   (int)(depth - 1) * 2, "");
		at = object.at + object.n;
	} else {
		at = last.value.at + last.value.n;
		buf_add(out, begin, (size_t)(at - begin));
		buf_puts(out, ",");
		if (first == object.at + 1)
			buf_puts(out, " ");
		else
			buf_add(out, object.at + 1, (size_t)(first - object.at - 1));
		buf_add(out, buf_text(member), member->len);
	}
	buf_add(out, at, text->len - (size_t)(at - begin));
	out->failed |= member->failed;
}

int config_json_add(const struct buf *text, const struct config_entry *entry, struct buf *out,
		    const char **ret_why)
{
	auto_buf member = { 0 }, empty = { 0 };
	struct mcp_span root, group, known;
	int r;

	if (!text->len) {
		buf_puts(&empty, "{}\n");
		return empty.failed ? -ENOMEM : config_json_add(&empty, entry, out, ret_why);
	}
	r = read_root(text, &root, ret_why);
	if (r < 0)
		return r;
	if (!mcp_get(root, entry->group, &group)) {
		json_quote(&member, entry->group);
		buf_puts(&member, ": {\n    ");
		put_entry(entry, &member);
		buf_puts(&member, "\n  }");
		put_member(text, root, &member, 1, out);
	} else if (mcp_type(group) != '{') {
		return no("its servers are no object", ret_why);
	} else if (mcp_get(group, entry->name, &known)) {
		return -EEXIST;
	} else {
		put_entry(entry, &member);
		put_member(text, group, &member, 2, out);
	}
	return out->failed ? -ENOMEM : 0;
}

/* -- removing */

struct place {
	const char *name;
	struct mcp_span before, value, after;
};

static bool note_place(void *state, const char *key, struct mcp_span value)
{
	struct place *p = state;

	if (p->value.n) {
		p->after = value;
		return false;
	}
	if (strcmp(key, p->name) == 0)
		p->value = value;
	else
		p->before = value;
	return true;
}

/* The first byte of the key in front of a value: it is behind the comma, or the brace. */
static const uint8_t *key_of(struct mcp_span object, struct mcp_span before)
{
	const uint8_t *at = skip_space(before.n ? before.at + before.n : object.at + 1);

	return before.n ? skip_space(at + 1) : at;
}

int config_json_remove(const struct buf *text, const struct config_entry *entry, struct buf *out,
		       const char **ret_why)
{
	const uint8_t *begin = (const uint8_t *)buf_text(text), *from, *to;
	struct place p = { .name = entry->name };
	struct mcp_span root, group;
	int r = read_root(text, &root, ret_why);

	if (r < 0)
		return r;
	if (!mcp_get(root, entry->group, &group) || mcp_type(group) != '{')
		return -ENOENT;
	(void)!mcp_each(group, note_place, &p);
	if (!p.value.n)
		return -ENOENT;
	from = p.before.n ? p.before.at + p.before.n : group.at + 1;
	to = p.value.at + p.value.n;
	if (!p.before.n && p.after.n) {
		from = key_of(group, p.before);
		to = key_of(group, p.value);
	} else if (!p.before.n) {
		to = group.at + group.n - 1;
	}
	buf_add(out, begin, (size_t)(from - begin));
	buf_add(out, to, text->len - (size_t)(to - begin));
	return out->failed ? -ENOMEM : 0;
}
