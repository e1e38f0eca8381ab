/*
 * The path of a request in its one normal form. What is decided about is what is forwarded, so a
 * path is brought into this form first: escapes of letters, digits and -._~ taken back, other
 * escapes in capitals, "." and ".." resolved, "//" made "/". What servers are known to read
 * differently is refused: %00 and other controls, "\", ".." beyond the root or in front of ";",
 * overlong UTF-8, an escape of an escape. An escaped slash (%2F) stays, but a path with one must be
 * allowed in both readings. Pure, fuzzed (fuzz/http_path.c).
 */
#ifndef WARD_RULES_HTTP_PATH_H
#define WARD_RULES_HTTP_PATH_H

#include <stdbool.h>
#include <stddef.h>

#define HTTP_PATH_MAX 8192

struct http_path {
	size_t len;
	bool two; /* it has an escaped slash: `other` is the second reading */
	/* there were dots or empty segments: as it stands, it is a reading of its own */
	bool resolved;
	size_t other_len;
	char text[HTTP_PATH_MAX];
	char other[HTTP_PATH_MAX];
};

/* Reads a path without its query. False: it has no one reading, or is too long. */
bool http_path_read(const char *s, size_t n, struct http_path *ret);

/* Whether the pattern, in which * stands for any characters and \* for a star, matches all of the
 * text. */
bool http_glob(const char *pattern, size_t pattern_len, const char *s, size_t n);

#endif
