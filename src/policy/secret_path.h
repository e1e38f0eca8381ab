/* Which paths are places of secrets, by tables/learn.def. */
#ifndef WARD_POLICY_SECRET_PATH_H
#define WARD_POLICY_SECRET_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* What of path lies beneath home (NULL: unknown); NULL: it does not. "" is the home itself. */
const char *secret_within(const char *path, const char *home);
/* Whether a file of that name is one, wherever it lies. */
bool secret_is_name(const char *name);
/* Whether a text, such as a variable's name, has a word that those of secrets have. */
bool secret_is_word(const char *text);
/* Whether the path, or a directory above it, is one; also what belongs to another user's home. */
bool secret_is_path(const char *path, const char *home);
/* Row i of those beneath the home directory, a pattern; NULL: there are no more. */
const char *secret_home_row(size_t i);

#endif
