/* What may lie in a git directory, by name: tables/gitdata.def. Pure functions. */
#ifndef WARD_RULES_GIT_PATH_H
#define WARD_RULES_GIT_PATH_H

#include "rules/git_name.h"

enum git_dir_kind {
	GIT_DIR_MAIN,     /* .git, a bare repository */
	GIT_DIR_WORKTREE, /* worktrees/ID */
	GIT_DIR_MODULE    /* modules/NAME */
};

/* What a file must look like inside. */
enum git_form {
	GIT_FORM_UNKNOWN, /* no row names this path */
#define GIT_FORM(name, needs, max, what) GIT_FORM_##name,
#include "gitforms.def"
};

enum git_treat {
	GIT_TREAT_ADMIT, /* it may stay if its form is right */
	/* the same, and it is reported: it changes what the next git
	 * command does */
	GIT_TREAT_REPORT,
	GIT_TREAT_MERGE,   /* configuration and excludes: key by key, line by line */
	GIT_TREAT_DERIVED, /* git makes it from other files, and believes it: remove it, make it
			      again from its source */
	GIT_TREAT_DROP, /* a lock or a temporary file: after a run no process is left that needs it
			 */
	GIT_TREAT_REFUSE
};

struct git_place {
	enum git_form form;
	enum git_treat treat;
	enum git_dir_kind kind; /* of the innermost git directory that the path lies in */
	size_t inner;           /* where the path inside that directory begins */
	const char *why;        /* static text; for what is not simply admitted */
};

/* Looks up a path (relative to a git directory of that kind, no slash at its ends, "" is the
 * directory itself). dir: it is a directory, for which only form UNKNOWN with treat ADMIT or REFUSE
 * comes back. What no row names is refused. */
struct git_place git_path_find(const char *path, enum git_dir_kind kind, unsigned hash, bool dir);

/* How many leading bytes of a file git_judge() needs for this form; SIZE_MAX: all of them, at most
 * git_form_max(). */
size_t git_form_needs(enum git_form form);

/* The largest file of this form that is looked at; a larger one is refused. SIZE_MAX: the size does
 * not matter. */
size_t git_form_max(enum git_form form);

/* Whether n bytes may name a submodule (modules/NAME): no component is empty, "." or "..", begins
 * with "-", folds to ".git", or is what a git directory has at its top ("a/hooks" would lie in a's
 * hooks). */
bool git_module_name_ok(const char *name, size_t n);

/* Whether n bytes may name a worktree (worktrees/ID). */
bool git_worktree_id_ok(const char *id, size_t n);

#endif
