/*
 * The terminal filter. In: whatever a sandbox prints. Out: text in valid UTF-8, and the sequences
 * of tables/terminal.def. A sequence is held until it is complete, then passes whole or not at all,
 * so that a chunk's end cannot split one past the filter. The eight-bit forms of the control
 * characters (0x80-0x9f) never pass: in UTF-8 they are not text. What passed and stays in force is
 * remembered, so that it can be undone when the sandbox is gone. Pure; fuzzed (fuzz/terminal.c).
 */
#include "base/terminal.h"

#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 32767 /* no screen is larger, and no terminal shall count to more */
#define NUMBERS_MAX 40

/* The rows of tables/terminal.def, each kind as a table of its own. */
static const struct csi_row {
	char final, intermediate;
} csi_rows[] = {
#define CSI(final, intermediate, help) { final, intermediate },
#include "terminal.def"
};

static const struct sticky_row {
	char final, intermediate;
	const char *undo;
} sticky_rows[] = {
#define STICKY(final, intermediate, undo, help) { final, intermediate, undo },
#include "terminal.def"
};

enum mode_kind { SCREEN, INPUT };

static const struct mode_row {
	enum mode_kind kind;
	char prefix;
	unsigned number;
	char usual;
} mode_rows[] = {
#define MODE(kind, prefix, number, usual, help) { kind, prefix, number, usual },
#include "terminal.def"
};

static const char escape_rows[] = {
#define ESC(final, help) final,
#include "terminal.def"
};

static const struct {
	char slot, set;
} charset_rows[] = {
#define CHARSET(slot, set, help) { slot, set },
#include "terminal.def"
};

static const struct {
	char prefix;
	unsigned number;
	char final;
	const char *text;
} answer_rows[] = {
#define ANSWER(prefix, number, final, text, help) { prefix, number, final, text },
#include "terminal.def"
};

/* Bits of in_force: the modes' rows, then the sticky rows, then these. */
#define BIT(i) (1U << (i))
#define STICKY_BIT(i) BIT(ARRAY_LEN(mode_rows) + (i))
#define SHIFT_BIT BIT(29)   /* the second set is in use */
#define CHARSET_BIT BIT(30) /* the first set is not ASCII */
#define KEYPAD_BIT BIT(31)
_Static_assert(ARRAY_LEN(mode_rows) + ARRAY_LEN(sticky_rows) <= 29, "in_force has too few bits");

static void set_bit(struct terminal *t, uint32_t bit, bool on)
{
	t->in_force = on ? t->in_force | bit : t->in_force & ~bit;
}

/* ---- one complete sequence ---- */

/* "ESC [ prefix numbers intermediate final", taken apart. */
struct csi {
	char prefix, intermediate, final;
	unsigned numbers[NUMBERS_MAX];
	size_t count;
};

static bool read_csi(const struct terminal *t, struct csi *s)
{
	const char *at = t->held + 2, *end = t->held + t->held_len - 1;
	bool digits = false;

	*s = (struct csi){ .final = *end };
	if (at < end && *at >= 0x3c && *at <= 0x3f)
		s->prefix = *at++;
	for (; at < end && *at >= 0x30; at++) {
		if (*at >= '0' && *at <= '9') {
			if (!digits && s->count++ == NUMBERS_MAX)
				return false;
			digits = true;
			s->numbers[s->count - 1] =
				s->numbers[s->count - 1] * 10 + (unsigned)(*at - '0');
			if (s->numbers[s->count - 1] > NUMBER_MAX)
				return false;
		} else if (*at != ';' && *at != ':') {
			return false;
		} else {
			if (!digits && s->count++ == NUMBERS_MAX)
				return false; /* an empty one counts */
			digits = false;
		}
	}
	if (at < end)
		s->intermediate = *at++;
	return at == end;
}

/* Whether every mode of the list may be switched; the ones that stay in force are noted. */
static bool allow_modes(struct terminal *t, const struct csi *s)
{
	uint32_t touched = 0;
	bool input = false;

	for (size_t i = 0; i < s->count; i++) {
		size_t k = 0;

		while (k < ARRAY_LEN(mode_rows) &&
		       (mode_rows[k].prefix != s->prefix || mode_rows[k].number != s->numbers[i]))
			k++;
		if (k == ARRAY_LEN(mode_rows))
			return false;
		touched |= BIT(k);
		input |= mode_rows[k].kind == INPUT;
	}
	for (size_t k = 0; k < ARRAY_LEN(mode_rows); k++)
		if (touched & BIT(k))
			set_bit(t, BIT(k), s->final != mode_rows[k].usual);
	return s->count > 0 && !s->intermediate && !(input && t->no_input);
}

static bool allow_csi(struct terminal *t, const struct csi *s)
{
	if (s->final == 'h' || s->final == 'l')
		return allow_modes(t, s);
	if (s->prefix)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(sticky_rows); i++)
		if (sticky_rows[i].final == s->final &&
		    sticky_rows[i].intermediate == s->intermediate) {
			set_bit(t, STICKY_BIT(i), s->count > 1 || (s->count == 1 && s->numbers[0]));
			return true;
		}
	if (s->final == 'J' && s->count && s->numbers[0] > 2)
		return false; /* the scrollback is the operator's */
	for (size_t i = 0; i < ARRAY_LEN(csi_rows); i++)
		if (csi_rows[i].final == s->final && csi_rows[i].intermediate == s->intermediate)
			return true;
	return false;
}

static void add_answer(struct terminal *t, const char *text)
{
	size_t n = strlen(text);

	if (t->answer_len + n > sizeof(t->answer))
		return; /* a program that asks that often does not wait for every answer */
	memcpy(t->answer + t->answer_len, text, n);
	t->answer_len += n;
}

static void answer_csi(struct terminal *t, const struct csi *s)
{
	unsigned number = s->count ? s->numbers[0] : 0, row, col;
	char place[48];

	for (size_t i = 0; i < ARRAY_LEN(answer_rows); i++) {
		if (s->final != answer_rows[i].final || s->prefix != answer_rows[i].prefix ||
		    s->intermediate || s->count > 1 || number != answer_rows[i].number)
			continue;
		terminal_cursor_place(&t->cursor, &row, &col);
		snprintf(place, sizeof(place), "\x1b[%s%u;%uR", s->prefix ? "?" : "", row, col);
		add_answer(t, *answer_rows[i].text ? answer_rows[i].text : place);
	}
}

/* ---- bytes ---- */

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

/* The first byte of a character: how many follow, and what the next one may be. */
static bool begin_utf8(struct terminal *t, unsigned char c)
{
	t->low = 0x80;
	t->high = 0xbf;
	if (c >= 0xc2 && c <= 0xdf) {
		t->more = 1;
		if (c == 0xc2)
			t->low = 0xa0; /* below it are the control characters */
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

static void take_control(struct terminal *t, unsigned char c, struct buf *out)
{
	char plain = (char)c;

	if (!memchr("\n\r\t\b\a\v\f\x0e\x0f", plain, 9))
		return;
	if (c == 0x0e || c == 0x0f)
		set_bit(t, SHIFT_BIT, c == 0x0e);
	terminal_cursor_control(&t->cursor, plain);
	buf_add(out, &plain, 1);
}

static void take_text(struct terminal *t, unsigned char c, struct buf *out)
{
	char plain = (char)c;

	if (c == 0x1b) {
		(void)hold(t, c);
		t->state = TERMINAL_ESCAPE;
	} else if (c >= 0x20 && c < 0x7f) {
		terminal_cursor_text(&t->cursor, c);
		buf_add(out, &plain, 1);
	} else if (c < 0x20) {
		take_control(t, c, out);
	} else if (c >= 0x80 && !begin_utf8(t, c)) {
		terminal_cursor_text(&t->cursor, 0xfffd);
		buf_puts(out, "\xef\xbf\xbd"); /* U+FFFD */
	}
}

/* A byte that no sequence has: what was held is dropped, and the byte counts for itself, as it does
 * for a terminal. */
static void start_over(struct terminal *t, unsigned char c, struct buf *out)
{
	drop(t);
	take_text(t, c, out);
}

static void take_escape(struct terminal *t, unsigned char c, struct buf *out)
{
	if (c < 0x20 || c >= 0x7f) {
		start_over(t, c, out);
		return;
	}
	(void)hold(t, c);
	if (c == '[') {
		t->state = TERMINAL_CSI;
	} else if (memchr("]PX^_k", c, 6)) { /* k: a title, in screen and tmux */
		t->state = TERMINAL_STRING;
	} else if (c <= 0x2f) {
		t->state = TERMINAL_CHARSET;
	} else if (memchr(escape_rows, c, sizeof(escape_rows))) {
		if (c == '=' || c == '>')
			set_bit(t, KEYPAD_BIT, c == '=');
		terminal_cursor_escape(&t->cursor, (char)c);
		if ((c == '=' || c == '>') && t->no_input)
			drop(t);
		else
			pass(t, out);
	} else {
		drop(t);
	}
}

static void take_charset(struct terminal *t, unsigned char c, struct buf *out)
{
	if (c < 0x20 || c >= 0x7f) {
		start_over(t, c, out);
		return;
	}
	if (c <= 0x2f) {
		if (!hold(t, c))
			t->held_len = sizeof(t->held); /* too long to be any */
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(charset_rows); i++)
		if (t->held_len == 2 && charset_rows[i].slot == t->held[1] &&
		    charset_rows[i].set == (char)c) {
			(void)hold(t, c);
			if (t->held[1] == '(')
				set_bit(t, CHARSET_BIT, c != 'B');
			pass(t, out);
			return;
		}
	drop(t);
}

static void take_csi(struct terminal *t, unsigned char c, struct buf *out)
{
	struct csi s;

	if (c < 0x20 || c >= 0x7f) {
		start_over(t, c, out); /* the terminal would obey it in the middle, too */
		return;
	}
	if (!hold(t, c))
		t->state = TERMINAL_CSI_LONG;
	if (c < 0x40)
		return;
	if (t->state == TERMINAL_CSI_LONG || !read_csi(t, &s)) {
		drop(t);
	} else if (allow_csi(t, &s)) {
		terminal_cursor_csi(&t->cursor, s.prefix ? 0 : s.final, s.numbers, s.count);
		pass(t, out);
	} else {
		if (t->answers)
			answer_csi(t, &s);
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
	/* the string is over for the terminal: this begins a sequence of its own */
	(void)hold(t, 0x1b);
	t->state = TERMINAL_ESCAPE;
	take_escape(t, c, out);
}

/* The character in held. */
static uint32_t decode(const struct terminal *t)
{
	unsigned char first = (unsigned char)t->held[0];
	uint32_t code = first & (first >= 0xf0 ? 0x07U : first >= 0xe0 ? 0x0fU : 0x1fU);

	for (size_t i = 1; i < t->held_len; i++)
		code = code << 6 | ((unsigned char)t->held[i] & 0x3fU);
	return code;
}

static bool has_control_byte(const struct terminal *t)
{
	for (size_t i = 0; i < t->held_len; i++)
		if ((unsigned char)t->held[i] >= 0x80 && (unsigned char)t->held[i] <= 0x9f)
			return true;
	return false;
}

static void take_utf8(struct terminal *t, unsigned char c, struct buf *out)
{
	if (c < t->low || c > t->high) {
		t->held_len = 0;
		t->state = TERMINAL_TEXT;
		terminal_cursor_text(&t->cursor, 0xfffd);
		buf_puts(out, "\xef\xbf\xbd");
		take_text(t, c, out);
		return;
	}
	(void)hold(t, c);
	t->low = 0x80;
	t->high = 0xbf;
	if (--t->more > 0)
		return;
	terminal_cursor_text(&t->cursor, decode(t));
	if (t->bytes_only && has_control_byte(t)) {
		t->held_len = 0;
		(void)hold(t, '?');
	}
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
			take_charset(t, c, out);
			break;
		case TERMINAL_CSI:
		case TERMINAL_CSI_LONG:
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

/* ---- what is in force ---- */

static void add_mode(const struct mode_row *m, bool on, struct buf *out)
{
	char final = on == (m->usual == 'l') ? 'h' : 'l';

	if (m->prefix)
		buf_printf(out, "\x1b[%c%u%c", m->prefix, m->number, final);
	else
		buf_printf(out, "\x1b[%u%c", m->number, final);
}

/* Bits that change with every frame. */
static uint32_t changing_bits(void)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < ARRAY_LEN(sticky_rows); i++)
		bits |= STICKY_BIT(i);
	for (size_t i = 0; i < ARRAY_LEN(mode_rows); i++)
		if (mode_rows[i].number == 2026 || mode_rows[i].number == 25)
			bits |= BIT(i);
	return bits;
}

void terminal_undo(const struct terminal *t, bool sure, struct buf *out)
{
	uint32_t bits = t->in_force | (sure ? changing_bits() : 0);

	for (size_t i = 0; i < ARRAY_LEN(sticky_rows); i++)
		if (bits & STICKY_BIT(i))
			buf_puts(out, sticky_rows[i].undo);
	if (bits & (CHARSET_BIT | SHIFT_BIT))
		buf_puts(out, "\x1b(B\x0f");
	if (bits & KEYPAD_BIT)
		buf_puts(out, "\x1b>");
	for (size_t i = 0; i < ARRAY_LEN(mode_rows); i++)
		if (bits & BIT(i))
			add_mode(&mode_rows[i], false, out);
}

void terminal_redo(const struct terminal *t, struct buf *out)
{
	for (size_t i = ARRAY_LEN(mode_rows); i-- > 0;)
		if (t->in_force & BIT(i))
			add_mode(&mode_rows[i], true, out);
	if (t->in_force & KEYPAD_BIT)
		buf_puts(out, "\x1b=");
}

void terminal_redo_input(const struct terminal *t, struct buf *out)
{
	for (size_t i = ARRAY_LEN(mode_rows); i-- > 0;)
		if (t->in_force & BIT(i) && mode_rows[i].kind == INPUT)
			add_mode(&mode_rows[i], true, out);
}

uint32_t terminal_lasting(const struct terminal *t)
{
	return t->in_force & ~changing_bits();
}

bool terminal_types(const struct terminal *t)
{
	for (size_t i = 0; i < ARRAY_LEN(mode_rows); i++)
		if (t->in_force & BIT(i) && mode_rows[i].number >= 1000 &&
		    mode_rows[i].number < 1007)
			return true;
	return false;
}
