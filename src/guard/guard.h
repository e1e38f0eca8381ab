/*
 * What must not be read or changed in a writable tree, and what may not be planted there: hide,
 * protect, the sweep. Finds things with the supervisor's rights, never follows a link, and hands
 * the engine a list of steps.
 */
#ifndef WARD_GUARD_GUARD_H
#define WARD_GUARD_GUARD_H

#include "model/guard.h"

/* Compiles the patterns of a root from the policy's lists (NULL: empty) and its .aiignore. */
must_check int guard_compile(struct guard_root *g, const struct strv *hide,
			     const struct strv *protect, struct ward_err *e);
/* Walks the tree at root_fd once, fills steps and baseline. */
must_check int guard_scan(struct guard_root *g, int root_fd, struct ward_err *e);
void guard_clear(struct guard_root *g);
/* Holds what the steps cover from now on, for a command that may make mount namespaces: the sweep
 * then puts back whatever is not where it was. What is beyond the bound is said in *notes. */
must_check int guard_hold(struct guard_root *g, int root_fd, struct strv *notes,
			  struct ward_err *e);

/* Takes everything off the lists of g that came since `other` was scanned: the same tree, one
 * around it or one in it, of a run that is not finished yet and may have made it. It counts as new
 * from then on. other needs its rules. */
must_check int guard_taint(struct guard_root *g, const struct guard_root *other,
			   struct ward_err *e);

/* Directories outside the workspace that its .git file needs (a linked worktree's or submodule's
 * gitdir and common directory), if they point back and have the workspace's owner. Appends host
 * paths to *dirs, and a note for each one refused. */
must_check int guard_git_dirs(const char *workspace, struct strv *dirs, struct strv *notes,
			      struct ward_err *e);

/* After the last process is dead: moves newly planted protected names and set-id files of the tree
 * into quarantine_fd (a directory made by the caller); a repository made during the run is judged
 * by content. Appends "path: reason" to *moved. Never deletes, never follows a link. */
must_check int guard_sweep(const struct guard_root *g, int root_fd, int quarantine_fd,
			   struct strv *moved, struct ward_err *e);

/* Watching over-mounted files: a mount on a file dies when somebody outside replaces that file. */
struct guard_watch;

/* Which steps of which root have to be mounted again. */
struct guard_undone {
	size_t root;      /* index into the roots */
	size_t steps[32]; /* indices into its steps, parents before children */
	size_t count;
};

/* Watches the parents of what the roots' steps cover. *ret_watch is NULL when there is nothing to
 * watch. What cannot be watched (the kernel's inotify limits) is said in *notes. roots are borrowed
 * for the life of the watch, which adds to their lost. */
must_check int guard_watch_create(struct guard_root *roots, size_t count,
				  struct guard_watch **ret_watch, struct strv *notes,
				  struct ward_err *e);
int guard_watch_fd(const struct guard_watch *w);
/* Reads what has happened; fills at most cap entries. Returns how many; never blocks. Call until it
 * returns 0. */
size_t guard_watch_read(struct guard_watch *w, struct guard_undone *undone, size_t cap);
/* Reads the rest, once the sandbox is dead; NULL is fine. */
void guard_watch_drain(struct guard_watch *w);
void guard_watch_destroy(struct guard_watch *w);

#endif
