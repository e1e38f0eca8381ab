/* The terminal filter: each row of the table passes, each known attack does not, however it is cut into pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>

#include "base/terminal.h"

/* Filters text in pieces of `step` bytes. */
static char *filter(const char *text, size_t n, size_t step)
{
	struct terminal t = { 0 };
	struct buf out = { 0 };

	for (size_t i = 0; i < n; i += step)
		terminal_filter(&t, text + i, n - i < step ? n - i : step, &out);
	return buf_take(&out);
}

static void expect(const char *text, const char *wanted)
{
	for (size_t step = 1; step <= 7; step++) {
		char *got = filter(text, strlen(text), step);

		assert_string_equal(got, wanted);
		free(got);
	}
}

static void test_text_passes(void **state)
{
	(void)state;
	expect("plain\ttext\r\nn\b\a", "plain\ttext\r\nn\b\a");
	expect("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
	expect("a\xff" "b", "a\xef\xbf\xbd" "b");
	expect("\xc2\x9b" "6n", "\xef\xbf\xbd\xef\xbf\xbd" "6n");	/* CSI as one character */
	expect("\x9b" "6n", "\xef\xbf\xbd" "6n");
	expect("nul\x01\x02\x11\x13\x7f!", "nul!");
}

static void test_rows_pass(void **state)
{
	(void)state;
	expect("\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m");
	expect("\x1b[38:2:1:2:3m\x1b[2J\x1b[10;20H\x1b[K", "\x1b[38:2:1:2:3m\x1b[2J\x1b[10;20H\x1b[K");
	expect("\x1b[?25l\x1b[?1049h\x1b[?1049l\x1b[?25h\x1b" "7\x1b" "8\x1bM", "\x1b[?25l\x1b[?1049h\x1b[?1049l\x1b[?25h\x1b" "7\x1b" "8\x1bM");
	expect("\x1b[2 q", "\x1b[2 q");
}

static void test_attacks_do_not(void **state)
{
	static const char *const attacks[] = {
		"\x1b]52;c;ZXZpbA==\a", "\x1b]52;c;x\x1b\\", "\x1b]0;title\a", "\x1b]4;1;?\a", "\x1b[6n", "\x1b[c",
		"\x1b[>c", "\x1b[=c", "\x1b[21t", "\x1b[5i", "\x1b[?1001h", "\x1b[?1005h", "\x1b[?25;1001h", "\x1b[>1u", "\x1b[?u", "\x1b[=1u",
		"\x1bP$q\"p\x1b\\", "\x1bP+q544e\x1b\\", "\x1b_apc\x1b\\", "\x1b^pm\x1b\\", "\x1bXsos\x1b\\", "\x1bZ", "\033c",
		"\x1b(K", "\x1b#8", "\x1b[4;20h", "\x1b[20h", "\x1b[1\"q", "\x1b[?69h", "\x1b[?5W", "\x1b[0x", "\x1b[?6n",
		"\x05", "\x1b]8;;http://x\x1b\\", "\x1b[?1;2$p", "\x1b%G",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		expect(attacks[i], "");
	expect("a\x1b]0;b\x1b[31mc", "a\x1b[31mc");	/* a new sequence ends the string, as the terminal sees it */
}

static void test_bounded(void **state)
{
	static char longest[100000];
	char *got;

	(void)state;
	memset(longest, '1', sizeof(longest));
	memcpy(longest, "\x1b[", 2);
	got = filter(longest, sizeof(longest), 4096);
	assert_null(strchr(got, 0x1b));
	free(got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_passes),
		cmocka_unit_test(test_rows_pass),
		cmocka_unit_test(test_attacks_do_not),
		cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
