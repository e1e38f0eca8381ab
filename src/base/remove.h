/* Removes a tree whose names and depth are untrusted. */
#ifndef WARD_BASE_REMOVE_H
#define WARD_BASE_REMOVE_H

#include "base/own.h"

/* Removes the directory and everything in it, never through a link. Returns 0 (also when there is
 * none) or -errno. */
must_check int remove_tree(const char *path);
must_check int remove_tree_at(int dir_fd, const char *path);

#endif
