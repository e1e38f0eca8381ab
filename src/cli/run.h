/* One sandbox from its start to its end: what ward run and ward-box do. */
#ifndef WARD_CLI_RUN_H
#define WARD_CLI_RUN_H

#include "cli/cli.h"
#include "run/detach.h"

/* What a run came to, for a verb that runs one. */
struct run_outcome {
	char run_id[24];
	int exit_code;
	bool refused;   /* nothing was started */
	size_t changes; /* of the workspace, under review */
};

/* Runs the command of the options. d: what ward-box holds of a process that asked, which then gets
 * all messages; NULL: ward run itself. Returns the exit code. */
int run_sandbox(struct options *o, struct detached *d);

#endif
