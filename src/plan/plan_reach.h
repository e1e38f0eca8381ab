/* What of the host a sandbox can write to. */
#ifndef WARD_PLAN_PLAN_REACH_H
#define WARD_PLAN_PLAN_REACH_H

#include "base/buf.h"

struct plan;

/* The place of the sandbox's (the workspace, a writable mount) in which a path lies that has no
 * links in it; NULL: none. Borrowed from the plan. */
const char *plan_reach(const struct plan *p, const char *real);
/* All such places. */
void plan_reach_list(const struct plan *p, struct strv *ret);
/* The path of a file that may not be there yet, its directory without links, if nothing inside can
 * write to it; the caller frees. field is for messages. */
must_check int plan_reach_file(const struct plan *p, const char *field, const char *path,
			       char **ret, struct ward_err *e);
/* Refuses a path of the host that goes through a link which the sandbox, or one before it, could
 * have made, and leads out of the place of that link. real: the path without links. field is for
 * messages. */
must_check int plan_reach_way(const struct plan *p, const char *field, const char *path,
			      const char *real, struct ward_err *e);

#endif
