/* An error in words, for people and for programs. */
#ifndef WARD_BASE_ERR_TEXT_H
#define WARD_BASE_ERR_TEXT_H

#include "base/buf.h"
#include "base/err.h"

/* {"refused": {what, why, remedy}}, on one line without its newline. */
void err_json(const struct ward_err *e, struct buf *out);
/* The error as ward prints it: text, or (json) the object above; with a newline. */
void err_text(const struct ward_err *e, bool json, struct buf *out);

#endif
