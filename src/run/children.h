/* Sandboxes that a sandbox starts (process.children): the supervisor's side of ward-children. */
#ifndef WARD_RUN_CHILDREN_H
#define WARD_RUN_CHILDREN_H

#include "model/plan.h"
#include "model/result.h"

/* Starts ward-children for a plan that will be started and may have children. children_end() is for
 * it in any case. */
must_check int children_start(struct plan *p, struct ward_err *e);
/* The sandbox is built, and has the socket. */
void children_mounted(const struct plan *p);
/* What to poll; -1: nothing. */
int children_fd(const struct plan *p);
/* Reads what it reports into the result and the journal. */
void children_handle(struct plan_live *live, struct result *r);
/* Holds all children, or lets them go on; none starts meanwhile. */
void children_hold(const struct plan_live *live, bool hold);
/* Ends all children, waits for them, and reads what is left to report. */
void children_stop(struct plan_live *live, struct result *r);
/* Ends them without a report, and frees. */
void children_end(struct plan *p);

#endif
