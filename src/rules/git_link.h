/* Files that lead git from one directory to another. Pure functions over their bytes; where they
 * lead to is the caller's to check. */
#ifndef WARD_RULES_GIT_LINK_H
#define WARD_RULES_GIT_LINK_H

#include "rules/git_name.h"

/* A .git file: "gitdir: PATH" and a newline, nothing else; no control character in PATH, no blank
 * at its ends. *ret points into bytes. */
bool git_link_read(const void *bytes, size_t n, const char **ret, size_t *ret_n);

/* The commondir of worktrees/ID: "../.." and a newline. */
bool git_commondir_ok(const void *bytes, size_t n);

/* The gitdir of worktrees/ID: an absolute path that ends in "/.git", and a newline; *ret is the
 * directory before that. */
bool git_worktree_gitdir_read(const void *bytes, size_t n, const char **ret, size_t *ret_n);

#endif
