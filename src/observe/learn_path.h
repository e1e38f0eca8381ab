/* Which of the host's files `ward learn` may show to a sandbox by itself, and how much around
 * them. */
#ifndef WARD_OBSERVE_LEARN_PATH_H
#define WARD_OBSERVE_LEARN_PATH_H

#include <stdbool.h>

#include "base/own.h"

enum learn_verdict {
	LEARN_GIVE,
	LEARN_SETTINGS, /* a program's settings: only if nothing else helps */
	LEARN_SECRET,   /* never unasked */
	LEARN_BROAD,    /* a directory that holds too much */
	LEARN_GONE,     /* there is nothing of that name */
};

/* Judges a path by its name alone; path and home (NULL: unknown) are absolute and cleaned. A pure
 * function. */
enum learn_verdict learn_judge(const char *path, const char *home);

/* What to mount for a file or directory of the host that a program asked for: the thing itself, or
 * the package that it is part of (a virtual environment, node_modules, site-packages). Looks at the
 * host: links are followed, and what they lead to is judged as well; a directory in which something
 * secret lies is too broad, and so is one that holds the workspace. The caller frees *ret_path,
 * which is set with LEARN_GIVE and LEARN_SETTINGS only. */
must_check enum learn_verdict learn_generalise(const char *path, const char *home,
					       const char *workspace, char **ret_path);

/* Whether secrets of the list may lie in or beneath the path, by its name or what is there. For
 * what a person adds by hand. */
bool learn_holds_secrets(const char *path, const char *home);

/* Whether advice may name the path as something to be shown: it is there, not too broad, readable,
 * and nothing in it looks like a secret. Looks at the host, at no more than a few thousand entries.
 * own: the user named it (PATH), not a sandbox, so that it may be closed to others. */
bool learn_may_advise(const char *path, const char *home, bool own);

#endif
