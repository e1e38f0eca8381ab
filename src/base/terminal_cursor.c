/*
 * Where the cursor is, by what was shown. In: characters and sequences that passed the filter. Out:
 * a row and a column. It is a good guess, not a terminal: until something goes to an absolute place
 * the last row is assumed, which is the safe answer for a program that wants to know how much room
 * is below. Pure.
 */
#include "base/terminal.h"

static unsigned rows_of(const struct terminal_cursor *c)
{
	return c->rows ? c->rows : 24;
}

static unsigned cols_of(const struct terminal_cursor *c)
{
	return c->cols ? c->cols : 80;
}

static void settle(struct terminal_cursor *c)
{
	if (c->row == 0) {
		c->row = rows_of(c);
		c->col = 1;
	}
}

static unsigned clamp(unsigned value, unsigned max)
{
	return value < 1 ? 1 : value > max ? max : value;
}

static void go(struct terminal_cursor *c, unsigned row, unsigned col)
{
	c->row = clamp(row, rows_of(c));
	c->col = clamp(col, cols_of(c));
}

unsigned terminal_char_width(uint32_t code)
{
	static const struct {
		uint32_t first, last;
		unsigned width;
	} ranges[] = {
		{ 0x300, 0x36f, 0 },     { 0x1100, 0x115f, 2 },   { 0x200b, 0x200f, 0 },
		{ 0x20d0, 0x20ff, 0 },   { 0x2e80, 0xa4cf, 2 },   { 0xac00, 0xd7a3, 2 },
		{ 0xf900, 0xfaff, 2 },   { 0xfe00, 0xfe0f, 0 },   { 0xfe30, 0xfe6f, 2 },
		{ 0xff00, 0xff60, 2 },   { 0xffe0, 0xffe6, 2 },   { 0x1f300, 0x1f64f, 2 },
		{ 0x1f680, 0x1f6ff, 2 }, { 0x1f900, 0x1f9ff, 2 }, { 0x20000, 0x3fffd, 2 },
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return ranges[i].width;
	return 1;
}

void terminal_cursor_text(struct terminal_cursor *c, uint32_t code)
{
	unsigned width = code < 0x300 ? 1 : terminal_char_width(code);

	settle(c);
	c->last_width = width;
	if (c->col + width > cols_of(c) + 1) { /* it wraps */
		c->row = clamp(c->row + 1, rows_of(c));
		c->col = 1;
	}
	c->col += width; /* one past the last column: the next character wraps */
}

void terminal_cursor_control(struct terminal_cursor *c, char control)
{
	settle(c);
	if (control == '\r')
		c->col = 1;
	else if (control == '\n' || control == '\v' || control == '\f')
		c->row = clamp(c->row + 1, rows_of(c));
	else if (control == '\b')
		c->col = clamp(c->col - 1, cols_of(c));
	else if (control == '\t')
		c->col = clamp((c->col + 7) / 8 * 8 + 1, cols_of(c));
}

static void save(struct terminal_cursor *c)
{
	c->saved_row = c->row;
	c->saved_col = c->col;
}

void terminal_cursor_escape(struct terminal_cursor *c, char final)
{
	settle(c);
	if (final == '7')
		save(c);
	else if (final == '8')
		go(c, c->saved_row, c->saved_col);
	else if (final == 'M')
		go(c, c->row - 1, c->col);
	else if (final == 'D' || final == 'E')
		go(c, c->row + 1, final == 'E' ? 1 : c->col);
}

void terminal_cursor_csi(struct terminal_cursor *c, char final, const unsigned *numbers,
			 size_t count)
{
	unsigned first = count > 0 && numbers[0] ? numbers[0] : 1;
	unsigned second = count > 1 && numbers[1] ? numbers[1] : 1;

	settle(c);
	switch (final) {
	case 'A':
	case 'F':
		go(c, c->row > first ? c->row - first : 1, final == 'F' ? 1 : c->col);
		break;
	case 'B':
	case 'E':
	case 'e':
		go(c, c->row + first, final == 'E' ? 1 : c->col);
		break;
	case 'C':
	case 'a':
		go(c, c->row, c->col + first);
		break;
	case 'D':
		go(c, c->row, c->col > first ? c->col - first : 1);
		break;
	case 'G':
	case '`':
		go(c, c->row, first);
		break;
	case 'd':
		go(c, first, c->col);
		break;
	case 'H':
	case 'f':
		go(c, first, second);
		break;
	case 'b':
		go(c, c->row, c->col + first * c->last_width);
		break;
	case 'r':
		go(c, 1, 1);
		break;
	case 's':
		save(c);
		break;
	case 'u':
		go(c, c->saved_row, c->saved_col);
		break;
	default:
		break;
	}
}

void terminal_cursor_place(const struct terminal_cursor *c, unsigned *ret_row, unsigned *ret_col)
{
	*ret_row = c->row ? clamp(c->row, rows_of(c)) : rows_of(c);
	*ret_col = clamp(c->col, cols_of(c));
}
