/* Refs that are to be moved on the host. */
#ifndef WARD_GIT_REFS_H
#define WARD_GIT_REFS_H

#include "git/git.h"

struct ref_move {
	char *name; /* owned */
	/* what the host must still have: an id or "ref: NAME"; NULL: nothing. Borrowed */
	const char *old;
	const char *now; /* NULL: it is deleted. Borrowed */
	/* the sandbox's value beside the host's: it replaces whatever is there */
	bool kept;
	bool done;       /* it was moved */
	bool again;      /* it was not, and is planned again */
	const char *why; /* it was not; a literal */
};

struct ref_moves {
	struct ref_move *items;
	size_t len, cap;
};

/* Appends one. */
must_check int ref_moves_add(struct ref_moves *m, const char *name, const char *old,
			     const char *now, bool kept);
void ref_moves_clear(struct ref_moves *m);
/* Moves what can be moved, and notes at the rest why not. */
must_check int ref_moves_do(struct take *t, const char *git_dir, struct ref_moves *m);
/* Says which did not arrive, each one; where there are many, their names and values are appended to
 * *file. */
void ref_moves_say_left(struct take *t, const char *prefix, const struct ref_moves *m,
			struct buf *file);
/* Leaves such a file (it may be empty) in the view, as one more that is refused. */
must_check int refs_leave(struct take *t, const char *prefix, const struct buf *file);

#endif
