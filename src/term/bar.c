/*
 * Showing a question in the bottom rows of a terminal. In: the screen model and the bar's texts.
 * Out: bytes. While the bar is shown, the terminal gets nothing but what is composed here, from
 * cells: no byte of the sandbox reaches it. Over the normal screen the bar is on the alternate one,
 * so that the terminal itself keeps text and scrollback; what terminals lose on the way back
 * (margins, line drawing, the cursor beyond the last column, the remembered cursor) is set again.
 * Over the alternate screen all rows are painted again from the model. Lines do not wrap while it
 * is shown: a character that the terminal takes for wider than the model does cannot reach the bar.
 */
#include "term/bar.h"

#include <string.h>

#define PLAIN "\x1b[r\x1b[?6l\x1b[4l\x1b(B\x1b)B\x0f"

unsigned bar_rows(const struct screen *s)
{
	return s->rows < BAR_SMALL_BELOW ? 1 : BAR_ROWS;
}

/* ---- cells to bytes ---- */

static void add_colour(struct buf *out, const struct colour *c, unsigned base)
{
	if (c->form == COLOUR_SHORT)
		buf_printf(out, ";%u", base + (c->value[0] < 8 ? 0U : 52U) + c->value[0]);
	else if (c->form == COLOUR_NUMBER)
		buf_printf(out, ";%u;5;%u", base + 8, c->value[0]);
	else if (c->form == COLOUR_RGB)
		buf_printf(out, ";%u;2;%u;%u;%u", base + 8, c->value[0], c->value[1], c->value[2]);
}

static void add_pen(struct buf *out, const struct pen *pen)
{
	static const unsigned numbers[] = { 1, 2, 3, 5, 7, 8, 9, 53 }; /* by enum cell_flag */

	buf_puts(out, "\x1b[0");
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (pen->flags & 1U << i)
			buf_printf(out, ";%u", numbers[i]);
	if (pen->underline == 1)
		buf_puts(out, ";4");
	add_colour(out, &pen->text, 30);
	add_colour(out, &pen->back, 40);
	buf_puts(out, "m");
	if (pen->underline > 1) /* in sequences of their own: not every terminal knows them */
		buf_printf(out, "\x1b[4:%um", pen->underline);
	if (pen->under.form == COLOUR_NUMBER)
		buf_printf(out, "\x1b[58:5:%um", pen->under.value[0]);
	else if (pen->under.form == COLOUR_RGB)
		buf_printf(out, "\x1b[58:2::%u:%u:%um", pen->under.value[0], pen->under.value[1],
			   pen->under.value[2]);
}

static void add_code(struct buf *out, uint32_t code)
{
	char text[4];
	size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	if (n == 1) {
		text[0] = (char)code;
	} else {
		for (size_t i = n - 1; i > 0; i--, code >>= 6)
			text[i] = (char)(0x80 | (code & 0x3f));
		text[0] = (char)((0xf00U >> n & 0xf0U) | code);
	}
	buf_add(out, text, n);
}

static void add_cell(struct buf *out, const struct cell *cell, struct pen *pen)
{
	if (!pen_equal(&cell->pen, pen)) {
		if ((cell->pen.flags ^ pen->flags) & CELL_LINES)
			buf_puts(out, cell->pen.flags & CELL_LINES ? "\x1b(0" : "\x1b(B");
		add_pen(out, &cell->pen);
		*pen = cell->pen;
	}
	add_code(out, cell->code ? cell->code : ' ');
	for (size_t i = 0; i < SCREEN_MARKS && cell->marks[i]; i++)
		add_code(out, cell->marks[i]);
}

/* One row of the model, at the row `to` of the terminal. */
static void add_row(struct buf *out, const struct screen *s, unsigned row, unsigned to)
{
	const struct cell *line = screen_row(s, row);
	struct pen pen = { 0 };
	unsigned end = s->cols;

	while (end > 0 && line[end - 1].code == 0 && line[end - 1].width &&
	       pen_equal(&line[end - 1].pen, &pen))
		end--;
	buf_printf(out, "\x1b[%u;1H\x1b[m", to + 1);
	for (unsigned col = 0; col < end; col++)
		if (line[col].width)
			add_cell(out, &line[col], &pen);
	if (pen.flags & CELL_LINES)
		buf_puts(out, "\x1b(B");
	buf_puts(out, "\x1b[m");
	if (end < s->cols) /* in no place but here: the last column may hold the cursor */
		buf_printf(out, "\x1b[%u;%uH\x1b[K", to + 1, end + 1);
}

/* ---- the bar ---- */

/* The first row of the model that is shown: the cursor's is among those above the bar. */
static unsigned first_row(const struct screen *s)
{
	unsigned height = s->rows - bar_rows(s);

	return s->now.at.row < height ? 0 : s->now.at.row - height + 1;
}

static void add_bar_row(struct buf *out, const struct screen *s, unsigned row, const char *text,
			const char *pen)
{
	unsigned room = s->cols, n = 0;

	buf_printf(out, "\x1b[%u;1H\x1b[m%s", row + 1, pen);
	/* printable ASCII only, whoever made the text: each byte is one column */
	for (; text && text[n] && n < room; n++)
		add_code(out, text[n] >= 0x20 && text[n] < 0x7f ? (uint32_t)text[n] : '?');
	for (; n < room; n++)
		buf_puts(out, " ");
	buf_puts(out, "\x1b[m");
}

static void add_bar(struct buf *out, const struct screen *s, const struct bar *b)
{
	unsigned count = bar_rows(s), height = s->rows - count;
	const struct place *at = &s->now.at;

	if (count == 1)
		add_bar_row(out, s, height, b->one, "\x1b[7m");
	for (unsigned i = 0; i < count && count > 1; i++)
		add_bar_row(out, s, height + i, b->lines[i], i ? "" : "\x1b[7m");
	if (height == 0)
		return; /* a screen of one row: there is no place for the cursor */
	buf_printf(out, "\x1b[%u;%uH", at->row - first_row(s) + 1, at->col + 1);
	if (s->now.modes & SCREEN_CURSOR)
		buf_puts(out, "\x1b[?25h");
}

static void add_frame(struct screen *s, const struct bar *b, bool all, struct buf *out)
{
	unsigned height = s->rows - bar_rows(s), first = first_row(s);

	for (unsigned i = 0; i < height; i++)
		if (all || s->changed[i + first])
			add_row(out, s, i + first, i);
	add_bar(out, s, b);
	memset(s->changed, false, s->rows * sizeof(*s->changed));
}

void bar_show(struct screen *s, const struct bar *b, struct bar_before *ret_before, struct buf *out)
{
	*ret_before = (struct bar_before){ .state = s->now,
					   .edge = screen_row(s, s->now.at.row)[s->now.at.col],
					   .alternate = s->alternate };
	if (ret_before->edge.width == 0 && s->now.at.col > 0)
		ret_before->edge = screen_row(s, s->now.at.row)[s->now.at.col - 1];
	buf_puts(out, "\x1b[?2026h");
	if (!s->alternate)
		buf_puts(out, "\x1b[?1049h");
	bar_again(s, b, out);
}

void bar_again(struct screen *s, const struct bar *b, struct buf *out)
{
	s->shown_first = first_row(s);
	buf_puts(out, "\x1b[?2026h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l" PLAIN
		      "\x1b[?7l\x1b[?25l\x1b[m");
	add_frame(s, b, true, out);
	buf_puts(out, "\x1b[?2026l");
}

void bar_repaint(struct screen *s, const struct bar *b, struct buf *out)
{
	bool all = s->shown_first != first_row(s);

	s->shown_first = first_row(s);
	buf_puts(out, "\x1b[?2026h\x1b[?25l");
	add_frame(s, b, all, out);
	buf_puts(out, "\x1b[?2026l");
}

/* ---- and back ---- */

static void add_charsets(struct buf *out, uint32_t modes)
{
	buf_puts(out, modes & SCREEN_LINES_0 ? "\x1b(0" : "\x1b(B");
	buf_puts(out, modes & SCREEN_LINES_1 ? "\x1b)0" : "\x1b)B");
	buf_puts(out, modes & SCREEN_SHIFT ? "\x0e" : "\x0f");
}

/* To an absolute place; beyond the last column by printing its cell again. */
static void add_place(struct buf *out, const struct place *at, const struct cell *edge)
{
	struct pen pen = { 0 };
	unsigned col = at->col;

	if (at->wraps && edge->width == 2 && col > 0)
		col--;
	buf_printf(out, "\x1b[%u;%uH", at->row + 1, col + 1);
	if (!at->wraps)
		return;
	buf_puts(out, "\x1b(B\x0f\x1b[m");
	add_cell(out, edge, &pen);
	buf_puts(out, "\x1b(B\x1b[m");
}

/* Everything that decides what the next byte of the program does. */
static void add_state(struct buf *out, const struct screen *s, const struct screen_state *n,
		      const struct cell *edge)
{
	unsigned row;

	if (n->saved.used) {
		buf_printf(out, "\x1b[%u;%uH", n->saved.at.row + 1, n->saved.at.col + 1);
		add_charsets(out, n->saved.modes);
		add_pen(out, &n->saved.pen);
		buf_puts(out, "\x1b"
			      "7\x1b(B\x1b)B\x0f\x1b[m");
	}
	if (n->top != 0 || n->bottom != s->rows - 1)
		buf_printf(out, "\x1b[%u;%ur", n->top + 1, n->bottom + 1);
	buf_puts(out, "\x1b[?7h");
	add_place(out, &n->at, edge);
	row = n->at.row >= n->top ? n->at.row - n->top : 0;
	if (n->modes & SCREEN_ORIGIN) {
		buf_puts(out, "\x1b[?6h");
		buf_printf(out, "\x1b[%u;%uH", row + 1, n->at.col + 1);
	}
}

static void add_modes(struct buf *out, const struct screen_state *n)
{
	add_charsets(out, n->modes);
	add_pen(out, &n->pen);
	buf_puts(out, n->modes & SCREEN_INSERT ? "\x1b[4h" : "\x1b[4l");
	buf_puts(out, n->modes & SCREEN_WRAP ? "\x1b[?7h" : "\x1b[?7l");
	buf_puts(out, n->modes & SCREEN_CURSOR ? "\x1b[?25h" : "\x1b[?25l");
}

void bar_hide(struct screen *s, const struct bar_before *before, bool moved, struct buf *out)
{
	const struct screen_state *n = before->alternate ? &s->now : &before->state;
	struct cell edge = before->edge;

	buf_puts(out, "\x1b[?2026h\x1b[?25l" PLAIN);
	if (before->alternate) {
		for (unsigned i = 0; i < s->rows; i++)
			add_row(out, s, i, i);
		edge = screen_row(s, n->at.row)[n->at.col];
		if (edge.width == 0 && n->at.col > 0)
			edge = screen_row(s, n->at.row)[n->at.col - 1];
		memset(s->changed, false, s->rows * sizeof(*s->changed));
		add_state(out, s, n, &edge);
	} else {
		/* a program may bring this screen back as it is: without the bar and its words */
		buf_puts(out, "\x1b[m\x1b[2J\x1b[?1049l");
		if (!moved && (n->saved.used || n->at.wraps || n->top != 0 ||
			       n->bottom != s->rows - 1 || n->modes & SCREEN_ORIGIN)) {
			buf_puts(out, PLAIN); /* ?1049l has brought the origin mode back */
			add_state(out, s, n, &edge);
		}
	}
	add_modes(out, n);
	buf_puts(out, "\x1b[?2026l");
}
