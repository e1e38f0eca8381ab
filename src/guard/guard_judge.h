/* Judges parts of git repositories by their content. */
#ifndef WARD_GUARD_GUARD_JUDGE_H
#define WARD_GUARD_GUARD_JUDGE_H

#include "guard/guard.h"

/* Each judges the file `name` in dir_fd, whose directory is at dir_path (relative to the root at
 * root_fd). Returns 1 with the reason in *why when the file must go, 0 when it may stay, -ENOMEM. A
 * file that cannot be read must go. */
must_check int judge_config(const struct guard_root *g, int root_fd, int dir_fd,
			    const char *dir_path, const char *name, struct buf *why);
must_check int judge_modules(const struct guard_root *g, int dir_fd, const char *dir_path,
			     const char *name, struct buf *why);
must_check int judge_gitlink(const struct guard_root *g, int root_fd, int dir_fd,
			     const char *dir_path, const char *name, struct buf *why);

/* Reads a regular file; false: it is not one, or it cannot be read. */
bool judge_read_regular(int dir_fd, const char *name, size_t max, struct buf *b);
/* Whether a directory of the tree is a link, or is reached through one: git would write elsewhere.
 * One that is not there is not. */
bool judge_is_behind_link(int root_fd, const char *inside);

/* Where value, written in a file of the directory dir_path, leads: a path relative to the root (""
 * is the root itself), or NULL when that is outside or cannot be told without following links. The
 * caller frees. */
must_check char *judge_resolve(const struct guard_root *g, const char *dir_path, const char *value);

#endif
