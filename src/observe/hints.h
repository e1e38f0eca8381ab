/* ward run --hints: prints what is refused on standard error, with what would allow it. */
#ifndef WARD_OBSERVE_HINTS_H
#define WARD_OBSERVE_HINTS_H

#include "model/plan.h"
#include "model/result.h"

struct hints;

/* A sink that shows denials and passes everything on to next (borrowed, NULL: none). held: nothing
 * is shown before hints_finish(), because another process owns the terminal meanwhile. */
must_check struct hints *hints_create(const struct plan *p, struct event_sink *next, bool held);
struct event_sink *hints_sink(struct hints *h);
/* The command has ended: tells what was kept back; files that were missing only if it failed. NULL
 * is fine. */
void hints_finish(struct hints *h, bool failed);
void hints_destroy(struct hints *h);

#endif
