/*
 * The screen model behind the filter, as in ward, and alone on any bytes. How they are cut must not
 * matter; the cursor and the region are on the screen; a second half follows a wide character. The
 * first bytes choose the sizes.
 */
#include <stdlib.h>
#include <string.h>

#include "base/terminal.h"
#include "term/screen.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check(const struct screen *s)
{
	require(s->now.at.row < s->rows && s->now.at.col < s->cols);
	require(s->now.top <= s->now.bottom && s->now.bottom < s->rows);
	require(!s->now.at.wraps || s->now.at.col == s->cols - 1);
	for (unsigned row = 0; row < s->rows; row++) {
		const struct cell *line = screen_row(s, row);

		for (unsigned col = 0; col < s->cols; col++) {
			require(line[col].width <= 2);
			if (line[col].width == 0)
				require(col > 0 && line[col - 1].width == 2);
			if (line[col].width == 2)
				require(col + 1 < s->cols && line[col + 1].width == 0);
		}
	}
}

static void require_same(const struct screen *a, const struct screen *b)
{
	require(a->now.at.row == b->now.at.row && a->now.at.col == b->now.at.col);
	require(a->alternate == b->alternate && a->now.modes == b->now.modes);
	for (unsigned row = 0; row < a->rows; row++)
		require(memcmp(screen_row(a, row), screen_row(b, row),
			       a->cols * sizeof(struct cell)) == 0);
}

static void run(const char *bytes, size_t n, unsigned rows, unsigned cols, unsigned other)
{
	struct screen *whole = screen_create(rows, cols), *pieces = screen_create(rows, cols);
	struct ward_err e;

	require(whole && pieces);
	require(screen_feed(whole, bytes, n) == n);
	check(whole);
	for (size_t i = 0; i < n; i++)
		require(screen_feed(pieces, bytes + i, 1) == 1);
	require_same(whole, pieces);
	require(screen_resize(whole, other, other / 2, &e) == 0);
	check(whole);
	whole->hold_switch = true;
	for (size_t at = 0; at < n;) {
		size_t took = screen_feed(whole, bytes + at, n - at);

		require(took <= n - at);
		check(whole);
		at += took;
		if (at == n)
			break;
		whole->hold_switch = false; /* as the prompt does it: the rest goes on */
	}
	screen_destroy(whole);
	screen_destroy(pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct terminal filter = { 0 };
	auto_buf passed = { 0 };

	if (size < 3 || size > 4096)
		return 0;
	terminal_filter(&filter, (const char *)data + 3, size - 3, &passed);
	run(buf_text(&passed), passed.len, data[0] % 32, data[1] % 32, data[2] % 64);
	run((const char *)data + 3, size - 3, data[0] % 32, data[1] % 32, data[2] % 64);
	return 0;
}
