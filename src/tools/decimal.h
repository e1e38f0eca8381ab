/* Numbers of JSON, exactly: no value is rounded on its way into a comparison. */
#ifndef WARD_TOOLS_DECIMAL_H
#define WARD_TOOLS_DECIMAL_H

#include <stdbool.h>

#include "base/own.h"

/* digits * 10^exponent, without trailing zeros in digits; zero is {false, 0, 0}. */
struct decimal {
	bool negative;
	unsigned __int128 digits;
	int exponent;
};

/* Reads a number as JSON writes it. False: it is none, or has more than 34 significant digits or an
 * exponent beyond a thousand. A pure function. */
must_check bool decimal_read(const char *text, struct decimal *ret);
/* -1, 0 or 1. */
int decimal_compare(const struct decimal *a, const struct decimal *b);
bool decimal_is_integer(const struct decimal *d);
/* Whether a is b times an integer; b is not zero. */
bool decimal_is_multiple(const struct decimal *a, const struct decimal *b);

#endif
