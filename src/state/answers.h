/* What a person answered once, kept so that nobody asks again. */
#ifndef WARD_STATE_ANSWERS_H
#define WARD_STATE_ANSWERS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"

#define ANSWER_BYTES_MAX 64

/* The answer of `who` (letters, digits and . _ + -) about `what`, appended to *ret; nothing is
 * appended where none is kept, or one that is not a single short line of printable ASCII. */
must_check int answers_get(const char *who, const char *what, struct buf *ret, struct ward_err *e);
/* Keeps an answer in place of an older one; NULL forgets it. */
must_check int answers_put(const char *who, const char *what, const char *answer,
			   struct ward_err *e);

#endif
