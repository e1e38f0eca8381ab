/*
 * The checks of tables/look.def. In: a path, or a line of a file, that an agent has written. Out:
 * the numbers of the rows that it matches. Pure, fuzzed by fuzz/look.c; used by look.c, which is
 * locked up.
 *
 * A line is brought into one form first (normalize()), so that blanks, sudo and the directory of a
 * program make no difference. What is meant to deceive the eye is looked for in the line as it is,
 * decoded from UTF-8; bytes that are none are skipped. Who wants to hide a command from these rows
 * can: they show what is in plain sight, and that something is hidden.
 */
#include "scan/look_text.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "scan/allow.h"

enum how { BY_PATH, BY_LINE, BY_MAGIC, BY_CODE };

static const struct row {
	struct look_rule rule;
	enum how how;
	const char *glob, *first, *then; /* MAGIC: first are its bytes */
	size_t bytes;
} rows[] = {
#define LOOK_PATH(id, severity, glob, title)                                                       \
	{ { id, title, SEVERITY_##severity }, BY_PATH, glob, NULL, NULL, 0 },
#define LOOK_LINE(id, severity, glob, first, then, title)                                          \
	{ { id, title, SEVERITY_##severity }, BY_LINE, glob, first, then, 0 },
#define LOOK_MAGIC(id, severity, magic, title)                                                     \
	{ { id, title, SEVERITY_##severity }, BY_MAGIC, NULL, magic, NULL, sizeof(magic) - 1 },
#define LOOK_OWN(id, severity, title)                                                              \
	{ { id, title, SEVERITY_##severity }, BY_CODE, NULL, NULL, NULL, 0 },
#include "look.def"
};

size_t look_rule_count(void)
{
	return ARRAY_LEN(rows);
}

const struct look_rule *look_rule(size_t i)
{
	return &rows[i].rule;
}

size_t look_find(const char *id)
{
	size_t i = 0;

	while (i + 1 < ARRAY_LEN(rows) && strcmp(rows[i].rule.id, id) != 0)
		i++;
	return i;
}

void look_path(const char *path, look_found *found, void *ctx)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].how == BY_PATH && allow_glob(rows[i].glob, path))
			found(ctx, i);
}

void look_begin(const uint8_t *bytes, size_t n, look_found *found, void *ctx)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].how == BY_MAGIC && n >= rows[i].bytes &&
		    memcmp(bytes, rows[i].first, rows[i].bytes) == 0)
			found(ctx, i);
}

/* -- one form */

struct text {
	char bytes[LOOK_LINE_MAX + 1];
	size_t n;
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

/* What is left out in front of a program's name; how long it is. */
static size_t skip_prefix(const uint8_t *at, size_t n)
{
	static const char *const prefixes[] = { "sudo ",      "/usr/bin/env ", "/usr/local/bin/",
						"/usr/bin/",  "/bin/",         "command ",
						"/usr/sbin/", "env " };

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		size_t len = strlen(prefixes[i]);

		if (n >= len && memcmp(at, prefixes[i], len) == 0)
			return len;
	}
	return 0;
}

static void normalize(const uint8_t *line, size_t n, struct text *out)
{
	out->n = 0;
	for (size_t i = 0; i < n && out->n < LOOK_LINE_MAX; i++) {
		char last = out->n ? out->bytes[out->n - 1] : ' ';
		size_t skip = is_word(last) ? 0 : skip_prefix(line + i, n - i);

		if (skip) {
			i += skip - 1;
		} else if (isspace(line[i]) || !line[i]) {
			if (last != ' ' && last != '|' && last != '(')
				out->bytes[out->n++] = ' ';
		} else {
			if ((line[i] == '|' || line[i] == '(') && out->n && last == ' ')
				out->n--;
			out->bytes[out->n++] = (char)line[i];
		}
	}
	out->bytes[out->n] = '\0';
}

/* One text of a list at or behind `from`; where it ends, or 0. */
static size_t find_one(const struct text *t, size_t from, const char *want, size_t n)
{
	bool begins = n && want[0] == '^', ends = n && want[n - 1] == '$';
	const char *at = t->bytes + from;

	want += begins;
	n -= (size_t)begins + ends;
	while (n && (at = memmem(at, t->n - (size_t)(at - t->bytes), want, n))) {
		size_t begin = (size_t)(at - t->bytes), end = begin + n;

		if ((!begins || !begin || !is_word(t->bytes[begin - 1])) &&
		    (!ends || end == t->n || !is_word(t->bytes[end])))
			return end;
		at++;
	}
	return 0;
}

/* The first of a list's texts that is there; where it ends, or 0. */
static size_t find_any(const struct text *t, size_t from, const char *list)
{
	while (*list) {
		size_t n = strcspn(list, "\n"), end = find_one(t, from, list, n);

		if (end)
			return end;
		list += n + (list[n] == '\n');
	}
	return 0;
}

static bool matches(const struct row *r, const struct text *t)
{
	size_t end = find_any(t, 0, r->first);

	return end && (!*r->then || find_any(t, end, r->then));
}

/* -- what deceives the eye */

/* The character at the beginning, and how many bytes it takes; one that is none is 0 and takes a
 * byte. */
static size_t decode(const uint8_t *b, size_t n, uint32_t *ret)
{
	size_t len = b[0] < 0x80 ? 1 : b[0] < 0xc2 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
	uint32_t c = len == 1 ? b[0] : len == 2 ? b[0] & 31u : len == 3 ? b[0] & 15u : b[0] & 7u;

	*ret = 0;
	if (!len || len > n)
		return 1;
	for (size_t i = 1; i < len; i++) {
		if ((b[i] & 0xc0) != 0x80)
			return 1;
		c = c << 6 | (b[i] & 63u);
	}
	*ret = c;
	return len;
}

enum script { SCRIPT_NONE, SCRIPT_LATIN = 1, SCRIPT_GREEK = 2, SCRIPT_CYRILLIC = 4 };

static unsigned script_of(uint32_t c)
{
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= 0xc0 && c <= 0x24f))
		return SCRIPT_LATIN;
	if (c >= 0x370 && c <= 0x3ff)
		return SCRIPT_GREEK;
	return c >= 0x400 && c <= 0x52f ? SCRIPT_CYRILLIC : SCRIPT_NONE;
}

static bool is_direction(uint32_t c)
{
	return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static bool is_carrier(uint32_t c)
{
	return (c >= 0xe0000 && c <= 0xe01ef) || (c >= 0x2061 && c <= 0x2064) || c == 0x115f ||
	       c == 0x3164 || c == 0xffa0;
}

static bool is_zero_width(uint32_t c)
{
	return c == 0x200b || c == 0x200c || c == 0x200d || c == 0x2060 || c == 0xfeff ||
	       c == 0xad || c == 0x180e;
}

/* What a line has of it, as bits. */
enum { HAS_DIRECTION = 1, HAS_CARRIER = 2, HAS_ZERO = 4, HAS_SCRIPTS = 8, HAS_CONTROL = 16 };

struct eye {
	unsigned has, scripts; /* scripts: of the word that is being read */
	uint32_t last;
	bool zero; /* the last one was of no width, behind a letter of ASCII */
};

static void see(struct eye *y, uint32_t c, bool at_begin)
{
	unsigned script = script_of(c);
	bool ascii_letter = c < 0x80 && isalnum((int)c);

	y->has |= is_direction(c) ? HAS_DIRECTION : 0u;
	y->has |= is_carrier(c) ? HAS_CARRIER : 0u;
	y->has |= c == 0x1b || c == 0x9b ? HAS_CONTROL : 0u;
	y->has |= y->zero && ascii_letter ? HAS_ZERO : 0u;
	y->zero = is_zero_width(c) && !at_begin && y->last < 0x80 && y->last != 0;
	if (script) {
		y->scripts |= script;
		y->has |= y->scripts & SCRIPT_LATIN && y->scripts & ~(unsigned)SCRIPT_LATIN
				  ? HAS_SCRIPTS
				  : 0u;
	} else if (!is_zero_width(c) && c != '_' && !(c >= '0' && c <= '9')) {
		y->scripts = 0;
	}
	y->last = c;
}

static void look_at(const uint8_t *line, size_t n, bool first, look_found *found, void *ctx)
{
	static const struct {
		unsigned bit;
		const char *id;
	} names[] = { { HAS_DIRECTION, "hidden-direction" },
		      { HAS_CARRIER, "hidden-text" },
		      { HAS_ZERO, "zero-width" },
		      { HAS_SCRIPTS, "homoglyph" },
		      { HAS_CONTROL, "control-sequence" } };
	struct eye y = { 0 };

	for (size_t at = 0; at < n;) {
		uint32_t c;
		size_t len = decode(line + at, n - at, &c);

		see(&y, c, first && at == 0);
		at += len;
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (y.has & names[i].bit)
			found(ctx, look_find(names[i].id));
}

void look_line(const char *path, const uint8_t *line, size_t n, bool first, look_found *found,
	       void *ctx)
{
	struct text t;

	normalize(line, n < LOOK_LINE_MAX ? n : LOOK_LINE_MAX, &t);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].how == BY_LINE && (!*rows[i].glob || allow_glob(rows[i].glob, path)) &&
		    matches(&rows[i], &t))
			found(ctx, i);
	look_at(line, n, first, found, ctx);
}
