/* Keeping protected names of a repository's commits out of its work tree. */
#ifndef WARD_GUARD_GUARD_SPARSE_H
#define WARD_GUARD_GUARD_SPARSE_H

#include "guard/guard_internal.h"

/* How info/sparse-checkout begins where ward wrote it. */
#define GUARD_SPARSE_MARK "# ward: "

/* Has git leave protected names alone in a repository that a run made, whatever its commits have:
 * git_fd is the git directory at path in the tree, dirs lists it ("") and the worktrees/ID and
 * modules/NAME in it that were judged. What says otherwise there goes to the taker. */
must_check int guard_keep_out(const struct guard_root *g, int git_fd, const char *path,
			      unsigned hash, const struct strv *dirs,
			      const struct guard_taker *taker, struct ward_err *e);

#endif
