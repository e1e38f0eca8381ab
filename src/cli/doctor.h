/* What ward doctor tries beyond the host's kernel. */
#ifndef WARD_CLI_DOCTOR_H
#define WARD_CLI_DOCTOR_H

#include <limits.h>

#include "base/err.h"

#define DOCTOR_TRIALS 9

enum trial_state { TRIAL_ABSENT, TRIAL_WORKS, TRIAL_FAILS };

/* One runtime. */
struct doctor_trial {
	const char *name;
	const char *engine; /* that needs it; NULL: none */
	enum trial_state state;
	char path[PATH_MAX]; /* "": it is not installed */
	struct ward_err why; /* TRIAL_FAILS */
};

/* Runs every runtime that is installed, each for a bounded time. */
void doctor_try(struct doctor_trial results[DOCTOR_TRIALS]);
/* The runtime that a run with this engine would take; NULL: the engine needs none of them, or has
 * none. */
const struct doctor_trial *doctor_trial_of(const struct doctor_trial results[DOCTOR_TRIALS],
					   const char *engine);

#endif
