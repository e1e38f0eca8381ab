/* The screen model: what a terminal shows after text and each sequence of the table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "term/screen.h"

#define ESC "\x1b"

/* The rows as text, each ended by '|'; an empty cell is a '.'. */
static void expect_rows(const struct screen *s, const char *wanted)
{
	char got[4096];
	size_t n = 0;

	for (unsigned row = 0; row < s->rows; row++) {
		const struct cell *line = screen_row(s, row);

		for (unsigned col = 0; col < s->cols; col++)
			if (line[col].width)
				got[n++] = line[col].code == 0    ? '.'
					   : line[col].code > 127 ? 'W'
								  : (char)line[col].code;
		got[n++] = '|';
	}
	got[n] = 0;
	assert_string_equal(got, wanted);
}

static struct screen *shown(unsigned rows, unsigned cols, const char *text)
{
	struct screen *s = screen_create(rows, cols);

	assert_non_null(s);
	assert_int_equal(screen_feed(s, text, strlen(text)), strlen(text));
	return s;
}

/* However the text is cut, the rows are these and the cursor is there. */
static void expect(unsigned rows, unsigned cols, const char *text, const char *wanted, unsigned row,
		   unsigned col)
{
	struct screen *pieces = screen_create(rows, cols), *s = shown(rows, cols, text);

	for (size_t i = 0; text[i]; i++)
		assert_int_equal(screen_feed(pieces, text + i, 1), 1);
	expect_rows(s, wanted);
	expect_rows(pieces, wanted);
	assert_int_equal(s->now.at.row, row);
	assert_int_equal(s->now.at.col, col);
	screen_destroy(s);
	screen_destroy(pieces);
}

static void test_text(void **state)
{
	(void)state;
	expect(2, 4, "ab\r\nc", "ab..|c...|", 1, 1);
	expect(2, 4, "abcd", "abcd|....|", 0, 3);
	expect(2, 4, "abcde", "abcd|e...|", 1, 1);
	expect(2, 4, "abcd\re", "ebcd|....|", 0, 1);
	expect(2, 4, "a\r\nb\r\nc", "b...|c...|", 1, 1);
	expect(2, 4, ESC "[?7labcdef", "abcf|....|", 0, 3);
	expect(2, 10, "a\tb\b\bc", "a......cb.|..........|", 0, 8);
}

static void test_wide(void **state)
{
	(void)state;
	expect(2, 4, "\xe4\xb8\xad\xe4\xb8\xad", "WW|....|", 0, 3);
	expect(2, 5, "\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad", "WW.|W...|", 1, 2);
	/* the other half of one that is overwritten */
	expect(1, 4, "\xe4\xb8\xad\xe4\xb8\xad" ESC "[2Gx", " xW|", 0, 2);
	expect(1, 4, "\xe4\xb8\xad\xe4\xb8\xad" ESC "[1Gx", "x W|", 0, 1);
	expect(1, 4, "a\xe4\xb8\xad" ESC "[1G" ESC "[P", "W..|", 0, 0);
	expect(1, 4, "\xe4\xb8\xad" ESC "[2G" ESC "[K", " ...|", 0, 1);
}

static void test_marks(void **state)
{
	struct screen *s = shown(1, 2, "e\xcc\x81x\xcc\x81");

	(void)state;
	assert_int_equal(screen_row(s, 0)[0].marks[0], 0x301);
	assert_int_equal(screen_row(s, 0)[1].marks[0], 0x301);
	assert_true(s->now.at.wraps);
	screen_destroy(s);
}

static void test_moves(void **state)
{
	(void)state;
	expect(3, 3, ESC "[2;2Hx" ESC "[9;9Hy" ESC "[Az", "...|.xz|..y|", 1, 2);
	expect(3, 3, "a" ESC "[Bb" ESC "[2Dc", "a..|cb.|...|", 1, 1);
	expect(3, 3, ESC "[3dx" ESC "[2Fy", "y..|...|x..|", 0, 1);
	expect(3, 3, "a" ESC "7" ESC "[3;3Hb" ESC "8c", "ac.|...|..b|", 0, 2);
	expect(2, 9, ESC "[Ix" ESC "[2Zy", "y.......x|.........|", 0, 1);
	expect(2, 3, "x" ESC "[5b", "xxx|xxx|", 1, 2);
}

static void test_region(void **state)
{
	(void)state;
	expect(4, 2, "a\r\nb\r\nc\r\nd" ESC "[2;3r" ESC "[3;1H\nx", "a.|c.|x.|d.|", 2, 1);
	expect(4, 2, "a\r\nb\r\nc\r\nd" ESC "[2;3r" ESC "[2;1H" ESC "M", "a.|..|b.|d.|", 1, 0);
	expect(4, 2, "a\r\nb\r\nc\r\nd" ESC "[2;3r" ESC "[?6h" ESC "[9;1Hx", "a.|b.|x.|d.|", 2, 1);
	expect(4, 2, "a\r\nb\r\nc\r\nd" ESC "[2;1H" ESC "[L", "a.|..|b.|c.|", 1, 0);
	expect(4, 2, "a\r\nb\r\nc\r\nd" ESC "[2;1H" ESC "[2M", "a.|d.|..|..|", 1, 0);
	expect(3, 2, "a\r\nb\r\nc" ESC "[S" ESC "[2T", "..|..|b.|", 2, 1);
	expect(3, 2, ESC "[2;3r" ESC "[!pa\r\nb\r\nc\r\nd", "b.|c.|d.|", 2, 1);
}

static void test_erase(void **state)
{
	(void)state;
	expect(2, 4, "abcd" ESC "[2G" ESC "[K", "a...|....|", 0, 1);
	expect(2, 4, "abcd" ESC "[2G" ESC "[1K", "..cd|....|", 0, 1);
	expect(2, 4, "abcdefgh" ESC "[1;2H" ESC "[J", "a...|....|", 0, 1);
	expect(2, 4, "abcdefgh" ESC "[2;2H" ESC "[1J", "....|..gh|", 1, 1);
	expect(2, 4, "abcdefgh" ESC "[2J", "....|....|", 1, 3);
	expect(1, 4, "abcd" ESC "[2G" ESC "[2X", "a..d|", 0, 1);
	expect(1, 4, "abcd" ESC "[2G" ESC "[P", "acd.|", 0, 1);
	expect(1, 4, "abcd" ESC "[2G" ESC "[@", "a.bc|", 0, 1);
	expect(1, 4, "abcd" ESC "[2G" ESC "[4hx", "axbc|", 0, 2);
}

static void test_alternate(void **state)
{
	struct screen *s = shown(1, 8, "ab");

	(void)state;
	s->hold_switch = true;
	/* it stops before the switch, and goes on when it may */
	assert_int_equal(screen_feed(s, "c" ESC "[?1049hx", 11), 1);
	assert_false(s->alternate);
	s->hold_switch = false;
	assert_int_equal(screen_feed(s, ESC "[?1049hx", 10), 10);
	expect_rows(s, "...x....|");
	s->hold_switch = true;
	assert_int_equal(screen_feed(s, ESC "[?1049h", 8), 8); /* no switch */
	assert_int_equal(screen_feed(s, ESC "[?10", 5), 5);
	assert_int_equal(screen_feed(s, "49lz", 4), 0); /* its first byte is gone */
	s->hold_switch = false;
	assert_int_equal(screen_feed(s, "49lz", 4), 4);
	expect_rows(s, "abcz....|");
	screen_destroy(s);
}

static void test_pen(void **state)
{
	struct screen *s =
		shown(1, 9,
		      ESC "[36ma" ESC "[38;5;6mb" ESC "[38;2;1;2;3;1mc" ESC "[38:2::4:5:6;4:3md" ESC
			  "[me" ESC "[97;101;7mf" ESC "[0;44m" ESC "[K");
	const struct cell *line = screen_row(s, 0);

	(void)state;
	assert_int_equal(line[0].pen.text.form, COLOUR_SHORT);
	assert_int_equal(line[0].pen.text.value[0], 6);
	assert_int_equal(line[1].pen.text.form, COLOUR_NUMBER);
	assert_int_equal(line[2].pen.text.form, COLOUR_RGB);
	assert_int_equal(line[2].pen.text.value[2], 3);
	assert_int_equal(line[2].pen.flags, CELL_BOLD);
	assert_int_equal(line[3].pen.text.value[2], 6);
	assert_int_equal(line[3].pen.underline, 3);
	assert_true(pen_equal(&line[4].pen, &(struct pen){ 0 }));
	assert_int_equal(line[5].pen.text.value[0], 15);
	assert_int_equal(line[5].pen.back.value[0], 9);
	assert_int_equal(line[5].pen.flags, CELL_REVERSE);
	assert_int_equal(line[6].pen.back.value[0], 4);
	assert_int_equal(line[6].code, 0);
	screen_destroy(s);
}

static void test_lines(void **state)
{
	struct screen *s = shown(1, 4, ESC ")0q\x0eq\x0fq");

	(void)state;
	assert_int_equal(screen_row(s, 0)[0].pen.flags, 0);
	assert_int_equal(screen_row(s, 0)[1].pen.flags, CELL_LINES);
	assert_int_equal(screen_row(s, 0)[2].pen.flags, 0);
	screen_destroy(s);
}

static void test_resize(void **state)
{
	struct screen *s = shown(3, 4, "a\r\nb\r\n\xe4\xb8\xad\xe4\xb8\xad");
	struct ward_err e;

	(void)state;
	assert_int_equal(screen_resize(s, 2, 3, &e), 0);
	expect_rows(s, "b..|W |"); /* the cursor's row stays, half a character goes */
	assert_int_equal(s->now.at.row, 1);
	assert_int_equal(s->now.at.col, 2);
	assert_int_equal(screen_resize(s, 3, 5, &e), 0);
	expect_rows(s, "b....|W ..|.....|");
	assert_int_equal(screen_resize(s, 0, 0, &e), 0);
	assert_int_equal(s->rows, 1);
	screen_destroy(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),      cmocka_unit_test(test_wide),
		cmocka_unit_test(test_marks),     cmocka_unit_test(test_moves),
		cmocka_unit_test(test_region),    cmocka_unit_test(test_erase),
		cmocka_unit_test(test_alternate), cmocka_unit_test(test_pen),
		cmocka_unit_test(test_lines),     cmocka_unit_test(test_resize),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
