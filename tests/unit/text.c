/* Unit test of base/text: escapes, UTF-8, the nearest name. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/text.h"

static void check_escape(const char *in, const char *want)
{
	auto_buf out = { 0 };

	text_escape(&out, in);
	assert_string_equal(buf_text(&out), want);
}

static void test_escape(unused_arg void **state)
{
	check_escape("", "");
	check_escape("plain text, \"quoted\" \\ back", "plain text, \"quoted\" \\ back");
	check_escape("a\nb\tc\rd", "a\\nb\\tc\\rd");
	check_escape("\033[31mred\033]52;c;x\a", "\\x1b[31mred\\x1b]52;c;x\\x07");
	check_escape("\x7f", "\\x7f");
	check_escape("gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f");
	check_escape("\xc2\x9b"
		     "31m",
		     "\\u{009b}31m"); /* C1 CSI */
	check_escape("\xe2\x80\xae"
		     "abc",
		     "\\u{202e}abc"); /* right-to-left override */
	check_escape("\xe2\x80\x8b", "\\u{200b}");
	check_escape("\xff\xc3", "\\xff\\xc3");
	check_escape("\xc0\xaf", "\\xc0\\xaf");          /* overlong */
	check_escape("\xed\xa0\x80", "\\xed\\xa0\\x80"); /* surrogate */
	check_escape("\xf3\xa0\x81\x81", "\\u{e0041}");  /* tag character */
	check_escape("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
	check_escape("\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80");
}

static void test_escape_lines(unused_arg void **state)
{
	static const char text[] = "a\tb\r\n\n\0\033[2J\xc2\x9b\xc3\xbc\xc3";
	auto_buf out = { 0 }, none = { 0 };

	text_escape_lines(&out, text, sizeof(text) - 1);
	assert_string_equal(buf_text(&out), "a\tb\\r\n\n\\x00\\x1b[2J\\u{009b}\xc3\xbc\\xc3");
	text_escape_lines(&none, "", 0);
	assert_int_equal(none.len, 0);
}

static void test_distance(unused_arg void **state)
{
	assert_int_equal(text_distance("", ""), 0);
	assert_int_equal(text_distance("abc", ""), 3);
	assert_int_equal(text_distance("", "abc"), 3);
	assert_int_equal(text_distance("timeout", "tiemout"), 1);
	assert_int_equal(text_distance("TIMEOUT", "timeout"), 0);
	assert_int_equal(text_distance("memory", "memry"), 1);
	assert_int_equal(text_distance("kitten", "sitting"), 3);
}

static void test_nearest(unused_arg void **state)
{
	static const char *const names[] = { "run", "plan", "check", "doctor", "timeout" };
	static const struct {
		const char *name, *want;
	} cases[] = {
		{ "rnu", "run" },
		{ "chekc", "check" },
		{ "docter", "doctor" },
		{ "plam", "plan" },
		{ "timeotu", "timeout" },
		{ "zzzzzz", NULL },
		{ "x", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *best = NULL;
		unsigned distance = UINT_MAX;

		for (size_t k = 0; k < ARRAY_LEN(names); k++)
			text_nearest(cases[i].name, names[k], &best, &distance);
		if (cases[i].want)
			assert_string_equal(best, cases[i].want);
		else
			assert_null(best);
	}
}

static void test_number_after(unused_arg void **state)
{
	static const char status[] = "Name:\tx\nNSpid:\t77\t5\t1\nPPid:\t0\nNone:\t\n";
	static const struct {
		const char *key;
		unsigned place;
		bool there;
		long want;
	} cases[] = {
		{ "\nNSpid:", 0, true, 77 }, { "\nNSpid:", 2, true, 1 },
		{ "\nNSpid:", 3, false, 1 }, { "\nPPid:", 0, true, 0 },
		{ "\nNone:", 0, false, 0 },  { "\nGone:", 0, false, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		long got = -1;

		assert_int_equal(text_number_after(status, cases[i].key, cases[i].place, &got),
				 cases[i].there);
		assert_int_equal(got, cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escape),       cmocka_unit_test(test_escape_lines),
		cmocka_unit_test(test_distance),     cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_number_after),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
