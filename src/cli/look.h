/* The look before an apply: findings beside ward diff and in front of ward apply. */
#ifndef WARD_CLI_LOOK_H
#define WARD_CLI_LOOK_H

#include "base/json.h"
#include "cli/review.h"
#include "review/look.h"

/* Reads --block-on; *ret_blocks is set with *ret_least. */
must_check int look_read_options(const struct options *o, bool *ret_blocks,
				 enum look_severity *ret_least, struct ward_err *e);
/* Looks through the changes at paths (none: all). */
must_check int look_review(const struct review *r, const struct changes *all,
			   const struct strv *paths, struct look_findings *ret, struct ward_err *e);
/* Lines for a person, the most severe first. */
void look_put(const struct look_findings *f, struct buf *out);
/* An array "findings" of the object that is open. */
void look_json(const struct look_findings *f, struct json *j);
/* All of it as SARIF 2.1.0. */
void look_sarif(const struct look_findings *f, struct buf *out);

/* Before an apply: shows what is found, on standard error, and refuses where that is asked for and
 * nobody at a terminal decides otherwise. *ret is for the report; the caller frees it. */
must_check int look_before_apply(const struct options *o, const struct review *r,
				 const struct strv *paths, struct look_findings *ret,
				 struct ward_err *e);

/* The same for ward run --apply-on-exit: only what the policy said, and nobody is asked. */
must_check int look_before_apply_on_exit(const struct review *r, struct ward_err *e);

#endif
