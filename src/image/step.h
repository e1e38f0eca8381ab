/* One command on the way to an image. */
#ifndef WARD_IMAGE_STEP_H
#define WARD_IMAGE_STEP_H

#include "base/buf.h"
#include "base/err.h"

/* inside: the recipe's directory. A place of its own: the new tree's directories cover the places
 * where a recipe may lie outside. */
#define STEP_RECIPE "/.ward-recipe"

struct step {
	const char *root; /* of the new tree, absolute */
	int root_fd;
	const char *workspace; /* an empty directory that step_covers() is false of */
	/* read-only, where it starts, absolute; NULL: none, it starts in an empty one */
	const char *dir;
	const struct strv *env; /* NAME=VALUE */
};

/* Runs words in a sandbox (`ward run`) that has the new tree as its root and may write it, and
 * nothing else. options: more of ward's options, NULL: none, and then there is no network. What it
 * prints goes to standard error. Returns its exit status. */
must_check int step_run(const struct step *s, const struct strv *options, const struct strv *words,
			struct ward_err *e);

/* Whether a directory of the new tree is mounted over this path (absolute) in a step, so that
 * nothing can be mounted there. */
must_check bool step_covers(int root_fd, const char *path);

/* Installs packages with the new tree's own package manager. */
must_check int packages_install(const struct step *s, const struct strv *names, struct ward_err *e);

#endif
