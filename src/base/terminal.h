/* What a sandbox may send to the operator's terminal: text, colours and cursor moves, nothing that
 * answers, remaps or reaches beyond the screen. A streaming filter, pure: state in, bytes in, bytes
 * out. */
#ifndef WARD_BASE_TERMINAL_H
#define WARD_BASE_TERMINAL_H

#include "base/buf.h"

enum terminal_state {
	TERMINAL_TEXT,
	TERMINAL_ESCAPE,   /* ESC seen */
	TERMINAL_CHARSET,  /* ESC with an intermediate byte */
	TERMINAL_CSI,      /* ESC [ parameters */
	TERMINAL_CSI_LONG, /* one that is too long to be any: dropped to its end */
	TERMINAL_STRING,   /* OSC, DCS, APC, PM, SOS: dropped to its end */
	TERMINAL_STRING_ESCAPE,
	TERMINAL_UTF8 /* inside a character of several bytes */
};

/* Where the cursor must be by what was shown: enough for programs that ask. Rows and columns count
 * from 1. */
struct terminal_cursor {
	unsigned rows, cols; /* of the screen; 0: not known, 24 and 80 */
	unsigned row, col;   /* 0: nothing was shown yet; the last row is assumed */
	unsigned saved_row, saved_col;
	unsigned last_width; /* of the last character */
};

struct terminal {
	/* for the caller to set */
	/* no program reads what the terminal sends: modes that change it do not pass */
	bool no_input;
	/* it may not know UTF-8: characters with a byte of 0x80-0x9f become "?" */
	bool bytes_only;
	bool answers; /* queries are answered into `answer`, which the caller takes */

	enum terminal_state state;
	unsigned more;      /* bytes that the present character still needs */
	unsigned low, high; /* what the next of them may be */
	char held[128];     /* a sequence or character that is not complete yet */
	size_t held_len;
	uint64_t dropped;  /* sequences that did not pass */
	uint32_t in_force; /* modes and the like that are not as usual, one bit a row */
	struct terminal_cursor cursor;
	char answer[128];
	size_t answer_len;
};

/* Appends to *out what may pass of n bytes. */
void terminal_filter(struct terminal *t, const char *bytes, size_t n, struct buf *out);
/* Appends what ends everything that is in force on the screen; nothing where all is as usual. sure:
 * also what changes with every frame, whether it is in force or not. */
void terminal_undo(const struct terminal *t, bool sure, struct buf *out);
/* Appends what brings the modes in force back after terminal_undo(). */
void terminal_redo(const struct terminal *t, struct buf *out);
/* Of these only the modes that change what the terminal types. */
void terminal_redo_input(const struct terminal *t, struct buf *out);
/* Whether the terminal sends input unasked: mouse and focus reports. */
bool terminal_types(const struct terminal *t);
/* What is in force, without what changes with every frame. */
uint32_t terminal_lasting(const struct terminal *t);

/* The cursor after one character, one control byte, or one sequence with its numbers. */
void terminal_cursor_text(struct terminal_cursor *c, uint32_t code);
void terminal_cursor_control(struct terminal_cursor *c, char control);
void terminal_cursor_escape(struct terminal_cursor *c, char final);
void terminal_cursor_csi(struct terminal_cursor *c, char final, const unsigned *numbers,
			 size_t count);
/* Cells that a character takes: none, one or two. */
unsigned terminal_char_width(uint32_t code);
/* Where it is, within the screen. */
void terminal_cursor_place(const struct terminal_cursor *c, unsigned *ret_row, unsigned *ret_col);

#endif
