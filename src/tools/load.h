/* A tools.yaml on disk: found, read, and accepted or not; and the policy that its tools may not
 * exceed. */
#ifndef WARD_TOOLS_LOAD_H
#define WARD_TOOLS_LOAD_H

#include "base/sha256.h"
#include "tools/tools.h"

struct tools_source {
	char *shown;      /* for messages */
	char *path;       /* absolute */
	char *dir;        /* that it lies in */
	char *workspace;  /* absolute, links resolved */
	const char *home; /* NULL: unknown */
	bool named;       /* by the user, which is the user's word for it */
	struct buf bytes;
	char hex[SHA256_HEX]; /* of its content, as trust counts it */
	struct tools t;
};

/* Reads a file (NULL: tools.yaml here). -EINVAL: see *errors, when it has lines, else *e. The
 * caller frees with tools_unload() in any case. */
must_check int tools_load(const char *file, struct tools_source *ret, struct policy_errors *errors,
			  struct ward_err *e);
void tools_unload(struct tools_source *s);
#define auto_source __attribute__((cleanup(tools_unload))) struct tools_source

/* Refuses a file that was only found here, unless its content was accepted. */
must_check int tools_check_trust(const struct tools_source *s, struct ward_err *e);

/* The policy that the agent's tools (NULL: all) may not exceed. 1: *ret is it, the caller clears
 * it; 0: there is none; -errno with *e, or -EINVAL with *errors. run: it must be accepted. */
must_check int tools_load_policy(const struct tools_source *s, const struct tool_agent *agent,
				 bool run, struct policy *ret, char **ret_path,
				 struct policy_errors *errors, struct ward_err *e);

#endif
