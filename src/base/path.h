/* Paths from outside are resolved once, beneath a directory; from then on the descriptor is the
 * right to the thing. */
#ifndef WARD_BASE_PATH_H
#define WARD_BASE_PATH_H

#include "base/buf.h"

/* Opens path beneath dir_fd (O_CLOEXEC is added): no "..", no absolute path, no magic link, no
 * symlink that leaves. Falls back to a walk with O_NOFOLLOW (links by hand) where openat2 is not to
 * be had. Returns the descriptor or -errno with *e. */
must_check int path_open_beneath(int dir_fd, const char *path, int flags, struct ward_err *e);
/* The same, and any symlink at all is refused. */
must_check int path_open_nolink(int dir_fd, const char *path, int flags, struct ward_err *e);

/* Lexical clean-up of an absolute path: no "//", "/./", "/../", no trailing slash. NULL if path is
 * not absolute or out of memory; the caller frees. A pure function. */
must_check char *path_clean(const char *path);
/* base/rest, cleaned; rest itself if it is absolute. base must be absolute. The caller frees. */
must_check char *path_join(const char *base, const char *rest);
/* Whether path is dir or lies beneath it; both cleaned (but for "//" in front) and absolute. A pure
 * function. */
bool path_is_beneath(const char *path, const char *dir);

#endif
