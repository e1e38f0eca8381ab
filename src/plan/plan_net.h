/* The part of a plan that says what of the network exists inside. */
#ifndef WARD_PLAN_PLAN_NET_H
#define WARD_PLAN_PLAN_NET_H

#include "model/plan.h"

/* Fills *n from the policy. */
must_check int plan_net_fill(const struct policy *p, struct plan_net *n, struct ward_err *e);
/* Of *n, which is empty but for the classes so far, what the kernel has to bring for these rules:
 * matches, ports and classes. */
void plan_net_tproxy(const struct rules *rules, struct plan_net *n);
void plan_net_clear(struct plan_net *n);

#endif
