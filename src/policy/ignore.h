/* gitignore patterns: a pure matcher, used for hide, .aiignore and protect. */
#ifndef WARD_POLICY_IGNORE_H
#define WARD_POLICY_IGNORE_H

#include "base/buf.h"

struct ignore;	/* a compiled list of patterns */

/* Compiles the lines of one gitignore text (comments, blank lines, "!", trailing "/", "**", classes, escapes as git
 * reads them) behind those already in *ig (NULL: a new one). The caller frees with ignore_free(). -ENOMEM only. */
must_check int ignore_add(struct ignore **ig, const char *text, size_t n);
void ignore_free(struct ignore *ig);
/* Whether the last pattern that matches path (relative, no leading "/") excludes it. Parents are the caller's business: walk from the
 * top and do not descend into a directory that matched. */
bool ignore_match(const struct ignore *ig, const char *path, bool is_dir);
/* Whether there is no pattern at all. */
bool ignore_is_empty(const struct ignore *ig);
/* Whether every pattern is anchored and literal, so that the paths can be looked up instead of found by a walk; then *literals lists
 * them (borrowed by the list as copies, relative, no trailing slash). */
bool ignore_literals(const struct ignore *ig, struct strv *literals);

#endif
