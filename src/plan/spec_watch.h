/* What watch rules mean for the rest of a spec. */
#ifndef WARD_PLAN_SPEC_WATCH_H
#define WARD_PLAN_SPEC_WATCH_H

#include "plan/spec.h"

/* Checks the rules against each other, and raises audit.level to what they count; a note says so.
 * -EINVAL with *e. */
must_check int spec_watch(struct spec *s, struct ward_err *e);

#endif
