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
	bool done; /* it was moved */
};

struct ref_moves {
	struct ref_move *items;
	size_t len, cap;
};

/* Appends one. */
must_check int ref_moves_add(struct ref_moves *m, const char *name, const char *old,
			     const char *now, bool kept);
void ref_moves_clear(struct ref_moves *m);
/* Moves what can be moved, says what cannot. */
must_check int ref_moves_do(struct take *t, const char *git_dir, struct ref_moves *m);

#endif
