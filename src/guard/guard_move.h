/* Moves one thing of a hostile tree to a directory of ward's own, or back; never follows a link,
 * never overwrites. */
#ifndef WARD_GUARD_GUARD_MOVE_H
#define WARD_GUARD_GUARD_MOVE_H

#include <sys/stat.h>

#include "base/err.h"

/* Moves dir_fd/name to to_fd/to_name by rename, or by copy where that is another file system;
 * set-id bits are lost on the way. -EEXIST if to_name is there already. */
must_check int guard_move(int dir_fd, const char *name, int to_fd, const char *to_name,
			  struct ward_err *e);
/* The same by copying always: every file is copied, synced and only then removed. */
must_check int guard_copy_move(int dir_fd, const char *name, int to_fd, const char *to_name,
			       struct ward_err *e);
/* Copies the open file from, whose state is *st, to to_fd/to_name, which must not be there. Returns
 * 0 or -errno. */
must_check int guard_copy_held(int from, const struct stat *st, int to_fd, const char *to_name);
/* Opens the directory that holds the last component of path beneath base_fd, making the directories
 * above it (mode) where they are missing; no link is followed. *ret_name points at the last
 * component. Returns the descriptor or -errno. */
must_check int guard_open_parent(int base_fd, const char *path, unsigned mode,
				 const char **ret_name, struct ward_err *e);

#endif
