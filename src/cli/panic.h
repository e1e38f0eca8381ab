/* The emergency stop, as ward kill --all and ward panic share it. */
#ifndef WARD_CLI_PANIC_H
#define WARD_CLI_PANIC_H

#include "cli/cli.h"

/* Freezes and kills every sandbox of this user. Returns the exit code. */
int panic_kill_all(const struct options *o);

#endif
