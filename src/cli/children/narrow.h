/* The policy of a child: its parent's, cut down to what was asked for. Pure functions. */
#ifndef WARD_CLI_CHILDREN_NARROW_H
#define WARD_CLI_CHILDREN_NARROW_H

#include "cli/children/request.h"
#include "policy/policy.h"

/* A sandbox that may have children. */
struct parent {
	struct policy policy;  /* filesystem.workspace is absolute */
	struct strv unsafe;    /* of its mounts, why no child may have it; "": it may */
	uint64_t memory_bytes; /* of the machine; shares are taken of it */
};

/* Makes the child's policy; anything that it would have beyond the parent's is -EACCES with the
 * reason. The caller clears *ret with policy_clear() in any case. */
must_check int child_narrow(const struct parent *parent, const struct child_request *q,
			    struct policy *ret, struct ward_err *e);
/* Why a child must not have a mount of the parent's, NULL: it may. real: its path without links.
 * Pure. */
const char *child_mount_unsafe(const struct policy *parent, const struct policy_mount *m,
			       const char *real);
/* A limit in bytes, processes and so on; shares of memory are taken of the machine's. */
uint64_t child_limit(uint64_t value, uint64_t memory_bytes);

#endif
