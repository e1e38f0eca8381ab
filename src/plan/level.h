/* The Landlock level: what it cannot give, and where its private directory lies. */
#ifndef WARD_PLAN_LEVEL_H
#define WARD_PLAN_LEVEL_H

#include "model/plan.h"

#define LEVEL_LANDLOCK_ABI 6 /* scopes: without them a sandbox could signal its supervisor */

/* Appends "FIELD: why it cannot be had here" for each thing that the policy sets itself and that
 * the Landlock level does not have. Returns how many. Limits are not among them: limits_assign()
 * knows what can be held. */
size_t level_landlock_refusals(const struct policy *policy, struct strv *refusals);

/* Refuses a plan that this host or this level cannot carry out, all reasons in one error. */
must_check int level_check(const struct plan *p, struct ward_err *e);

/* Appends what is absent on this level, in words for the result. */
void level_add_notes(struct strv *notes);

/* The run's own directory for temporary files and its home: there is no private /tmp. */
void level_tmp_path(const char *run_id, char *out, size_t n);
/* Removes it, if there is one; the run must be dead. Returns 0 or -errno. */
must_check int level_tmp_remove(const char *run_id);

#endif
