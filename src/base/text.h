/* Text for people: untrusted bytes made harmless for a terminal, and the known name nearest to a
 * misspelt one. */
#ifndef WARD_BASE_TEXT_H
#define WARD_BASE_TEXT_H

#include "base/buf.h"

/* Length of the valid UTF-8 sequence at s (NUL-terminated), 0 if there is none; *ret_point is its
 * code point. A pure function. */
size_t text_utf8(const unsigned char *s, unsigned *ret_point);

/* Whether all of s is UTF-8. A pure function. */
bool text_is_utf8(const char *s);

/* Whether a character acts instead of showing: it moves the cursor, turns the text around or hides.
 * A pure function. */
bool text_acts(unsigned point);

/* Appends s on one line: control characters, bytes that are not UTF-8, and characters that turn or
 * hide text become escapes, so that nothing in s can move the cursor, forge a line or reverse its
 * order. A pure function. */
void text_escape(struct buf *out, const char *s);

/* Appends s escaped, from the column that out has reached, and breaks lines at spaces so that they
 * fit into 80 columns; the next lines begin at column `indent`. A word that does not fit stays
 * whole. A pure function. */
void text_wrap(struct buf *out, const char *s, size_t indent);

/* The same as text_escape() for the n bytes of a text of many lines, NUL bytes among them: line
 * ends and tabs stay. text[n] must be readable and NUL. A pure function. */
void text_escape_lines(struct buf *out, const char *text, size_t n);

/* Appends s for HTML and XML, as text or as a quoted attribute. */
void text_entities(struct buf *out, const char *s);

/* Whether s means itself to a shell, quoted or not, and in a policy. A pure function. */
bool text_is_plain(const char *s);

/* "Key:\tA\tB\tC\n" of /proc/PID/status: the number at a place behind key. false: there are fewer,
 * and *ret is the last of them, 0 where there is none. A pure function. */
bool text_number_after(const char *text, const char *key, unsigned place, long *ret);

/* Edits (insert, delete, replace, swap neighbours) between two names, case ignored; cut off at 64
 * characters. */
unsigned text_distance(const char *a, const char *b);

/* Keeps in *best the candidate that is nearest to name; *best is NULL and *best_distance UINT_MAX
 * before the first call. Candidates too far away to be meant are not kept. */
void text_nearest(const char *name, const char *candidate, const char **best,
		  unsigned *best_distance);

#endif
