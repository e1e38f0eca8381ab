/*
 * Entries of a TOML configuration (config.h). In: the bytes of a file. Out: the same bytes with one
 * table more or less. The reader knows TOML's lines: headers, keys, and where values end. It does
 * not judge values further, and it refuses what is no such line. Pure.
 */
#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "mcp/config.h"
#include "rules/json_in.h"

#define DEPTH_MAX 32
#define KEYS_MAX 16 /* of a dotted key */

/* A dotted key: its words, each ended by NUL. */
struct path {
	struct buf words;
	size_t count;
};

struct toml {
	const char *at, *end;
	bool bad;
	struct path table;
	/* what is looked for, and found */
	const struct config_entry *entry;
	bool inline_group, exists;
	const char *from, *to; /* of its tables; NULL: none */
	bool inside;
};

static bool bad(struct toml *t)
{
	t->bad = true;
	return false;
}

static bool is_at(const struct toml *t, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(t->end - t->at) >= n && memcmp(t->at, word, n) == 0;
}

static void skip_blank(struct toml *t)
{
	while (t->at < t->end && (*t->at == ' ' || *t->at == '\t'))
		t->at++;
}

/* Space, a comment and the end of the line. */
static bool end_line(struct toml *t)
{
	skip_blank(t);
	if (t->at < t->end && *t->at == '#')
		while (t->at < t->end && *t->at != '\n')
			t->at++;
	if (t->at < t->end && *t->at == '\r')
		t->at++;
	if (t->at < t->end && *t->at != '\n')
		return bad(t);
	t->at += t->at < t->end;
	return true;
}

static void skip_lines(struct toml *t)
{
	do
		skip_blank(t);
	while (t->at < t->end && strchr("\r\n#", *t->at) && *t->at && end_line(t));
}

/* A text of one line; text: what it says, where it has no escape (NULL: not wanted). */
static bool skip_text(struct toml *t, struct buf *text)
{
	char quote = *t->at++;

	for (; t->at < t->end && *t->at != quote; t->at++) {
		if (*t->at == '\n' || (*t->at == '\\' && quote == '"' && text))
			return bad(t);
		if (*t->at == '\\' && quote == '"' && ++t->at == t->end)
			return bad(t);
		if (text)
			buf_add(text, t->at, 1);
	}
	if (t->at == t->end)
		return bad(t);
	t->at++;
	return true;
}

static bool skip_long(struct toml *t, const char *quotes)
{
	t->at += 3;
	while (t->at < t->end && !is_at(t, quotes))
		t->at += *t->at == '\\' && *quotes == '"' && t->at + 1 < t->end ? 2 : 1;
	if (t->at >= t->end)
		return bad(t);
	/* one or two quotes more belong to the text */
	for (t->at += 3; t->at < t->end && *t->at == *quotes;)
		t->at++;
	return true;
}

static bool is_bare(char c)
{
	return c && strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", c);
}

static bool read_key(struct toml *t, struct path *ret)
{
	for (;;) {
		skip_blank(t);
		if (t->at < t->end && (*t->at == '"' || *t->at == '\'')) {
			if (!skip_text(t, &ret->words))
				return false;
		} else {
			const char *from = t->at;

			while (t->at < t->end && is_bare(*t->at))
				t->at++;
			if (t->at == from)
				return bad(t);
			buf_add(&ret->words, from, (size_t)(t->at - from));
		}
		buf_add(&ret->words, "", 1);
		if (++ret->count > KEYS_MAX)
			return bad(t);
		skip_blank(t);
		if (t->at == t->end || *t->at != '.')
			return true;
		t->at++;
	}
}

static bool skip_value(struct toml *t, unsigned depth);

static bool skip_array(struct toml *t, unsigned depth)
{
	t->at++;
	for (;;) {
		skip_lines(t);
		if (t->bad || t->at == t->end)
			return bad(t);
		if (*t->at == ']')
			break;
		if (!skip_value(t, depth + 1))
			return false;
		skip_lines(t);
		if (t->at < t->end && *t->at == ',')
			t->at++;
		else if (t->at == t->end || *t->at != ']')
			return bad(t);
	}
	t->at++;
	return true;
}

static bool skip_table(struct toml *t, unsigned depth)
{
	for (t->at++, skip_blank(t); t->at < t->end && *t->at != '}';) {
		struct path key = { 0 };
		bool fine = read_key(t, &key) && t->at < t->end && *t->at == '=';

		buf_free(&key.words);
		if (!fine)
			return bad(t);
		t->at++;
		skip_blank(t);
		if (!skip_value(t, depth + 1))
			return false;
		skip_blank(t);
		if (t->at < t->end && *t->at == ',')
			t->at++;
		else if (t->at == t->end || *t->at != '}')
			return bad(t);
		skip_blank(t);
	}
	if (t->at == t->end)
		return bad(t);
	t->at++;
	return true;
}

/* Numbers, dates and words. */
static bool skip_word(struct toml *t)
{
	const char *from = t->at;

	while (t->at < t->end && (is_bare(*t->at) || strchr("+.:", *t->at)))
		t->at += *t->at != '\0';
	if (t->at - from == 10 && t->end - t->at > 2 && *t->at == ' ' && t->at[1] >= '0' &&
	    t->at[1] <= '9') /* a date and a time */
		for (t->at++; t->at < t->end && (is_bare(*t->at) || strchr("+.:", *t->at));)
			t->at += *t->at != '\0';
	return t->at > from ? true : bad(t);
}

static bool skip_value(struct toml *t, unsigned depth)
{
	if (t->at == t->end || depth > DEPTH_MAX)
		return bad(t);
	if (is_at(t, "\"\"\""))
		return skip_long(t, "\"\"\"");
	if (is_at(t, "'''"))
		return skip_long(t, "'''");
	if (*t->at == '"' || *t->at == '\'')
		return skip_text(t, NULL);
	if (*t->at == '[')
		return skip_array(t, depth);
	return *t->at == '{' ? skip_table(t, depth) : skip_word(t);
}

/* -- what is looked for */

/* Whether the path begins with the group (and the name). */
static bool begins(const struct path *p, const char *group, const char *name)
{
	const char *first = p->count ? p->words.data : "";

	if (p->count < (name ? 2u : 1u) || strcmp(first, group) != 0)
		return false;
	return !name || strcmp(first + strlen(first) + 1, name) == 0;
}

static bool take_header(struct toml *t)
{
	const char *line = t->at;
	bool list = is_at(t, "[[");

	buf_free(&t->table.words);
	t->table.count = 0;
	t->at += list ? 2 : 1;
	if (!read_key(t, &t->table) || !is_at(t, list ? "]]" : "]"))
		return bad(t);
	t->at += list ? 2 : 1;
	if (t->inside)
		t->to = line;
	t->inside = begins(&t->table, t->entry->group, t->entry->name);
	t->inline_group |= list && t->table.count == 1 && begins(&t->table, t->entry->group, NULL);
	if (t->inside && !t->from)
		t->from = line;
	else if (t->inside && t->to != line)
		return bad(t); /* its tables stand apart: not what we wrote */
	t->exists |= t->inside;
	return end_line(t);
}

static bool take_pair(struct toml *t)
{
	struct path whole = { 0 };
	bool fine;

	buf_add(&whole.words, buf_text(&t->table.words), t->table.words.len);
	whole.count = t->table.count;
	fine = read_key(t, &whole) && t->at < t->end && *t->at == '=';
	if (fine && !t->inside) {
		t->inline_group |= whole.count == 1 && begins(&whole, t->entry->group, NULL);
		t->exists |= begins(&whole, t->entry->group, t->entry->name);
	}
	fine = fine && !whole.words.failed;
	buf_free(&whole.words);
	if (!fine)
		return bad(t);
	t->at++;
	skip_blank(t);
	return skip_value(t, 0) && end_line(t);
}

static bool read_all(struct toml *t, const struct buf *text, const struct config_entry *entry)
{
	*t = (struct toml){ .at = buf_text(text), .entry = entry };
	t->end = t->at + text->len;
	if (text->len > CONFIG_BYTES_MAX || memchr(t->at, 0, text->len) ||
	    !json_in_utf8((const uint8_t *)t->at, text->len))
		return bad(t);
	for (skip_lines(t); !t->bad && t->at < t->end; skip_lines(t))
		if (!(*t->at == '[' ? take_header(t) : take_pair(t)))
			break;
	if (t->inside && !t->bad)
		t->to = t->end;
	buf_free(&t->table.words);
	return !t->bad;
}

static int no(const char **ret_why)
{
	*ret_why = "it is no TOML that can be read in one way only";
	return -EINVAL;
}

int config_toml_add(const struct buf *text, const struct config_entry *entry, struct buf *out,
		    const char **ret_why)
{
	struct toml t;

	if (!read_all(&t, text, entry))
		return no(ret_why);
	if (t.exists)
		return -EEXIST;
	if (t.inline_group) {
		*ret_why = "its servers stand on one line";
		return -EINVAL;
	}
	buf_add(out, buf_text(text), text->len);
	if (text->len && text->data[text->len - 1] != '\n')
		buf_puts(out, "\n");
	buf_printf(out, "%s[%s.%s]\ncommand = ", text->len ? "\n" : "", entry->group, entry->name);
	json_quote(out, entry->words->items[0]); /* the same escapes as TOML's */
	buf_puts(out, "\nargs = [");
	for (size_t i = 1; i < entry->words->len; i++) {
		buf_puts(out, i > 1 ? ", " : "");
		json_quote(out, entry->words->items[i]);
	}
	buf_puts(out, "]\n");
	return out->failed ? -ENOMEM : 0;
}

int config_toml_remove(const struct buf *text, const struct config_entry *entry, struct buf *out,
		       const char **ret_why)
{
	const char *begin = buf_text(text);
	struct toml t;

	if (!read_all(&t, text, entry))
		return no(ret_why);
	if (!t.from)
		return -ENOENT;
	/* the empty line in front is ours, too */
	if (t.from - begin >= 2 && t.from[-1] == '\n' && t.from[-2] == '\n')
		t.from--;
	buf_add(out, begin, (size_t)(t.from - begin));
	buf_add(out, t.to, (size_t)(begin + text->len - t.to));
	return out->failed ? -ENOMEM : 0;
}
