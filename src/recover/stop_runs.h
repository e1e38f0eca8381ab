/* The emergency stop: every sandbox of this user at once, without its supervisor's help. */
#ifndef WARD_RECOVER_STOP_RUNS_H
#define WARD_RECOVER_STOP_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/own.h"

/* A run that was found on record. */
struct stopped_run {
	char id[32];
	char slot[32]; /* the name of its record */
	bool dead;     /* its first process, and so every process */
	/* the parent of its first process, if that was ward; 0: not known */
	pid_t supervisor;
	uint64_t supervisor_start; /* as store_process_start() has it */
};

struct stopped_runs {
	struct stopped_run *items; /* owned; free() */
	size_t len;
};

/* Freezes every sandbox on record, then kills them, and waits until all are dead. Reads only; asks
 * no supervisor, no journal. starts: wait for runs that are on record without a process too; after
 * panic_set() they end by themselves. -ETIMEDOUT: some are not dead; the list says which. The
 * caller frees the list in any case. */
must_check int stop_runs(bool starts, struct stopped_runs *ret_runs, struct ward_err *e);
/* Whether the run is over: its supervisor has finished it, or is dead itself. */
bool stopped_run_is_over(const struct stopped_run *r);

#endif
