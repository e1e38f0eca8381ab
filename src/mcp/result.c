/*
 * Results of calls (result.h). In: a span that mcp_split() accepted. Out: content with the members
 * that the protocol names, each with a value of its type; structured content with every text in it
 * made visible. What has another form is left out, and a text says so. Pure.
 */
#include "mcp/result.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"

static const char left_out[] = "ward: content of a form that MCP does not know was left out";

void mcp_result_free(struct mcp_result *r)
{
	buf_free(&r->members);
	buf_free(&r->text);
	*r = (struct mcp_result){ 0 };
}

/* -- texts */

static bool acts(const struct buf *text)
{
	const unsigned char *s = (const unsigned char *)buf_text(text);
	unsigned point = 0;

	for (size_t n; *s; s += n) {
		n = text_utf8(s, &point);
		if (!n || (text_acts(point) && *s != '\n' && *s != '\t' && *s != '\r'))
			return true;
		if (*s == '\r' && s[1] != '\n')
			return true;
	}
	return false;
}

static void put_text(struct mcp_result *r, const struct buf *text)
{
	auto_buf visible = { 0 };

	buf_add(&r->text, buf_text(text), text->len);
	buf_puts(&r->text, "\n");
	if (!acts(text)) {
		json_quote(&r->members, buf_text(text));
		return;
	}
	r->hidden++;
	text_escape_lines(&visible, buf_text(text), text->len);
	json_quote(&r->members, buf_text(&visible));
	r->members.failed |= visible.failed;
}

static void comma(struct mcp_result *r)
{
	const struct buf *m = &r->members;

	if (m->len && !strchr("{[,:", m->data[m->len - 1]))
		buf_puts(&r->members, ",");
}

static void put_key(struct mcp_result *r, const char *key)
{
	comma(r);
	json_quote(&r->members, key);
	buf_puts(&r->members, ":");
}

static void put_word(struct mcp_result *r, const char *key, const char *word)
{
	put_key(r, key);
	json_quote(&r->members, word);
}

/* A member that is a text; false: there is none. */
static bool put_member(struct mcp_result *r, struct mcp_span from, const char *key)
{
	auto_buf text = { 0 };
	struct mcp_span value;

	if (!mcp_get(from, key, &value) || !mcp_text(value, &text))
		return false;
	put_key(r, key);
	put_text(r, &text);
	return true;
}

/* -- values of any form */

static void put_value(struct mcp_result *r, struct mcp_span v);

static bool put_one(void *state, const char *key, struct mcp_span value)
{
	struct mcp_result *r = state;

	comma(r);
	if (key) {
		auto_buf text = { 0 };

		buf_puts(&text, key);
		r->odd |= acts(&text);
		put_text(r, &text);
		buf_puts(&r->members, ":");
	}
	put_value(r, value);
	return true;
}

/* As deep as mcp_split() accepts. */
static void put_value(struct mcp_result *r, struct mcp_span v)
{
	char type = mcp_type(v);
	auto_buf text = { 0 };

	if (type == '{' || type == '[') {
		buf_add(&r->members, &type, 1);
		r->members.failed |= !mcp_each(v, put_one, r);
		buf_puts(&r->members, type == '{' ? "}" : "]");
	} else if (type == '"') {
		r->members.failed |= !mcp_text(v, &text);
		put_text(r, &text);
	} else {
		buf_add(&r->members, v.at, v.n);
	}
}

/* -- content */

static bool is_base64(struct mcp_span v)
{
	for (size_t i = 1; i + 1 < v.n; i++) {
		uint8_t c = v.at[i];

		if (!(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') &&
		    !strchr("+/=", c))
			return false;
	}
	return v.n >= 2 && mcp_type(v) == '"';
}

static bool put_data(struct mcp_result *r, struct mcp_span from, const char *key)
{
	struct mcp_span data;

	if (!mcp_get(from, key, &data) || !is_base64(data))
		return false;
	put_key(r, key);
	buf_add(&r->members, data.at, data.n);
	return true;
}

static bool put_link(struct mcp_result *r, struct mcp_span from)
{
	static const char *const more[] = { "title", "description", "mimeType" };

	if (!put_member(r, from, "uri") || !put_member(r, from, "name"))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		(void)!put_member(r, from, more[i]);
	return true;
}

static bool put_resource(struct mcp_result *r, struct mcp_span from)
{
	struct mcp_span resource;
	bool fine;

	if (!mcp_get(from, "resource", &resource) || mcp_type(resource) != '{')
		return false;
	put_key(r, "resource");
	buf_puts(&r->members, "{");
	fine = put_member(r, resource, "uri");
	(void)!put_member(r, resource, "mimeType");
	fine = fine && (put_member(r, resource, "text") || put_data(r, resource, "blob"));
	buf_puts(&r->members, "}");
	return fine;
}

static bool put_picture(struct mcp_result *r, struct mcp_span from)
{
	return put_data(r, from, "data") && put_member(r, from, "mimeType");
}

static bool put_plain(struct mcp_result *r, struct mcp_span from)
{
	return put_member(r, from, "text");
}

static const struct {
	const char *type;
	bool (*put)(struct mcp_result *r, struct mcp_span from);
} forms[] = {
	{ "text", put_plain },         { "image", put_picture },     { "audio", put_picture },
	{ "resource_link", put_link }, { "resource", put_resource },
};

struct content {
	struct mcp_result *r;
	size_t count;
};

static bool put_part(void *state, unused_arg const char *key, struct mcp_span part)
{
	struct content *c = state;
	struct mcp_result *r = c->r;
	struct mcp_span type;
	size_t before, i = 0;
	bool fine;

	if (c->count++ == RESULT_PARTS_MAX)
		return false;
	comma(r);
	before = r->members.len;
	if (!mcp_get(part, "type", &type))
		type.n = 0;
	while (i < ARRAY_LEN(forms) && !mcp_is(type, forms[i].type))
		i++;
	fine = i < ARRAY_LEN(forms);
	buf_puts(&r->members, "{");
	if (fine) {
		put_word(r, "type", forms[i].type);
		fine = forms[i].put(r, part);
	}
	if (!fine && !r->members.failed) {
		r->members.len = before;
		r->members.data[before] = '\0';
		buf_puts(&r->members, "{");
		put_word(r, "type", "text");
		put_word(r, "text", left_out);
	}
	buf_puts(&r->members, "}");
	return true;
}

/* Of the content; structured content has its own escapes. */
static void put_note(struct mcp_result *r)
{
	comma(r);
	buf_puts(&r->members, "{");
	put_word(r, "type", "text");
	put_word(r, "text",
		 "ward: characters above that hide or act on a terminal are shown as escapes");
	buf_puts(&r->members, "}");
}

bool mcp_result_read(struct mcp_span result, struct mcp_result *ret, const char **ret_why)
{
	struct content c = { .r = ret };
	struct mcp_span content, failed;

	*ret = (struct mcp_result){ 0 };
	*ret_why = "it is no result of a tool";
	if (!mcp_get(result, "content", &content) || mcp_type(content) != '[')
		return false;
	buf_puts(&ret->members, "\"content\":[");
	if (!mcp_each(content, put_part, &c)) {
		*ret_why = "it has more than 1000 parts";
		return false;
	}
	if (ret->hidden)
		put_note(ret);
	buf_puts(&ret->members, "]");
	ret->failed = mcp_get(result, "isError", &failed) && mcp_type(failed) == 't';
	if (mcp_get(result, "structuredContent", &ret->structured) &&
	    mcp_type(ret->structured) == '{') {
		put_key(ret, "structuredContent");
		put_value(ret, ret->structured);
	} else {
		ret->structured = (struct mcp_span){ 0 };
	}
	buf_puts(&ret->members, ret->failed ? ",\"isError\":true" : ",\"isError\":false");
	*ret_why = ret->odd ? "a key in it hides text" : "out of memory";
	return !ret->odd && !ret->members.failed && !ret->text.failed;
}
