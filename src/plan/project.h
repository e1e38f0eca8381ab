/* Which directory above the current one is the project. */
#ifndef WARD_PLAN_PROJECT_H
#define WARD_PLAN_PROJECT_H

#include "base/buf.h"
#include "base/err.h"

/* *ret_dir: here (absolute, links resolved), or the nearest directory above it whose ward.yaml
 * counts; NULL: there is none. The caller frees. A policy that was found and does not count is a
 * line of *said (NULL: nobody asks). */
must_check int project_find(const char *here, char **ret_dir, struct strv *said,
			    struct ward_err *e);

#endif
