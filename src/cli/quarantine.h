/* The parts of ward quarantine that have a file of their own. */
#ifndef WARD_CLI_QUARANTINE_H
#define WARD_CLI_QUARANTINE_H

#include "cli/cli.h"
#include "state/store.h"

/* ward quarantine show RUN PATH: prints one quarantined thing. Returns the exit status. */
int quarantine_show(const struct options *o, const struct store_items *v, struct ward_err *e);

#endif
