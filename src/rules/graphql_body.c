/*
 * GraphQL requests asked about (body_rule.h). In: the rule's conditions, the body or the query of a
 * URL. Out: whether the rule has each operation and each field of its root. Runs in front.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "policy/policy_rule.h"
#include "rules/body_rule.h"
#include "rules/graphql.h"
#include "rules/http_path.h"
#include "rules/json_in.h"

#define NOT_JSON "not strict JSON, or a duplicate key"

struct rule_asked {
	const char *conditions;
	size_t len;
	struct asked *asked;
	bool some; /* a field of this operation is in asked->text */
};

/* -- fields */

/* An entry is "query", or "query:PATTERN". */
static bool entry_fits(const char *entry, enum graphql_kind kind, const char *name, size_t n)
{
	size_t word = strcspn(entry, ":");

	if (word != strlen(graphql_words[kind]) || memcmp(entry, graphql_words[kind], word) != 0)
		return false;
	return !entry[word] || http_glob(entry + word + 1, strlen(entry + word + 1), name, n);
}

static bool has_entry(const struct rule_asked *r, enum graphql_kind kind, const char *name,
		      size_t n)
{
	for (size_t at = 0; at < r->len; at += strlen(r->conditions + at) + 1)
		if (r->conditions[at] == POLICY_HTTP_GRAPHQL &&
		    entry_fits(r->conditions + at + 1, kind, name, n))
			return true;
	return false;
}

/* __typename says what everybody knows: it is allowed where anything of the operation is. */
static bool has_kind(const struct rule_asked *r, enum graphql_kind kind)
{
	size_t n = strlen(graphql_words[kind]);

	for (size_t at = 0; at < r->len; at += strlen(r->conditions + at) + 1)
		if (r->conditions[at] == POLICY_HTTP_GRAPHQL &&
		    strncmp(r->conditions + at + 1, graphql_words[kind], n) == 0)
			return true;
	return false;
}

static bool may_persist(const struct rule_asked *r)
{
	for (size_t at = 0; at < r->len; at += strlen(r->conditions + at) + 1)
		if (r->conditions[at] == POLICY_HTTP_GRAPHQL &&
		    strcmp(r->conditions + at + 1, "persisted") == 0)
			return true;
	return false;
}

static bool ask(void *context, enum graphql_kind kind, const char *name, size_t n)
{
	struct rule_asked *r = context;
	struct asked *a = r->asked;
	bool typename = n == 10 && memcmp(name, "__typename", 10) == 0;
	bool fits = typename ? has_kind(r, kind) : has_entry(r, kind, name, n);

	if (!fits && r->some)
		strcpy(a->more, "mixed=1");
	if (!fits || !a->text[0])
		strcpy(a->text, "graphql=");
	if (!fits || !r->some) {
		if (a->text[strlen(a->text) - 1] != '=')
			asked_add(a, ";", 1);
		asked_add(a, graphql_words[kind], strlen(graphql_words[kind]));
		asked_add(a, ":", 1);
	} else {
		asked_add(a, ",", 1);
	}
	asked_add(a, name, n);
	r->some = true;
	return fits;
}

static bool text_fits(struct rule_asked *r, const char *text, size_t n, const char *operation)
{
	bool allowed;

	r->some = false;
	if (!json_in_utf8((const uint8_t *)text, n)) {
		r->asked->wrong = "not UTF-8";
		return false;
	}
	r->asked->wrong = graphql_read(text, n, operation, ask, r, &allowed);
	return allowed;
}

bool graphql_text_fits(const char *conditions, size_t len, const char *text, size_t n,
		       struct asked *ret)
{
	struct rule_asked r = { conditions, len, ret, false };

	*ret = (struct asked){ 0 };
	return text_fits(&r, text, n, NULL);
}

/* -- JSON */

struct envelope {
	struct buf query, operation;
	bool has_query, persisted;
	const char *wrong;
};

static void read_extensions(struct json_in *j, struct envelope *v)
{
	struct json_level l;
	const char *key;

	if (!json_in_open(j, '{', &l)) {
		v->persisted |= json_in_peek(j) != 'n';
		json_in_skip(j);
		return;
	}
	while (json_in_next(j, &l, &key)) {
		v->persisted |= strcasecmp(key, "persistedQuery") == 0 ||
				json_in_resembles(key, "persistedQuery");
		json_in_skip(j);
	}
}

static void read_member(struct json_in *j, const char *key, struct envelope *v)
{
	static const char *const known[] = { "query", "operationName", "variables", "extensions" };

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (json_in_resembles(key, known[i]))
			v->wrong = "a key that some servers read as another one";
	if (strcmp(key, "query") == 0 && json_in_peek(j) != 'n') {
		json_in_string(j, &v->query);
		v->has_query = true;
	} else if (strcmp(key, "operationName") == 0 && json_in_peek(j) != 'n') {
		json_in_string(j, &v->operation);
	} else if (strcmp(key, "extensions") == 0) {
		read_extensions(j, v);
	} else { /* whatever else there is may name a text that the server has */
		v->persisted |= strcmp(key, "query") != 0 && strcmp(key, "operationName") != 0 &&
				strcmp(key, "variables") != 0;
		json_in_skip(j);
	}
}

/* What was read of one request, asked about. */
static bool envelope_fits(struct rule_asked *r, const struct envelope *v)
{
	if (v->wrong) {
		r->asked->wrong = v->wrong;
		return false;
	}
	if (!v->has_query && !v->persisted) {
		r->asked->wrong = "there is no query in it";
		return false;
	}
	if (v->persisted && !may_persist(r)) {
		strcpy(r->asked->text, "graphql=persisted");
		return false;
	}
	if (!r->asked->text[0])
		strcpy(r->asked->text, "graphql=");
	if (v->persisted) {
		if (r->asked->text[strlen(r->asked->text) - 1] != '=')
			asked_add(r->asked, ";", 1);
		asked_add(r->asked, "persisted", 9);
	}
	return !v->has_query ||
	       text_fits(r, buf_text(&v->query), v->query.len, buf_text(&v->operation));
}

static bool object_fits(struct json_in *j, struct rule_asked *r, bool allowed)
{
	struct envelope v = { 0 };
	struct json_level l;
	const char *key;

	if (json_in_open(j, '{', &l))
		while (json_in_next(j, &l, &key))
			read_member(j, key, &v);
	else
		v.wrong = "not a GraphQL request";
	if (j->bad || v.query.failed || v.operation.failed)
		v.wrong = NOT_JSON;
	if (v.wrong)
		r->asked->wrong = v.wrong;
	allowed = !v.wrong && allowed && envelope_fits(r, &v);
	buf_free(&v.query);
	buf_free(&v.operation);
	return allowed;
}

bool graphql_body_fits(const char *conditions, size_t len, const uint8_t *bytes, size_t n,
		       struct asked *ret)
{
	struct rule_asked r = { conditions, len, ret, false };
	bool allowed = true, list, some = false;
	struct json_level l;
	struct json_in j;

	*ret = (struct asked){ 0 };
	json_in_init(&j, bytes, n);
	list = json_in_open(&j, '[', &l);
	if (!list)
		allowed = object_fits(&j, &r, true);
	for (; list && !ret->wrong && json_in_next(&j, &l, NULL); some = true)
		allowed = object_fits(&j, &r, allowed);
	if (!ret->wrong && ((list && !some) || !json_in_end(&j)))
		ret->wrong = list && !some && !j.bad ? "an empty list of requests" : NOT_JSON;
	json_in_free(&j);
	return allowed && !ret->wrong;
}

/* -- the query of a URL */

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A parameter's text without its escapes; false: not understood. */
static bool decode(struct http_text t, struct buf *out)
{
	for (size_t i = 0; i < t.n; i++) {
		char c = t.s[i] == '+' ? ' ' : t.s[i];

		if (c == '%') {
			int high = i + 2 < t.n ? hex(t.s[i + 1]) : -1,
			    low = high >= 0 ? hex(t.s[i + 2]) : -1;

			if (high < 0 || low < 0)
				return false;
			c = (char)(high << 4 | low);
			i += 2;
		}
		if (!c)
			return false;
		buf_add(out, &c, 1);
	}
	buf_add(out, "", 0);
	return !out->failed;
}

/* Which parameter of GraphQL a name might be to some server: "query[]", "QUERY" and " query"
 * are. */
static const char *parameter(const char *name)
{
	static const char *const known[] = { "query", "operationName", "variables", "extensions" };
	const char *begin = name + strspn(name, " ");
	size_t n = strcspn(begin, "[. ");

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strlen(known[i]) == n && strncasecmp(begin, known[i], n) == 0)
			return known[i];
	return NULL;
}

/* The next parameter of *query, its parts decoded. False: not understood. */
static bool next_parameter(struct http_text *query, struct buf *name, struct buf *value)
{
	const char *end = memchr(query->s, '&', query->n), *equals;
	size_t n = end ? (size_t)(end - query->s) : query->n, name_n;
	struct http_text all = { query->s, n };

	*query = (struct http_text){ query->s + n + (end ? 1 : 0), query->n - n - (end ? 1 : 0) };
	equals = memchr(all.s, '=', all.n);
	name_n = equals ? (size_t)(equals - all.s) : all.n;
	if (memchr(all.s, ';', all.n) || !decode((struct http_text){ all.s, name_n }, name))
		return false;
	return !equals || decode((struct http_text){ equals + 1, all.n - name_n - 1 }, value);
}

bool graphql_query_speaks(struct http_text query)
{
	while (query.n) {
		auto_buf name = { 0 }, value = { 0 };

		if (!next_parameter(&query, &name, &value) || parameter(buf_text(&name)))
			return true;
	}
	return false;
}

static const char *take_parameter(struct envelope *v, const char *name, const struct buf *value,
				  bool *operation)
{
	const char *known = parameter(name);

	if (!*name)
		return NULL;
	if (known && strcmp(known, name) != 0)
		return "a parameter that some servers read as another one";
	if (!known || strcmp(known, "variables") == 0) {
		v->persisted |= !known;
		return NULL;
	}
	if (strcmp(known, "extensions") == 0) {
		v->persisted = true;
		return NULL;
	}
	if (*known == 'q' ? v->has_query : *operation)
		return "a duplicate parameter in the URL";
	if (*known == 'q') {
		v->has_query = true;
		buf_add(&v->query, buf_text(value), value->len);
	} else {
		*operation = true;
		buf_add(&v->operation, buf_text(value), value->len);
	}
	return NULL;
}

bool graphql_query_fits(const char *conditions, size_t len, struct http_text query,
			struct asked *ret)
{
	struct rule_asked r = { conditions, len, ret, false };
	struct envelope v = { 0 };
	bool operation = false, allowed;

	*ret = (struct asked){ 0 };
	while (query.n && !v.wrong) {
		auto_buf name = { 0 }, value = { 0 };

		v.wrong = next_parameter(&query, &name, &value)
				  ? take_parameter(&v, buf_text(&name), &value, &operation)
				  : "an ambiguous URL, which servers may parse differently";
	}
	if (v.query.failed || v.operation.failed)
		v.wrong = "out of memory";
	allowed = envelope_fits(&r, &v);
	buf_free(&v.query);
	buf_free(&v.operation);
	return allowed;
}
