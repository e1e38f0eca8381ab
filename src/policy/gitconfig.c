/*
 * Git configuration as git reads it. In: the bytes of a config file of the user's own. Out:
 * settings. Pure; run by the supervisor at the start, to find the user's identity and what the
 * configuration leads to; fuzzed (fuzz/gitconfig.c). What an agent can have written is read by
 * rules/git_config.c, which takes only what git writes.
 *
 * The grammar is git's own reader's: section names and keys in either case, "[a.b]" and '[a "b"]',
 * comments, quotes, escapes, continued lines, CRLF. Where git would stop with an error so does
 * this, and so it does at a NUL byte: one is never written by accident, and what stands behind it
 * would be read by some and not by others.
 */
#include "policy/gitconfig.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

struct reader {
	const char *at, *end;
	bool eof;
	struct buf name; /* "section.subsection.", the key is put behind it */
	size_t base;     /* its length without the key */
	struct buf value;
};

static int next_char(struct reader *r)
{
	if (r->at == r->end) {
		r->eof = true;
		return '\n';
	}
	if (*r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n')
		r->at++;
	return (unsigned char)*r->at++;
}

static bool is_space(int c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_key_char(int c)
{
	return c < 128 && (isalnum(c) || c == '-');
}

static void add_char(struct buf *b, int c)
{
	char byte = (char)c;

	buf_add(b, &byte, 1);
}

static bool read_subsection(struct reader *r, int c)
{
	do {
		if (c == '\n')
			return false;
		c = next_char(r);
	} while (is_space(c));
	if (c != '"')
		return false;
	add_char(&r->name, '.');
	for (;;) {
		c = next_char(r);
		if (c == '"')
			break;
		if (c == '\\')
			c = next_char(r);
		if (c == '\n')
			return false;
		add_char(&r->name, c);
	}
	return next_char(r) == ']';
}

static bool read_section(struct reader *r)
{
	r->name.len = 0;
	for (;;) {
		int c = next_char(r);

		if (r->eof)
			return false;
		if (c == ']')
			break;
		if (is_space(c)) {
			if (!read_subsection(r, c))
				return false;
			break;
		}
		if (!is_key_char(c) && c != '.')
			return false;
		add_char(&r->name, tolower(c));
	}
	add_char(&r->name, '.');
	r->base = r->name.len;
	return true;
}

/* The character that an escape in a value stands for; 0: a continued line, -1: none. */
static int escaped(struct reader *r)
{
	int c = next_char(r);

	switch (c) {
	case '\n':
		return 0;
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case 'n':
		return '\n';
	case '\\':
	case '"':
		return c;
	default:
		return -1;
	}
}

static bool read_value(struct reader *r)
{
	bool quote = false, comment = false;
	size_t keep = 0; /* blanks behind this are at the end of the line */

	r->value.len = 0;
	for (;;) {
		int c = next_char(r);

		if (c == '\n') {
			r->value.len = keep;
			buf_add(&r->value, "", 0);
			return !quote;
		}
		if (comment)
			continue;
		if (is_space(c) && !quote) {
			if (r->value.len)
				add_char(&r->value, c);
			continue;
		}
		if (!quote && (c == ';' || c == '#')) {
			comment = true;
			continue;
		}
		if (c == '"') {
			quote = !quote;
			keep = r->value.len;
			continue;
		}
		if (c == '\\') {
			c = escaped(r);
			if (c < 0)
				return false;
			if (c == 0)
				continue;
		}
		add_char(&r->value, c);
		keep = r->value.len;
	}
}

/* Splits "section.sub.section.key" in r->name at its first and last dot, and hands the setting
 * over. */
static int report(struct reader *r, const char *value, gitconfig_fn *fn, void *ctx)
{
	struct gitconfig_entry entry = { .section = "", .subsection = "", .value = value };
	auto_free char *name = NULL;
	char *first, *last;

	if (r->name.failed || r->value.failed)
		return -ENOMEM;
	name = strdup(r->name.data);
	if (!name)
		return -ENOMEM;
	first = strchr(name, '.');
	last = strrchr(name, '.');
	entry.key = name;
	if (last) {
		*last = '\0';
		entry.key = last + 1;
		entry.section = name;
		if (first && first != last) {
			*first = '\0';
			entry.subsection = first + 1;
		}
	}
	return fn(ctx, &entry);
}

static int read_setting(struct reader *r, int c, gitconfig_fn *fn, void *ctx)
{
	r->name.len = r->base;
	for (; !r->eof && is_key_char(c); c = next_char(r))
		add_char(&r->name, tolower(c));
	buf_add(&r->name, "", 0);
	while (c == ' ' || c == '\t')
		c = next_char(r);
	if (c == '\n')
		return report(r, NULL, fn, ctx);
	if (c != '=' || !read_value(r))
		return -EINVAL;
	return report(r, buf_text(&r->value), fn, ctx);
}

int gitconfig_read(const char *text, size_t n, gitconfig_fn *fn, void *ctx)
{
	struct reader r = { .at = text, .end = text + n };
	bool comment = false;
	int status = n && memchr(text, '\0', n) ? -EINVAL : 0;

	if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		r.at += 3;
	while (status == 0) {
		int c = next_char(&r);

		if (r.eof)
			break;
		if (c == '\n')
			comment = false;
		if (comment || is_space(c))
			continue;
		if (c == '#' || c == ';')
			comment = true;
		else if (c == '[')
			status = read_section(&r) ? 0 : -EINVAL;
		else if (c < 128 && isalpha(c))
			status = read_setting(&r, c, fn, ctx);
		else
			status = -EINVAL;
	}
	buf_free(&r.name);
	buf_free(&r.value);
	return status;
}

char *gitconfig_gitdir(const char *text, size_t n)
{
	static const char prefix[] = "gitdir: ";
	const size_t skip = sizeof(prefix) - 1;

	if (n < skip || memcmp(text, prefix, skip) != 0 || memchr(text, '\0', n))
		return NULL;
	while (n > skip && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	return n > skip ? strndup(text + skip, n - skip) : NULL;
}
