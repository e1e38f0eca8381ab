/* MCP's messages: what is read, what is refused, and how an id comes back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "mcp/lines.h"
#include "mcp/say.h"

static int read_text(const char *text, struct mcp_message *ret)
{
	static struct mcp_parts parts;
	const char *why = NULL;
	int r = mcp_split((const uint8_t *)text, strlen(text), &parts, &why);

	if (r == 0)
		r = mcp_read(parts.items[0], ret, &why);
	assert_true(r == 0 || why);
	return r;
}

static void test_kinds(unused_arg void **state)
{
	static const struct {
		const char *text;
		enum mcp_kind kind;
		const char *id, *method;
	} rows[] = {
		{ "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\"}", MCP_REQUEST, "0", "ping" },
		{ " {\"method\":\"a/b\",\"params\":{},\"id\":\"x\\u0041\",\"jsonrpc\":\"2.0\"} ",
		  MCP_REQUEST, "\"xA\"", "a/b" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"ping\"}", MCP_REQUEST, "\"\"",
		  "ping" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":-9007199254740993,\"method\":\"p\"}", MCP_REQUEST,
		  "-9007199254740993", "p" },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"more\":[1]}", MCP_NOTIFICATION, "",
		  "n" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":1}}", MCP_RESULT, "7", "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1}}", MCP_FAILURE, "null",
		  "" },
	};
	struct mcp_message m;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(read_text(rows[i].text, &m), 0);
		assert_int_equal(m.kind, rows[i].kind);
		assert_string_equal(m.id, rows[i].id);
		assert_string_equal(m.method, rows[i].method);
	}
}

static void test_refused(unused_arg void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *id; /* that the error is answered with */
	} rows[] = {
		{ "", MCP_PARSE, "" },
		{ "nonsense", MCP_PARSE, "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"p\"}", MCP_PARSE, "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\",\"params\":{\"a\":{\"b\":1,"
		  "\"\\u0062\":2}}}",
		  MCP_PARSE, "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\",\"params\":{\"a\":\"\\u0000\"}}",
		  MCP_PARSE, "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\",\"params\":{\"a\":\"\\ud800\"}}",
		  MCP_PARSE, "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\",\"params\":{\"a\":\"\xff\"}}",
		  MCP_PARSE, "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\"} {}", MCP_PARSE, "" },
		{ "[]", MCP_INVALID, "" },
		{ "7", MCP_INVALID, "" },
		{ "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"p\"}", MCP_INVALID, "1" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"p\"}", MCP_INVALID, "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1e3,\"method\":\"p\"}", MCP_INVALID, "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":-0,\"method\":\"p\"}", MCP_INVALID, "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"p\"}", MCP_INVALID, "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"p\"}", MCP_INVALID, "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"p\"}", MCP_INVALID, "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":4,\"Method\":\"q\",\"method\":\"p\"}", MCP_INVALID,
		  "4" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"p\",\"result\":{}}", MCP_INVALID,
		  "4" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{},\"error\":{}}", MCP_INVALID, "4" },
		{ "{\"jsonrpc\":\"2.0\",\"result\":{}}", MCP_INVALID, "" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"p\",\"params\":[1]}", MCP_INVALID,
		  "4" },
		{ "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"\"}", MCP_INVALID, "4" },
	};
	struct mcp_message m = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		m.id[0] = '\0';
		assert_int_equal(read_text(rows[i].text, &m), rows[i].code);
		assert_string_equal(m.id, rows[i].id);
	}
}

static void test_limits(unused_arg void **state)
{
	static struct mcp_parts parts;
	auto_buf text = { 0 };
	const char *why;

	for (int i = 0; i < 65; i++)
		buf_puts(&text, "[");
	for (int i = 0; i < 65; i++)
		buf_puts(&text, "]");
	assert_int_equal(mcp_split((const uint8_t *)text.data, text.len, &parts, &why), MCP_PARSE);
	text.len = 0;
	buf_puts(&text, "[");
	for (int i = 0; i < MCP_BATCH_MAX; i++)
		buf_puts(&text, i ? ",{}" : "{}");
	buf_puts(&text, "]");
	assert_int_equal(mcp_split((const uint8_t *)text.data, text.len, &parts, &why), 0);
	assert_int_equal(parts.count, MCP_BATCH_MAX);
	assert_true(parts.batch);
	text.data[text.len - 1] = ',';
	buf_puts(&text, "{}]");
	assert_int_equal(mcp_split((const uint8_t *)text.data, text.len, &parts, &why),
			 MCP_INVALID);
}

static void test_values(unused_arg void **state)
{
	struct mcp_message m;
	struct mcp_span v;
	auto_buf text = { 0 };
	uint64_t n;

	assert_int_equal(
		read_text("{\"jsonrpc\":\"2.0\",\"method\":\"p\",\"params\":{\"a\":[1,\n2],"
			  "\"t\":\"x\\ny\",\"n\":12,\"neg\":-1,\"f\":1.0}}",
			  &m),
		0);
	assert_true(mcp_get(m.params, "a", &v));
	mcp_put_value(&text, v);
	assert_string_equal(text.data, "[1, 2]");
	assert_true(mcp_get(m.params, "t", &v) && mcp_is(v, "x\ny") && !mcp_uint(v, 1, &n));
	assert_true(mcp_get(m.params, "n", &v) && mcp_uint(v, 12, &n) && n == 12);
	assert_false(mcp_uint(v, 11, &n));
	assert_true(mcp_get(m.params, "neg", &v) && !mcp_uint(v, 12, &n));
	assert_true(mcp_get(m.params, "f", &v) && !mcp_uint(v, 12, &n));
	assert_false(mcp_get(m.params, "none", &v) || v.n);
}

static void test_lines(unused_arg void **state)
{
	static char large[MCP_BYTES_MAX / 2 + 8];
	struct mcp_lines l = { 0 };
	struct mcp_span line;

	mcp_lines_add(&l, "ab", 2);
	assert_int_equal(mcp_lines_next(&l, &line), 0);
	mcp_lines_add(&l, "c\r\n\n\r\nd\ne", 9);
	assert_int_equal(mcp_lines_next(&l, &line), 1);
	assert_memory_equal(line.at, "abc", line.n);
	assert_int_equal(mcp_lines_next(&l, &line), 1);
	assert_memory_equal(line.at, "d", line.n);
	assert_int_equal(mcp_lines_next(&l, &line), 0);
	memset(large, 'x', sizeof(large));
	mcp_lines_add(&l, large, sizeof(large));
	assert_int_equal(mcp_lines_next(&l, &line), 0);
	mcp_lines_add(&l, large, sizeof(large));
	assert_int_equal(mcp_lines_next(&l, &line), -EMSGSIZE);
	for (int i = 0; i < 8; i++) {
		mcp_lines_add(&l, large, sizeof(large));
		assert_int_equal(mcp_lines_next(&l, &line), 0);
		assert_true(l.bytes.len == 0);
	}
	mcp_lines_add(&l, "xx\nlast\n", 8);
	assert_int_equal(mcp_lines_next(&l, &line), 1);
	assert_memory_equal(line.at, "last", line.n);
	mcp_lines_free(&l);
}

static void test_say(unused_arg void **state)
{
	auto_buf out = { 0 }, result = { 0 };

	buf_puts(&result, "{\"a\":1}");
	mcp_put_result(&out, "\"i\"", &result);
	assert_string_equal(out.data, "{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"result\":{\"a\":1}}");
	out.len = 0;
	mcp_put_error(&out, "", MCP_PARSE, "a \"b\"\n", NULL);
	assert_string_equal(out.data, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,"
				      "\"message\":\"a \\\"b\\\"\\u000a\"}}");
	out.len = 0;
	mcp_put_notification(&out, "n", "{}");
	assert_string_equal(out.data, "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{}}");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),  cmocka_unit_test(test_refused),
		cmocka_unit_test(test_limits), cmocka_unit_test(test_values),
		cmocka_unit_test(test_lines),  cmocka_unit_test(test_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
