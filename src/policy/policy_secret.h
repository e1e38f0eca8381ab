/* --secret: one word of the command line for one entry of credentials.grants. */
#ifndef WARD_POLICY_POLICY_SECRET_H
#define WARD_POLICY_POLICY_SECRET_H

#include "base/buf.h"

/* Appends to *ret the grant that NAME[=SOURCE]@HOST[,HOST...][:PLACE] means, as a map in JSON; the
 * reader of the policy checks what is in it. -EINVAL with *e, which never repeats a source: what
 * stands there by mistake may be the secret. Pure. */
must_check int secret_option_read(const char *text, struct buf *ret, struct ward_err *e);

#endif
