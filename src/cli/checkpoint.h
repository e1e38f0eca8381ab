/* What the files of ward checkpoint share. */
#ifndef WARD_CLI_CHECKPOINT_H
#define WARD_CLI_CHECKPOINT_H

#include "cli/cli.h"
#include "state/checkpoint.h"

/* Makes one of the sandbox `box`. *ret is its record, for the caller to clear. */
must_check int checkpoint_make(const char *box, const char *name, bool stop, struct checkpoint *ret,
			       struct ward_err *e);

#endif
