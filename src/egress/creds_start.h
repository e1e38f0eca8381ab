/* Fetching the secrets of a run before it starts. */
#ifndef WARD_EGRESS_CREDS_START_H
#define WARD_EGRESS_CREDS_START_H

#include "model/plan.h"

/* Starts ward-secrets where the plan has grants and will be started; its placeholders go into the
 * plan's environment. */
must_check int creds_start(struct plan *p, struct ward_err *e);
/* Ends it, and ward-keys with it; before plan_end() and plan_free(). */
void creds_end(struct plan *p);

#endif
