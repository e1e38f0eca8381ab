/* What the head of an answer says about its body, for ward-keys. Pure functions over lines; fuzzed
 * (fuzz/part.c). */
#ifndef WARD_KEYS_ANSWER_HEAD_H
#define WARD_KEYS_ANSWER_HEAD_H

#include "base/buf.h"

/* Whether a field says that the body cannot be looked through: it is compressed, or several parts
 * of something in one; or whether one can be read in two ways. Lines end in CRLF or LF; status: the
 * first is a status line. Every field of a name counts, not the first. */
bool answer_hides(const struct buf *lines, bool status);
/* Whether there is a field of that name, in whichever case. */
bool answer_has(const struct buf *lines, const char *name);

#endif
