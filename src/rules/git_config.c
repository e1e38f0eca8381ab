/*
 * Configuration of a repository that an agent can write. In: the bytes of config, config.worktree
 * or .gitmodules. Out: settings, and whether each may cross to the host. Pure; run by the importer
 * and the sweep, in the supervisor; fuzzed (fuzz/git_config.c).
 *
 * git's own reader accepts far more than git writes, and what it accepts has changed over the
 * years: it cuts text at a NUL, takes CR for a blank, skips a BOM, joins lines that end in a
 * backslash. A second reader that differs in one of these sees a comment where git sees
 * core.fsmonitor. So this one takes what `git config` writes, one thing a line, and refuses the
 * file otherwise.
 *
 * What each setting may be is git_config_keys.c's. The user's own configuration, which may have
 * anything, is read by policy/gitconfig.c, which follows git's grammar.
 */
#include "rules/git_config.h"

#include <errno.h>
#include <string.h>

struct reader {
	struct buf section, subsection, key, value;
	bool in_section;
};

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word_char(char c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '-';
}

static bool has_control(const char *s, size_t n, bool tab)
{
	for (size_t i = 0; i < n; i++)
		if (((unsigned char)s[i] < 0x20 && !(tab && s[i] == '\t')) || s[i] == 0x7f)
			return true;
	return false;
}

/* Copies a word in lower case; returns its length. */
static size_t take_word(struct buf *to, const char *s, size_t n)
{
	size_t len = 0;

	to->len = 0;
	for (; len < n && is_word_char(s[len]); len++) {
		char c = s[len] >= 'A' && s[len] <= 'Z' ? (char)(s[len] + 32) : s[len];

		buf_add(to, &c, 1);
	}
	buf_add(to, "", 0);
	return len;
}

/* Copies up to a quote, with the escapes that `known` has; returns the length with the quote, 0:
 * there is none. */
static size_t take_quoted(struct buf *to, const char *s, size_t n, const char *known)
{
	for (size_t i = 0; i < n; i++) {
		char c = s[i];

		if (c == '"')
			return i + 1;
		if (c == '\\') {
			if (++i == n || !s[i] || !strchr(known, s[i]))
				return 0;
			c = s[i] == 'n' ? '\n' : s[i] == 't' ? '\t' : s[i];
		}
		buf_add(to, &c, 1);
	}
	return 0;
}

/* The line "[name]" or "[name "sub"]". */
static const char *read_header(struct reader *r, const char *s, size_t n)
{
	size_t at = 1 + take_word(&r->section, s + 1, n - 1);

	r->subsection.len = 0;
	buf_add(&r->subsection, "", 0);
	r->in_section = true;
	if (at == 1)
		return "a section without a name";
	if (n - at == 1 && s[at] == ']')
		return NULL;
	if (n - at < 5 || s[at] != ' ' || s[at + 1] != '"')
		return "a section that git does not write like this";
	at += 2;
	at += take_quoted(&r->subsection, s + at, n - at, "\"\\");
	if (s[at - 1] != '"' || !r->subsection.len || n - at != 1 || s[at] != ']')
		return "a section that git does not write like this";
	buf_add(&r->subsection, "", 0);
	return NULL;
}

static const char *read_plain(struct buf *to, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char c = s[i];

		if (c == '"' || c == '#' || c == ';' || c == '\t')
			return "a value with a quote, a comment or a tab inside";
		if (c == '\\') {
			if (++i == n || !s[i] || !strchr("nt\"\\", s[i]))
				return "a value with an escape that git does not write, or one "
				       "that continues on the next line";
			c = s[i] == 'n' ? '\n' : s[i] == 't' ? '\t' : s[i];
		}
		buf_add(to, &c, 1);
	}
	return n && s[n - 1] == ' ' ? "a value with blanks at its end" : NULL;
}

/* The line "key = value". */
static const char *read_setting(struct reader *r, const char *s, size_t n)
{
	const char *why = NULL;
	size_t at = take_word(&r->key, s, n);

	if (!r->in_section)
		return "a setting outside a section";
	while (at < n && (s[at] == ' ' || s[at] == '\t'))
		at++;
	if (at == n || s[at] != '=')
		return "a key without a value";
	for (at++; at < n && (s[at] == ' ' || s[at] == '\t');)
		at++;
	r->value.len = 0;
	if (at < n && s[at] == '"') {
		size_t len = take_quoted(&r->value, s + at + 1, n - at - 1, "nt\"\\");

		if (!len || at + 1 + len != n)
			why = "a value that git does not quote like this";
	} else {
		why = read_plain(&r->value, s + at, n - at);
	}
	buf_add(&r->value, "", 0);
	return why;
}

static const char *read_line(struct reader *r, const char *s, size_t n, bool *ret_setting)
{
	*ret_setting = false;
	if (has_control(s, n, true))
		return "a control character (a NUL or a carriage return, perhaps)";
	while (n && (*s == ' ' || *s == '\t')) {
		s++;
		n--;
	}
	if (!n)
		return NULL;
	if (*s == '#' || *s == ';')
		return s[n - 1] == '\\' ? "a comment with a backslash at its end" : NULL;
	if (*s == '[')
		return read_header(r, s, n);
	if (!is_letter(*s))
		return "a line that is neither section nor setting (a byte order mark, perhaps)";
	*ret_setting = true;
	return read_setting(r, s, n);
}

static int hand_over(struct reader *r, gitconfig_fn *fn, void *ctx)
{
	struct gitconfig_entry entry = { .section = buf_text(&r->section),
					 .subsection = buf_text(&r->subsection),
					 .key = buf_text(&r->key),
					 .value = buf_text(&r->value) };

	if (r->section.failed || r->subsection.failed || r->key.failed || r->value.failed)
		return -ENOMEM;
	return fn(ctx, &entry);
}

int git_config_read(const char *text, size_t n, gitconfig_fn *fn, void *ctx, const char **ret_why,
		    size_t *ret_line)
{
	struct reader r = { 0 };
	size_t line = 0;
	int status = 0;

	for (const char *at = text, *end = text + n; status == 0 && at < end;) {
		const char *stop = memchr(at, '\n', (size_t)(end - at)), *why;
		size_t len = stop ? (size_t)(stop - at) : (size_t)(end - at);
		bool setting;

		line++;
		why = read_line(&r, at, len, &setting);
		if (why) {
			*ret_why = why;
			status = -EINVAL;
		} else if (setting) {
			status = hand_over(&r, fn, ctx);
		}
		at = stop ? stop + 1 : end;
	}
	if (ret_line)
		*ret_line = line;
	buf_free(&r.section);
	buf_free(&r.subsection);
	buf_free(&r.key);
	buf_free(&r.value);
	return status;
}

static int see_format(void *ctx, const struct gitconfig_entry *entry)
{
	unsigned *hash = ctx;

	if (strcmp(entry->section, "extensions") != 0 || *entry->subsection ||
	    strcmp(entry->key, "objectformat") != 0)
		return 0;
	*hash = strcmp(entry->value, "sha1") == 0     ? GIT_SHA1
		: strcmp(entry->value, "sha256") == 0 ? GIT_SHA256
						      : 0;
	return *hash ? 0 : -EINVAL;
}

unsigned git_config_hash(const char *text, size_t n)
{
	unsigned hash = GIT_SHA1;
	const char *why;

	return git_config_read(text, n, see_format, &hash, &why, NULL) == 0 ? hash : 0;
}
