/* What the verbs over reviews share: which run, which paths, and how a change is named. */
#ifndef WARD_CLI_REVIEW_H
#define WARD_CLI_REVIEW_H

#include "base/json.h"
#include "base/progress.h"
#include "cli/cli.h"
#include "review/apply.h"

struct who; /* review_who.h */

/* What the words of a verb mean. */
struct review_asked {
	char id[REVIEW_ID_MAX];
	struct strv paths; /* relative to the workspace; none: everything */
};

/* Reads [RUN] [PATH...]: the run that is meant, opened and locked; paths are the caller's own,
 * relative to where it stands. */
must_check int review_ask(const struct options *o, enum review_lock lock,
			  struct review_asked *ret_asked, struct review *ret_review,
			  struct ward_err *e);
void review_asked_clear(struct review_asked *a);
/* A path that no change lies at is a mistake. */
must_check int review_check_paths(const struct review *r, const struct changes *all,
				  const struct strv *paths, struct ward_err *e);
/* Finishes what killed applies left; says what went wrong. */
void review_finish_killed(void);

/* One line of a change for a person: letter, name, what is to be known about it. */
void review_put_change(const struct changes *all, const struct change *c, bool colour,
		       struct buf *out);
/* The same as an object of an array; who (NULL: not wanted): with who made it. */
void review_json_change(const struct changes *all, const struct change *c, const struct who *who,
			struct json *j);
/* "12 files changed: 3 added, ..." */
void review_put_counts(const struct changes *c, struct buf *out);
const char *review_kind_name(const struct change *c);

/* Which paths an apply left, and why, one line each, with what can be done about it. */
void review_put_left(const struct apply_report *report, struct buf *out);

/* Appends a change as unified text; terminal: nothing in it may act on one. counts is added to; out
 * NULL: only that. */
must_check int review_patch(const struct review *r, const struct changes *all,
			    const struct change *c, bool terminal, bool colour, struct buf *out,
			    size_t *added, size_t *removed, struct ward_err *e);

#endif
