/* Checkpoints: what a sandbox was at one moment, kept in the state directory, and what a sandbox
 * must be to go on from one. */
#ifndef WARD_STATE_CHECKPOINT_H
#define WARD_STATE_CHECKPOINT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/sha256.h"

#define CHECKPOINT_NAME_MAX 63
#define CHECKPOINT_RECORD_MAX (1 << 20)
#define CHECKPOINT_DONE                                                                            \
	"warddone" /* the end of a whole one on its way out of a sandbox; gvisor/gvisor.h */
#define CHECKPOINT_IMAGE "/.ward/image" /* where a sandbox that goes on from one finds it */

struct plan;

/* A checkpoint's record. What the sandbox itself wrote is in the image alone, which nothing outside
 * of a sandbox reads. */
struct checkpoint {
	char name[CHECKPOINT_NAME_MAX + 1];
	char image[32];          /* the file's name */
	char sha256[SHA256_HEX]; /* of the image */
	char box[24];            /* the sandbox that it was made of */
	uint64_t bytes;          /* of the image */
	uint64_t created_ms;     /* of the wall clock */
	struct strv command;     /* of that sandbox; empty: it was idle */
	char *workspace;         /* of that sandbox */
	/* what must be the same for a restore: lines of "key: value" */
	char *same;
	char *path; /* of the image, absolute; NULL: not wanted */
};

void checkpoint_clear(struct checkpoint *c);
/* [a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}, and no word that the verb itself has. A pure function. */
bool checkpoint_is_name(const char *name);
/* Reads a record. A pure function; 0, -EINVAL or -ENOMEM. The caller clears. */
must_check int checkpoint_parse(const char *bytes, size_t n, struct checkpoint *ret);
/* Appends it. */
void checkpoint_write(const struct checkpoint *c, struct buf *out);

/* What of a plan a checkpoint depends on: lines of "key: value", the inner runtime's own last. */
void checkpoint_same(const struct plan *p, struct buf *out);
/* Whether a checkpoint of a sandbox with this plan can be made: the words that make one inside
 * (plan/inner.h); or why not, without an inner runtime no_snapshot, its engine's. */
must_check int checkpoint_possible(const struct plan *p, const char *no_snapshot,
				   struct strv *words, struct ward_err *e);
/* Whether the plan is the one that its spec's checkpoint was made under; else the first
 * difference. */
must_check int checkpoint_match(const struct plan *p, struct ward_err *e);
/* The first line in which two such texts differ, in words. A pure function. */
void checkpoint_difference(const char *then, const char *now, struct buf *out);

/* One that is being written. */
struct checkpoint_file {
	int dir_fd, fd;
	char temporary[40]; /* its name, "": it has none yet */
	struct sha256 sum;
	uint64_t bytes, bytes_max;
	char last[8]; /* of what came */
};

/* Opens the store and a new image in it; refuses a name that is taken. What others left unfinished
 * goes. */
must_check int checkpoint_begin(const char *name, uint64_t bytes_max, struct checkpoint_file *ret,
				struct ward_err *e);
/* Adds bytes of the sandbox's; -EFBIG: there are more than there can be. */
must_check int checkpoint_add(struct checkpoint_file *f, const void *bytes, size_t n,
			      struct ward_err *e);
/* It is whole: takes its end away, and gives it its name, which c has; fills image, bytes, sha256
 * and created_ms. Either all of it is there afterwards or nothing. */
must_check int checkpoint_keep(struct checkpoint_file *f, struct checkpoint *c, struct ward_err *e);
/* Closes it; what was not kept is gone. */
void checkpoint_end(struct checkpoint_file *f);

/* Reads the record of that name. The caller clears. */
must_check int checkpoint_open(const char *name, struct checkpoint *ret, struct ward_err *e);
/* Whether its image is there, and, by the whole of it, as it was made. */
must_check int checkpoint_verify(const struct checkpoint *c, bool whole, struct ward_err *e);
must_check int checkpoint_remove(const char *name, struct ward_err *e);

struct checkpoints {
	struct checkpoint *items;
	size_t len;
};
/* All of them by name; those whose record cannot be read have no image. */
must_check int checkpoint_list(struct checkpoints *ret, struct ward_err *e);
void checkpoints_clear(struct checkpoints *v);

#endif
