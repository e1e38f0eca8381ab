/* ward run -d. */
#ifndef WARD_CLI_RUN_DETACHED_H
#define WARD_CLI_RUN_DETACHED_H

#include "cli/cli.h"

/* Starts the sandbox, leaves it and prints its id. Returns the exit code. */
int run_detached(const struct options *o);

#endif
