/*
 * Exact decimal numbers. In: the text of a JSON number. Out: comparisons. Doubles would call 0.3
 * no multiple of 0.1 and 2^53 + 1 equal to 2^53; numbers that do not fit are refused rather than
 * rounded. Pure functions.
 */
#include "tools/decimal.h"

#include <string.h>

#define DIGITS_MAX 34
#define EXPONENT_MAX 1000

static bool read_digits(const char **text, struct decimal *d, bool fraction, int *zeros)
{
	const char *at = *text;

	for (; *at >= '0' && *at <= '9'; at++) {
		if (fraction)
			d->exponent--;
		if (*at == '0') { /* counts only if another digit follows */
			++*zeros;
			continue;
		}
		for (; *zeros; --*zeros) {
			if (d->digits >= (unsigned __int128)1 << 112)
				return false;
			d->digits *= 10;
		}
		if (d->digits >= (unsigned __int128)1 << 112)
			return false;
		d->digits = d->digits * 10 + (unsigned)(*at - '0');
	}
	if (at == *text)
		return false;
	*text = at;
	return true;
}

bool decimal_read(const char *text, struct decimal *ret)
{
	struct decimal d = { .negative = *text == '-' };
	int zeros = 0, exponent = 0;

	text += d.negative;
	if (strlen(text) > EXPONENT_MAX || !read_digits(&text, &d, false, &zeros))
		return false;
	if (*text == '.') {
		text++;
		if (!read_digits(&text, &d, true, &zeros))
			return false;
	}
	if (*text == 'e' || *text == 'E') {
		bool negative = text[1] == '-';

		text += text[1] == '-' || text[1] == '+' ? 2 : 1;
		if (!*text)
			return false;
		for (; *text >= '0' && *text <= '9' && exponent <= EXPONENT_MAX; text++)
			exponent = exponent * 10 + (*text - '0');
		exponent = negative ? -exponent : exponent;
	}
	if (*text || exponent > EXPONENT_MAX || exponent < -EXPONENT_MAX)
		return false;
	d.exponent += exponent + zeros; /* zeros at the end are in the exponent */
	if (d.digits == 0)
		d = (struct decimal){ 0 };
	*ret = d;
	return true;
}

static int digit_count(unsigned __int128 digits)
{
	int n = 0;

	for (; digits; digits /= 10)
		n++;
	return n;
}

/* Of two that are not negative. */
static int compare_size(const struct decimal *a, const struct decimal *b)
{
	int high_a = digit_count(a->digits) + a->exponent;
	int high_b = digit_count(b->digits) + b->exponent;
	unsigned __int128 x = a->digits, y = b->digits;

	if (!x || !y)
		return x ? 1 : y ? -1 : 0;
	if (high_a != high_b)
		return high_a > high_b ? 1 : -1;
	for (int i = a->exponent; i > b->exponent; i--)
		x *= 10; /* equally high: at most as many digits as the other has */
	for (int i = b->exponent; i > a->exponent; i--)
		y *= 10;
	return x > y ? 1 : x < y ? -1 : 0;
}

int decimal_compare(const struct decimal *a, const struct decimal *b)
{
	if (a->negative != b->negative)
		return a->negative ? -1 : 1;
	return a->negative ? compare_size(b, a) : compare_size(a, b);
}

bool decimal_is_integer(const struct decimal *d)
{
	return d->exponent >= 0;
}

bool decimal_is_multiple(const struct decimal *a, const struct decimal *b)
{
	unsigned __int128 rest;

	if (!a->digits)
		return true;
	if (!b->digits || a->exponent < b->exponent)
		return false; /* a has no trailing zeros to give */
	rest = a->digits % b->digits;
	for (int i = a->exponent; i > b->exponent; i--)
		rest = rest * 10 % b->digits;
	return rest == 0;
}
