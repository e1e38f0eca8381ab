/* Editing a policy file: one value more, everything else as it was. */
#ifndef WARD_POLICY_POLICY_EDIT_H
#define WARD_POLICY_POLICY_EDIT_H

#include "policy/policy.h"

/* Adds value to a field of a document (one more entry of a list; any other field is set), as `ward
 * run --add` and `--set` take it. Comments, order and layout of everything else stay. Appends the
 * new document to *out. 0; 1: the document says so already, *out is the same; -EINVAL with *e: the
 * document has errors, there is no such field or value, or no place for it that would change
 * nothing else. Pure. */
must_check int policy_edit(const char *name, const uint8_t *bytes, size_t n, const char *field,
			   const char *value, struct buf *out, struct ward_err *e);

#endif
