/* Taking parts out of a document, YAML or JSON; everything else stays as it was. */
#ifndef WARD_POLICY_CUT_H
#define WARD_POLICY_CUT_H

#include "base/buf.h"

#define CUT_PARTS_MAX 4096

/* Takes parts out of a document and appends the rest to *out. A part is the way to a value from the
 * top: keys of maps and numbers of entries, from 0, with slashes between them, as in
 * "network/egress_allowlist/2/ports/1". Comments, order and layout of what remains stay; a list or
 * map that all goes out of becomes [] or {}. -ENOENT: there is no such part; -EINVAL: the document
 * cannot be read, or the parts stand where nothing can be taken out alone. Pure. */
must_check int document_cut(const char *name, const uint8_t *bytes, size_t n,
			    const struct strv *parts, struct buf *out, struct ward_err *e);

#endif
