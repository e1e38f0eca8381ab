/* The sinks of a run: what feeds them is a program of its own, which reads the journal. */
#ifndef WARD_AUDIT_SINKS_RUN_H
#define WARD_AUDIT_SINKS_RUN_H

#include "audit/journal.h"
#include "model/plan.h"
#include "model/result.h"

struct sinks;

/* *ret is NULL where the policy has none. A sink that the sandbox could reach, or that there is no
 * journal for, is refused. */
must_check int sinks_create(const struct plan *p, struct journal *j, struct sinks **ret,
			    struct ward_err *e);
/* The journal's sink, with the program started after the sandbox. */
struct event_sink *sinks_events(struct sinks *s);
/* The journal is complete: waits, within bounds, until all is delivered; what is not is a note.
 * Frees; NULL is fine. */
void sinks_end(struct sinks *s, struct result *r);

#endif
