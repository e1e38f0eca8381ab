/* Taking parts out of a document: what goes with them, that everything else stays as it was, and
 * what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "policy/cut.h"

struct row {
	const char *name, *before, *ways, *after; /* after NULL: refused */
};

#define LIST "a:\n  - x  # one\n  # two\n  - y\n  - z\nb: 1\n"

static const struct row rows[] = {
	{ "w.yaml", LIST, "a/0", "a:\n  # two\n  - y\n  - z\nb: 1\n" },
	{ "w.yaml", LIST, "a/2", "a:\n  - x  # one\n  # two\n  - y\nb: 1\n" },
	{ "w.yaml", LIST, "a/2\na/0", "a:\n  # two\n  - y\nb: 1\n" },
	{ "w.yaml", LIST, "a/0\na/1\na/2", "a: []\nb: 1\n" },
	{ "w.yaml", LIST, "a", "b: 1\n" },
	{ "w.yaml", LIST, "a/0\na/0", "a:\n  # two\n  - y\n  - z\nb: 1\n" },
	{ "w.yaml", "a: # why\n- x\n", "a/0", "a: [] # why\n" },
	{ "w.yaml", "\"a\\\" :\" :\n  - x\n", "a\" :/0", "\"a\\\" :\" : []\n" },
	{ "w.yaml", "'it''s':\n  - x\n", "it's/0", "'it''s': []\n" },
	{ "w.yaml", "a: [x, y, z]\n", "a/1", "a: [x, z]\n" },
	{ "w.yaml", "a: [x, y, z]\n", "a/1\na/2", "a: [x]\n" },
	{ "w.yaml", "a: [x, y, z]\n", "a/0\na/1", "a: [z]\n" },
	{ "w.yaml", "a: [x]\n", "a/0", "a: []\n" },
	{ "w.yaml", "a: [\n  x, # one\n  y, # two\n]\n", "a/0", "a: [\n  y, # two\n]\n" },
	{ "w.yaml", "a: [é, ü]\nb: [x, y]\n", "b/0", "a: [é, ü]\nb: [y]\n" },
	{ "w.yaml", "a:\n  - {path: x, mode: read_write}\n", "a/0/mode", "a:\n  - {path: x}\n" },
	{ "w.yaml", "a:\n  - path: x\n    mode: rw\n", "a/0/mode", "a:\n  - path: x\n" },
	{ "w.yaml", "a:\n  - mode: rw\n    path: x\n", "a/0/mode", "a:\n  - path: x\n" },
	{ "w.yaml", "a:\n  - mode: rw\n", "a/0/mode", NULL },
	{ "w.yaml", "a:\n  - host: x\n    ports:\n      - 1\n      - 2\n  - y\n", "a/0/ports/1",
	  "a:\n  - host: x\n    ports:\n      - 1\n  - y\n" },
	{ "w.yaml", "a:\n  - host: x\n    ports:\n      - 1\n      - 2\n  - y\n", "a/0",
	  "a:\n  - y\n" },
	{ "w.yaml", "a:\n  - |\n    x\n    y\n  - z\n", "a/0", "a:\n  - z\n" },
	{ "w.yaml", "a:\n  -\n    x: 1\n  - z\n", "a/0", NULL },
	{ "w.yaml", "a:\r\n  - x\r\n  - y\r\n", "a/0", "a:\r\n  - y\r\n" },
	{ "w.yaml", "a:\n  - x\n  - y", "a/1", "a:\n  - x\n" },
	{ "w.yaml", "t:\n  one:\n    run: [x]\n  two:\n    run: [y]\n", "t/one",
	  "t:\n  two:\n    run: [y]\n" },
	{ "w.yaml", "t:\n  one:\n    run: [x]\n", "t/one", "t: {}\n" },
	{ "w.json", "{\"a\": [\"x\", {\"b\": 1, \"c\": [2, 3]}], \"d\": {\"e\": 1}}\n",
	  "a/1/c/0\nd/e", "{\"a\": [\"x\", {\"b\": 1, \"c\": [3]}], \"d\": {}}\n" },
	{ "w.json", "{\"a\": 1, \"b\": 2}", "a\nb", "{}" },
	{ "w.yaml", LIST, "", LIST },
};

static void split(const char *text, struct strv *ret)
{
	while (*text) {
		size_t n = strcspn(text, "\n");

		strv_addf(ret, "%.*s", (int)n, text);
		text += n + (text[n] == '\n');
	}
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		struct ward_err e = { 0 };
		auto_strv ways = { 0 };
		auto_buf out = { 0 };
		int r;

		split(row->ways, &ways);
		r = document_cut(row->name, (const uint8_t *)row->before, strlen(row->before),
				 &ways, &out, &e);
		if (!row->after) {
			assert_int_equal(r, -EINVAL);
			assert_int_equal(out.len, 0);
			continue;
		}
		if (r != 0)
			fail_msg("row %zu: %d: %s", i, r, e.why);
		assert_string_equal(buf_text(&out), row->after);
	}
}

static void test_what_is_not_there(void **state)
{
	static const char *const ways[] = { "c", "a/3", "a/-1", "a/00", "a/x", "a/0/x", "b/0", "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
		struct ward_err e = { 0 };
		auto_strv list = { 0 };
		auto_buf out = { 0 };

		strv_add(&list, ways[i]);
		assert_int_equal(document_cut("w.yaml", (const uint8_t *)LIST, strlen(LIST), &list,
					      &out, &e),
				 -ENOENT);
		assert_int_equal(out.len, 0);
	}
}

static void test_what_cannot_be_read(void **state)
{
	static const char *const texts[] = { "", "# nothing\n", "a: [\n", "a: &x 1\n" };
	auto_strv list = { 0 };

	(void)state;
	strv_add(&list, "a");
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct ward_err e = { 0 };
		auto_buf out = { 0 };

		assert_true(document_cut("w.yaml", (const uint8_t *)texts[i], strlen(texts[i]),
					 &list, &out, &e) < 0);
		assert_int_equal(out.len, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows),
					    cmocka_unit_test(test_what_is_not_there),
					    cmocka_unit_test(test_what_cannot_be_read) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
