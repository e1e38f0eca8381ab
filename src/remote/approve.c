/*
 * Questions of a server's sandboxes: approve. In: the list; an id and an answer. Out: what
 * `ward approve` prints. The server has escaped the texts; they are escaped here again, because a
 * server is not trusted.
 */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "policy/units.h"
#include "remote/http.h"

static void put(const struct values *v, const struct value *q, struct buf *out)
{
	static const struct {
		const char *key, *text;
	} more[] = { { "rule", "the rule that asks" }, { "process", "asked by" } };
	const struct value *details = value_get(v, q, "details");
	auto_buf id = { 0 }, subject = { 0 };

	text_escape(&id, value_text(v, q, "id"));
	text_escape(&subject, value_text(v, q, "subject"));
	buf_printf(out, "%s  %s", buf_text(&id), buf_text(&subject));
	if (value_uint(v, q, "waiting") > 1)
		buf_printf(out, "  (%llu connections)",
			   (unsigned long long)value_uint(v, q, "waiting"));
	buf_printf(out, "  %llus left\n", (unsigned long long)value_uint(v, q, "secondsLeft"));
	for (const struct value *at = value_first(v, details); at; at = value_next(v, at)) {
		auto_buf line = { 0 };

		text_escape(&line, value_own_text(v, at));
		buf_printf(out, "    %s\n", buf_text(&line));
	}
	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		auto_buf line = { 0 };

		text_escape(&line, value_text(v, q, more[i].key));
		if (line.len)
			buf_printf(out, "    %s: %s\n", more[i].text, buf_text(&line));
	}
}

static void put_json(const struct values *v, const struct value *q, struct json *j)
{
	static const char *const texts[] = { "kind", "subject", "host" };
	const struct value *details = value_get(v, q, "details");

	json_begin_object(j, NULL);
	json_string(j, "id", value_text(v, q, "id"));
	json_string(j, "sandbox", value_text(v, q, "sandboxID"));
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		json_string(j, texts[i], value_text(v, q, texts[i]));
	json_uint(j, "port", value_uint(v, q, "port"));
	json_uint(j, "count", value_uint(v, q, "waiting"));
	json_uint(j, "left_ms", 1000 * (value_uint(v, q, "secondsLeft") & 0xffffffff));
	json_string(j, "rule", value_text(v, q, "rule"));
	json_begin_array(j, "details");
	for (const struct value *at = value_first(v, details); at; at = value_next(v, at))
		json_string(j, NULL, value_own_text(v, at));
	json_end_array(j);
	json_end_object(j);
}

static int list(struct remote *r)
{
	struct ward_err e = { 0 };
	struct values v = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	if (http_values(r->http, "GET", "/ward/v1/approvals", NULL, NULL, &v, &e) < 0)
		return remote_fail(r, &e);
	if (r->json) {
		json_begin_object(&j, NULL);
		json_begin_array(&j, "questions");
	}
	for (const struct value *q = value_first(&v, v.items); q; q = value_next(&v, q))
		if (r->json)
			put_json(&v, q, &j);
		else
			put(&v, q, &out);
	if (r->json) {
		json_end_array(&j);
		json_end_object(&j);
		buf_puts(&out, "\n");
	} else if (!out.len) {
		buf_puts(&out, "no question waits for an answer\n");
	}
	values_free(&v);
	return say_out(&out, EXIT_FINE);
}

static int read_answer(const struct remote *r, struct buf *body, struct ward_err *e)
{
	uint64_t ms = 0;

	if (r->once + r->for_run + r->deny + (r->for_time != NULL) != 1) {
		ward_fail(e, EINVAL, "one answer is needed");
		return ward_remedy(e, "--once, --run, --for TIME or --deny");
	}
	if (r->for_time &&
	    (units_parse_seconds(r->for_time, &ms) < 0 || ms < 1000 || ms > 86400000)) {
		ward_fail(e, EINVAL, "--for %.80s: expected a time from a second to a day",
			  r->for_time);
		return ward_remedy(e, "for instance --for 10m");
	}
	if (r->for_time)
		buf_printf(body, "{\"answer\":\"time\",\"seconds\":%llu}",
			   (unsigned long long)ms / 1000);
	else
		buf_printf(body, "{\"answer\":\"%s\"}",
			   r->once      ? "once"
			   : r->for_run ? "run"
					: "deny");
	return 0;
}

int remote_approve(struct remote *r)
{
	struct ward_err e = { 0 };
	auto_buf body = { 0 }, path = { 0 };

	if (!r->word_count && !(r->once || r->for_run || r->deny || r->for_time))
		return list(r);
	if (!r->word_count)
		ward_fail(&e, EINVAL, "which question is answered?");
	if (!r->word_count || read_answer(r, &body, &e) < 0)
		return say_error(&e, r->json, EXIT_USAGE);
	buf_puts(&path, "/ward/v1/approvals/");
	http_quote(&path, r->words[0]);
	if (http_call(r->http, "POST", buf_text(&path), NULL, buf_text(&body), NULL, &e) < 0)
		return remote_fail(r, &e);
	return EXIT_FINE;
}
