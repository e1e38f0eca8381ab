/* Parts of plan_compile(): the mounts, the ids, the environment. Used by plan.c alone. */
#ifndef WARD_LIB_PLAN_ROOT_H
#define WARD_LIB_PLAN_ROOT_H

#include "lib/plan.h"

/* Adds the private file systems and links of tables/root.def. */
must_check int plan_add_private(struct plan *p, struct ward_err *e);
/* Adds the workspace, the git directories that it needs, and the policy's host mounts. */
must_check int plan_add_policy_mounts(struct plan *p, struct ward_err *e);
/* Puts the mounts in order, the system's first, and says which lie in others. */
must_check int plan_order_mounts(struct plan *p, struct ward_err *e);
/* Decides whom the agent is on the host; as root also makes the id-mapped copies of the policy's trees. */
must_check int plan_choose_ids(struct plan *p, struct ward_err *e);
/* The environment inside. */
must_check int plan_make_env(struct plan *p, struct ward_err *e);

#endif
