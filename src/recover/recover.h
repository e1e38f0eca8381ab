/* Finishing what killed runs have left. */
#ifndef WARD_RECOVER_RECOVER_H
#define WARD_RECOVER_RECOVER_H

#include "base/err.h"

/* Finishes what dead runs (their records are unlocked) left: processes, cgroup directories, sweep,
 * record. Returns how many. */
must_check int recover_runs(struct ward_err *e);

#endif
