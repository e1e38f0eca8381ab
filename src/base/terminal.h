/* What a sandbox may send to the operator's terminal: text, colours and cursor moves, nothing that answers, remaps or
 * reaches beyond the screen. A streaming filter, pure: state in, bytes in, bytes out. */
#ifndef WARD_BASE_TERMINAL_H
#define WARD_BASE_TERMINAL_H

#include "base/buf.h"

enum terminal_state {
	TERMINAL_TEXT,
	TERMINAL_ESCAPE,	/* ESC seen */
	TERMINAL_CHARSET,	/* ESC with an intermediate byte */
	TERMINAL_CSI,		/* ESC [ parameters */
	TERMINAL_STRING,	/* OSC, DCS, APC, PM, SOS: dropped to its end */
	TERMINAL_STRING_ESCAPE,
	TERMINAL_UTF8		/* inside a character of several bytes */
};

struct terminal {
	enum terminal_state state;
	unsigned more;		/* bytes that the present character still needs */
	unsigned low, high;	/* what the next of them may be */
	char held[64];		/* a sequence or character that is not complete yet */
	size_t held_len;
	uint64_t dropped;	/* sequences that did not pass */
};

/* Appends to *out what may pass of n bytes. */
void terminal_filter(struct terminal *t, const char *bytes, size_t n, struct buf *out);

#endif
