/* Base64 of RFC 4648, section 4. Pure, fuzzed (fuzz/envelope.c). */
#ifndef WARD_ENVD_BASE64_H
#define WARD_ENVD_BASE64_H

#include "base/buf.h"

/* Appends the n bytes with padding. */
void base64_write(const void *bytes, size_t n, struct buf *out);
/* Appends what the text stands for; padding may be missing, the URL-safe alphabet is read too.
 * False: it is no base64. */
must_check bool base64_read(const char *text, size_t n, struct buf *out);

#endif
