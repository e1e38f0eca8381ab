/*
 * JSON-RPC messages asked about (body_rule.h), and what GraphQL shares with it. In: the rule's
 * conditions, a body. Out: whether the rule has all of its methods. Keys that differ from those
 * that count in their case only are refused: some servers take them for the same. Runs in front.
 */
#include "rules/body_rule.h"

#include <string.h>

#include "policy/policy_rule.h"
#include "rules/http_path.h"
#include "rules/json_in.h"

void asked_add(struct asked *a, const char *text, size_t n)
{
	size_t at = strlen(a->text);

	for (size_t i = 0; i < n && at + 1 < sizeof(a->text); i++)
		a->text[at++] =
			(char)(text[i] <= ' ' || text[i] > '~' || text[i] == '"' ? '?' : text[i]);
	a->text[at] = '\0';
	if (at + 1 == sizeof(a->text))
		memcpy(a->text + at - 3, "...", 3);
}

/* One message. */
struct message {
	struct buf method, name;
	bool has_method, has_name, answer;
	const char *wrong;
};

static void read_params(struct json_in *j, struct message *m)
{
	struct json_level l;
	const char *key;

	if (!json_in_open(j, '{', &l)) {
		json_in_skip(j);
		return;
	}
	while (json_in_next(j, &l, &key)) {
		if (json_in_resembles(key, "name"))
			m->wrong = "a key that some servers read as \"name\"";
		if (strcmp(key, "name") == 0 && json_in_peek(j) == '"') {
			json_in_string(j, &m->name);
			m->has_name = true;
		} else {
			json_in_skip(j);
		}
	}
}

static void read_member(struct json_in *j, const char *key, struct message *m)
{
	static const char *const known[] = {
		"jsonrpc", "method", "params", "id", "result", "error"
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (json_in_resembles(key, known[i]))
			m->wrong = "a key that some servers read as another one";
	if (strcmp(key, "method") == 0) {
		json_in_string(j, &m->method);
		m->has_method = true;
	} else if (strcmp(key, "params") == 0) {
		read_params(j, m);
	} else {
		m->answer |= strcmp(key, "result") == 0 || strcmp(key, "error") == 0;
		json_in_skip(j);
	}
}

/* METHOD or METHOD:NAME, both patterns. */
static bool method_fits(const char *entry, const struct message *m)
{
	size_t n = strcspn(entry, ":");

	if (!http_glob(entry, n, buf_text(&m->method), m->method.len))
		return false;
	return !entry[n] || (m->has_name && http_glob(entry + n + 1, strlen(entry + n + 1),
						      buf_text(&m->name), m->name.len));
}

static bool is_allowed(const char *conditions, size_t len, const struct message *m)
{
	for (size_t at = 0; at < len; at += strlen(conditions + at) + 1)
		if (conditions[at] == POLICY_HTTP_RPC && conditions[at + 1] &&
		    method_fits(conditions + at + 1, m))
			return true;
	return false;
}

/* Methods whose name is the name of something: tools of MCP and the like. */
static void describe(const struct message *m, struct asked *a)
{
	/* a colon of the method's own is none of METHOD:NAME */
	for (size_t i = 0; i < m->method.len; i++)
		asked_add(a, buf_text(&m->method)[i] == ':' ? "?" : &buf_text(&m->method)[i], 1);
	if (m->has_name && m->method.len) {
		asked_add(a, ":", 1);
		asked_add(a, buf_text(&m->name), m->name.len);
	}
}

static bool message_fits(struct json_in *j, const char *conditions, size_t len, struct asked *a,
			 bool *allowed)
{
	struct message m = { 0 };
	struct json_level l;
	const char *key;

	if (json_in_open(j, '{', &l))
		while (json_in_next(j, &l, &key))
			read_member(j, key, &m);
	else
		m.wrong = "not a message of JSON-RPC";
	if (!m.wrong && (m.has_method ? m.answer || !m.method.len : !m.answer))
		m.wrong = "neither a call nor an answer of JSON-RPC";
	if (j->bad || m.method.failed || m.name.failed)
		m.wrong = "not strict JSON, or a duplicate key";
	if (m.wrong) {
		a->wrong = m.wrong;
	} else if (*allowed && m.has_method) {
		*allowed = is_allowed(conditions, len, &m);
		if (!*allowed) {
			if (a->text[strlen(a->text) - 1] != '=')
				strcpy(a->more, "mixed=1");
			strcpy(a->text, "json_rpc=");
		} else if (a->text[strlen(a->text) - 1] != '=')
			asked_add(a, ",", 1);
		describe(&m, a);
	}
	buf_free(&m.method);
	buf_free(&m.name);
	return !a->wrong;
}

bool rpc_body_fits(const char *conditions, size_t len, const uint8_t *bytes, size_t n,
		   struct asked *ret)
{
	struct json_in j;
	struct json_level l;
	bool allowed = true, list, some = false;

	*ret = (struct asked){ .text = "json_rpc=" };
	json_in_init(&j, bytes, n);
	list = json_in_open(&j, '[', &l);
	if (!list)
		some = message_fits(&j, conditions, len, ret, &allowed);
	while (list && !ret->wrong && json_in_next(&j, &l, NULL))
		some |= message_fits(&j, conditions, len, ret, &allowed);
	if (!ret->wrong && (!some || !json_in_end(&j)))
		ret->wrong = j.bad || some ? "not strict JSON, or a duplicate key"
					   : "an empty list of calls";
	json_in_free(&j);
	return allowed && !ret->wrong;
}
