/* Reading policy documents: what spec.c lends to the others of src/plan. */
#ifndef WARD_PLAN_SPEC_SOURCE_H
#define WARD_PLAN_SPEC_SOURCE_H

#include "model/spec.h"

/* Reads a policy file: a regular file of sane size. *ret_real is its path without links; the caller
 * frees. */
must_check int spec_open_policy(const char *path, struct buf *bytes, char **ret_real,
				struct ward_err *e);
/* policy_read() of a document; with errors in it *e says how many. */
must_check int spec_parse(struct policy *p, const char *name, const struct buf *bytes,
			  enum policy_source source, struct policy_errors *errors,
			  struct ward_err *e);
/* base/path; "~/" is the home directory. The caller frees; NULL: out of memory. */
must_check char *spec_absolute(const char *base, const char *path);
/* The directory of an absolute path. The caller frees; NULL: out of memory. */
must_check char *spec_directory_of(const char *path);
/* Makes absolute what this source has set of an image that is named by its path, and of the files
 * of recordings. */
must_check int spec_resolve_single(struct policy *p, enum policy_source source, const char *base,
				   struct ward_err *e);
/* Makes all paths absolute that this source has set: they are below the directory dir. */
must_check int spec_resolve_paths(struct policy *p, enum policy_source source, const char *dir,
				  struct ward_err *e);

/* user_config.c: reads the user's own defaults over s->policy, which holds the built-in ones.
 * Without the file nothing happens. */
must_check int user_config_apply(struct spec *s, struct policy_errors *errors, struct ward_err *e);

#endif
