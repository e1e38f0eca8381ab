/*
 * Internationalised names, when a policy is read. In: a host name in UTF-8. Out: the name that is
 * looked up, in ASCII, or a refusal. The characters that are taken (a table made by
 * tools/gen_idna.py) are those of IDNA 2008 that stand for themselves, so there is no mapping and
 * no normalising to get wrong: each label has one A-label, by Punycode (RFC 3492). Everything else
 * can be written in its A-label. Names from inside a sandbox never come here: they are ASCII or
 * refused. Pure. Fuzzed (fuzz/hostname.c).
 */
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "policy/idna.h"

#include "idna_taken.h"

#define LABEL_MAX 63

enum { BASE = 36, T_MIN = 1, T_MAX = 26, SKEW = 38, DAMP = 700, BIAS = 72, FIRST = 0x80 };

static const char not_taken[] = "a host name in ASCII, or in lower-case letters that need no "
				"conversion; write others as their xn-- form";

static bool is_taken(unsigned point)
{
	size_t low = 0, high = ARRAY_LEN(idna_taken);

	if (point < FIRST)
		return (point >= 'a' && point <= 'z') || (point >= '0' && point <= '9') ||
		       point == '-' || point == '_';
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (point > idna_taken[middle].last)
			low = middle + 1;
		else
			high = middle;
	}
	return low < ARRAY_LEN(idna_taken) && point >= idna_taken[low].first;
}

/* RFC 3492, 6.1 */
static unsigned adapt(unsigned delta, unsigned count, bool first)
{
	unsigned k = 0;

	delta = first ? delta / DAMP : delta / 2;
	delta += delta / count;
	for (; delta > (BASE - T_MIN) * T_MAX / 2; k += BASE)
		delta /= BASE - T_MIN;
	return k + (BASE - T_MIN + 1) * delta / (delta + SKEW);
}

static char digit(unsigned value)
{
	return (char)(value < 26 ? 'a' + value : '0' + (value - 26));
}

struct label {
	char text[LABEL_MAX + 1];
	size_t len;
	bool full;
};

static void add(struct label *l, char c)
{
	if (l->len < LABEL_MAX)
		l->text[l->len++] = c;
	else
		l->full = true;
}

/* A number of variable length: RFC 3492, 3.3 */
static void add_number(struct label *l, unsigned value, unsigned bias)
{
	for (unsigned k = BASE;; k += BASE) {
		unsigned t = k <= bias + T_MIN ? T_MIN : k >= bias + T_MAX ? T_MAX : k - bias;

		if (value < t)
			break;
		add(l, digit(t + (value - t) % (BASE - t)));
		value = (value - t) / (BASE - t);
	}
	add(l, digit(value));
}

/* RFC 3492, 6.3. A label has at most 63 points below 0x110000: nothing here overflows 32 bits. */
static void punycode(const unsigned *points, unsigned n, struct label *l)
{
	unsigned next = FIRST, delta = 0, bias = BIAS, done = 0, plain;

	for (unsigned i = 0; i < n; i++)
		if (points[i] < FIRST)
			add(l, (char)points[i]);
	plain = done = (unsigned)l->len - 4; /* behind xn-- */
	if (plain)
		add(l, '-');
	while (done < n && !l->full) {
		unsigned least = UINT32_MAX;

		for (unsigned i = 0; i < n; i++)
			if (points[i] >= next && points[i] < least)
				least = points[i];
		delta += (least - next) * (done + 1);
		next = least;
		for (unsigned i = 0; i < n; i++) {
			delta += points[i] < next;
			if (points[i] != next)
				continue;
			add_number(l, delta, bias);
			bias = adapt(delta, done + 1, done == plain);
			delta = 0;
			done++;
		}
		delta++;
		next++;
	}
}

/* One label of n bytes with at least one byte that is not ASCII. */
static bool to_a_label(const char *label, size_t n, struct label *ret)
{
	unsigned points[LABEL_MAX], count = 0;
	size_t at = 0;

	while (at < n) {
		unsigned point = (unsigned char)label[at];
		size_t size =
			point < FIRST ? 1 : text_utf8((const unsigned char *)label + at, &point);

		if (!size || count == LABEL_MAX || !is_taken(point))
			return false;
		points[count++] = point;
		at += size;
	}
	if (!count || points[0] == '-' || points[count - 1] == '-' ||
	    (count > 3 && points[2] == '-' && points[3] == '-'))
		return false;
	*ret = (struct label){ .text = "xn--", .len = 4 };
	punycode(points, count, ret);
	return !ret->full;
}

static bool is_ascii(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] >= FIRST)
			return false;
	return true;
}

const char *idna_to_ascii(const char *name, char *out, size_t cap)
{
	size_t len = 0;

	while (*name) {
		size_t n = strcspn(name, ".");
		struct label l = { .len = 0 };
		const char *text = name;
		size_t size = n;

		if (!is_ascii(name, n)) {
			if (!to_a_label(name, n, &l))
				return not_taken;
			text = l.text;
			size = l.len;
		}
		if (len + size + 2 > cap)
			return "a host name of at most 253 characters";
		memcpy(out + len, text, size);
		len += size;
		name += n;
		if (*name)
			out[len++] = *name++;
	}
	out[len] = '\0';
	return NULL;
}
