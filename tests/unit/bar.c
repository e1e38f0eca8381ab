/* The bar over a screen: a second model plays the operator's terminal, and must be what the program
 * painted once the bar is hidden. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/terminal.h"
#include "term/bar.h"

#define ESC "\x1b"

static const struct bar bar = { .lines = { "ward: brisk-otter", "connect example.org:443",
					   "by curl \x1b[2J\xff", "keys" },
				.one = "ward: brisk-otter: connect example.org:443" };

static void feed(struct screen *s, const struct buf *b)
{
	assert_false(b->failed);
	assert_int_equal(screen_feed(s, buf_text(b), b->len), b->len);
}

static void expect_text(const struct screen *s, unsigned row, const char *text)
{
	for (size_t i = 0; text[i]; i++)
		assert_int_equal(screen_row(s, row)[i].code, text[i]);
}

/* An empty cell and a space look the same. */
static bool same_cell(const struct cell *a, const struct cell *b)
{
	uint32_t left = a->code ? a->code : ' ', right = b->code ? b->code : ' ';

	return left == right && a->width == b->width && pen_equal(&a->pen, &b->pen) &&
	       memcmp(a->marks, b->marks, sizeof(a->marks)) == 0;
}

static void expect_same(const struct screen *a, const struct screen *b)
{
	assert_int_equal(a->alternate, b->alternate);
	assert_int_equal(a->now.modes & ~(uint32_t)SCREEN_PASTE,
			 b->now.modes & ~(uint32_t)SCREEN_PASTE);
	assert_int_equal(a->now.at.row, b->now.at.row);
	assert_int_equal(a->now.at.col, b->now.at.col);
	assert_int_equal(a->now.at.wraps, b->now.at.wraps);
	assert_int_equal(a->now.top, b->now.top);
	assert_int_equal(a->now.bottom, b->now.bottom);
	assert_true(pen_equal(&a->now.pen, &b->now.pen));
	for (unsigned row = 0; row < a->rows; row++)
		for (unsigned col = 0; col < a->cols; col++)
			assert_true(same_cell(&screen_row(a, row)[col], &screen_row(b, row)[col]));
}

/* Shows the bar after `before`, goes on with `during`, hides it, and goes on with `after`. */
static void try_screen(unsigned rows, const char *before, const char *during, const char *after)
{
	struct screen *model = screen_create(rows, 20), *terminal = screen_create(rows, 20);
	auto_buf out = { 0 };
	struct bar_before state;
	unsigned at;

	screen_feed(model, before, strlen(before));
	screen_feed(terminal, before, strlen(before));
	bar_show(model, &bar, &state, &out);
	feed(terminal, &out);
	at = rows - bar_rows(model);
	expect_text(terminal, at, rows < BAR_SMALL_BELOW ? "ward: brisk-otter: c" : bar.lines[0]);
	assert_true(terminal->alternate);
	out.len = 0;
	screen_feed(model, during, strlen(during));
	bar_repaint(model, &bar, &out);
	feed(terminal, &out);
	expect_text(terminal, at, "ward: brisk-otter");
	if (rows >= BAR_SMALL_BELOW)
		expect_text(terminal, at + 2, "by curl ?[2J?"); /* no sequence */
	out.len = 0;
	bar_hide(model, &state, false, &out);
	if (!state.alternate)
		buf_puts(&out, during);
	feed(terminal, &out);
	expect_same(model, terminal);
	screen_feed(model, after, strlen(after));
	screen_feed(terminal, after, strlen(after));
	expect_same(model, terminal);
	screen_destroy(model);
	screen_destroy(terminal);
}

static const char *const befores[] = {
	"",
	"$ make\r\ncc -c a.c\r\n$ ",
	"01234567890123456789",
	"\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4"
	"\xb8"
	"\xad\xe4\xb8\xad\xe4\xb8\xad",
	"a\r\nb\r\nc\r\nd\r\ne\r\nf\r\ng\r\nh\r\ni\r\nj\r\nk\r\nl" ESC "[31m",
	ESC "[3;5r" ESC "[5;1Hx" ESC "[1;4;38;5;6m",
	ESC "[2;4r" ESC "[?6h" ESC "[2;2Hx",
	ESC ")0\x0eqqq",
	ESC "(0lqk" ESC "[4h" ESC "[?25l",
	"ab" ESC "[3;3H" ESC "[32m" ESC "7" ESC "[m" ESC "[1;1Hz",
	"e\xcc\x81 " ESC "[97;104;9;3;4:3mx" ESC "[m" ESC "[48;2;9;8;7m" ESC "[K",
};

static void test_back_as_it_was(void **state)
{
	static const char *const durings[] = {
		"",
		"more\r\nlines\r\nof\r\noutput\r\n",
		ESC "[2J" ESC "[Hnew" ESC "[9;9Hthere" ESC "[35m",
		ESC "8again" ESC "[r" ESC "[?6l",
	};
	static const unsigned heights[] = { 3, 7, 8, 12 };

	(void)state;
	for (size_t h = 0; h < ARRAY_LEN(heights); h++)
		for (size_t i = 0; i < ARRAY_LEN(befores); i++)
			for (size_t k = 0; k < ARRAY_LEN(durings); k++) {
				auto_buf normal = { 0 };
				auto_buf alternate = { 0 };

				/* ESC 8 without ESC 7 is not for terminals to agree on */
				buf_printf(&normal, ESC "7%s", befores[i]);
				buf_printf(&alternate, "left" ESC "[?1049h" ESC "7%s", befores[i]);
				try_screen(heights[h], buf_text(&normal), durings[k],
					   "end" ESC "8z");
				try_screen(heights[h], buf_text(&alternate), durings[k],
					   "end\r\nof it" ESC "8z" ESC "[?1049l");
			}
}

/* Whatever the bar sends passes the filter: nothing in it can surprise a terminal. */
static void test_bytes(void **state)
{
	struct screen *model = screen_create(10, 20);
	struct terminal filter = { 0 };
	struct bar_before before;
	auto_buf out = { 0 };
	auto_buf passed = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(befores); i++)
		screen_feed(model, befores[i], strlen(befores[i]));
	bar_show(model, &bar, &before, &out);
	bar_repaint(model, &bar, &out);
	bar_hide(model, &before, false, &out);
	terminal_filter(&filter, buf_text(&out), out.len, &passed);
	assert_string_equal(buf_text(&passed), buf_text(&out));
	screen_destroy(model);
}

/* The row of the cursor is above the bar. */
static void test_window(void **state)
{
	struct screen *model = screen_create(8, 20), *terminal = screen_create(8, 20);
	auto_buf out = { 0 };
	struct bar_before before;

	(void)state;
	screen_feed(model, ESC "[8;1Hlast", 10);
	bar_show(model, &bar, &before, &out);
	feed(terminal, &out);
	expect_text(terminal, 3, "last");
	assert_int_equal(terminal->now.at.row, 3);
	screen_destroy(model);
	screen_destroy(terminal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_back_as_it_was),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
