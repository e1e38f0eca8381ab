/* Scanners of others, run in a sandbox over changes before they are applied. */
#ifndef WARD_CLI_LOOK_OUTSIDE_H
#define WARD_CLI_LOOK_OUTSIDE_H

#include "cli/cli.h"
#include "review/changes.h"
#include "review/look.h"

/* Adds what the scanners of --scanner find in the changed files of a review beneath the paths
 * (none: all). One that cannot be run, or says what cannot be read, is an error. */
must_check int look_outside(const struct options *o, const struct review *r,
			    const struct changes *all, const struct strv *paths,
			    struct look_findings *found, struct ward_err *e);

#endif
