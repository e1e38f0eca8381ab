/* The part of a plan that is about credentials. */
#ifndef WARD_LIB_PLAN_CREDS_H
#define WARD_LIB_PLAN_CREDS_H

#include "policy/policy.h"

/* Whether the grants that are in force go together with each other and with the rest of the policy. */
must_check int plan_creds_check(const struct policy *p, struct ward_err *e);

#endif
