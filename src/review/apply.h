/* Applying a review: what is wanted of it goes into the real workspace, each path whole or not at
 * all. */
#ifndef WARD_REVIEW_APPLY_H
#define WARD_REVIEW_APPLY_H

#include "review/changes.h"

#define APPLY_TOKEN_MAX 33

enum apply_outcome {
	APPLY_LEFT, /* not asked for */
	APPLY_DONE,
	APPLY_CONFLICT,  /* somebody else has changed it since the run began */
	APPLY_PROTECTED, /* it was not said that protected paths may change */
	APPLY_REFUSED,   /* it never can be: see the change's refused */
	APPLY_MARKED,    /* both versions stand in the workspace's file, between markers */
	APPLY_PART,      /* the hunks that were picked; the rest is still in the review */
	APPLY_OUTCOMES
};

/* One path that was picked after a look at it. Texts are borrowed. */
struct apply_pick {
	const char *path;
	/* what the workspace had there when it was looked at; 0: nothing */
	uint64_t inode, ctime_ns;
	const struct buf *content; /* what it becomes; NULL: the change as a whole */
};

struct apply_request {
	/* relative to the workspace, with all beneath them; none: everything. Borrowed */
	const struct strv *paths;
	bool with_protected;
	bool force;   /* conflicts are no obstacle */
	bool markers; /* write both versions of a conflict where they are text */
	/* picked: these alone, whatever lies beneath them; sorted by path */
	bool picked;
	const struct apply_pick *picks;
	size_t pick_count;
	bool dry_run;              /* say what would happen */
	struct progress *progress; /* may be NULL */
	/* Asked between two paths: true ends the work cleanly with -EINTR. May be NULL. */
	bool (*stop)(void *ctx);
	void *ctx;
};

struct apply_report {
	struct changes changes;
	enum apply_outcome *outcomes;  /* of each change */
	size_t counts[APPLY_OUTCOMES]; /* without the implied */
	struct strv git; /* what was said about taking over what the run did with git */
	bool git_done;   /* that was taken over, or there was nothing */
	bool finished;   /* nothing is left, and the review is gone */
};

/* Applies; the review must be open for writing. The report is filled as far as it went, also on
 * failure; the caller frees with apply_report_clear(). After -ENOSPC and the like no path is half
 * done, and the rest is still in the review. */
must_check int apply_run(struct review *r, const struct apply_request *q,
			 struct apply_report *ret_report, struct ward_err *e);
void apply_report_clear(struct apply_report *r);
/* Takes what is named out of the review without applying it; without paths the whole review goes.
 * *ret_count: how many changes. */
must_check int apply_discard(struct review *r, const struct strv *paths, size_t *ret_count,
			     struct ward_err *e);
/* Completes what killed applies began. */
must_check int apply_recover(struct ward_err *e);

/* Whether path is one of the paths or lies beneath one; all are, when there are none. A pure
 * function. */
bool apply_is_selected(const struct strv *paths, const char *path);
/* What an apply that was killed meant to do. Texts are owned. */
struct apply_intent {
	char id[REVIEW_ID_MAX];
	char token[APPLY_TOKEN_MAX]; /* of its temporary name */
	bool with_protected, force;
	bool picked; /* some hunks only: what was not done is not done later */
	struct strv paths;
	char *at; /* the last path that it began with; NULL: none */
};
/* Reads an intent log. -EINVAL: it is none, or was not complete before the work began. A pure
 * function. */
must_check int apply_intent_read(const char *text, size_t n, struct apply_intent *ret_intent);
void apply_intent_clear(struct apply_intent *i);

#endif
