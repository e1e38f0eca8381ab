/*
 * The screen model: what a terminal shows after the bytes that ward sent to it. In: bytes that
 * passed the filter of base/terminal.c, so whole sequences of tables/terminal.def and valid UTF-8,
 * though any byte is survived. Out: the cells of both screens, the cursor, the pen and the modes.
 * Runs in ward, only where the plan can ask questions on the terminal; term/bar.c paints from it.
 * Pure; fuzzed alone (fuzz/screen.c) and beside libvterm (fuzz/screen_vterm.c).
 */
#include "term/screen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "term/screen_internal.h"

#define NUMBER_MAX 32767

static void free_lines(struct cell **lines, unsigned rows)
{
	for (unsigned i = 0; lines && i < rows; i++)
		free(lines[i]);
	free(lines);
}

static struct cell **make_lines(unsigned rows, unsigned cols)
{
	struct cell **lines = calloc(rows, sizeof(*lines));

	for (unsigned i = 0; lines && i < rows; i++) {
		lines[i] = calloc(cols, sizeof(**lines));
		if (!lines[i]) {
			free_lines(lines, rows);
			return NULL;
		}
		for (unsigned k = 0; k < cols; k++)
			lines[i][k].width = 1;
	}
	return lines;
}

static unsigned fit(unsigned value, unsigned max)
{
	return value < 1 ? 1 : value > max ? max : value;
}

struct screen *screen_create(unsigned rows, unsigned cols)
{
	struct screen *s = calloc(1, sizeof(*s));
	struct ward_err e;

	if (!s || screen_resize(s, rows, cols, &e) < 0) {
		free(s);
		return NULL;
	}
	s->now.modes = SCREEN_WRAP | SCREEN_CURSOR;
	return s;
}

void screen_destroy(struct screen *s)
{
	if (!s)
		return;
	free_lines(s->lines[0], s->rows);
	free_lines(s->lines[1], s->rows);
	free(s->changed);
	free(s);
}

/* Copies what fits, from the row `from` on. */
static void copy_lines(struct cell **to, unsigned rows, unsigned cols, const struct screen *s,
		       bool alternate, unsigned from)
{
	unsigned width = cols < s->cols ? cols : s->cols;

	for (unsigned i = 0; i < rows && i + from < s->rows && s->lines[alternate]; i++) {
		memcpy(to[i], s->lines[alternate][i + from], width * sizeof(**to));
		if (to[i][width - 1].width == 2) /* its second half is cut off */
			to[i][width - 1] = (struct cell){ .code = ' ', .width = 1 };
	}
}

static void clamp_place(struct place *at, unsigned rows, unsigned cols, unsigned from)
{
	at->row = at->row > from ? at->row - from : 0;
	at->row = at->row < rows ? at->row : rows - 1;
	if (at->col >= cols - 1) {
		at->wraps &= at->col == cols - 1;
		at->col = cols - 1;
	} else {
		at->wraps = false;
	}
}

int screen_resize(struct screen *s, unsigned rows, unsigned cols, struct ward_err *e)
{
	unsigned last = s->now.at.row, from = 0;
	struct cell **lines[2];
	bool *changed;

	rows = fit(rows, SCREEN_ROWS_MAX);
	cols = fit(cols, SCREEN_COLS_MAX);
	lines[0] = make_lines(rows, cols);
	lines[1] = make_lines(rows, cols);
	changed = malloc(rows * sizeof(*changed));
	if (!lines[0] || !lines[1] || !changed) {
		free_lines(lines[0], rows);
		free_lines(lines[1], rows);
		free(changed);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	if (!s->alternate && last >= rows)
		from = last - rows + 1;
	copy_lines(lines[0], rows, cols, s, false, from);
	copy_lines(lines[1], rows, cols, s, true, 0);
	free_lines(s->lines[0], s->rows);
	free_lines(s->lines[1], s->rows);
	free(s->changed);
	memset(changed, true, rows * sizeof(*changed));
	s->lines[0] = lines[0];
	s->lines[1] = lines[1];
	s->changed = changed;
	s->rows = rows;
	s->cols = cols;
	s->now.top = 0;
	s->now.bottom = rows - 1;
	clamp_place(&s->now.at, rows, cols, from);
	clamp_place(&s->now.saved.at, rows, cols, from);
	clamp_place(&s->other_saved.at, rows, cols, 0);
	return 0;
}

/* ---- bytes ---- */

/* "ESC [ prefix numbers intermediate final", taken apart. False: it is none of ours. */
static bool read_sequence(const struct screen *s, struct sequence *q)
{
	const char *at = s->held + 2, *end = s->held + s->held_len - 1;
	bool open = false, joined = false;

	*q = (struct sequence){ .final = *end };
	if (at < end && *at >= 0x3c && *at <= 0x3f)
		q->prefix = *at++;
	for (; at < end && *at >= 0x30; at++) {
		if (*at > ';')
			return false;
		if (!open) {
			if (q->count == SCREEN_NUMBERS_MAX)
				return false;
			q->joined[q->count++] = joined;
		}
		open = *at <= '9';
		if (open) {
			unsigned *number = &q->numbers[q->count - 1];

			*number = *number * 10 + (unsigned)(*at - '0');
			if (*number > NUMBER_MAX)
				return false;
		} else {
			joined = *at == ':';
		}
	}
	if (at < end)
		q->intermediate = *at++;
	return at == end;
}

static void control(struct screen *s, char c)
{
	struct place *at = &s->now.at;

	if (c == '\r') {
		at->col = 0;
	} else if (c == '\n' || c == '\v' || c == '\f') {
		screen_line_feed(s);
	} else if (c == '\b') {
		at->col -= at->col > 0;
	} else if (c == '\t') {
		at->col = (at->col / 8 + 1) * 8;
		if (at->col >= s->cols)
			at->col = s->cols - 1;
	} else {
		if (c == 0x0e || c == 0x0f)
			s->now.modes = c == 0x0e ? s->now.modes | SCREEN_SHIFT
						 : s->now.modes & ~(uint32_t)SCREEN_SHIFT;
		return;
	}
	at->wraps = false;
}

static void escape(struct screen *s, char final)
{
	struct place *at = &s->now.at;

	if (final == '7') {
		screen_save(s);
	} else if (final == '8') {
		screen_restore(s);
	} else if (final == 'D' || final == 'E') {
		at->wraps = false;
		at->col = final == 'E' ? 0 : at->col;
		screen_line_feed(s);
	} else if (final == 'M') {
		at->wraps = false;
		if (at->row == s->now.top)
			screen_scroll(s, s->now.top, s->now.bottom, -1);
		else if (at->row > 0)
			at->row--;
	}
}

static void charset(struct screen *s, char slot, char set)
{
	uint32_t bit = slot == '(' ? SCREEN_LINES_0 : slot == ')' ? SCREEN_LINES_1 : 0;

	s->now.modes = set == '0' ? s->now.modes | bit : s->now.modes & ~bit;
}

/* One byte more of a sequence. False: the byte is not taken, because the sequence switches. */
static bool take_sequence(struct screen *s, unsigned char c)
{
	struct sequence q;

	if (c < 0x20 || c >= 0x7f || s->held_len == sizeof(s->held)) {
		s->held_len = 0; /* the filter lets none of these pass */
		return true;
	}
	s->held[s->held_len++] = (char)c;
	if (s->held_len == 2) {
		if (c != '[' && c > 0x2f) {
			s->held_len = 0;
			escape(s, (char)c);
		}
		return true;
	}
	if (s->held[1] != '[') {
		if (s->held_len == 3)
			charset(s, s->held[1], (char)c);
		s->held_len = 0;
		return true;
	}
	if (c < 0x40)
		return true;
	if (read_sequence(s, &q)) {
		if (s->hold_switch && screen_switches(s, &q)) {
			s->held_len--;
			return false;
		}
		screen_csi(s, &q);
	}
	s->held_len = 0;
	return true;
}

/* One byte more of a character. */
static void take_utf8(struct screen *s, unsigned char c)
{
	uint32_t code;

	s->held[s->held_len++] = (char)c;
	if (--s->more > 0)
		return;
	code = (unsigned char)s->held[0] & (0x3fU >> (s->held_len - 1));
	for (size_t i = 1; i < s->held_len; i++)
		code = code << 6 | ((unsigned char)s->held[i] & 0x3fU);
	s->held_len = 0;
	screen_put(s, code);
}

static void take_text(struct screen *s, unsigned char c)
{
	if (c == 0x1b || c >= 0xc0) {
		s->held[0] = (char)c;
		s->held_len = 1;
		s->more = c < 0xc0 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
	} else if (c < 0x20) {
		control(s, (char)c);
	} else if (c < 0x7f) {
		screen_put(s, c);
	}
}

size_t screen_feed(struct screen *s, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)bytes[i];

		if (s->held_len && s->more && (c < 0x80 || c > 0xbf))
			s->held_len = s->more = 0; /* not UTF-8: the filter has none */
		if (s->held_len == 0)
			take_text(s, c);
		else if (s->more)
			take_utf8(s, c);
		else if (!take_sequence(s, c)) {
			/* back to its first byte, if that was among these */
			size_t back = i < s->held_len ? i : s->held_len;

			s->held_len -= back;
			return i - back;
		}
	}
	return n;
}
