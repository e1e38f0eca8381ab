/* Protected names in commits and indexes of the sandbox's. */
#ifndef WARD_GIT_PROTECT_H
#define WARD_GIT_PROTECT_H

#include "git/git.h"
#include "rules/git_index.h"

/* Reads the rules once. *ret_tree is where the files of the repository at prefix lie in the tree of
 * the run, "" for the tree itself; the caller frees. */
must_check int protect_open(struct take *t, const char *prefix, char **ret_tree);
void protect_free(struct protect *p); /* NULL is fine */
/* Whether a path of that repository, or a directory on the way to it, is protected. mode is git's.
 * After protect_open(). */
bool protect_has(const struct take *t, const char *tree, const char *path, unsigned mode);

/* ---- doubts.c: what lies under protected names ---- */

struct doubt {
	size_t of;  /* the caller's */
	char *id;   /* of the content, as text; zeros: removed */
	char *path; /* in the repository */
	bool known; /* it is the user's own */
};

struct doubts {
	struct doubt *items;
	size_t len, cap;
};

must_check int doubts_add(struct doubts *d, size_t of, const char *id, const char *path);
/* Marks what one of the host's branches, or `also` (a ref's name; NULL), has under the same name.
 * 0, or -errno. */
must_check int doubts_clear_known(struct take *t, const char *git_dir, const char *also,
				  struct doubts *d);
void doubts_clear(struct doubts *d);
/* The protected path that an index of the sandbox's brings, beside the one that both sides had
 * (NULL): 0 and *ret_path (NULL: none; the caller frees), or -errno. */
must_check int index_brings(struct take *t, const char *path, const struct file *old,
			    const struct file *index, char **ret_path);

/* ---- history.c ---- */

/* Fills t->held with the commits of the repository that came by this taking and that bring
 * something under a protected name, and with those that lead to one. After take_objects(). */
must_check int judge_history(struct take *t, const char *prefix);
/* The protected path that the object with this id (n digits) brings; NULL: none. */
const char *history_fault(const struct take *t, const char *id, size_t n);
/* Whether a commit of a submodule of the repository at prefix, with its files at tree, is held
 * there: 0, 1, or -errno. */
must_check int history_link_fault(struct take *t, const char *prefix, const char *tree,
				  const struct doubt *link);
/* The same for any id or name of a commit in a file. */
const char *history_fault_in(const struct take *t, const struct file *f);

#endif
