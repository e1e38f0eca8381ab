/* What was refused, as options of ward run that would allow it. */
#ifndef WARD_OBSERVE_ADVICE_H
#define WARD_OBSERVE_ADVICE_H

#include "observe/explain.h"
#include "model/result.h"

struct plan;

/* Appends the changes as options, quoted for a shell: "--allow a.example". file: the run had a
 * policy file, which options widen only together with --widen. Nothing where there is no change.
 * Pure. */
void advice_option(const struct explain_change *changes, size_t count, bool file, struct buf *out);

/* Gives each denial of the result that a line of the policy would allow the option that does the
 * same. */
void advice_fill(struct result *r, const struct plan *p);

#endif
