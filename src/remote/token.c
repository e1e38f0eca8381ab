/*
 * Tokens of the server: token create, ls, revoke. In: role, time and limits. Out: the new token,
 * once; the list, without secrets.
 */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "policy/units.h"
#include "remote/http.h"

/* Members of the object that --limits is, behind those that have options of their own. */
static int add_limits(const struct remote *r, struct buf *body, struct ward_err *e)
{
	struct values v = { 0 };
	const char *begin, *end;

	if (!r->limits)
		return 0;
	if (values_read((const uint8_t *)r->limits, strlen(r->limits), &v) < 0 ||
	    v.items->kind != VALUE_OBJECT) {
		values_free(&v);
		ward_fail(e, EINVAL, "--limits: not a JSON object");
		return ward_remedy(e, "for instance {\"templates\": [\"base\"], \"hours\": "
				      "\"08:00-18:00\"}");
	}
	begin = strchr(r->limits, '{') + 1;
	end = strrchr(r->limits, '}');
	if (value_first(&v, v.items)) {
		buf_puts(body, ",");
		buf_add(body, begin, (size_t)(end - begin));
	}
	values_free(&v);
	return 0;
}

static int put_request(const struct remote *r, struct buf *body, struct ward_err *e)
{
	struct json j = { .out = body };
	uint64_t ms = 0;

	if (!r->role || !r->ttl || units_parse_seconds(r->ttl, &ms) < 0 || ms < 1000) {
		ward_fail(e, EINVAL, "a token needs a role and the time that it is good for");
		return ward_remedy(e, "for instance --role runner --ttl 15m");
	}
	json_begin_object(&j, NULL);
	json_string(&j, "role", r->role);
	json_uint(&j, "ttl", ms / 1000);
	if (r->name)
		json_string(&j, "name", r->name);
	if (r->sandbox)
		json_string(&j, "sandboxID", r->sandbox);
	if (add_limits(r, body, e) < 0)
		return -EINVAL;
	json_end_object(&j);
	return body->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

static void put_json(const struct values *v, const struct value *t, struct json *j)
{
	static const char *const names[] = {
		"id",    "kind",      "owner",     "role",      "name",
		"token", "sandboxID", "createdAt", "expiresAt", "hours"
	};

	json_begin_object(j, NULL);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (value_get(v, t, names[i]))
			json_string(j, names[i], value_text(v, t, names[i]));
	json_end_object(j);
}

static int create(struct remote *r)
{
	struct ward_err e = { 0 };
	struct values v = { 0 };
	auto_buf body = { 0 }, out = { 0 };
	struct json j = { .out = &out };

	if (put_request(r, &body, &e) < 0)
		return say_error(&e, r->json, EXIT_USAGE);
	if (http_values(r->http, "POST", "/ward/v1/tokens", NULL, buf_text(&body), &v, &e) < 0)
		return remote_fail(r, &e);
	if (r->json)
		put_json(&v, v.items, &j);
	else
		text_escape(&out, value_text(&v, v.items, "token"));
	buf_puts(&out, "\n");
	values_free(&v);
	return say_out(&out, EXIT_FINE);
}

static void put_row(const struct values *v, const struct value *t, struct buf *out)
{
	static const struct {
		const char *key;
		int width;
	} columns[] = {
		{ "id", 13 }, { "kind", 6 }, { "role", 9 }, { "owner", 12 }, { "name", 16 }
	};
	auto_buf end = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
		auto_buf cell = { 0 };

		text_escape(&cell, value_text(v, t, columns[i].key));
		buf_printf(out, "%-*.64s ", columns[i].width, cell.len ? buf_text(&cell) : "-");
	}
	text_escape(&end, value_text(v, t, "expiresAt"));
	buf_printf(out, "%.40s\n", end.len ? buf_text(&end) : "never");
}

static int list(struct remote *r)
{
	struct ward_err e = { 0 };
	struct values v = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	if (http_values(r->http, "GET", "/ward/v1/tokens", NULL, NULL, &v, &e) < 0)
		return remote_fail(r, &e);
	if (r->json)
		json_begin_list(&j, "tokens");
	else
		buf_printf(&out, "%-13s %-6s %-9s %-12s %-16s %s\n", "ID", "KIND", "ROLE", "OWNER",
			   "NAME", "EXPIRES");
	for (const struct value *t = value_first(&v, v.items); t; t = value_next(&v, t))
		if (r->json)
			put_json(&v, t, &j);
		else
			put_row(&v, t, &out);
	if (r->json)
		json_end_list(&j);
	values_free(&v);
	return say_out(&out, EXIT_FINE);
}

static int drop(struct remote *r)
{
	struct ward_err e = { 0 };
	auto_buf path = { 0 };

	buf_puts(&path, "/ward/v1/tokens/");
	http_quote(&path, r->words[1]);
	if (http_call(r->http, "DELETE", buf_text(&path), NULL, NULL, NULL, &e) < 0)
		return remote_fail(r, &e);
	return EXIT_FINE;
}

int remote_token(struct remote *r)
{
	struct ward_err e = { 0 };

	if (strcmp(r->words[0], "create") == 0 && r->word_count == 1)
		return create(r);
	if (strcmp(r->words[0], "ls") == 0 && r->word_count == 1)
		return list(r);
	if (strcmp(r->words[0], "revoke") == 0 && r->word_count == 2)
		return drop(r);
	ward_fail(&e, EINVAL, "token create, token ls, or token revoke ID");
	return say_error(&e, r->json, EXIT_USAGE);
}
