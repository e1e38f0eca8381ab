/* ward run --restore. */
#ifndef WARD_CLI_RUN_RESTORE_H
#define WARD_CLI_RUN_RESTORE_H

#include "cli/cli.h"
#include "state/checkpoint.h"

/* Opens the checkpoint that o->restore names and takes its command and, unless another is named,
 * its workspace. *c is the caller's to clear, and must outlive what is made of o. */
must_check int restore_resolve(struct options *o, struct checkpoint *c, struct ward_err *e);

#endif
