/* Where git configuration leads: the repositories' in the tree, those around it, the user's and the
 * system's. */
#ifndef WARD_GUARD_GUARD_LEADS_H
#define WARD_GUARD_GUARD_LEADS_H

#include "guard/guard_follow.h"

/* What the user's and the system's configuration says. */
struct leads_user {
	struct strv lines; /* "NAME\nFILE\nVALUE" each, escaped; NAME is the setting's */
};

/* Reads the configuration that git reads for this user everywhere. What it names by a relative path
 * counts in every worktree, so it becomes a rule of the tree; call it before the tree is walked. */
must_check int leads_read_user(struct leads_user *u, struct guard_root *g, struct ward_err *e);
/* Guards what the same configuration names by paths of its own. */
must_check int leads_follow_user(const struct leads_user *u, struct follow *f);
void leads_user_free(struct leads_user *u);

/* Guards what the configuration of the git directory leads to; worktree is where its commands run.
 * Both are absolute, without links. */
must_check int leads_repository(struct follow *f, const char *git_dir, const char *worktree);
/* The same for a worktree whose .git is a file, at the path relative to the tree. */
must_check int leads_git_file(struct follow *f, const char *path);
/* The same for a repository that begins above the tree. */
must_check int leads_above(struct follow *f);

/* Guards the files of the tree that a hook or a hook manager's configuration calls; the path is
 * relative to the tree. */
must_check int calls_follow(struct follow *f, const char *path);
/* The same for a file outside the tree, at an absolute path; its commands run in base. */
must_check int calls_follow_outside(struct follow *f, const char *file, const char *base);
/* Whether a protected file of that path is one that calls others. */
bool calls_others(const char *path);
/* Whether mise reads the file at path as its configuration, and what that one names. */
bool calls_is_mise(const char *path);
must_check int calls_follow_mise(struct follow *f, const char *path, const struct buf *text);

/* The words of a command line that name something in the tree are guarded; base is where it runs.
 * Used by both. */
/* What "~/x" and "~user/x" stand for; NULL: nothing is known. The caller frees. */
must_check char *leads_expand_home(const char *text);

struct leads_command {
	const char *text;
	size_t len;
	const char *const *bases; /* directories that it may run in, absolute, without links */
	size_t base_count;
	bool programs_only; /* only what looks like a program, and only what is there, or ... */
	bool missing;       /* ... a script that is not: it must not be made either */
	bool loads;   /* direnv runs it: its functions count, and what they load without a name */
	bool by_name; /* ... and what has the name of a script: a list of arguments */
	const char *origin;
};
must_check int leads_command(struct follow *f, const struct leads_command *c, bool *ret_opaque);

#endif
