/* Sessions with a server that is not trusted, and the results that come out of them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "mcp/remote.h"
#include "mcp/result.h"

#define INFO(revision)                                                                             \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"" revision                \
	"\",\"capabilities\":{\"tools\":{}}}}\n"

struct heard {
	size_t lists, tools, listed, answers, refused;
	size_t last_call;
	bool failed;
};

static void info(unused_arg void *state, unused_arg struct mcp_span result)
{
}

static void list_begins(void *state)
{
	((struct heard *)state)->lists++;
}

static void tool(void *state, unused_arg struct mcp_span span)
{
	((struct heard *)state)->tools++;
}

static void listed(void *state)
{
	((struct heard *)state)->listed++;
}

static void answer(void *state, size_t call, bool failed, unused_arg struct mcp_span body)
{
	struct heard *h = state;

	h->answers++;
	h->last_call = call;
	h->failed = failed;
}

static void refused(void *state, unused_arg const char *method)
{
	((struct heard *)state)->refused++;
}

static struct remote_sink sink_of(struct heard *h)
{
	return (struct remote_sink){ h, info, list_begins, tool, listed, answer, refused };
}

static void say(struct mcp_remote *u, struct heard *h, const char *text)
{
	struct remote_sink sink = sink_of(h);

	remote_add(u, &sink, text, strlen(text));
}

static void begin_ready(struct mcp_remote *u, struct heard *h)
{
	*h = (struct heard){ 0 };
	remote_begin(u);
	say(u, h, INFO("2025-06-18"));
	say(u, h, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[{},{}]}}\n");
	assert_int_equal(u->state, REMOTE_READY);
}

static size_t call(struct mcp_remote *u)
{
	struct mcp_span nothing = { (const uint8_t *)"{}", 2 };
	size_t ret = 0;

	assert_int_equal(remote_call(u, "x", nothing, &ret), 0);
	return ret;
}

static void test_pages(unused_arg void **state)
{
	struct mcp_remote u;
	struct heard h = { 0 };

	remote_begin(&u);
	assert_non_null(strstr(u.out.data, "initialize"));
	say(&u, &h, INFO("2024-11-05"));
	say(&u, &h,
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[{}],"
	    "\"nextCursor\":\"a\\\"b\"}}\n");
	assert_non_null(strstr(u.out.data, "\"cursor\":\"a\\\"b\""));
	say(&u, &h, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"tools\":[{}]}}\n");
	assert_int_equal(h.tools, 2);
	assert_int_equal(h.listed, 1);
	say(&u, &h, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n");
	assert_int_equal(u.state, REMOTE_LISTING);
	assert_int_equal(h.lists, 2);
	remote_free(&u);
}

static void test_broken(unused_arg void **state)
{
	static const char *const rows[] = {
		INFO("1999-01-01"),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"no\"}}\n",
		INFO("2025-11-25") "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n",
		INFO("2025-11-25") "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[1]}}\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct mcp_remote u;
		struct heard h = { 0 };

		remote_begin(&u);
		say(&u, &h, rows[i]);
		assert_int_equal(u.state, REMOTE_BROKEN);
		assert_non_null(u.why);
		remote_free(&u);
	}
}

/* A list that never ends, a list that always changes, lines without end, nothing that is read. */
static void test_bounds(unused_arg void **state)
{
	static char junk[REMOTE_OUT_MAX];
	struct mcp_remote u;
	struct heard h = { 0 };
	char line[160];

	remote_begin(&u);
	say(&u, &h, INFO("2025-11-25"));
	for (int id = 2; u.state == REMOTE_LISTING && id < 1000; id++) {
		snprintf(line, sizeof(line),
			 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"tools\":[],"
			 "\"nextCursor\":\"x\"}}\n",
			 id);
		say(&u, &h, line);
	}
	assert_string_equal(u.why, "it lists tools without end");
	remote_free(&u);
	begin_ready(&u, &h);
	for (int id = 3; u.state != REMOTE_BROKEN && id < 1000; id++) {
		snprintf(line, sizeof(line),
			 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n"
			 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"tools\":[]}}\n",
			 id);
		say(&u, &h, line);
	}
	assert_string_equal(u.why, "its list of tools changes without end");
	remote_free(&u);
	begin_ready(&u, &h);
	memset(junk, 'x', sizeof(junk) - 1);
	say(&u, &h, junk);
	assert_string_equal(u.why, "it sent a message of more than 4 MiB");
	remote_free(&u);
	begin_ready(&u, &h);
	while (u.state == REMOTE_READY)
		say(&u, &h, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n");
	assert_string_equal(u.why, "it does not read what it is sent");
	remote_free(&u);
}

static void test_calls(unused_arg void **state)
{
	struct mcp_remote u;
	struct heard h;
	size_t a, b;

	begin_ready(&u, &h);
	a = call(&u);
	b = call(&u);
	say(&u, &h,
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n"
	    "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n"
	    "{\"jsonrpc\":\"2.0\",\"id\":\"3\",\"result\":{}}\n"
	    "{\"jsonrpc\":\"2.0\",\"id\":-3,\"result\":{}}\nno JSON\n"
	    "{\"jsonrpc\":\"2.0\",\"id\":3,\"id\":4,\"result\":{}}\n");
	assert_int_equal(h.answers, 0);
	say(&u, &h, "{\"jsonrpc\":\"2.0\",\"id\":4,\"error\":{\"code\":1,\"message\":\"x\"}}\n");
	assert_true(h.answers == 1 && h.failed && h.last_call == b);
	remote_drop(&u, a);
	assert_non_null(strstr(u.out.data, "notifications/cancelled"));
	assert_int_equal(remote_open(&u, true), 1);
	say(&u, &h, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\n"); /* too late */
	assert_int_equal(h.answers, 1);
	assert_int_equal(remote_open(&u, true), 0);
	say(&u, &h, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\n"); /* and once more */
	assert_int_equal(call(&u), a); /* the place is used again, with another id */
	say(&u, &h, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\n");
	assert_int_equal(h.answers, 1);
	say(&u, &h, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"roots/list\"}\n");
	assert_int_equal(h.refused, 1);
	remote_free(&u);
}

static void test_results(unused_arg void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "{\"content\":[]}", "\"content\":[],\"isError\":false" },
		{ "{\"content\":[{\"type\":\"text\",\"text\":\"a\\nb\",\"annotations\":{}}],"
		  "\"isError\":true,\"_meta\":{},\"x\":1}",
		  "\"content\":[{\"type\":\"text\",\"text\":\"a\\u000ab\"}],"
		  "\"isError\":true" },
		{ "{\"content\":[{\"type\":\"image\",\"data\":\"aGk=\",\"mimeType\":\"a/b\"}],"
		  "\"structuredContent\":{\"a\":[1,null,{\"b\":\"c\"}]}}",
		  "\"content\":[{\"type\":\"image\",\"data\":\"aGk=\",\"mimeType\":\"a/b\"}],"
		  "\"structuredContent\":{\"a\":[1,null,{\"b\":\"c\"}]},\"isError\":false" },
		{ "{\"content\":[],\"structuredContent\":[1]}",
		  "\"content\":[],\"isError\":false" },
		{ "{}", NULL },
		{ "{\"content\":{}}", NULL },
		{ "{\"content\":[],\"structuredContent\":{\"a\\u200b\":1}}", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct mcp_span in = { (const uint8_t *)rows[i].in, strlen(rows[i].in) };
		struct mcp_result r;
		const char *why;

		assert_int_equal(mcp_result_read(in, &r, &why), rows[i].out != NULL);
		if (rows[i].out)
			assert_string_equal(buf_text(&r.members), rows[i].out);
		mcp_result_free(&r);
	}
}

static void test_hidden(unused_arg void **state)
{
	static const char in[] =
		"{\"content\":[{\"type\":\"text\",\"text\":\"a\\u001b[2J\\u202e\"},"
		"{\"type\":\"odd\"},{\"type\":\"image\",\"data\":\"<>\","
		"\"mimeType\":\"x\"},7]}";
	struct mcp_result r;
	const char *why, *at;
	size_t count = 0;

	assert_true(mcp_result_read((struct mcp_span){ (const uint8_t *)in, sizeof(in) - 1 }, &r,
				    &why));
	assert_int_equal(r.hidden, 1);
	assert_non_null(strstr(r.members.data, "a\\\\x1b[2J\\\\u{202e}"));
	assert_non_null(strstr(r.members.data, "are shown as escapes"));
	assert_non_null(strstr(r.text.data, "\x1b[2J")); /* secrets are looked for in what came */
	for (at = r.members.data; (at = strstr(at, "was left out")); at++)
		count++;
	assert_int_equal(count, 3);
	mcp_result_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages),   cmocka_unit_test(test_broken),
		cmocka_unit_test(test_bounds),  cmocka_unit_test(test_calls),
		cmocka_unit_test(test_results), cmocka_unit_test(test_hidden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
