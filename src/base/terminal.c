/*
 * The terminal filter. In: whatever a sandbox prints. Out: text in valid UTF-8, and the sequences of
 * tables/terminal.def. A sequence is held until it is complete, then passes whole or not at all, so that a chunk's end
 * cannot split one past the filter. The eight-bit forms of the control characters (0x80-0x9f) never pass: in UTF-8
 * they are not text. Pure; fuzzed (fuzz/terminal.c).
 */
#include "base/terminal.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	char final, intermediate;
	int parameter;
} csi_rows[] = {
#define CSI(final, intermediate, parameter, help) { final, intermediate, parameter },
#define ESC(final, help)
#include "terminal.def"
#undef CSI
#undef ESC
};

static const char escape_rows[] = {
#define CSI(final, intermediate, parameter, help)
#define ESC(final, help) final,
#include "terminal.def"
#undef CSI
#undef ESC
};

/* Forgets what is held; a control sequence that goes counts as dropped. */
static void drop(struct terminal *t)
{
	t->held_len = 0;
	t->dropped++;
	t->state = TERMINAL_TEXT;
}

static void pass(struct terminal *t, struct buf *out)
{
	buf_add(out, t->held, t->held_len);
	t->held_len = 0;
	t->state = TERMINAL_TEXT;
}

static bool hold(struct terminal *t, unsigned char c)
{
	if (t->held_len == sizeof(t->held))
		return false;
	t->held[t->held_len++] = (char)c;
	return true;
}

/* Whether the complete sequence in held, "ESC [ parameters intermediate final", is in the table. */
static bool csi_allowed(const struct terminal *t)
{
	const char *at = t->held + 2, *end = t->held + t->held_len - 1;
	bool private = *at == '?';
	char intermediate = 0;
	int parameter = -1;

	if (private)
		at++;
	if (at < end && *at >= '0' && *at <= '9')
		parameter = atoi(at);
	for (; at < end; at++) {
		if (*at >= 0x20 && *at <= 0x2f) {
			if (intermediate)
				return false;
			intermediate = *at;
		} else if (!((*at >= '0' && *at <= '9') || *at == ';' || *at == ':')) {
			return false;
		} else if (private && *at == ';') {
			return false;	/* one mode at a time: a list could smuggle another one */
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(csi_rows); i++)
		if (csi_rows[i].final == *end && csi_rows[i].intermediate == intermediate &&
		    (csi_rows[i].parameter >= 0) == private &&
		    (!private || csi_rows[i].parameter == parameter))
			return true;
	return false;
}

/* The first byte of a character: how many follow, and what the next one may be. */
static bool begin_utf8(struct terminal *t, unsigned char c)
{
	t->low = 0x80;
	t->high = 0xbf;
	if (c >= 0xc2 && c <= 0xdf) {
		t->more = 1;
		if (c == 0xc2)
			t->low = 0xa0;	/* below it are the control characters */
	} else if (c >= 0xe0 && c <= 0xef) {
		t->more = 2;
		t->low = c == 0xe0 ? 0xa0 : 0x80;
		t->high = c == 0xed ? 0x9f : 0xbf;
	} else if (c >= 0xf0 && c <= 0xf4) {
		t->more = 3;
		t->low = c == 0xf0 ? 0x90 : 0x80;
		t->high = c == 0xf4 ? 0x8f : 0xbf;
	} else {
		return false;
	}
	t->state = TERMINAL_UTF8;
	return hold(t, c);
}

static void take_text(struct terminal *t, unsigned char c, struct buf *out)
{
	char plain = (char)c;

	if (c == 0x1b) {
		(void)hold(t, c);
		t->state = TERMINAL_ESCAPE;
	} else if (c >= 0x20 && c < 0x7f) {
		buf_add(out, &plain, 1);
	} else if (c == '\n' || c == '\r' || c == '\t' || c == '\b' || c == '\a') {
		buf_add(out, &plain, 1);
	} else if (c >= 0x80 && !begin_utf8(t, c)) {
		buf_puts(out, "\xef\xbf\xbd");	/* U+FFFD */
	}
}

static void take_escape(struct terminal *t, unsigned char c, struct buf *out)
{
	(void)hold(t, c);
	if (c == '[')
		t->state = TERMINAL_CSI;
	else if (c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_')
		t->state = TERMINAL_STRING;
	else if (c >= 0x20 && c <= 0x2f)
		t->state = TERMINAL_CHARSET;
	else if (memchr(escape_rows, c, sizeof(escape_rows)))
		pass(t, out);
	else
		drop(t);
}

static void take_csi(struct terminal *t, unsigned char c, struct buf *out)
{
	if (c < 0x20 || c > 0x7e || !hold(t, c)) {
		drop(t);
		if (c < 0x20)
			take_text(t, c, out);	/* the terminal would obey it in the middle, too */
	} else if (c >= 0x40) {
		if (csi_allowed(t))
			pass(t, out);
		else
			drop(t);
	}
}

/* Only ESC \, BEL, CAN and SUB end a string; what is in it goes nowhere. */
static void take_string(struct terminal *t, unsigned char c)
{
	if (c == '\a' || c == 0x18 || c == 0x1a)
		drop(t);
	else if (c == 0x1b)
		t->state = TERMINAL_STRING_ESCAPE;
}

static void take_string_escape(struct terminal *t, unsigned char c, struct buf *out)
{
	drop(t);
	if (c == '\\')
		return;
	(void)hold(t, 0x1b);	/* the string is over for the terminal: this begins a sequence of its own */
	take_escape(t, c, out);
}

static void take_utf8(struct terminal *t, unsigned char c, struct buf *out)
{
	if (c < t->low || c > t->high) {
		t->held_len = 0;
		t->state = TERMINAL_TEXT;
		buf_puts(out, "\xef\xbf\xbd");
		take_text(t, c, out);
		return;
	}
	(void)hold(t, c);
	t->low = 0x80;
	t->high = 0xbf;
	if (--t->more == 0)
		pass(t, out);
}

void terminal_filter(struct terminal *t, const char *bytes, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)bytes[i];

		switch (t->state) {
		case TERMINAL_TEXT:
			take_text(t, c, out);
			break;
		case TERMINAL_ESCAPE:
			take_escape(t, c, out);
			break;
		case TERMINAL_CHARSET:
			if (c < 0x20 || c > 0x2f)
				drop(t);
			break;
		case TERMINAL_CSI:
			take_csi(t, c, out);
			break;
		case TERMINAL_STRING:
			take_string(t, c);
			break;
		case TERMINAL_STRING_ESCAPE:
			take_string_escape(t, c, out);
			break;
		case TERMINAL_UTF8:
			take_utf8(t, c, out);
			break;
		}
	}
}
