/* Events: one spelling, nothing forged, nothing lost but what is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "event/event.h"

static char line[EVENT_LINE_MAX], scratch[EVENT_LINE_MAX];

static const char *encode(const struct ward_event *v)
{
	size_t n = event_encode(v, line);

	assert_true(n < EVENT_LINE_MAX - EVENT_TAIL);
	assert_int_equal(line[n - 1], '\n');
	line[n - 1] = '\0';
	return line;
}

static void test_line(void **state)
{
	struct ward_event v = event_make(EVENT_CONNECT, ACTION_DENY, "api.example.com:443");

	(void)state;
	v.seq = 12;
	v.time_us = 1763219095123456;
	v.run = "20261115-abcdef";
	event_number(&v, FIELD_PORT, 443);
	event_text(&v, FIELD_HOST, "api.example.com");
	event_text(&v, FIELD_RULE, NULL);
	event_list(&v, FIELD_ARGV, "a\0b c\0", 6);
	event_flag(&v, FIELD_OBSERVED);
	assert_string_equal(encode(&v), "{\"seq\":12,\"time\":\"2025-11-15T15:04:55.123456Z\","
					"\"run\":\"20261115-abcdef\",\"kind\":\"net.connect\","
					"\"action\":\"deny\",\"object\":\"api.example.com:443\","
					"\"observed\":true,\"argv\":[\"a\",\"b c\"],"
					"\"host\":\"api.example.com\",\"port\":443}");
	event_number(&v, FIELD_PORT, 8443);
	assert_int_equal(event_get(&v, FIELD_PORT)->number, 8443);
	assert_null(event_get(&v, FIELD_WHY));
	assert_int_equal(event_severity(&v), SEVERITY_MEDIUM);
}

/* Whatever a sandbox calls its things. */
static void test_hostile(void **state)
{
	static const char name[] = "x\",\"action\":\"allow\"}\n{\"seq\":1\x1b["
				   "2J\xff\xc3\xe2\x80\xae\xf3\xa0\x80\x81\\";
	struct ward_event v = event_make(EVENT_EXEC, ACTION_LOG, name), read;

	(void)state;
	event_bytes(&v, FIELD_EXE, "a\0b", 3);
	encode(&v);
	assert_null(strchr(line, '\n'));
	assert_null(strchr(line, '\x1b'));
	assert_non_null(strstr(line, "\"object\":\"x\\\",\\\"action\\\":\\\"allow\\\"}\\u000a{"
				     "\\\"seq\\\":1\\u001b[2J\xef\xbf\xbd\xef\xbf\xbd"
				     "\\u202e\\udb40\\udc01\\\\\",\"exe\":\"a\\u0000b\"}"));
	assert_true(event_decode(line, strlen(line), scratch, &read, NULL));
	assert_int_equal(read.action, ACTION_LOG);
	assert_int_equal(event_get(&read, FIELD_EXE)->len, 3);
	assert_memory_equal(event_get(&read, FIELD_EXE)->text, "a\0b", 3);
}

static void test_cut(void **state)
{
	size_t n = 1 << 20;
	char *text = malloc(n + 1);
	struct ward_event v = event_make(EVENT_EXEC, ACTION_LOG, NULL), read;

	(void)state;
	memset(text, '\n', n);
	text[n] = '\0';
	for (unsigned f = 0; f < EVENT_FIELDS; f++)
		if (event_field_type((enum event_field)f) == EVENT_TEXT)
			event_bytes(&v, (enum event_field)f, text, n);
	memset(text, 'a', n);
	event_list(&v, FIELD_ARGV, text, n);
	encode(&v);
	assert_non_null(strstr(line, ",\"cut\":true}"));
	assert_true(event_decode(line, strlen(line), scratch, &read, NULL));
	assert_non_null(event_get(&read, FIELD_CUT));
	free(text);
}

static void test_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"{}",
		"{\"seq\":1}",
		"{\"seq\":01,\"time\":\"2026-11-15T15:04:55.123456Z\",\"kind\":\"run.end\","
		"\"action\":\"log\"}",
		"{\"seq\":1,\"time\":\"2026-02-31T15:04:55.123456Z\",\"kind\":\"run.end\","
		"\"action\":\"log\"}",
		"{\"seq\":1,\"time\":\"2026-11-15T15:04:60.123456Z\",\"kind\":\"run.end\","
		"\"action\":\"log\"}",
		"{\"seq\":1,\"time\":\"2026-11-15T15:04:55.123456Z\",\"kind\":\"run.endless\","
		"\"action\":\"log\"}",
		"{\"seq\":1,\"time\":\"2026-11-15T15:04:55.123456Z\",\"kind\":\"run.end\","
		"\"action\":\"log\"} ",
		"{\"seq\":1,\"time\":\"2026-11-15T15:04:55.123456Z\",\"kind\":\"run.end\","
		"\"action\":\"log\",\"exit\":1,\"exit\":1}",
		"{\"seq\":1,\"time\":\"2026-11-15T15:04:55.123456Z\",\"kind\":\"run.end\","
		"\"action\":\"log\",\"exit\":1,\"object\":\"a\"}",
		"{\"seq\":1,\"time\":\"2026-11-15T15:04:55.123456Z\",\"kind\":\"run.end\","
		"\"action\":\"log\",\"object\":\"\\u0041\"}",
		"{\"seq\":1,\"time\":\"2026-11-15T15:04:55.123456Z\",\"kind\":\"run.end\","
		"\"action\":\"log\",\"object\":\"a",
		"{\"seq\":99999999999999999999,\"time\":\"2026-11-15T15:04:55.123456Z\",\"kind\":"
		"\"run.end\",\"action\":\"log\"}",
		"{\"seq\":1,\"time\":\"2026-11-15T15:04:55.123456Z\",\"kind\":\"run.end\","
		"\"action\":\"log\",\"hash\":\"00\"}",
	};
	static const char good[] = "{\"seq\":1,\"time\":\"2026-11-15T15:04:55.123456Z\",\"kind\":"
				   "\"run.end\",\"action\":\"log\",\"exit\":3}";
	struct ward_event v;

	(void)state;
	assert_true(event_decode(good, strlen(good), scratch, &v, NULL));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (event_decode(bad[i], strlen(bad[i]), scratch, &v, NULL))
			fail_msg("taken: %s", bad[i]);
}

static void test_time(void **state)
{
	static const struct {
		uint64_t us;
		const char *text;
	} rows[] = {
		{ 0, "1970-01-01T00:00:00.000000Z" },
		{ 951827696000001, "2000-02-29T12:34:56.000001Z" },
		{ 4102444799999999, "2099-12-31T23:59:59.999999Z" },
	};
	char text[EVENT_TIME_TEXT];
	uint64_t us;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		event_time_text(rows[i].us, text);
		assert_string_equal(text, rows[i].text);
		assert_true(event_time_read(text, strlen(text), &us));
		assert_int_equal(us, rows[i].us);
	}
	for (us = 0; us < 253402300800000000; us += 86399999999 * 31) {
		uint64_t again = 0;

		event_time_text(us, text);
		assert_true(event_time_read(text, strlen(text), &again));
		assert_int_equal(us, again);
	}
}

/* Each name is found as itself, and is what a filter's group is made of. */
static void test_names(void **state)
{
	(void)state;
	for (unsigned k = 0; k < EVENT_KINDS; k++) {
		const char *name = event_kind_name((enum event_kind)k);

		assert_int_equal(event_kind_find(name, strlen(name)), k);
		assert_non_null(strchr(name, '.'));
		assert_true(strlen(name) < 23);
		assert_true(strlen(event_kind_help((enum event_kind)k)) > 10);
		assert_true(event_ocsf_class((enum event_kind)k) > 1000);
	}
	assert_int_equal(event_kind_find("run", 3), EVENT_KINDS);
	assert_int_equal(event_action_find("deny", 4), ACTION_DENY);
}

struct taken {
	struct event_sink sink;
	unsigned count;
};

static void take_event(struct event_sink *s, const struct ward_event *v)
{
	(void)v;
	((struct taken *)(void *)s)->count++;
}

static void test_emit(void **state)
{
	struct taken h = { .sink = { .take = take_event } };
	struct ward_event v = event_make(EVENT_RUN_START, ACTION_LOG, "true");

	(void)state;
	event_emit(NULL, &v);
	event_emit(&h.sink, &v);
	assert_int_equal(h.count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line), cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_cut),  cmocka_unit_test(test_refused),
		cmocka_unit_test(test_time), cmocka_unit_test(test_names),
		cmocka_unit_test(test_emit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
