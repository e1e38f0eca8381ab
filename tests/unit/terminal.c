/* The terminal filter: each row of the table passes, each known attack does not, however it is cut
 * into pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/terminal.h"

#define ESC "\x1b"

/* Filters text in pieces of `step` bytes. */
static char *filter_as(const struct terminal *as, const char *text, size_t n, size_t step)
{
	struct terminal t = *as;
	struct buf out = { 0 };

	for (size_t i = 0; i < n; i += step)
		terminal_filter(&t, text + i, n - i < step ? n - i : step, &out);
	return buf_take(&out);
}

static char *filter(const char *text, size_t n, size_t step)
{
	return filter_as(&(struct terminal){ 0 }, text, n, step);
}

static void expect_as(const struct terminal *as, const char *text, const char *wanted)
{
	for (size_t step = 1; step <= 9; step++) {
		char *got = filter_as(as, text, strlen(text), step);

		assert_string_equal(got, wanted);
		free(got);
	}
}

static void expect(const char *text, const char *wanted)
{
	expect_as(&(struct terminal){ 0 }, text, wanted);
}

static void test_text_passes(void **state)
{
	(void)state;
	expect("plain\ttext\r\nn\b\a", "plain\ttext\r\nn\b\a");
	expect("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
	       "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
	expect("a\xff"
	       "b",
	       "a\xef\xbf\xbd"
	       "b");
	expect("\xc2\x9b"
	       "6n",
	       "\xef\xbf\xbd\xef\xbf\xbd"
	       "6n"); /* CSI as one character */
	expect("\x9b"
	       "6n",
	       "\xef\xbf\xbd"
	       "6n");
	expect("nul\x01\x02\x11\x13\x7f!", "nul!");
}

static void test_rows_pass(void **state)
{
	(void)state;
	expect("\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m");
	expect("\x1b[38:2:1:2:3m\x1b[2J\x1b[10;20H\x1b[K",
	       "\x1b[38:2:1:2:3m\x1b[2J\x1b[10;20H\x1b[K");
	expect("\x1b[?25l\x1b[?1049h\x1b[?1049l\x1b[?25h\x1b"
	       "7\x1b"
	       "8\x1bM",
	       "\x1b[?25l\x1b[?1049h\x1b[?1049l\x1b[?25h\x1b"
	       "7\x1b"
	       "8\x1bM");
	expect("\x1b[2 q", "\x1b[2 q");
}

static void test_attacks_do_not(void **state)
{
	static const char *const attacks[] = {
		"\x1b]52;c;ZXZpbA==\a",
		"\x1b]52;c;x\x1b\\",
		"\x1b]0;title\a",
		"\x1b]4;1;?\a",
		"\x1b[6n",
		"\x1b[c",
		"\x1b[>c",
		"\x1b[=c",
		"\x1b[21t",
		"\x1b[5i",
		"\x1b[?1001h",
		"\x1b[?1005h",
		"\x1b[?25;1001h",
		"\x1b[>1u",
		"\x1b[?u",
		"\x1b[=1u",
		"\x1bP$q\"p\x1b\\",
		"\x1bP+q544e\x1b\\",
		"\x1b_apc\x1b\\",
		"\x1b^pm\x1b\\",
		"\x1bXsos\x1b\\",
		"\x1bZ",
		"\033c",
		"\x1b(K",
		"\x1b#8",
		"\x1b[4;20h",
		"\x1b[20h",
		"\x1b[1\"q",
		"\x1b[?69h",
		"\x1b[?5W",
		"\x1b[0x",
		"\x1b[?6n",
		"\x05",
		"\x1b]8;;http://x\x1b\\",
		"\x1b[?1;2$p",
		"\x1b%G",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		expect(attacks[i], "");
	/* a new sequence ends the string, as the terminal sees it */
	expect("a\x1b]0;b\x1b[31mc", "a\x1b[31mc");
}

/* \xHH and \\ in place; returns the length. */
static size_t decode(char *text)
{
	char *to = text;

	for (const char *at = text; *at; to++) {
		unsigned byte = 0;

		if (at[0] == '\\' && at[1] == 'x' && sscanf(at + 2, "%2x", &byte) == 1) {
			*to = (char)byte;
			at += 4;
		} else {
			at += at[0] == '\\' && at[1] == '\\';
			*to = *at++;
		}
	}
	*to = '\0';
	return (size_t)(to - text);
}

/* tests/data/terminal-hostile.txt: "name | bytes | what may pass". */
static void test_hostile(void **state)
{
	char *path = NULL, line[1024];
	unsigned count = 0;
	FILE *f;

	(void)state;
	assert_true(asprintf(&path, "%s/terminal-hostile.txt", getenv("WARD_TEST_DATA")) > 0);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		char *bytes = strstr(line, " | "), *wanted = bytes ? strstr(bytes + 3, " |") : NULL;

		if (line[0] == '#')
			continue;
		assert_non_null(wanted);
		*wanted = '\0';
		wanted += wanted[2] == ' ' ? 3 : 2;
		wanted[strcspn(wanted, "\n")] = '\0';
		bytes += 3;
		decode(wanted);
		assert_true(decode(bytes) == strlen(bytes));
		expect(bytes, wanted);
		count++;
	}
	fclose(f);
	free(path);
	assert_true(count >= 60);
}

static void test_programs(void **state)
{
	static const char *const passes[] = {
		ESC "[38;2;255;100;0m" ESC "[48;5;17m" ESC "[58:2::1:2:3m" ESC "[4:3mx" ESC "[0m",
		ESC "[?1049h" ESC "[?1h" ESC "=" ESC "[?2004h" ESC "[1;24r" ESC "[?12;25h" ESC
		    "[27m" ESC "[24m" ESC "[H" ESC "[2J",
		ESC "[?1000h" ESC "[?1002h" ESC "[?1003h" ESC "[?1006h" ESC "[?1004h" ESC
		    "[?1006;1000l",
		ESC "(0lqqk" ESC "(B"
		    "\x0e"
		    "x"
		    "\x0f" ESC ")0",
		ESC "[4hx" ESC "[4l" ESC "[!p" ESC "[?5h" ESC "[?5l",
		"a" ESC "[79b",
		ESC "[?2026h" ESC "[3;1H" ESC "[K" ESC "[?2026l",
		"\xe2\x94\x8c\xe2\x94\x80\xe2\x94\x90 \xf0\x9f\xa4\x96",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++)
		expect(passes[i], passes[i]);
	expect(ESC "[?1049h" ESC "[22;0;0t"
		   "x",
	       ESC "[?1049hx"); /* smcup of xterm */
}

/* Where nobody reads what the terminal types, nothing changes what it types. */
static void test_no_input(void **state)
{
	const struct terminal t = { .no_input = true };

	(void)state;
	expect_as(&t, ESC "[?1000h" ESC "[?2004h" ESC "=" ESC "[?1h" ESC "[?25;2004l" ESC "[?25l",
		  ESC "[?25l");
}

/* A terminal that may not know UTF-8 gets no byte that it could take for a control character. */
static void test_bytes_only(void **state)
{
	const struct terminal t = { .bytes_only = true };

	(void)state;
	expect_as(&t, "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xff", "gr\xc3\xbc? ? \xef\xbf\xbd");
}

static void check_undo(const char *text, const char *undo, const char *redo)
{
	struct terminal t = { 0 };
	struct buf out = { 0 }, undone = { 0 }, redone = { 0 };

	terminal_filter(&t, text, strlen(text), &out);
	terminal_undo(&t, false, &undone);
	terminal_redo(&t, &redone);
	assert_string_equal(buf_text(&undone), undo);
	assert_string_equal(buf_text(&redone), redo);
	buf_free(&out);
	buf_free(&undone);
	buf_free(&redone);
}

static void test_undo(void **state)
{
	(void)state;
	check_undo("plain" ESC "[31mred" ESC "[0m" ESC "[m", "", "");
	check_undo(ESC "[31mred", ESC "[m", "");
	check_undo(ESC "[2;5r" ESC "[r" ESC "[2 q" ESC "[0 q", "", "");
	check_undo(ESC "[?1049h" ESC "[?25l" ESC "[?1049l" ESC "[?25h", "", "");
	check_undo(ESC "[?1049h" ESC "[?25l" ESC "[?7l" ESC "[?1006;1003h",
		   ESC "[?1003l" ESC "[?1006l" ESC "[?7h" ESC "[?1049l" ESC "[?25h",
		   ESC "[?25l" ESC "[?1049h" ESC "[?7l" ESC "[?1006h" ESC "[?1003h");
	check_undo(ESC "(0" ESC "(B" ESC "=" ESC ">", "", "");
	check_undo(ESC "(0" ESC "=", ESC "(B\x0f" ESC ">", ESC "=");
}

static void check_answer(const char *text, const char *wanted)
{
	struct terminal t = { .answers = true, .cursor = { .rows = 30, .cols = 100 } };
	struct buf out = { 0 };

	terminal_filter(&t, text, strlen(text), &out);
	t.answer[t.answer_len < sizeof(t.answer) ? t.answer_len : sizeof(t.answer) - 1] = '\0';
	assert_string_equal(t.answer, wanted);
	buf_free(&out);
}

static void test_answers(void **state)
{
	(void)state;
	check_answer("text", "");
	check_answer(ESC "[c", ESC "[?62;22c");
	check_answer(ESC "[0c" ESC "[5n", ESC "[?62;22c" ESC "[0n");
	check_answer(ESC "[1c" ESC "[>c" ESC "[=c" ESC "[21t" ESC "[7n" ESC "[6;1n", "");
	check_answer(ESC "[6n", ESC "[30;1R");
	check_answer("\r\nabc" ESC "[6n", ESC "[30;4R");
	check_answer(ESC "[999;999H" ESC "[6n", ESC "[30;100R");
	check_answer(ESC "[5;7Hab\xe4\xb8\xad" ESC "[2A" ESC "[?6n", ESC "[?3;11R");
	check_answer(ESC "[2;3H" ESC "7\n\n\tx" ESC "8" ESC "[6n", ESC "[2;3R");
}

static void test_bounded(void **state)
{
	static char longest[100000];
	char *got;

	(void)state;
	memset(longest, '1', sizeof(longest));
	memcpy(longest, "\x1b[", 2);
	got = filter(longest, sizeof(longest), 4096);
	assert_string_equal(got, ""); /* all of it is one sequence that never ends */
	free(got);
	memset(longest, ';', sizeof(longest));
	memcpy(longest, "\x1b[", 2);
	memcpy(longest + sizeof(longest) - 4, "mend", 4);
	got = filter(longest, sizeof(longest), 4096);
	assert_string_equal(got, "end");
	free(got);
	for (size_t i = 0; i + 4 <= sizeof(longest); i += 4)
		memcpy(longest + i, "\x1b[6n", 4);
	struct terminal t = { .answers = true };
	struct buf out = { 0 };
	terminal_filter(&t, longest, sizeof(longest), &out); /* answers that nobody takes */
	assert_true(t.answer_len <= sizeof(t.answer));
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_passes),    cmocka_unit_test(test_rows_pass),
		cmocka_unit_test(test_attacks_do_not), cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_programs),       cmocka_unit_test(test_no_input),
		cmocka_unit_test(test_bytes_only),     cmocka_unit_test(test_undo),
		cmocka_unit_test(test_answers),        cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
