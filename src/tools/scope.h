/* A tool's scope as a policy: the walls of one call. Pure functions. */
#ifndef WARD_TOOLS_SCOPE_H
#define WARD_TOOLS_SCOPE_H

#include "tools/tools.h"

struct scope_place {
	const char *dir;   /* the workspace of the tools, absolute and clean */
	const char *home;  /* NULL: unknown */
	const char *empty; /* an empty directory: the workspace of a tool without files */
};

/* Makes the policy of one call: base (NULL: none) cut to the tool's scope. *wider gets one line for
 * each thing in the scope that base does not allow; the policy must not be used then. The caller
 * clears *ret with policy_clear(). -errno with *e: it cannot be made. */
must_check int scope_policy(const struct tool_tool *tool, const struct scope_place *at,
			    const struct policy *base, struct policy *ret, struct strv *wider,
			    struct ward_err *e);

/* Appends the policy as a document that says every field that a scope decides. */
void scope_document(const struct policy *p, struct buf *out);

/* Whether rule a (a line of canonical JSON) allows all that b does. */
bool scope_rule_covers(const char *a, const char *b);
/* Whether a path lies in what the policy shows; write: for writing. dir: what its workspace and
 * relative paths begin at. */
bool scope_policy_shows(const struct policy *p, const char *dir, const char *home, const char *path,
			bool write);

#endif
