/*
 * The terminal filter on hostile bytes. How they are cut must not matter; no forbidden byte may
 * come out; what came out passes once more unchanged, and so does what would undo it; an answer is
 * a whole sequence; the cursor is on the screen. The first byte chooses how the filter is set.
 */
#include <stdlib.h>
#include <string.h>

#include "base/terminal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void require_same(const struct buf *a, const struct buf *b)
{
	require(a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0));
}

static void check_bytes(const struct buf *out, bool bytes_only)
{
	for (size_t i = 0; i < out->len; i++) {
		unsigned char c = (unsigned char)out->data[i];

		if (c < 0x20)
			require(memchr("\n\r\t\b\a\v\f\x0e\x0f\x1b", c, 10) != NULL);
		if (c == 0x1b && i + 1 < out->len)
			require(strchr("]PX^_cZkNOn#%", out->data[i + 1]) == NULL);
		if (bytes_only)
			require(c < 0x80 || c > 0x9f);
	}
}

/* Sequences that passed, and those of undo and redo, are sequences that pass. */
static void check_again(const struct terminal *t, const struct buf *out)
{
	struct terminal again = { .bytes_only = t->bytes_only };
	auto_buf first = { 0 };
	auto_buf second = { 0 };

	terminal_filter(&again, buf_text(out), out->len, &second);
	require_same(out, &second);
	second.len = 0;
	again = (struct terminal){ 0 };
	terminal_undo(t, true, &first);
	terminal_redo(t, &first);
	terminal_filter(&again, buf_text(&first), first.len, &second);
	require_same(&first, &second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct terminal whole = { 0 }, pieces;
	auto_buf one = { 0 };
	auto_buf many = { 0 };
	unsigned row, col;

	if (size) {
		whole.no_input = data[0] & 1;
		whole.bytes_only = data[0] & 2;
		whole.answers = data[0] & 4;
		whole.cursor.rows = data[0] >> 3;
	}
	pieces = whole;
	terminal_filter(&whole, (const char *)data, size, &one);
	for (size_t i = 0; i < size; i++)
		terminal_filter(&pieces, (const char *)data + i, 1, &many);
	require_same(&one, &many);
	require(whole.in_force == pieces.in_force && whole.answer_len == pieces.answer_len);
	require(whole.answer_len <= sizeof(whole.answer) &&
		(whole.answers || whole.answer_len == 0));
	require(whole.answer_len == 0 || whole.answer[0] == 0x1b);
	check_bytes(&one, whole.bytes_only);
	check_again(&whole, &one);
	terminal_cursor_place(&whole.cursor, &row, &col);
	require(row >= 1 && row <= (whole.cursor.rows ? whole.cursor.rows : 24) && col >= 1 &&
		col <= 80);
	return 0;
}
