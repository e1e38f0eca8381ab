/* Regular expressions of parameters and schemas, by PCRE2 in ECMAScript's manner. */
#ifndef WARD_TOOLS_REGEX_H
#define WARD_TOOLS_REGEX_H

#include <stddef.h>

#include "base/err.h"

enum regex_way { REGEX_SEARCH, REGEX_WHOLE };

/* 1: text (UTF-8) matches, 0: it does not, -EINVAL: the pattern is none, -ERANGE: it would take
 * too long. ret_why (NULL: not wanted) says what is wrong with a pattern. A pure function. */
must_check int regex_match(const char *pattern, enum regex_way way, const char *text,
			   char ret_why[128]);

#endif
