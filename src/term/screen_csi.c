/*
 * The sequences of tables/terminal.def, as the screen model obeys them. In: a sequence, taken
 * apart. Out: cells, cursor, modes. Numbers are unlimited here and are cut to the screen. What the
 * table has and the picture does not depend on (mouse, blinking, frames) is left to the filter,
 * which knows the modes in force. Pure.
 */
#include "term/screen_internal.h"

/* The first number, at least 1; and the second. */
static unsigned number_of(const struct sequence *q, size_t i)
{
	return i < q->count && q->numbers[i] ? q->numbers[i] : 1;
}

static void go(struct screen *s, unsigned row, unsigned col)
{
	s->now.at = (struct place){ .row = row < s->rows ? row : s->rows - 1,
				    .col = col < s->cols ? col : s->cols - 1 };
}

/* To a row as programs count it: from the region's top in origin mode, and then inside it. */
static void go_row(struct screen *s, unsigned row, unsigned col)
{
	if (s->now.modes & SCREEN_ORIGIN) {
		row += s->now.top;
		if (row > s->now.bottom)
			row = s->now.bottom;
	}
	go(s, row, col);
}

static void go_up(struct screen *s, unsigned count)
{
	unsigned limit = s->now.at.row >= s->now.top ? s->now.top : 0;

	go(s, s->now.at.row - limit > count ? s->now.at.row - count : limit, s->now.at.col);
}

static void go_down(struct screen *s, unsigned count)
{
	unsigned limit = s->now.at.row <= s->now.bottom ? s->now.bottom : s->rows - 1;

	go(s, limit - s->now.at.row > count ? s->now.at.row + count : limit, s->now.at.col);
}

static void go_left(struct screen *s, unsigned count)
{
	go(s, s->now.at.row, s->now.at.col > count ? s->now.at.col - count : 0);
}

static void go_tabs(struct screen *s, unsigned count, bool back)
{
	unsigned col = s->now.at.col;

	if (count > s->cols)
		count = s->cols;
	while (count-- > 0)
		col = back ? (col ? (col - 1) / 8 * 8 : 0) : (col / 8 + 1) * 8;
	go(s, s->now.at.row, col);
}

void screen_save(struct screen *s)
{
	s->now.saved =
		(struct saved_cursor){ .at = s->now.at,
				       .pen = s->now.pen,
				       .modes = s->now.modes & (SCREEN_ORIGIN | SCREEN_SHIFT |
								SCREEN_LINES_0 | SCREEN_LINES_1),
				       .used = true };
}

void screen_restore(struct screen *s)
{
	const struct saved_cursor *saved = &s->now.saved;
	uint32_t mask = SCREEN_ORIGIN | SCREEN_SHIFT | SCREEN_LINES_0 | SCREEN_LINES_1;

	go(s, saved->at.row, saved->at.col);
	s->now.at.wraps = saved->at.wraps && saved->at.col == s->cols - 1;
	s->now.pen = saved->pen;
	s->now.modes = (s->now.modes & ~mask) | saved->modes;
}

/* ---- modes ---- */

static bool is_alternate(unsigned number)
{
	return number == 47 || number == 1047 || number == 1049;
}

bool screen_switches(const struct screen *s, const struct sequence *q)
{
	if (q->prefix != '?' || (q->final != 'h' && q->final != 'l'))
		return false;
	for (size_t i = 0; i < q->count; i++)
		if (is_alternate(q->numbers[i]) && s->alternate != (q->final == 'h'))
			return true;
	return false;
}

static void clear_screen(struct screen *s)
{
	for (unsigned row = 0; row < s->rows; row++)
		screen_erase(s, row, 0, s->cols - 1);
}

static void switch_to(struct screen *s, unsigned number, bool alternate)
{
	struct saved_cursor saved = s->now.saved;

	if (number == 1049 && alternate && !s->alternate) {
		screen_save(s);
		saved = s->now.saved;
	}
	if (s->alternate != alternate) {
		if (number == 1047 && s->alternate)
			clear_screen(s);
		s->alternate = alternate;
		s->now.saved = s->other_saved;
		s->other_saved = saved;
		for (unsigned row = 0; row < s->rows; row++)
			s->changed[row] = true;
		if (number == 1049 && alternate)
			clear_screen(s);
	}
	if (number == 1049 && !alternate)
		screen_restore(s);
}

static void set_mode(struct screen *s, char prefix, unsigned number, bool on)
{
	uint32_t bit = 0;

	if (!prefix && number == 4)
		bit = SCREEN_INSERT;
	else if (prefix == '?' && number == 6)
		bit = SCREEN_ORIGIN;
	else if (prefix == '?' && number == 7)
		bit = SCREEN_WRAP;
	else if (prefix == '?' && number == 25)
		bit = SCREEN_CURSOR;
	else if (prefix == '?' && number == 2004)
		bit = SCREEN_PASTE;
	else if (prefix == '?' && is_alternate(number))
		switch_to(s, number, on);
	s->now.modes = on ? s->now.modes | bit : s->now.modes & ~bit;
	if (bit == SCREEN_ORIGIN)
		go_row(s, 0, 0);
	if (bit == SCREEN_WRAP && !on)
		s->now.at.wraps = false;
}

/* ---- erasing and scrolling ---- */

static void erase_line(struct screen *s, unsigned part)
{
	const struct place *at = &s->now.at;

	if (part <= 2)
		screen_erase(s, at->row, part == 0 ? at->col : 0,
			     part == 1 ? at->col : s->cols - 1);
}

static void erase_screen(struct screen *s, unsigned part)
{
	unsigned row = s->now.at.row;

	if (part > 2)
		return;
	for (unsigned i = 0; i < s->rows; i++)
		if ((part == 0 && i > row) || (part == 1 && i < row) || part == 2)
			screen_erase(s, i, 0, s->cols - 1);
	if (part < 2)
		erase_line(s, part);
}

static void erase_cells(struct screen *s, unsigned count)
{
	unsigned room = s->cols - s->now.at.col;

	screen_erase(s, s->now.at.row, s->now.at.col,
		     s->now.at.col + (count < room ? count : room) - 1);
}

/* Inserts lines at the cursor, deletes them with count < 0; only inside the region. */
static void insert_lines(struct screen *s, int count)
{
	unsigned row = s->now.at.row;

	if (row >= s->now.top && row <= s->now.bottom)
		screen_scroll(s, row, s->now.bottom, -count);
}

static void set_region(struct screen *s, const struct sequence *q)
{
	unsigned top = number_of(q, 0), bottom = q->count > 1 ? q->numbers[1] : 0;

	if (bottom == 0 || bottom > s->rows)
		bottom = s->rows;
	if (top >= bottom)
		return;
	s->now.top = top - 1;
	s->now.bottom = bottom - 1;
	go_row(s, 0, 0);
}

static void reset_softly(struct screen *s)
{
	struct screen_state *n = &s->now;

	n->modes = (n->modes & (SCREEN_WRAP | SCREEN_PASTE)) | SCREEN_CURSOR;
	n->pen = (struct pen){ 0 };
	n->top = 0;
	n->bottom = s->rows - 1;
	n->saved = (struct saved_cursor){ 0 };
}

static void repeat(struct screen *s, unsigned count)
{
	if (count > s->rows * s->cols)
		count = s->rows * s->cols;
	for (unsigned i = 0; i < count && s->last; i++)
		screen_put(s, s->last);
}

static void move_cursor(struct screen *s, char final, unsigned first, unsigned second)
{
	struct place *at = &s->now.at;

	switch (final) {
	case 'A':
	case 'F':
		go_up(s, first);
		break;
	case 'B':
	case 'E':
	case 'e':
		go_down(s, first);
		break;
	case 'C':
	case 'a':
		go(s, at->row, at->col + first);
		break;
	case 'D':
		go_left(s, first);
		break;
	case 'G':
	case '`':
		go(s, at->row, first - 1);
		break;
	case 'H':
	case 'f':
		go_row(s, first - 1, second - 1);
		break;
	case 'd':
		go_row(s, first - 1, at->col);
		break;
	case 'I':
	case 'Z':
		go_tabs(s, first, final == 'Z');
		break;
	default:
		break;
	}
	if (final == 'E' || final == 'F')
		at->col = 0;
}

static void change_cells(struct screen *s, char final, unsigned first, unsigned part)
{
	int lines = (int)(first < s->rows ? first : s->rows);

	switch (final) {
	case 'J':
		erase_screen(s, part);
		break;
	case 'K':
		erase_line(s, part);
		break;
	case 'X':
		erase_cells(s, first);
		break;
	case 'L':
		insert_lines(s, lines);
		break;
	case 'M':
		insert_lines(s, -lines);
		break;
	case 'P':
		screen_delete_cells(s, s->now.at.row, s->now.at.col, first);
		break;
	case '@':
		screen_insert_cells(s, s->now.at.row, s->now.at.col, first);
		break;
	case 'S':
		screen_scroll(s, s->now.top, s->now.bottom, lines);
		break;
	case 'T':
		screen_scroll(s, s->now.top, s->now.bottom, -lines);
		break;
	default:
		return;
	}
	s->now.at.wraps = false;
}

void screen_csi(struct screen *s, const struct sequence *q)
{
	unsigned first = number_of(q, 0), second = number_of(q, 1);

	if (q->final == 'h' || q->final == 'l') {
		for (size_t i = 0; i < q->count; i++)
			set_mode(s, q->prefix, q->numbers[i], q->final == 'h');
	} else if (q->prefix) {
		return;
	} else if (q->intermediate) {
		if (q->intermediate == '!' && q->final == 'p')
			reset_softly(s);
	} else if (q->final == 'm') {
		screen_pen(&s->now.pen, q);
	} else if (q->final == 'r') {
		set_region(s, q);
	} else if (q->final == 's') {
		screen_save(s);
	} else if (q->final == 'u') {
		screen_restore(s);
	} else if (q->final == 'b') {
		repeat(s, first);
	} else {
		move_cursor(s, q->final, first, second);
		change_cells(s, q->final, first, q->count ? q->numbers[0] : 0);
	}
}
