/* Making a spec of policy files and options, and finding the workspace. */
#ifndef WARD_PLAN_SPEC_H
#define WARD_PLAN_SPEC_H

#include "model/spec.h"

/* Brings defaults, file and options together. Errors of the policy file are gathered in *errors
 * (all at once); any other refusal is in *e. Checks trust, narrowing, unsupported values. The
 * caller frees with spec_clear(). */
must_check int spec_build(const struct spec_request *r, struct spec *ret_spec,
			  struct policy_errors *errors, struct ward_err *e);
void spec_clear(struct spec *s);

/* Makes the paths of host mounts absolute that are not yet: "~/" is the home directory, others are
 * below base. */
must_check int spec_resolve_mounts(struct policy *p, const char *base, struct ward_err *e);

/* Reads a policy file over *p. -EINVAL: see *errors; others: *e. */
must_check int spec_read_policy(const char *path, struct policy *p, struct policy_errors *errors,
				struct ward_err *e);
/* The same over the defaults, which *p holds, and refuses a file that widens them unless its
 * content was accepted. */
must_check int spec_read_accepted(const char *path, struct policy *p, struct policy_errors *errors,
				  struct ward_err *e);
/* The same as spec_read_policy(); appends to *files (NULL: not wanted) the names that the origins
 * in *p count from 1. */
must_check int spec_read_files(const char *path, struct policy *p, struct strv *files,
			       struct policy_errors *errors, struct ward_err *e);

/* What ward trust accepts: the content of a policy file and of the files that it extends. */
struct spec_content {
	char *path; /* of the file, absolute */
	char hex[SHA256_HEX];
	struct buf text;   /* of all of them */
	struct strv wider; /* what they allow beyond the defaults */
};
/* Reads it; bytes: those of the file at the absolute path, NULL: as it is there. A file with errors
 * is not read: -EINVAL, see *errors. */
must_check int spec_content_read(const char *path, const struct buf *bytes,
				 struct spec_content *ret, struct policy_errors *errors,
				 struct ward_err *e);
void spec_content_clear(struct spec_content *c);
/* Accepts exactly that content from now on. */
must_check int spec_content_accept(const struct spec_content *c, struct ward_err *e);

/* Resolves a directory that shall be the workspace and checks it. The caller frees *ret_path. */
must_check int workspace_resolve(const char *path, char **ret_path, struct ward_err *e);
/* Refuses a path (absolute, links resolved) that is no directory, or one that holds the whole
 * system or home. */
must_check int workspace_check(const char *resolved, struct ward_err *e);
/* Where the command starts: -C (NULL: here, where the caller stands, if it lies in the workspace,
 * else the workspace). */
must_check int workspace_cwd(const char *workspace, const char *here, const char *wanted,
			     char **ret_path, struct ward_err *e);
/* The current directory, links resolved; one that was deleted is an error. The caller frees
 * *ret_path. */
must_check int workspace_here(char **ret_path, struct ward_err *e);

#endif
