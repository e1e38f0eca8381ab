/*
 * The cells of the screen model: erasing, scrolling, shifting, and showing one character. In: calls
 * of the other screen files, with places inside the screen. Scrolling moves pointers to rows, not
 * cells, because a stream of lines scrolls with each of them. A wide character is two cells; when
 * one half is overwritten, the other becomes a space, as terminals do it. Pure.
 */
#include <string.h>

#include "base/terminal.h"
#include "term/screen_internal.h"

struct cell *screen_line(struct screen *s, unsigned row)
{
	s->changed[row] = true;
	return s->lines[s->alternate][row];
}

const struct cell *screen_row(const struct screen *s, unsigned row)
{
	return s->lines[s->alternate][row];
}

bool pen_equal(const struct pen *a, const struct pen *b)
{
	return memcmp(&a->text, &b->text, sizeof(a->text)) == 0 &&
	       memcmp(&a->back, &b->back, sizeof(a->back)) == 0 &&
	       memcmp(&a->under, &b->under, sizeof(a->under)) == 0 && a->flags == b->flags &&
	       a->underline == b->underline;
}

/* An empty cell has the background of the pen. */
static struct cell blank(const struct screen *s)
{
	return (struct cell){ .width = 1, .pen = { .back = s->now.pen.back } };
}

/* The cell at col is about to be replaced: the other half of a wide character goes. */
static void split(const struct screen *s, struct cell *line, unsigned col)
{
	if (col < s->cols && line[col].width == 0 && col > 0) {
		line[col - 1] = (struct cell){ .code = ' ', .width = 1, .pen = line[col - 1].pen };
		line[col] = (struct cell){ .code = ' ', .width = 1, .pen = line[col].pen };
	}
}

void screen_erase(struct screen *s, unsigned row, unsigned first, unsigned last)
{
	struct cell *line = screen_line(s, row), empty = blank(s);

	split(s, line, first);
	split(s, line, last + 1);
	for (unsigned i = first; i <= last; i++)
		line[i] = empty;
}

/* lines > 0: the text goes up. */
void screen_scroll(struct screen *s, unsigned top, unsigned bottom, int lines)
{
	struct cell **rows = s->lines[s->alternate];
	unsigned height = bottom - top + 1, count = (unsigned)(lines < 0 ? -lines : lines);

	if (count > height)
		count = height;
	for (unsigned n = 0; n < count; n++) {
		struct cell *out = rows[lines > 0 ? top : bottom];

		if (lines > 0)
			memmove(rows + top, rows + top + 1, (height - 1) * sizeof(*rows));
		else
			memmove(rows + top + 1, rows + top, (height - 1) * sizeof(*rows));
		rows[lines > 0 ? bottom : top] = out;
		screen_erase(s, lines > 0 ? bottom : top, 0, s->cols - 1);
	}
	memset(s->changed + top, true, height);
}

void screen_insert_cells(struct screen *s, unsigned row, unsigned col, unsigned count)
{
	struct cell *line = screen_line(s, row), empty = blank(s);
	unsigned room = s->cols - col;

	if (count > room)
		count = room;
	split(s, line, col);
	split(s, line, s->cols - count);
	memmove(line + col + count, line + col, (room - count) * sizeof(*line));
	for (unsigned i = 0; i < count; i++)
		line[col + i] = empty;
}

void screen_delete_cells(struct screen *s, unsigned row, unsigned col, unsigned count)
{
	struct cell *line = screen_line(s, row), empty = blank(s);
	unsigned room = s->cols - col;

	if (count > room)
		count = room;
	split(s, line, col);
	split(s, line, col + count);
	memmove(line + col, line + col + count, (room - count) * sizeof(*line));
	for (unsigned i = s->cols - count; i < s->cols; i++)
		line[i] = empty;
}

void screen_line_feed(struct screen *s)
{
	if (s->now.at.row == s->now.bottom)
		screen_scroll(s, s->now.top, s->now.bottom, 1);
	else if (s->now.at.row + 1 < s->rows)
		s->now.at.row++;
}

/* A character without a width of its own goes to the one before the cursor. */
static void add_mark(struct screen *s, uint32_t code)
{
	struct cell *line = screen_line(s, s->now.at.row);
	unsigned col = s->now.at.col;

	/* without wrapping, the cursor stays on the character in the last column */
	if (!s->now.at.wraps &&
	    (s->now.modes & SCREEN_WRAP || s->last_col != col || !line[col].code)) {
		if (col == 0)
			return;
		col--;
	}
	if (line[col].width == 0 && col > 0)
		col--;
	for (size_t i = 0; i < SCREEN_MARKS && line[col].code; i++)
		if (!line[col].marks[i]) {
			line[col].marks[i] = code;
			return;
		}
}

/* Goes to the next line where the character does not fit into this one. False: it is not shown. */
static bool make_room(struct screen *s, unsigned width)
{
	struct place *at = &s->now.at;
	bool fits = at->col + width <= s->cols;

	if (!fits && (!(s->now.modes & SCREEN_WRAP) || width > s->cols))
		return false;
	if (at->wraps || !fits) {
		at->col = 0;
		at->wraps = false;
		screen_line_feed(s);
	}
	return true;
}

void screen_put(struct screen *s, uint32_t code)
{
	unsigned width = code < 0x300 ? 1 : terminal_char_width(code);
	struct place *at = &s->now.at;
	bool lines = s->now.modes & (s->now.modes & SCREEN_SHIFT ? SCREEN_LINES_1 : SCREEN_LINES_0);
	struct cell *line;

	if (width == 0) {
		add_mark(s, code);
		return;
	}
	s->last = code;
	if (!make_room(s, width))
		return;
	s->last_col = at->col + width - 1;
	if (s->now.modes & SCREEN_INSERT)
		screen_insert_cells(s, at->row, at->col, width);
	line = screen_line(s, at->row);
	split(s, line, at->col);
	split(s, line, at->col + width);
	line[at->col] = (struct cell){ .code = code, .width = (uint8_t)width, .pen = s->now.pen };
	if (lines && code >= 0x5f && code <= 0x7e)
		line[at->col].pen.flags |= CELL_LINES;
	if (width == 2)
		line[at->col + 1] = (struct cell){ .pen = s->now.pen };
	if (at->col + width < s->cols) {
		at->col += width;
	} else {
		at->col = s->cols - 1;
		at->wraps = s->now.modes & SCREEN_WRAP;
	}
}
