/* What a terminal shows after the bytes that passed the filter: a model of its screen, from which
 * ward can paint the screen again after it has shown something of its own. Pure. */
#ifndef WARD_TERM_SCREEN_H
#define WARD_TERM_SCREEN_H

#include "base/buf.h"

#define SCREEN_ROWS_MAX 1000
#define SCREEN_COLS_MAX 1000
#define SCREEN_MARKS 2 /* combining characters of one cell; more are not kept */

enum cell_flag {
	CELL_BOLD = 1 << 0,
	CELL_DIM = 1 << 1,
	CELL_ITALIC = 1 << 2,
	CELL_BLINK = 1 << 3,
	CELL_REVERSE = 1 << 4,
	CELL_HIDDEN = 1 << 5,
	CELL_STRUCK = 1 << 6,
	CELL_OVERLINE = 1 << 7,
	CELL_LINES = 1 << 8 /* the code is one of the line drawing set */
};

/* How a colour was written, so that it is written in the same way again. */
enum colour_form {
	COLOUR_NONE,
	COLOUR_SHORT,  /* 30-37, 90-97 and so on: a number of 0-15 */
	COLOUR_NUMBER, /* 38;5;N */
	COLOUR_RGB     /* 38;2;R;G;B */
};

struct colour {
	uint8_t form; /* enum colour_form */
	uint8_t value[3];
};

struct pen {
	struct colour text, back, under;
	uint16_t flags;
	uint8_t underline; /* 0: none, 1: single, up to 5: the forms 4:2 to 4:5 */
};

struct cell {
	uint32_t code; /* 0: empty */
	uint32_t marks[SCREEN_MARKS];
	struct pen pen;
	uint8_t width; /* 1, 2, or 0: the second half of the character before it */
};

enum screen_mode {
	SCREEN_ORIGIN = 1 << 0,
	SCREEN_INSERT = 1 << 1,
	SCREEN_WRAP = 1 << 2,
	SCREEN_CURSOR = 1 << 3, /* it is shown */
	SCREEN_PASTE = 1 << 4,  /* pasted text is marked */
	SCREEN_SHIFT = 1 << 5,  /* the second character set is in use */
	SCREEN_LINES_0 = 1 << 6,
	SCREEN_LINES_1 = 1 << 7 /* the first, the second set is line drawing */
};

struct place {
	unsigned row, col; /* from 0 */
	bool wraps;        /* beyond the last column: the next character goes to the next line */
};

/* What ESC 7 remembers. */
struct saved_cursor {
	struct place at;
	struct pen pen;
	uint32_t modes; /* ORIGIN and the character sets */
	bool used;
};

/* Everything that decides what the next byte does. */
struct screen_state {
	struct place at;
	struct pen pen;
	uint32_t modes;       /* enum screen_mode */
	unsigned top, bottom; /* the scrolling region, inclusive */
	struct saved_cursor saved;
};

struct screen {
	unsigned rows, cols;
	struct screen_state now;
	bool alternate; /* which of the two is shown */
	struct cell **lines[2];
	bool *changed;                   /* rows that were changed since the caller cleared this */
	struct saved_cursor other_saved; /* of the screen that is not shown */
	uint32_t last;                   /* the last character, for CSI b */
	unsigned last_col;               /* where it ended */
	unsigned shown_first;            /* the first row that is shown above the bar */
	/* stop before a sequence that switches between the screens */
	bool hold_switch;
	/* a sequence or a character that is not complete yet */
	char held[128];
	size_t held_len;
	unsigned more;
};

/* NULL: out of memory. */
must_check struct screen *screen_create(unsigned rows, unsigned cols);
/* NULL is fine. */
void screen_destroy(struct screen *s);
/* Another size; what does not fit is cut off, on the normal screen at the top if the cursor would
 * be lost otherwise. -ENOMEM: unchanged. */
must_check int screen_resize(struct screen *s, unsigned rows, unsigned cols, struct ward_err *e);
/* What the terminal shows after these bytes, which passed terminal_filter(). Returns how many of
 * them were taken: fewer than n only with hold_switch. */
size_t screen_feed(struct screen *s, const char *bytes, size_t n);
/* The cells of one row that is shown; borrowed until the next call. */
const struct cell *screen_row(const struct screen *s, unsigned row);
bool pen_equal(const struct pen *a, const struct pen *b);

#endif
