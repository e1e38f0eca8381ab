/* The three-way merge of texts, and git's binary form of content. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "base/merge.h"
#include "base/patch_binary.h"

static void merge(const char *base, const char *ours, const char *theirs, const char *wanted,
		  size_t wanted_conflicts)
{
	struct merge_text b = { base, strlen(base), "base" }, o = { ours, strlen(ours), "ours" },
			  t = { theirs, strlen(theirs), "theirs" };
	auto_buf out = { 0 };
	size_t conflicts = 99;

	assert_int_equal(merge_texts(&b, &o, &t, &out, &conflicts), 0);
	assert_string_equal(buf_text(&out), wanted);
	assert_int_equal(conflicts, wanted_conflicts);
}

static void test_clean(void **state)
{
	(void)state;
	merge("", "", "", "", 0);
	merge("a\nb\nc\nd\ne\n", "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n", "A\nb\nc\nd\nE\n", 0);
	merge("a\nb\nc\n", "a\nc\n", "a\nb\nc\nd\n", "a\nc\nd\n", 0);
	merge("a\nb\nc\n", "x\nb\nc\n", "x\nb\nc\n", "x\nb\nc\n", 0);
	merge("a\nb\nc", "0\na\nb\nc", "a\nb\nc\n", "0\na\nb\nc\n", 0);
	merge("a\n", "", "a\n", "", 0);
}

static void test_conflicts(void **state)
{
	(void)state;
	merge("a\nb\nc\n", "a\nx\nc\n", "a\ny\nc\n",
	      "a\n<<<<<<< ours\nx\n||||||| base\nb\n=======\ny\n>>>>>>> theirs\nc\n", 1);
	/* lines that touch, as git has it */
	merge("a\nb\n", "A\nb\n", "a\nB\n",
	      "<<<<<<< ours\nA\nb\n||||||| base\na\nb\n=======\na\nB\n>>>>>>> theirs\n", 1);
	merge("", "x", "y", "<<<<<<< ours\nx\n||||||| base\n=======\ny\n>>>>>>> theirs\n", 1);
}

static void test_binary(void **state)
{
	auto_buf out = { 0 };
	struct patch_binary p;

	(void)state;
	patch_binary_begin(&p, &out, 2); /* as git apply read it */
	patch_binary_add(&p, "\0\1", 2);
	patch_binary_end(&p);
	assert_string_equal(buf_text(&out), "literal 2\nMcmV+d0R8^}0RRI40ssI2\n\n");
}

static void test_names(void **state)
{
	static const char *const rows[][2] = {
		{ "plain", "a/plain" },    { "a b", "a/a b" },         { "trail ", "\"a/trail \"" },
		{ "d /f", "\"a/d /f\"" },  { "q\"", "\"a/q\\\"\"" },   { "n\nl", "\"a/n\\012l\"" },
		{ "\xff", "\"a/\\377\"" }, { "b\\s", "\"a/b\\\\s\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_buf out = { 0 };

		patch_put_name(&out, "a/", rows[i][0]);
		assert_string_equal(buf_text(&out), rows[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_conflicts),
		cmocka_unit_test(test_binary),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
