/*
 * The screen model beside libvterm: both get the same text and sequences, made from the input, and
 * must show the same cells, pens and cursor. Left out is what the two define differently:
 *   - a cursor beyond the last column, before anything but text: it is put back on the column first
 *   - moves that a region stops (libvterm goes on), and cells inserted outside it
 *   - a wide character that does not fit where lines do not wrap; one half of one overwritten
 *   - a combining character where lines do not wrap, not right behind its base, or with another
 *     pen than its base (libvterm paints both with it)
 *   - what ESC 7 remembers beside place and pen, and that each screen remembers its own
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vterm.h>

#include "term/screen.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROWS 6
#define COLS 12

struct both {
	struct screen *ours;
	VTerm *theirs;
	bool typed; /* the last thing sent was a character: a mark belongs to it */
	bool saved; /* ESC 7 was sent: libvterm takes default colours for others from then on */
};

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void send_both(struct both *b, const char *text)
{
	size_t n = strlen(text);

	if (getenv("FUZZ_SHOW"))
		for (size_t i = 0; i < n; i++)
			fprintf(stderr, text[i] == 0x1b ? "\nESC" : "%c", text[i]);
	require(screen_feed(b->ours, text, n) == n);
	vterm_input_write(b->theirs, text, n);
	b->typed = n == 1 && text[0] > ' ';
}

static void leave_edge(struct both *b)
{
	char text[24];

	if (!b->ours->now.at.wraps)
		return;
	snprintf(text, sizeof(text), "\r\x1b[%uC", b->ours->now.at.col);
	send_both(b, text);
}

/* Whether the cell at the cursor, or one that shifts, is half of a wide character. */
static bool near_wide(const struct screen *s)
{
	for (unsigned row = 0; row < s->rows; row++)
		for (unsigned col = 0; col < s->cols; col++)
			if (screen_row(s, row)[col].width != 1)
				return true;
	return false;
}

/* Whether a character at the cursor, of one cell or two, would replace half of a wide one. */
static bool over_wide(const struct screen *s)
{
	unsigned row = s->now.at.row, col = s->now.at.col;

	if (s->now.at.wraps || col == COLS - 1) {
		for (unsigned i = 0; i < COLS; i++)
			if (screen_row(s, row)[i].width != 1 ||
			    (row + 1 < ROWS && screen_row(s, row + 1)[i].width != 1))
				return true;
		return false;
	}
	return screen_row(s, row)[col].width != 1 || screen_row(s, row)[col + 1].width != 1;
}

static void send_text(struct both *b, uint8_t choice)
{
	struct screen *s = b->ours;
	char plain[2] = { (char)('!' + choice % 90), 0 };

	if (choice < 110 && (over_wide(s) || (s->now.modes & SCREEN_INSERT && near_wide(s))))
		return;
	if (choice < 100)
		send_both(b, plain);
	else if (choice < 110 && s->now.modes & SCREEN_WRAP && !(s->now.modes & SCREEN_INSERT))
		send_both(b, "\xe4\xb8\xad");
	else if (choice < 115 && s->now.at.col > 0 && b->typed && s->now.modes & SCREEN_WRAP &&
		 !s->now.at.wraps && screen_row(s, s->now.at.row)[s->now.at.col - 1].code > ' ' &&
		 !screen_row(s, s->now.at.row)[s->now.at.col - 1].marks[0] &&
		 pen_equal(&screen_row(s, s->now.at.row)[s->now.at.col - 1].pen, &s->now.pen))
		send_both(b, "\xcc\x81");
}

static void send_control(struct both *b, uint8_t choice)
{
	static const char *const texts[] = {
		"\r",
		"\n",
		"\b",
		"\t",
		"\x1b"
		"D",
		"\x1b"
		"E",
		"\x1b"
		"M",
		"\v",
	};

	leave_edge(b);
	send_both(b, texts[choice % (sizeof(texts) / sizeof(texts[0]))]);
}

static void send_csi(struct both *b, uint8_t choice, uint8_t numbers)
{
	static const char finals[] = "HfGd`aCDIZJKXLMSTABEFePr@";
	char final = finals[choice % (sizeof(finals) - 1)], text[32];
	const struct screen_state *n = &b->ours->now;
	bool whole = n->top == 0 && n->bottom == ROWS - 1;
	unsigned first = numbers % 16, second = numbers / 16;

	leave_edge(b);
	if (strchr("ABEFeP@", final) && !whole)
		return;
	if (strchr("JKXP@", final) && near_wide(b->ours))
		return;
	if (final == 'J' || final == 'K')
		first %= 3;
	snprintf(text, sizeof(text), strchr("Hfr", final) ? "\x1b[%u;%u%c" : "\x1b[%u%.0u%c", first,
		 strchr("Hfr", final) ? second : 0, final);
	if (final == 'r' && (first >= second || second > ROWS || first == 0))
		snprintf(text, sizeof(text), "\x1b[r");
	send_both(b, text);
}

static void send_state(struct both *b, uint8_t choice)
{
	static const char *const texts[] = {
		"\x1b[4h",
		"\x1b[4l",
		"\x1b[?7l",
		"\x1b[?7h",
		"\x1b[?6h",
		"\x1b[?6l",
		"\x1b[m",
		"\x1b[1m",
		"\x1b[3m",
		"\x1b[7m",
		"\x1b[4m",
		"\x1b[9m",
		"\x1b[22m",
		"\x1b[24m",
		"\x1b[31m",
		"\x1b[42m",
		"\x1b[97m",
		"\x1b[39m",
		"\x1b[49m",
		"\x1b[38;5;77m",
		"\x1b[48;2;1;2;3m",
		"\x1b[?1049h",
		"\x1b[?1049l",
		"\x1b[?6l\x1b"
		"7",
		"\x1b[?6l\x1b"
		"8",
	};
	const char *text = texts[choice % (sizeof(texts) / sizeof(texts[0]))];

	leave_edge(b);
	if (b->ours->alternate && (strchr(text, '7') || strchr(text, '8')) && strstr(text, "?6l"))
		return;
	if (text[strlen(text) - 1] == '8' && !b->ours->now.saved.used)
		return;
	if (strstr(text, "1049"))
		send_both(b, "\x1b[?6l");
	if (strstr(text, "1049h") && b->ours->alternate)
		return;
	if (strstr(text, "1049l") && !b->ours->alternate)
		return;
	b->saved |= text[strlen(text) - 1] == '7' || strstr(text, "1049");
	send_both(b, text);
}

static bool same_colour(const struct colour *ours, const VTermColor *theirs, bool saved)
{
	switch (ours->form) {
	case COLOUR_SHORT:
	case COLOUR_NUMBER:
		return VTERM_COLOR_IS_INDEXED(theirs) && theirs->indexed.idx == ours->value[0];
	case COLOUR_RGB:
		return VTERM_COLOR_IS_RGB(theirs) && theirs->rgb.red == ours->value[0] &&
		       theirs->rgb.green == ours->value[1] && theirs->rgb.blue == ours->value[2];
	default:
		return saved || VTERM_COLOR_IS_DEFAULT_FG(theirs) ||
		       VTERM_COLOR_IS_DEFAULT_BG(theirs);
	}
}

static void compare_cell(const struct cell *ours, const VTermScreenCell *theirs, bool saved)
{
	require(same_colour(&ours->pen.back, &theirs->bg, saved));
	if (ours->code == 0) {
		require(theirs->chars[0] == 0);
		return;
	}
	require(theirs->chars[0] == ours->code && theirs->chars[1] == ours->marks[0]);
	require(theirs->width == (char)ours->width);
	require(same_colour(&ours->pen.text, &theirs->fg, saved));
	require(theirs->attrs.bold == !!(ours->pen.flags & CELL_BOLD));
	require(theirs->attrs.italic == !!(ours->pen.flags & CELL_ITALIC));
	require(theirs->attrs.reverse == !!(ours->pen.flags & CELL_REVERSE));
	require(theirs->attrs.strike == !!(ours->pen.flags & CELL_STRUCK));
	require(theirs->attrs.underline == ours->pen.underline);
}

static void compare(const struct both *b)
{
	VTermScreen *screen = vterm_obtain_screen(b->theirs);
	VTermPos at;

	vterm_state_get_cursorpos(vterm_obtain_state(b->theirs), &at);
	require(at.row == (int)b->ours->now.at.row);
	require(at.col == (int)b->ours->now.at.col || b->ours->now.at.wraps);
	for (int row = 0; row < ROWS; row++)
		for (int col = 0; col < COLS; col++) {
			const struct cell *ours = &screen_row(b->ours, (unsigned)row)[col];
			VTermScreenCell theirs;

			vterm_screen_get_cell(screen, (VTermPos){ row, col }, &theirs);
			if (ours->width)
				compare_cell(ours, &theirs, b->saved);
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct both b = { screen_create(ROWS, COLS), vterm_new(ROWS, COLS), false, false };

	require(b.ours && b.theirs);
	vterm_set_utf8(b.theirs, 1);
	vterm_screen_enable_altscreen(vterm_obtain_screen(b.theirs), 1);
	vterm_screen_reset(vterm_obtain_screen(b.theirs), 1);
	for (size_t i = 0; i + 2 < size && i < 600; i += 3) {
		uint8_t kind = data[i] % 8;

		if (kind < 3)
			send_text(&b, data[i + 1]);
		else if (kind < 4)
			send_control(&b, data[i + 1]);
		else if (kind < 6)
			send_csi(&b, data[i + 1], data[i + 2]);
		else
			send_state(&b, data[i + 1]);
		compare(&b);
	}
	screen_destroy(b.ours);
	vterm_free(b.theirs);
	return 0;
}
