/* Finishing what killed runs have left. */
#ifndef WARD_RECOVER_RECOVER_H
#define WARD_RECOVER_RECOVER_H

#include "base/buf.h"
#include "base/err.h"

/* Finishes what dead runs (their records are unlocked) left: processes, cgroup directories, sweep,
 * record. Returns how many. */
must_check int recover_runs(struct ward_err *e);
/* Appends what of a run's git changes did not arrive to notes. */
must_check int recover_runs_noting(struct strv *notes, struct ward_err *e);

#endif
