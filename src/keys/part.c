/*
 * Parts of something larger (part.h). In: heads of requests and of answers. Out: the same, about
 * more and about less; which bytes of a body go on. Run by ward-keys. Pure functions.
 */
#include "keys/part.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

const char *const part_names[PART_NAMES] = { "range", "x-ms-range", "request-range" };

struct text {
	const char *s;
	size_t n;
};

/* The next line of the text with its end; its length without that end. */
static bool next_line(struct text *rest, struct text *ret, size_t *ret_len)
{
	const char *end = rest->n ? memchr(rest->s, '\n', rest->n) : NULL;

	if (!rest->n)
		return false;
	*ret = (struct text){ rest->s, end ? (size_t)(end + 1 - rest->s) : rest->n };
	*rest = (struct text){ rest->s + ret->n, rest->n - ret->n };
	*ret_len = ret->n - (end != NULL);
	if (*ret_len && ret->s[*ret_len - 1] == '\r')
		--*ret_len;
	return true;
}

/* The value of a line, if it is of that name. */
static bool is_field(struct text line, size_t len, const char *name, struct text *ret)
{
	size_t n = strlen(name);

	if (len <= n || strncasecmp(line.s, name, n) != 0 || line.s[n] != ':')
		return false;
	*ret = (struct text){ line.s + n + 1, len - n - 1 };
	while (ret->n && (*ret->s == ' ' || *ret->s == '\t'))
		*ret = (struct text){ ret->s + 1, ret->n - 1 };
	while (ret->n && (ret->s[ret->n - 1] == ' ' || ret->s[ret->n - 1] == '\t'))
		ret->n--;
	return true;
}

/* A number of at most 18 digits, taken from the front. */
static bool take_number(struct text *t, uint64_t *ret)
{
	size_t n = 0;

	*ret = 0;
	while (n < t->n && t->s[n] >= '0' && t->s[n] <= '9' && n < 19)
		*ret = *ret * 10 + (uint64_t)(t->s[n++] - '0');
	*t = (struct text){ t->s + n, t->n - n };
	return n && n < 19;
}

static bool take(struct text *t, const char *word)
{
	size_t n = strlen(word);

	if (t->n < n || strncasecmp(t->s, word, n) != 0)
		return false;
	*t = (struct text){ t->s + n, t->n - n };
	return true;
}

/* -- what is asked for */

/* "bytes=1-2", "bytes=1-" or "bytes=-2"; anything else is refused. */
static bool read_range(struct text value, struct part *ret)
{
	struct part p = { .kind = PART_FROM };

	if (!take(&value, "bytes="))
		return false;
	if (take(&value, "-")) {
		p.kind = PART_LAST;
		if (!take_number(&value, &p.from) || value.n || !p.from)
			return false;
		*ret = p;
		return true;
	}
	if (!take_number(&value, &p.from) || !take(&value, "-"))
		return false;
	if (value.n) {
		p.kind = PART_BETWEEN;
		if (!take_number(&value, &p.to) || value.n || p.to < p.from)
			return false;
	}
	*ret = p;
	return true;
}

static void put_range(struct buf *out, struct text name, const struct part *p, size_t margin)
{
	uint64_t from = p->from > margin ? p->from - margin : 0;

	buf_add(out, name.s, name.n);
	if (p->kind == PART_LAST)
		buf_printf(out, ": bytes=-%" PRIu64 "\r\n", p->from + margin);
	else if (p->kind == PART_FROM)
		buf_printf(out, ": bytes=%" PRIu64 "-\r\n", from);
	else
		buf_printf(out, ": bytes=%" PRIu64 "-%" PRIu64 "\r\n", from, p->to + margin);
}

/* Which of part_names the line is; PART_NAMES: none. */
static unsigned which_range(struct text line, size_t len, struct text *ret)
{
	unsigned i = 0;

	while (i < PART_NAMES && !is_field(line, len, part_names[i], ret))
		i++;
	return i;
}

/* What the fields ask for, before one is read. */
static enum part_kind find_ranges(const struct buf *head, bool reads)
{
	struct text rest = { head->data, head->len }, line, value;
	enum part_kind kind = PART_NONE;
	size_t len;

	while (kind != PART_WHOLE && next_line(&rest, &line, &len)) {
		if (which_range(line, len, &value) == PART_NAMES)
			continue;
		kind = take(&value, "bytes") ? PART_WHOLE : PART_UNITS;
	}
	return kind == PART_WHOLE && reads ? PART_FROM : kind;
}

/* A hash of the part is asked for, too: it would be that of another one. */
static bool asks_hash(struct text line, size_t len)
{
	struct text value;

	return is_field(line, len, "x-ms-range-get-content-md5", &value) ||
	       is_field(line, len, "x-ms-range-get-content-crc64", &value);
}

bool part_request(struct buf *head, size_t margin, bool reads, struct part *ret)
{
	struct text rest = { head->data, head->len }, line, value;
	enum part_kind kind = find_ranges(head, reads);
	struct buf out = { 0 };
	unsigned kept = 0, gone = 0;
	size_t len;

	*ret = (struct part){ .kind = (uint8_t)kind };
	if (kind != PART_FROM)
		return !head->failed;
	ret->kind = PART_WHOLE;
	while (next_line(&rest, &line, &len)) {
		unsigned i = which_range(line, len, &value);

		if (i == PART_NAMES) {
			if (!asks_hash(line, len))
				buf_add(&out, line.s, line.n);
		} else if (ret->kind == PART_WHOLE &&
			   read_range(value, ret)) { /* of two servers take one or the other */
			put_range(&out, (struct text){ line.s, strlen(part_names[i]) }, ret,
				  margin);
			kept |= 1U << i;
		} else {
			gone |= 1U << i;
		}
	}
	ret->gone = (uint8_t)(gone & ~kept);
	buf_free(head);
	*head = out;
	return !out.failed;
}

/* -- what comes */

/* "bytes 1-2/3", the last number or "*". */
static bool read_content_range(struct text value, uint64_t *first, uint64_t *last,
			       struct text *ret_total, uint64_t *total)
{
	if (!take(&value, "bytes ") || !take_number(&value, first) || !take(&value, "-") ||
	    !take_number(&value, last) || !take(&value, "/") || *last < *first)
		return false;
	*ret_total = value;
	if (value.n == 1 && *value.s == '*') {
		*total = UINT64_MAX;
		return true;
	}
	return take_number(&value, total) && !value.n && *last < *total;
}

/* Which bytes of those from first to last were asked for. */
static enum part_say choose(const struct part *p, uint64_t first, uint64_t last, uint64_t total,
			    uint64_t *ret_from, uint64_t *ret_to)
{
	uint64_t from = p->from, to = p->kind == PART_BETWEEN && p->to < last ? p->to : last;

	if (p->kind == PART_LAST) {
		if (total == UINT64_MAX || last != total - 1)
			return PART_ODD;
		from = p->from < total ? total - p->from : 0;
	}
	if (from < first)
		return PART_ODD;
	*ret_from = from;
	*ret_to = to;
	if (from <= to)
		return PART_FINE;
	/* or less came than was asked for */
	return total != UINT64_MAX && from >= total ? PART_BEYOND : PART_ODD;
}

struct came {
	uint64_t first, last, total, from, to;
	struct text total_text;
};

/* Parts of another unit pass as they are: bytes were not asked for. */
static enum part_say check_units(const struct buf *lines)
{
	struct text rest = { lines->data, lines->len }, line, value;
	enum part_say say = PART_ODD;
	size_t len;

	while (next_line(&rest, &line, &len)) {
		if (!is_field(line, len, "content-range", &value))
			continue;
		if (take(&value, "bytes"))
			return PART_ODD;
		say = PART_FINE;
	}
	return say;
}

static enum part_say read_came(const struct buf *lines, const struct part *p, struct came *ret)
{
	struct text rest = { lines->data, lines->len }, line, value, found = { NULL, 0 };
	uint64_t length = 0;
	unsigned count = 0;
	bool has_length = false;
	size_t len;

	while (next_line(&rest, &line, &len)) {
		if (is_field(line, len, "content-range", &value) && !count++)
			found = value;
		if (is_field(line, len, "content-length", &value)) {
			has_length = true;
			if (!take_number(&value, &length) || value.n)
				return PART_ODD;
		}
	}
	if (count != 1 ||
	    !read_content_range(found, &ret->first, &ret->last, &ret->total_text, &ret->total))
		return PART_ODD;
	if (has_length && length != ret->last - ret->first + 1) /* the rest would be waited for */
		return PART_ODD;
	return choose(p, ret->first, ret->last, ret->total, &ret->from, &ret->to);
}

/* Hashes of what came, which is more than goes on. */
static bool is_hash(struct text line, size_t len)
{
	static const char *const names[] = { "content-md5", "content-digest",
					     "x-ms-content-crc64" };
	static const char sums[] = "x-amz-checksum-";
	struct text value;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (is_field(line, len, names[i], &value))
			return true;
	return len >= sizeof(sums) && strncasecmp(line.s, sums, sizeof(sums) - 1) == 0;
}

enum part_say part_answer(struct buf *lines, const struct part *p, struct part_window *ret)
{
	struct text rest = { lines->data, lines->len }, line, value;
	struct came c = { 0 };
	struct buf out = { 0 };
	enum part_say say;
	size_t len;

	*ret = (struct part_window){ .on = false };
	if (p->kind == PART_UNITS)
		return check_units(lines);
	say = p->kind == PART_NONE || p->kind == PART_WHOLE ? PART_ODD : read_came(lines, p, &c);
	if (say != PART_FINE)
		return say;
	while (next_line(&rest, &line, &len)) {
		if (is_field(line, len, "content-range", &value))
			buf_printf(&out, "content-range: bytes %" PRIu64 "-%" PRIu64 "/%.*s\r\n",
				   c.from, c.to, (int)c.total_text.n, c.total_text.s);
		else if (is_field(line, len, "content-length", &value))
			buf_printf(&out, "content-length: %" PRIu64 "\r\n", c.to - c.from + 1);
		else if ((c.from == c.first && c.to == c.last) || !is_hash(line, len))
			buf_add(&out, line.s, line.n);
	}
	buf_free(lines);
	*lines = out;
	*ret = (struct part_window){ .on = true,
				     .skip = c.from - c.first,
				     .left = c.to - c.from + 1 };
	return out.failed ? PART_ODD : PART_FINE;
}

size_t part_pass(struct part_window *w, size_t n, size_t *ret_from)
{
	size_t skipped = w->skip < n ? (size_t)w->skip : n, some = n - skipped;

	*ret_from = 0;
	if (!w->on)
		return n;
	some = some < w->left ? some : (size_t)w->left;
	w->skip -= skipped;
	w->left -= some;
	*ret_from = skipped;
	return some;
}
