/* What other scanners say of changes, as findings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "review/look_other.h"

#define DIR "/srv/changes"

static int sarif(const char *text, struct look_findings *ret)
{
	return look_other_sarif((const uint8_t *)text, strlen(text), "tool", DIR, ret);
}

static void expect(const struct look_findings *f, size_t at, enum look_severity severity,
		   const char *rule, const char *path, uint64_t line, const char *title)
{
	assert_true(at < f->len);
	assert_int_equal(f->items[at].severity, severity);
	assert_string_equal(f->items[at].rule, rule);
	assert_string_equal(f->items[at].path, path);
	assert_int_equal(f->items[at].line, line);
	assert_string_equal(f->items[at].title, title);
}

#define PLACE(uri, line)                                                                           \
	"\"locations\":[{\"physicalLocation\":{\"region\":{\"startLine\":" line                    \
	"},\"artifactLocation\":{\"uri\":\"" uri "\"}}}]"

static void test_sarif(void **state)
{
	struct look_findings f = { 0 };

	(void)state;
	assert_int_equal(
		sarif("{\"runs\":[{\"tool\":{},\"results\":["
		      "{\"ruleId\":\"a\",\"level\":\"error\",\"message\":{\"text\":\"bad\\nx\"}"
		      "," PLACE("file:///srv/changes/d/a.c",
				"7") "},"
				     "{\"message\":{\"id\":\"x\"},\"x\":[{}]," PLACE(
					     "srv/changes/b", "1.5") "},"
								     "{\"level\":\"note\","
								     "\"ruleId\":"
								     "\"\\u001b[2J\"}]},"
								     "{\"results\":[]}]}",
		      &f),
		0);
	assert_int_equal(f.len, 3);
	expect(&f, 0, LOOK_HIGH, "tool: a", "d/a.c", 7, "bad");
	expect(&f, 1, LOOK_MEDIUM, "tool: finding", "b", 1, "no message");
	assert_int_equal(f.items[2].severity, LOOK_LOW);
	assert_null(strchr(f.items[2].rule, '\x1b'));
	look_clear(&f);
}

/* What is no SARIF, or has no results, is not "nothing found". */
static void test_no_sarif(void **state)
{
	static const char *const texts[] = { "",
					     "{}",
					     "[]",
					     "{\"runs\":[]}",
					     "{\"runs\":{}}",
					     "{\"runs\":[{}]}",
					     "{\"runs\":[{\"results\":[]}]} x",
					     "{\"runs\":[{\"results\":[]}],\"runs\":[]}",
					     "{\"runs\":[{\"results\":{}}]}",
					     "{\"runs\":[{\"results\":[1]}]}",
					     "{\"runs\":[{\"results\":[{\"ruleId\":\"a\"" };
	struct look_findings f = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_int_equal(sarif(texts[i], &f), -EINVAL);
	assert_int_equal(sarif("{\"runs\":[{\"results\":[]}]}", &f), 0);
	assert_int_equal(f.len, 0);
}

static void test_lines(void **state)
{
	static const char text[] = DIR "/a: b/x.com: Eicar-Signature FOUND\n" DIR "/y: OK\n"
				       "LibClamAV Warning: old\nz: Other.X FOUND";
	struct look_findings f = { 0 };

	(void)state;
	assert_int_equal(look_other_lines((const uint8_t *)text, strlen(text), "clamscan", DIR, &f),
			 0);
	assert_int_equal(f.len, 2);
	expect(&f, 0, LOOK_HIGH, "clamscan: Eicar-Signature", "a: b/x.com", 0,
	       "found by its signature");
	expect(&f, 1, LOOK_HIGH, "clamscan: Other.X", "z", 0, "found by its signature");
	look_clear(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sarif),
		cmocka_unit_test(test_no_sarif),
		cmocka_unit_test(test_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
