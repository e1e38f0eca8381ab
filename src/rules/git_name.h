/* Names in git data: object ids, and paths that git may write into a work tree. Pure functions. */
#ifndef WARD_RULES_GIT_NAME_H
#define WARD_RULES_GIT_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of an object id, which every reader of git data gets: the same bytes mean something else
 * with the other size. */
#define GIT_SHA1 20u
#define GIT_SHA256 32u
#define GIT_HASH_MAX 32u

/* Whether n bytes are lower-case hexadecimal digits. */
bool git_is_hex(const void *s, size_t n);

/* Whether n bytes are one object id in hexadecimal digits. */
bool git_is_id(const void *s, size_t n, unsigned hash);

/* Whether one component of a path is, or folds to, ".git" on some file system: case, code points
 * that file systems ignore, trailing dots and spaces, a stream behind a colon, the short name
 * git~N; each part between backslashes too. */
bool git_name_is_dotgit(const char *name, size_t n);

/* NULL when git may write this path of an index or a tree into a work tree, otherwise the reason
 * (static text). For a path with the mode of a symbolic link, link is true: .gitmodules may not be
 * one. Paths of 4096 bytes and more are refused. */
const char *git_path_refused(const char *path, size_t n, bool link);

#endif
