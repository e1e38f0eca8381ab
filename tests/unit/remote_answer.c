/* What ward-remote reads of a server: values (value.h) and streams (stream.h). */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <string.h>

#include "remote/stream.h"
#include "remote/value.h"

static int read_text(const char *text, struct values *v)
{
	return values_read((const uint8_t *)text, strlen(text), v);
}

static void reads_values(void **state)
{
	struct values v;
	const struct value *list;

	(void)state;
	assert_int_equal(
		read_text("{\"a\":\"\\u00e9\\n\",\"n\":12,\"s\":\"34\",\"neg\":-5,\"t\":true,"
			  "\"l\":[1,\"x\",{}],\"at\":\"2026-01-02T03:04:05.6Z\"}",
			  &v),
		0);
	assert_string_equal(value_text(&v, v.items, "a"), "\xc3\xa9\n");
	assert_int_equal(value_uint(&v, v.items, "n"), 12);
	assert_int_equal(value_uint(&v, v.items, "s"), 34);
	assert_int_equal(value_uint(&v, v.items, "neg"), 0);
	assert_true(value_bool(&v, v.items, "t"));
	assert_true(value_time_ms(&v, v.items, "at") == 1767323045600ull);
	list = value_get(&v, v.items, "l");
	assert_string_equal(value_own_text(&v, value_first(&v, list)), "1");
	assert_string_equal(value_own_text(&v, value_next(&v, value_first(&v, list))), "x");
	/* what is not there, or of another kind, reads as nothing */
	assert_string_equal(value_text(&v, v.items, "n"), "");
	assert_string_equal(value_text(&v, list, "n"), "");
	assert_string_equal(value_text(&v, NULL, "n"), "");
	assert_int_equal(value_time_ms(&v, v.items, "a"), 0);
	assert_false(value_bool(&v, v.items, "n"));
	values_free(&v);
}

static void refuses(void **state)
{
	static const char *const bad[] = { "",      "{",    "[1,]",       "{\"a\":1,\"a\":2}",
					   "\xff",  "1 2",  "{\"a\"}",    "\"\\ud800\"",
					   "nulll", "[1]]", "\"\\u0000\"" };
	char deep[201];
	struct values v;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_not_equal(read_text(bad[i], &v), 0);
	memset(deep, '[', 100);
	memset(deep + 100, ']', 100);
	deep[200] = '\0';
	assert_int_not_equal(read_text(deep, &v), 0);
}

static void cuts_streams(void **state)
{
	static const uint8_t two[] = { 0, 0, 0, 0, 2, '{', '}', 2, 0, 0, 0, 0 };
	static const uint8_t large[] = { 0, 0xff, 0xff, 0xff, 0xff }, odd[] = { 1, 0, 0, 0, 0 };
	struct stream_message m;

	(void)state;
	for (size_t n = 0; n < 7; n++)
		assert_int_equal(stream_read(two, n, &m), 0);
	assert_int_equal(stream_read(two, sizeof(two), &m), 1);
	assert_int_equal(m.used, 7);
	assert_int_equal(m.n, 2);
	assert_int_equal(stream_read(two + 7, 5, &m), 1);
	assert_int_equal(m.flags, STREAM_END);
	assert_int_equal(stream_read(large, sizeof(large), &m), -1);
	assert_int_equal(stream_read(odd, sizeof(odd), &m), -1);
}

static void reads_ends(void **state)
{
	static const struct {
		const char *text;
		int code;
	} ends[] = {
		{ "{\"exited\":true,\"exitCode\":3}", 3 },
		{ "{\"exited\":true,\"exitCode\":\"300\"}", 44 },
		{ "{\"exited\":false,\"exitCode\":-1,\"status\":\"signal: killed\"}", 137 },
		{ "{\"status\":\"signal: terminated\"}", 143 },
		{ "{\"status\":\"signal: Segmentation fault\"}", 139 },
		{ "{}", 137 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct values v;

		assert_int_equal(read_text(ends[i].text, &v), 0);
		assert_int_equal(stream_exit_code(&v, v.items), ends[i].code);
		values_free(&v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_values),
		cmocka_unit_test(refuses),
		cmocka_unit_test(cuts_streams),
		cmocka_unit_test(reads_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
