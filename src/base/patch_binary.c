/*
 * What a patch holds that `git apply` shall read, beyond lines of text. In: bytes and names that an
 * agent chose. Out: git's binary format (a zlib stream in base 85, 52 bytes a line) and quoted
 * names. Pure functions.
 *
 * The zlib stream has stored blocks only: it is a little longer than the content, and nothing needs
 * to be compressed or linked for it. Git inflates it like any other.
 */
#include "base/patch_binary.h"

#include <string.h>

#include "base/text.h"

#define BLOCK_MAX 65535u
#define ADLER_MOD 65521u

static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			     "!#$%&()*+-;<=>?@^_`{|}~";

static void put_line(struct patch_binary *p)
{
	char text[1 + PATCH_BINARY_LINE / 4 * 5 + 1];
	size_t n = p->line_len, at = 0;

	if (!n)
		return;
	memset(p->line + n, 0, sizeof(p->line) - n);
	text[at++] = (char)(n <= 26 ? 'A' + n - 1 : 'a' + n - 27);
	for (size_t i = 0; i < n; i += 4) {
		uint32_t word = (uint32_t)p->line[i] << 24 | (uint32_t)p->line[i + 1] << 16 |
				(uint32_t)p->line[i + 2] << 8 | p->line[i + 3];

		for (size_t k = 5; k-- > 0; word /= 85)
			text[at + k] = digits[word % 85];
		at += 5;
	}
	text[at++] = '\n';
	buf_add(p->out, text, at);
	p->line_len = 0;
}

/* Bytes of the zlib stream. */
static void put_bytes(struct patch_binary *p, const unsigned char *bytes, size_t n)
{
	while (n) {
		size_t room = PATCH_BINARY_LINE - p->line_len, part = n < room ? n : room;

		memcpy(p->line + p->line_len, bytes, part);
		p->line_len += part;
		bytes += part;
		n -= part;
		if (p->line_len == PATCH_BINARY_LINE)
			put_line(p);
	}
}

static void begin_block(struct patch_binary *p)
{
	unsigned n = p->left < BLOCK_MAX ? (unsigned)p->left : BLOCK_MAX, not_n = ~n & 0xffff;
	const unsigned char head[] = { p->left == n, (unsigned char)(n & 0xff),
				       (unsigned char)(n >> 8), (unsigned char)(not_n & 0xff),
				       (unsigned char)(not_n >> 8) };

	put_bytes(p, head, sizeof(head));
	p->in_block = n;
}

void patch_binary_begin(struct patch_binary *p, struct buf *out, uint64_t size)
{
	*p = (struct patch_binary){ .out = out, .left = size, .adler_a = 1 };
	buf_printf(out, "literal %llu\n", (unsigned long long)size);
	put_bytes(p, (const unsigned char[]){ 0x78, 0x01 }, 2);
	begin_block(p);
}

void patch_binary_add(struct patch_binary *p, const void *bytes, size_t n)
{
	const unsigned char *at = bytes;

	while (n && p->left) {
		size_t part;

		if (!p->in_block)
			begin_block(p);
		part = n < p->in_block ? n : p->in_block;
		put_bytes(p, at, part);
		for (size_t i = 0; i < part; i++) {
			p->adler_a = (p->adler_a + at[i]) % ADLER_MOD;
			p->adler_b = (p->adler_b + p->adler_a) % ADLER_MOD;
		}
		at += part;
		n -= part;
		p->in_block -= part;
		p->left -= part;
	}
}

void patch_binary_end(struct patch_binary *p)
{
	uint32_t sum = p->adler_b << 16 | p->adler_a;
	const unsigned char tail[] = { (unsigned char)(sum >> 24), (unsigned char)(sum >> 16),
				       (unsigned char)(sum >> 8), (unsigned char)sum };

	put_bytes(p, tail, sizeof(tail));
	put_line(p);
	buf_puts(p->out, "\n");
}

/* ---- names ---- */

/* A blank at which git could take the first name of "diff --git a/NAME b/NAME" for ended. */
static bool is_ambiguous(const char *name)
{
	size_t n = strlen(name);

	return n && (name[0] == ' ' || name[n - 1] == ' ' || strstr(name, " /") ||
		     strstr(name, "/ ") || strstr(name, " a/") || strstr(name, " b/"));
}

static bool needs_quotes(const char *name)
{
	if (is_ambiguous(name))
		return true;
	for (const unsigned char *s = (const unsigned char *)name; *s;) {
		unsigned point;
		size_t n = text_utf8(s, &point);

		if (!n || point < 0x20 || point == 0x7f || *s == '"' || *s == '\\' ||
		    text_acts(point))
			return true;
		s += n;
	}
	return false;
}

void patch_put_name(struct buf *out, const char *prefix, const char *name)
{
	if (!needs_quotes(name)) {
		buf_printf(out, "%s%s", prefix, name);
		return;
	}
	buf_printf(out, "\"%s", prefix);
	for (const unsigned char *s = (const unsigned char *)name; *s; s++)
		if (*s == '"' || *s == '\\')
			buf_printf(out, "\\%c", *s);
		else if (*s < 0x20 || *s >= 0x7f)
			buf_printf(out, "\\%03o", *s);
		else
			buf_printf(out, "%c", *s);
	buf_puts(out, "\"");
}
