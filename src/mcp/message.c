/*
 * Reading MCP's messages (message.h). In: a line or a body, from a peer that is not trusted. Out:
 * spans of it, or an error of JSON-RPC. mcp_split() walks every byte and refuses what two readers
 * could read differently; whatever comes behind it walks the same bytes again without surprises.
 * Runs in processes that are confined. Pure.
 */
#include "mcp/message.h"

#include <string.h>

#include "base/json.h"
#include "rules/json_in.h"

static const char not_json[] = "it is not JSON that can be read in one way only";

/* -- walking */

/* Like json_in_skip(), but every text is read as one that is used: no NUL, no half characters. */
static void walk(struct json_in *j, struct buf *scratch)
{
	char c = json_in_peek(j);
	struct json_level l;

	if (c == '"') {
		scratch->len = 0;
		json_in_string(j, scratch);
		return;
	}
	if ((c != '{' && c != '[') || !json_in_open(j, c, &l)) {
		json_in_skip(j); /* too deep: that refuses it, too */
		return;
	}
	while (json_in_next(j, &l, NULL))
		walk(j, scratch);
}

static bool next_span(struct json_in *j, struct buf *scratch, struct mcp_span *ret)
{
	(void)json_in_peek(j);
	ret->at = j->at;
	if (scratch)
		walk(j, scratch);
	else
		json_in_skip(j);
	ret->n = j->bad ? 0 : (size_t)(j->at - ret->at);
	return !j->bad;
}

static bool split(struct json_in *j, struct mcp_parts *ret, const char **ret_why)
{
	auto_buf scratch = { 0 };
	struct json_level l;

	ret->batch = json_in_peek(j) == '[';
	if (!ret->batch) {
		ret->count = 1;
		return next_span(j, &scratch, &ret->items[0]);
	}
	if (!json_in_open(j, '[', &l))
		return false;
	while (json_in_next(j, &l, NULL)) {
		if (ret->count == MCP_BATCH_MAX) {
			*ret_why = "a batch has at most 128 messages";
			return false;
		}
		if (!next_span(j, &scratch, &ret->items[ret->count++]))
			return false;
	}
	return !j->bad;
}

int mcp_split(const uint8_t *bytes, size_t n, struct mcp_parts *ret, const char **ret_why)
{
	struct json_in j;
	bool fine;

	ret->count = 0;
	ret->batch = false;
	*ret_why = not_json;
	if (n > MCP_BYTES_MAX) {
		*ret_why = "a message has at most 4 MiB";
		return MCP_INVALID;
	}
	json_in_init(&j, bytes, n);
	fine = split(&j, ret, ret_why) && json_in_end(&j);
	json_in_free(&j);
	if (!fine)
		return *ret_why == not_json ? MCP_PARSE : MCP_INVALID;
	if (!ret->count) {
		*ret_why = "a batch has at least one message";
		return MCP_INVALID;
	}
	return 0;
}

/* -- values */

char mcp_type(struct mcp_span v)
{
	if (!v.n)
		return '\0';
	return *v.at == '-' || (*v.at >= '0' && *v.at <= '9') ? '0' : (char)*v.at;
}

bool mcp_each(struct mcp_span v, bool (*each)(void *state, const char *key, struct mcp_span value),
	      void *state)
{
	struct json_level l;
	struct json_in j;
	const char *key = NULL;
	bool all;

	json_in_init(&j, v.at, v.n);
	all = v.n && json_in_open(&j, mcp_type(v) == '[' ? '[' : '{', &l);
	while (all && json_in_next(&j, &l, l.close == '}' ? &key : NULL)) {
		auto_buf name = { 0 };
		struct mcp_span value;

		if (key)
			buf_puts(&name, key); /* reading the value writes over it */
		all = next_span(&j, NULL, &value) && !name.failed &&
		      each(state, key ? buf_text(&name) : NULL, value);
	}
	all = all && !j.bad;
	json_in_free(&j);
	return all;
}

struct search {
	const char *key;
	struct mcp_span *ret;
};

static bool stop_at(void *state, const char *key, struct mcp_span value)
{
	struct search *s = state;

	if (!key || strcmp(key, s->key) != 0)
		return true;
	*s->ret = value;
	return false;
}

bool mcp_get(struct mcp_span v, const char *key, struct mcp_span *ret)
{
	struct search s = { key, ret };

	*ret = (struct mcp_span){ 0 };
	if (mcp_type(v) == '{')
		(void)!mcp_each(v, stop_at, &s);
	return ret->n > 0;
}

bool mcp_text(struct mcp_span v, struct buf *out)
{
	struct json_in j;
	bool fine;

	if (mcp_type(v) != '"')
		return false;
	json_in_init(&j, v.at, v.n);
	json_in_string(&j, out);
	fine = json_in_end(&j);
	json_in_free(&j);
	return fine && !out->failed;
}

bool mcp_is(struct mcp_span v, const char *word)
{
	auto_buf text = { 0 };

	return mcp_text(v, &text) && strcmp(buf_text(&text), word) == 0;
}

bool mcp_uint(struct mcp_span v, uint64_t max, uint64_t *ret)
{
	uint64_t sum = 0;

	if (mcp_type(v) != '0')
		return false;
	for (size_t i = 0; i < v.n; i++) {
		if (v.at[i] < '0' || v.at[i] > '9' || __builtin_mul_overflow(sum, 10, &sum) ||
		    __builtin_add_overflow(sum, (uint64_t)(v.at[i] - '0'), &sum))
			return false;
	}
	*ret = sum;
	return sum <= max;
}

bool mcp_id(struct mcp_span v, char ret[MCP_ID_MAX])
{
	auto_buf text = { 0 }, out = { 0 };

	if (mcp_type(v) == '"') {
		if (!mcp_text(v, &text))
			return false;
		json_quote(&out, buf_text(&text));
	} else if (mcp_type(v) == '0' && v.n <= 20) {
		for (size_t i = 0; i < v.n; i++)
			if (strchr(".eE", v.at[i]))
				return false;
		if (v.n == 2 && memcmp(v.at, "-0", 2) == 0)
			return false; /* another reader's 0 */
		buf_add(&out, v.at, v.n);
	}
	if (!out.len || out.failed || out.len >= MCP_ID_MAX)
		return false;
	memcpy(ret, out.data, out.len + 1);
	return true;
}

/* -- envelopes */

enum member { JSONRPC, ID, METHOD, PARAMS, RESULT, ERROR, MEMBERS };

static const char *const names[MEMBERS] = {
	"jsonrpc", "id", "method", "params", "result", "error"
};

struct envelope {
	struct mcp_span part[MEMBERS];
	bool alike;
};

static bool note(void *state, const char *key, struct mcp_span value)
{
	struct envelope *v = state;

	for (size_t i = 0; i < MEMBERS; i++)
		if (strcmp(key, names[i]) == 0) {
			v->part[i] = value;
			return true;
		}
	for (size_t i = 0; i < MEMBERS; i++)
		v->alike |= json_in_resembles(key, names[i]);
	return true;
}

static int no(const char *why, const char **ret_why)
{
	*ret_why = why;
	return MCP_INVALID;
}

static int read_call(const struct envelope *v, struct mcp_message *ret, const char **ret_why)
{
	auto_buf method = { 0 };

	if (v->part[RESULT].n || v->part[ERROR].n)
		return no("a message is a request or an answer, not both", ret_why);
	if (!mcp_text(v->part[METHOD], &method) || !method.len || method.len >= MCP_METHOD_MAX)
		return no("method must be a text of at most 63 bytes", ret_why);
	memcpy(ret->method, method.data, method.len + 1);
	ret->kind = v->part[ID].n ? MCP_REQUEST : MCP_NOTIFICATION;
	ret->params = v->part[PARAMS];
	if (ret->params.n && mcp_type(ret->params) != '{')
		return no("params must be an object", ret_why);
	return 0;
}

static int read_answer(const struct envelope *v, struct mcp_message *ret, const char **ret_why)
{
	bool failed = v->part[ERROR].n > 0;

	if (failed == (v->part[RESULT].n > 0))
		return no("a message has a method, a result or an error", ret_why);
	if (!v->part[ID].n)
		return no("an answer needs an id", ret_why);
	ret->kind = failed ? MCP_FAILURE : MCP_RESULT;
	ret->body = v->part[failed ? ERROR : RESULT];
	return mcp_type(ret->body) == '{' ? 0 : no("a result and an error are objects", ret_why);
}

int mcp_read(struct mcp_span part, struct mcp_message *ret, const char **ret_why)
{
	struct envelope v = { 0 };
	bool null_id;

	*ret = (struct mcp_message){ .kind = MCP_NOTIFICATION };
	if (mcp_type(part) != '{' || !mcp_each(part, note, &v))
		return no("a message is an object", ret_why);
	null_id = mcp_type(v.part[ID]) == 'n' && v.part[ERROR].n;
	if (null_id)
		memcpy(ret->id, "null", sizeof("null"));
	else if (v.part[ID].n && !mcp_id(v.part[ID], ret->id))
		return no("an id is a whole number or a text of at most 250 bytes", ret_why);
	if (v.alike)
		return no("a member looks like one of JSON-RPC's own", ret_why);
	if (!mcp_is(v.part[JSONRPC], "2.0"))
		return no("jsonrpc must be \"2.0\"", ret_why);
	return v.part[METHOD].n ? read_call(&v, ret, ret_why) : read_answer(&v, ret, ret_why);
}
