/* Judging a repository that a sandbox made or could write, file by file. */
#ifndef WARD_GUARD_GUARD_REPOSITORY_H
#define WARD_GUARD_GUARD_REPOSITORY_H

#include "guard/guard_internal.h"

/* Takes everything out of the git directory at git_fd (path in its tree at root_fd) that git does
 * not write in ordinary work. since_ns: only what changed since then is judged; 0: everything.
 * Returns 1 when it is no repository any more, but a directory like any other. */
must_check int guard_judge_repository(const struct guard_root *g, int root_fd, int git_fd,
				      const char *path, uint64_t since_ns,
				      const struct guard_taker *taker, struct ward_err *e);

#endif
