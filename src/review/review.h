/* Review runs: the changes of a run, kept aside in a directory of their own until somebody applies
 * or discards them. */
#ifndef WARD_REVIEW_REVIEW_H
#define WARD_REVIEW_REVIEW_H

#include <stdint.h>
#include <sys/types.h>

#include "base/progress.h"
#include "model/plan.h"
#include "state/review_place.h"

#define REVIEW_ID_MAX 24
#define REVIEW_STARTS_MAX 4096

/* What a review directory says about itself. Texts are owned. */
struct review_record {
	char *workspace;        /* absolute, links resolved */
	uint64_t device, inode; /* of the workspace */
	uint64_t owner_uid, owner_gid;
	/* when each run in it began, ns of the real-time clock; oldest first */
	uint64_t *starts;
	size_t start_count;
	struct strv hide;   /* the policy's patterns */
	struct strv hidden; /* what was hidden; a directory ends in "/" */
	/* what the policy and the tree's git configuration added to protect */
	struct strv rules;
	uint64_t blocks;   /* 1: what has a secret is not applied (credentials.scan_workspace) */
	uint64_t personal; /* 1: personal data counts, too */
};

/* Reads the text of a record. -EINVAL: it is none, or not complete. A pure function. */
must_check int review_record_read(const char *text, size_t n, struct review_record *ret_record);
void review_record_write(const struct review_record *r, struct buf *out);
void review_record_clear(struct review_record *r);

/* An open review. */
struct review {
	char id[REVIEW_ID_MAX];
	char *path;       /* of its directory, absolute; owned */
	int dir_fd;       /* owned; carries the lock */
	int upper_fd;     /* owned */
	int workspace_fd; /* owned; -1: the workspace is gone or is another one */
	struct review_record record;
};

enum review_lock {
	REVIEW_READ, /* look only; fine while a run goes on in it */
	REVIEW_WRITE /* nobody else may use it meanwhile */
};

/* Opens a review by its id. -ENOENT: there is none; -EBUSY: a run or another command uses it. */
must_check int review_open(const char *id, enum review_lock lock, struct review *ret_review,
			   struct ward_err *e);
void review_close(struct review *r);
/* Removes the review with all that is in it, whatever happens meanwhile. */
must_check int review_remove(struct review *r, struct ward_err *e);

/* One review in the list. */
struct review_item {
	char id[REVIEW_ID_MAX];
	char *workspace;   /* owned */
	uint64_t began_ns; /* when the last run in it began */
};
struct review_items {
	struct review_item *items; /* oldest first */
	size_t len, cap;
};
/* Lists the reviews of one workspace (NULL: all). The caller frees with review_items_clear(). */
must_check int review_list(const char *workspace, struct review_items *ret_items,
			   struct ward_err *e);
void review_items_clear(struct review_items *v);
/* The last review whose workspace holds `here`; "" when there is none. */
must_check int review_last(const char *here, char ret_id[REVIEW_ID_MAX], struct ward_err *e);

/* A run that is going on in a review. */
struct review_run;

/* Makes the review of the plan's run, or opens the one that the plan continues: directories,
 * record, lock. *layer_fd is what the engine mounts where it cannot open *layer_path itself (as
 * root; else -1), both are for the engine and live as long as the run. */
must_check int review_begin(const struct plan *p, struct review_run **ret_run, struct strv *notes,
			    struct progress *progress, struct ward_err *e);
/* Whether the layer holds a copy of the workspace, because the kernel makes no overlay of that
 * itself. */
bool review_is_copy(const struct review_run *r);
int review_layer_fd(const struct review_run *r);
const char *review_layer_path(const struct review_run *r);
/* A descriptor of the directory that holds the changes, borrowed. */
int review_upper_fd(const struct review_run *r);
/* The run is over: the lock goes, and so does the review if the run never began (started is false)
 * and made it. NULL is fine. */
void review_end(struct review_run *r, bool started);

/* Removes what killed commands left half made or half removed. */
void review_tidy(void);

#endif
