/*
 * Reading JSON strictly (json_in.h). In: bytes from inside. Out: values, one after the other, or
 * `bad`. Keys are compared by a hash of what they say: equal keys have equal hashes, so that none
 * is overlooked, and two others that happen to have the same one are refused. Runs in front.
 */
#include "rules/json_in.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define KEYS_MAX 65536

void json_in_init(struct json_in *j, const uint8_t *bytes, size_t n)
{
	*j = (struct json_in){ .at = bytes, .end = bytes + n };
}

void json_in_free(struct json_in *j)
{
	free(j->keys);
	buf_free(&j->key);
}

static void fail(struct json_in *j)
{
	j->bad = true;
	j->at = j->end;
}

static void skip_space(struct json_in *j)
{
	while (j->at < j->end &&
	       (*j->at == ' ' || *j->at == '\t' || *j->at == '\r' || *j->at == '\n'))
		j->at++;
}

char json_in_peek(struct json_in *j)
{
	skip_space(j);
	return j->at < j->end ? (char)*j->at : 0;
}

static bool take(struct json_in *j, char c)
{
	if (json_in_peek(j) != c || j->at == j->end) {
		fail(j);
		return false;
	}
	j->at++;
	return true;
}

/* -- strings */

static void add_point(struct buf *out, unsigned point)
{
	static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	unsigned char c[4];
	size_t n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;

	for (size_t i = n; i-- > 1; point >>= 6)
		c[i] = (unsigned char)(0x80 | (point & 0x3f));
	c[0] = (unsigned char)(lead[n] | point);
	buf_add(out, c, n);
}

static bool hex4(const struct json_in *j, const uint8_t *at, unsigned *ret)
{
	*ret = 0;
	if (j->end - at < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		uint8_t c = at[i] | 0x20;

		if (!((at[i] >= '0' && at[i] <= '9') || (c >= 'a' && c <= 'f')))
			return false;
		*ret = *ret << 4 | (unsigned)(at[i] <= '9' ? at[i] - '0' : c - 'a' + 10);
	}
	return true;
}

/* Behind "\u". strict: halves of characters and NUL are refused, else they are passed over. */
static bool take_unicode(struct json_in *j, struct buf *out, bool strict)
{
	unsigned point, low;

	if (!hex4(j, j->at, &point))
		return false;
	j->at += 4;
	if (point >= 0xd800 && point <= 0xdbff && j->end - j->at >= 6 && j->at[0] == '\\' &&
	    j->at[1] == 'u' && hex4(j, j->at + 2, &low) && low >= 0xdc00 && low <= 0xdfff) {
		point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
		j->at += 6;
	} else if (!point || (point >= 0xd800 && point <= 0xdfff)) {
		return !strict;
	}
	if (out)
		add_point(out, point);
	return true;
}

static bool take_escape(struct json_in *j, struct buf *out, bool strict)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *found;

	if (++j->at == j->end)
		return false;
	found = *j->at ? strchr(from, *j->at) : NULL;
	j->at++;
	if (found && out)
		buf_add(out, &to[found - from], 1);
	return found || (j->at[-1] == 'u' && take_unicode(j, out, strict));
}

/* The length of the sequence of UTF-8 at the place, 0: there is none. */
static size_t utf8(const uint8_t *s, size_t left)
{
	size_t n = s[0] < 0x80                    ? 1
		   : s[0] >= 0xc2 && s[0] <= 0xdf ? 2
		   : s[0] >= 0xe0 && s[0] <= 0xef ? 3
		   : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4
						  : 0;

	if (n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

bool json_in_utf8(const uint8_t *bytes, size_t n)
{
	for (size_t len; n; bytes += len, n -= len) {
		len = utf8(bytes, n);
		if (!len)
			return false;
	}
	return true;
}

static void read_string(struct json_in *j, struct buf *out, bool strict)
{
	if (!take(j, '"'))
		return;
	while (j->at < j->end && *j->at != '"') {
		size_t n;

		if (*j->at == '\\') {
			if (!take_escape(j, out, strict))
				fail(j);
			continue;
		}
		n = *j->at < 0x20 ? 0 : utf8(j->at, (size_t)(j->end - j->at));
		if (!n) {
			fail(j);
			return;
		}
		if (out)
			buf_add(out, j->at, n);
		j->at += n;
	}
	if (j->at == j->end || *j->at != '"' || (out && out->failed)) {
		fail(j);
		return;
	}
	j->at++;
}

void json_in_string(struct json_in *j, struct buf *out)
{
	read_string(j, out, true);
	if (out)
		buf_add(out, "", 0);
}

/* -- numbers and words */

static void skip_digits(struct json_in *j)
{
	if (j->at == j->end || *j->at < '0' || *j->at > '9')
		fail(j);
	while (j->at < j->end && *j->at >= '0' && *j->at <= '9')
		j->at++;
}

static void skip_number(struct json_in *j)
{
	const uint8_t *first;

	j->at += *j->at == '-';
	first = j->at;
	skip_digits(j);
	if (!j->bad && *first == '0' && j->at - first > 1)
		fail(j);
	if (j->at < j->end && *j->at == '.') {
		j->at++;
		skip_digits(j);
	}
	if (j->at < j->end && (*j->at == 'e' || *j->at == 'E')) {
		j->at++;
		j->at += j->at < j->end && (*j->at == '+' || *j->at == '-');
		skip_digits(j);
	}
}

static void skip_word(struct json_in *j)
{
	static const char *const words[] = { "true", "false", "null" };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		size_t n = strlen(words[i]);

		if ((size_t)(j->end - j->at) >= n && memcmp(j->at, words[i], n) == 0) {
			j->at += n;
			return;
		}
	}
	fail(j);
}

/* -- objects and arrays */

bool json_in_open(struct json_in *j, char open, struct json_level *ret)
{
	if (json_in_peek(j) != open || j->depth == JSON_IN_DEPTH)
		return false;
	j->at++;
	j->depth++;
	*ret = (struct json_level){ .first = j->n_keys, .close = open == '{' ? '}' : ']' };
	return true;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The object is over: none of its keys was there twice. */
static void close_level(struct json_in *j, const struct json_level *l)
{
	size_t n = j->n_keys - l->first;

	j->depth--;
	if (n > 1)
		qsort(j->keys + l->first, n, sizeof(*j->keys), compare);
	for (size_t i = 1; i < n; i++)
		if (j->keys[l->first + i - 1] == j->keys[l->first + i])
			fail(j);
	j->n_keys = l->first;
}

static void note_key(struct json_in *j)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < j->key.len; i++)
		hash = (hash ^ (uint8_t)j->key.data[i]) * 0x100000001b3;
	if (j->n_keys == j->cap) {
		size_t cap = j->cap ? j->cap * 2 : 64;
		uint64_t *grown = cap > KEYS_MAX ? NULL : realloc(j->keys, cap * sizeof(*grown));

		if (!grown) {
			fail(j);
			return;
		}
		j->keys = grown;
		j->cap = cap;
	}
	j->keys[j->n_keys++] = hash;
}

bool json_in_next(struct json_in *j, struct json_level *l, const char **ret_key)
{
	if (j->bad)
		return false;
	if (json_in_peek(j) == l->close) {
		j->at++;
		close_level(j, l);
		return false;
	}
	if (l->some && !take(j, ','))
		return false;
	l->some = true;
	if (l->close == ']') {
		if (json_in_peek(j) == ']')
			fail(j);
		return !j->bad;
	}
	j->key.len = 0;
	read_string(j, &j->key, true);
	buf_add(&j->key, "", 0);
	if (j->bad || j->key.failed || !take(j, ':')) {
		fail(j);
		return false;
	}
	note_key(j);
	if (ret_key)
		*ret_key = buf_text(&j->key);
	return !j->bad;
}

void json_in_skip(struct json_in *j)
{
	char c = json_in_peek(j);
	struct json_level l;

	if (c == '{' || c == '[') {
		if (!json_in_open(j, c, &l)) {
			fail(j);
			return;
		}
		while (json_in_next(j, &l, NULL))
			json_in_skip(j);
	} else if (c == '"') {
		read_string(j, NULL, false);
	} else if (c == '-' || (c >= '0' && c <= '9')) {
		skip_number(j);
	} else {
		skip_word(j);
	}
}

bool json_in_end(struct json_in *j)
{
	skip_space(j);
	return !j->bad && j->at == j->end;
}

bool json_in_resembles(const char *key, const char *word)
{
	for (const char *c = key; *c; c++)
		if ((unsigned char)*c >= 0x80)
			return true;
	return strcasecmp(key, word) == 0 && strcmp(key, word) != 0;
}
