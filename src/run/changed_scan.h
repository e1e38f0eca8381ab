/* Looking for secrets in the files that a run has changed, at its end (credentials.
 * scan_workspace). */
#ifndef WARD_RUN_CHANGED_SCAN_H
#define WARD_RUN_CHANGED_SCAN_H

#include "model/plan.h"
#include "model/result.h"

/* upper_fd: the changes of a review, -1: there is none, the workspace itself is looked through. */
void changed_scan(const struct plan *p, int upper_fd, struct result *r);

#endif
