/* Where git believes work trees to be: git writes there. */
#ifndef WARD_GUARD_GUARD_WORKTREES_H
#define WARD_GUARD_GUARD_WORKTREES_H

#include "guard/guard.h"

/* Whether a repository of the tree at root_fd, or a submodule of one, has a work tree at path or
 * below it (absolute, on the host), whether the directory is there or not. */
bool guard_is_worktree_place(const struct guard_root *g, int root_fd, const char *path);

#endif
