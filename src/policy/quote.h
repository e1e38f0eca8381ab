/* Texts written into a policy document. */
#ifndef WARD_POLICY_QUOTE_H
#define WARD_POLICY_QUOTE_H

#include "base/buf.h"

/* Appends text as a double-quoted scalar, on one line, which YAML reads back as exactly that text,
 * whatever characters it holds. False, with nothing appended: it is not UTF-8, and no document can
 * hold it. A pure function. */
must_check bool policy_quote(struct buf *out, const char *text);

#endif
