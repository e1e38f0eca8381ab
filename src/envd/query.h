/*
 * Percent escapes and what stands behind "?" of a request: application/x-www-form-urlencoded. A
 * NUL, or an escape that is none, is refused. Pure, fuzzed (fuzz/query.c).
 */
#ifndef WARD_ENVD_QUERY_H
#define WARD_ENVD_QUERY_H

#include "base/buf.h"

/* Appends the text without its escapes; plus: "+" is a space, as in forms. False: an escape that is
 * none, or one of NUL. */
must_check bool query_decode(const char *text, size_t n, bool plus, struct buf *out);

/* Appends the decoded value of the first field of that name. 1: it was there; 0: it was not; -1: it
 * cannot be decoded. */
must_check int query_get(const char *query, size_t n, const char *name, struct buf *out);

/* The next field of a form from *at on, decoded into buffers that are emptied first. 1: one; 0:
 * none is left; -1: it cannot be decoded. */
must_check int query_next(const char *query, size_t n, size_t *at, struct buf *name,
			  struct buf *value);

#endif
