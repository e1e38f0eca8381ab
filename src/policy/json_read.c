/*
 * JSON into a tree. In: untrusted bytes. Out: nodes with positions, or errors. RFC 8259 and nothing
 * beside it: no comments, no trailing commas, no NaN, valid UTF-8 only; double keys, NUL
 * characters, depth beyond 32 are refused. Our own reader because a policy's errors need line and
 * column. A pure function, fuzzed (fuzz/policy.c).
 */
#include <string.h>

#include "base/text.h"
#include "policy/node.h"

struct scanner {
	struct reader *r;
	const char *at, *end; /* *end is a NUL of our own */
	const char *counted;  /* how far the place was counted */
	struct place place;
	unsigned characters; /* the same from the start */
	unsigned depth;
};

/* The place of s->at. Each byte is counted once: a document may be one long line. */
static struct place here(struct scanner *s)
{
	for (; s->counted < s->at; s->counted++)
		if (*s->counted == '\n') {
			s->place = (struct place){ s->place.line + 1, 1 };
			s->characters++;
		} else if (((unsigned char)*s->counted & 0xc0) != 0x80) {
			s->place.column++;
			s->characters++;
		}
	return s->place;
}

static void fail_at(struct scanner *s, const char *expected, const char *hint)
{
	auto_buf shown = { 0 };
	char cut[16];

	if (s->at == s->end) {
		reader_error(s->r, here(s), hint, "not JSON: expected %s, the text ends here",
			     expected);
		return;
	}
	snprintf(cut, sizeof(cut), "%.*s", (int)strcspn(s->at, " \t\r\n,]}"), s->at);
	if (!*cut)
		snprintf(cut, sizeof(cut), "%c", *s->at);
	text_escape(&shown, cut);
	reader_error(s->r, here(s), hint, "not JSON: expected %s, found \"%s\"", expected,
		     buf_text(&shown));
}

static void skip_space(struct scanner *s)
{
	s->at += strspn(s->at, " \t\r\n");
}

static bool hex4(const char *at, const char *end, unsigned *ret)
{
	unsigned v = 0;

	if (end - at < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		static const char digits[] = "0123456789abcdef";
		char c = at[i] >= 'A' && at[i] <= 'F' ? (char)(at[i] - 'A' + 'a') : at[i];
		const char *d = c ? strchr(digits, c) : NULL;

		if (!d)
			return false;
		v = v << 4 | (unsigned)(d - digits);
	}
	*ret = v;
	return true;
}

static void add_point(struct buf *out, unsigned point)
{
	unsigned char c[4];
	size_t n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
	static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (size_t i = n; i-- > 1; point >>= 6)
		c[i] = (unsigned char)(0x80 | (point & 0x3f));
	c[0] = (unsigned char)(lead[n] | point);
	buf_add(out, c, n);
}

/* \uXXXX, with its second half where it is one of a pair. */
static bool read_unicode(struct scanner *s, struct buf *out)
{
	unsigned point, low;

	if (!hex4(s->at + 1, s->end, &point)) {
		fail_at(s, "four hexadecimal digits after \\u", NULL);
		return false;
	}
	if (point == 0) {
		reader_error(s->r, here(s), NULL,
			     "a NUL character (\\u0000) is not part of any value");
		return false;
	}
	if (point >= 0xd800 && point <= 0xdfff) {
		if (point > 0xdbff || s->end - s->at < 11 || s->at[5] != '\\' || s->at[6] != 'u' ||
		    !hex4(s->at + 7, s->end, &low) || low < 0xdc00 || low > 0xdfff) {
			fail_at(s, "both halves of a surrogate pair", NULL);
			return false;
		}
		point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
		s->at += 6;
	}
	add_point(out, point);
	s->at += 5;
	return true;
}

static bool read_escape(struct scanner *s, struct buf *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *found;

	s->at++;
	if (*s->at == 'u')
		return read_unicode(s, out);
	found = *s->at ? strchr(from, *s->at) : NULL;
	if (!found) {
		fail_at(s, "one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u", NULL);
		return false;
	}
	buf_add(out, &to[found - from], 1);
	s->at++;
	return true;
}

/* Printable ASCII that stands for itself inside a string. */
static bool is_plain(char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* The string at s, without its quotes. */
static bool read_string(struct scanner *s, struct buf *out)
{
	s->at++;
	while (*s->at != '"') {
		unsigned point;
		size_t n;

		if (s->at == s->end || (unsigned char)*s->at < 0x20) {
			fail_at(s, "a closing quote", NULL);
			return false;
		}
		if (*s->at == '\\') {
			if (!read_escape(s, out))
				return false;
			continue;
		}
		for (n = 0; is_plain(s->at[n]);)
			n++;
		if (!n)
			n = text_utf8((const unsigned char *)s->at, &point);
		if (!n) {
			reader_error(s->r, here(s), "save the file as UTF-8", "not UTF-8");
			return false;
		}
		buf_add(out, s->at, n);
		s->at += n;
	}
	s->at++;
	buf_add(out, "", 0);
	if (out->failed)
		reader_out_of_memory(s->r);
	return !out->failed;
}

static const char *skip_digits(const char *at)
{
	return at + strspn(at, "0123456789");
}

/* The end of the number at s, NULL if there is none. */
static const char *number_end(const char *at)
{
	const char *digits;

	at += *at == '-';
	digits = at;
	at = skip_digits(at);
	if (at == digits || (*digits == '0' && at - digits > 1))
		return NULL;
	if (*at == '.') {
		digits = at + 1;
		at = skip_digits(digits);
		if (at == digits)
			return NULL;
	}
	if (*at == 'e' || *at == 'E') {
		at += at[1] == '+' || at[1] == '-' ? 2 : 1;
		digits = at;
		at = skip_digits(digits);
		if (at == digits)
			return NULL;
	}
	return at;
}

static struct node *read_plain(struct scanner *s)
{
	static const struct {
		const char *word;
		enum node_kind kind;
	} words[] = { { "null", NODE_NULL }, { "true", NODE_BOOL }, { "false", NODE_BOOL } };
	size_t n = strcspn(s->at, " \t\r\n,]}:\"[{");
	struct place at = here(s);
	const char *end;

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strlen(words[i].word) == n && strncmp(s->at, words[i].word, n) == 0) {
			s->at += n;
			return node_new(s->r, words[i].kind, at, words[i].word, n);
		}
	end = number_end(s->at);
	if (!end || end != s->at + n) {
		fail_at(s, "a value",
			"text must be in double quotes; true, false and null are lower case");
		return NULL;
	}
	s->at = end;
	return node_new(s->r, NODE_NUMBER, at, end - n, n);
}

static struct node *read_value(struct scanner *s);

/* The key and colon in front of a map's value. */
static bool read_key(struct scanner *s, struct buf *key)
{
	if (*s->at != '"') {
		fail_at(s, "a key in double quotes",
			*s->at == '}' ? "remove the comma before it" : NULL);
		return false;
	}
	if (!read_string(s, key))
		return false;
	skip_space(s);
	if (*s->at != ':') {
		fail_at(s, "a colon", NULL);
		return false;
	}
	s->at++;
	skip_space(s);
	return true;
}

/* One entry of the list or map. */
static bool read_entry(struct scanner *s, struct node *parent)
{
	struct place at = here(s);
	unsigned from = s->characters;
	auto_buf key = { 0 };
	struct node *child;

	if (parent->kind == NODE_MAP && !read_key(s, &key))
		return false;
	child = read_value(s);
	if (!child)
		return false;
	if (parent->kind == NODE_MAP) {
		child->key = buf_take(&key);
		child->key_line = at.line;
		child->key_column = at.column;
		child->key_from = from;
		if (!child->key) {
			node_free(child);
			reader_out_of_memory(s->r);
			return false;
		}
	}
	node_add(s->r, parent, child);
	return true;
}

static bool read_entries(struct scanner *s, struct node *parent, char close)
{
	s->at++;
	skip_space(s);
	if (*s->at == close) {
		s->at++;
		return true;
	}
	for (;;) {
		if (!read_entry(s, parent))
			return false;
		skip_space(s);
		if (*s->at == close) {
			s->at++;
			return true;
		}
		if (*s->at != ',') {
			fail_at(s, close == '}' ? "a comma or }" : "a comma or ]", NULL);
			return false;
		}
		s->at++;
		skip_space(s);
	}
}

static struct node *read_collection(struct scanner *s)
{
	bool map = *s->at == '{';
	struct node *n;

	if (s->depth == NODE_DEPTH_MAX) {
		reader_error(s->r, here(s), NULL, "more than %d levels deep", NODE_DEPTH_MAX);
		return NULL;
	}
	n = node_new(s->r, map ? NODE_MAP : NODE_LIST, here(s), NULL, 0);
	if (!n)
		return NULL;
	s->depth++;
	if (!read_entries(s, n, map ? '}' : ']')) {
		node_free(n);
		return NULL;
	}
	s->depth--;
	n->flow = true;
	return n;
}

static struct node *read_text(struct scanner *s)
{
	struct place at = here(s);
	auto_buf text = { 0 };

	if (!read_string(s, &text))
		return NULL;
	return node_new(s->r, NODE_STRING, at, buf_text(&text), text.len);
}

static struct node *read_value(struct scanner *s)
{
	struct node *n;
	unsigned from;

	here(s);
	from = s->characters;
	n = *s->at == '{' || *s->at == '[' ? read_collection(s)
	    : *s->at == '"'                ? read_text(s)
					   : read_plain(s);
	if (!n)
		return NULL;
	here(s);
	n->from = from;
	n->to = s->characters;
	return n;
}

struct node *json_read(struct reader *r, const uint8_t *bytes, size_t n)
{
	auto_buf copy = { 0 };
	struct scanner s = { .r = r, .place = { 1, 1 } };
	struct node *root;

	buf_add(&copy, bytes, n); /* with a NUL behind it */
	if (copy.failed) {
		reader_out_of_memory(r);
		return NULL;
	}
	s.at = s.counted = copy.data;
	s.end = copy.data + n;
	skip_space(&s);
	root = read_value(&s);
	if (!root)
		return NULL;
	skip_space(&s);
	if (s.at == s.end)
		return root;
	fail_at(&s, "the end of the document", NULL);
	node_free(root);
	return NULL;
}
