/* How ward and the programs of its verbs speak, and how they end. */
#ifndef WARD_BASE_SAY_H
#define WARD_BASE_SAY_H

#include "base/buf.h"
#include "base/err.h"

/* Exit codes of ward itself. `run` gives EXIT_REFUSED for usage too: 2 could be the command's
 * own. */
enum { EXIT_FINE = 0, EXIT_FINDINGS = 1, EXIT_USAGE = 2, EXIT_REFUSED = 125 };

/* Prints "ward: WHAT: WHY" and the remedy on standard error (with json: one refusal object);
 * returns code. */
int say_error(const struct ward_err *e, bool json, int code);
/* Writes the text to standard output; returns code, or 125 with a message if it cannot. */
int say_out(const struct buf *out, int code);
/* Writes the text to standard error; errors are not worth a word. */
void say_err(const struct buf *out);
/* A line for each on standard error. */
void say_notes(const struct strv *notes);

#endif
