/*
 * The small pattern language of tables/scan.def. A pattern is matched from its beginning at one
 * place, greedily and without backtracking, so a match takes time in proportion to its length
 * whatever the bytes are.
 *
 *	x	that byte		[a-z_]	one of a set	[^a-z]	one that is not in it
 *	#a letter or digit  #d digit  #h 0-9a-f  #H any hexadecimal digit  #U capital or digit
 *	#w letter, digit, _  #u base64url  #b base64 without =; all of them in a set, too
 *	{n} {n,m}	so many of the byte or set before it
 *	%	an assignment: closing quotes, blanks, = : := => , or >, blanks, an opening quote
 *	( )	around the secret itself; without them it is the whole match
 */
#ifndef WARD_SCAN_PATTERN_H
#define WARD_SCAN_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATTERN_STEPS 112

enum pattern_what { PATTERN_SET, PATTERN_ASSIGN, PATTERN_BEGIN, PATTERN_END };

struct pattern_step {
	enum pattern_what what;
	uint32_t set[8]; /* a bit for each byte */
	unsigned least, most;
};

struct pattern {
	size_t count;
	struct pattern_step steps[PATTERN_STEPS];
};

struct pattern_match {
	size_t start, end;               /* of the match */
	size_t secret_start, secret_end; /* of the secret */
	bool quoted;                     /* the assigned value is in quotes */
	/* the bytes ended within it: with more of them the answer could be another. Also set where
	 * there is no match */
	bool ran_out;
};

/* Compiles text; false: it is no pattern, or too long. A pure function. */
bool pattern_compile(const char *text, bool caseless, struct pattern *ret);
/* Matches at a place of the bytes. open: more of the last set may follow. A pure function. */
bool pattern_match(const struct pattern *p, const uint8_t *bytes, size_t n, size_t at, bool open,
		   struct pattern_match *ret);
/* How many bytes in front of at, at most `most`, are of the pattern's first set. */
size_t pattern_back(const struct pattern *p, const uint8_t *bytes, size_t at, size_t most);

#endif
