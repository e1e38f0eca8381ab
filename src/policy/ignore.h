/* gitignore patterns: a pure matcher, used for hide, .aiignore and protect. */
#ifndef WARD_POLICY_IGNORE_H
#define WARD_POLICY_IGNORE_H

#include "base/buf.h"

struct ignore; /* a compiled list of patterns */

/* What the last pattern that matches says about a path. */
enum ignore_verdict {
	IGNORE_NONE,     /* no pattern matches */
	IGNORE_EXCLUDED, /* a plain pattern: the path is in the list */
	IGNORE_INCLUDED  /* a pattern with "!": the path was taken out again */
};

/* Compiles the lines of one gitignore text (comments, blank lines, "!", trailing "/", "**",
 * classes, escapes as git reads them) behind those already in *ig (NULL: a new one). The caller
 * frees with ignore_free(). -ENOMEM only. */
must_check int ignore_add(struct ignore **ig, const char *text, size_t n);
/* Adds the parents of what the text's patterns name: "a/b/c" gives "a/b" and "a", from the top.
 * -ENOMEM only. */
must_check int ignore_add_parents(struct ignore **ig, const char *text, size_t n);
void ignore_free(struct ignore *ig);
/* What the list (NULL: an empty one) says about path (relative, no leading "/"). Parents are the
 * caller's business: walk from the top and do not descend into a directory that matched. */
enum ignore_verdict ignore_decide(const struct ignore *ig, const char *path, bool is_dir);
/* The same for a caller that knows the length of path and where its last component begins. */
enum ignore_verdict ignore_decide_at(const struct ignore *ig, const char *path, size_t path_len,
				     size_t name_at, bool is_dir);
/* Whether the last pattern that matches path excludes it. */
bool ignore_match(const struct ignore *ig, const char *path, bool is_dir);
/* Whether there is no pattern at all. */
bool ignore_is_empty(const struct ignore *ig);

#endif
