/*
 * What must not be read or changed in a writable tree, and what may not be planted there: hide, protect, the sweep.
 * Finds things with the supervisor's rights, never follows a link, and hands the engine a list of steps.
 */
#ifndef WARD_LIB_GUARD_H
#define WARD_LIB_GUARD_H

#include <stdint.h>

#include "base/progress.h"
#include "policy/ignore.h"

enum guard_action {
	GUARD_PIN,	/* bind the directory onto itself, so that it cannot be renamed away */
	GUARD_VIEW,	/* a private git directory is mounted there; made read-only if the host replaces it */
	GUARD_READONLY,	/* bind onto itself, read-only, recursively */
	GUARD_HIDE	/* put an empty mode-000 file or directory over it */
};

struct guard_step {
	enum guard_action action;
	bool is_dir;
	char *path;	/* relative to the root; "" never occurs */
};

/* One writable tree, and what was found in it. path and target are the caller's to set (owned), the rest is filled here. */
struct guard_root {
	char *path;			/* on the host, absolute, links resolved */
	char *target;			/* inside */
	bool writable;			/* false: only hidden files matter, nothing can be planted */
	bool shares_git;		/* nothing can be mounted: the sandbox works in the host's git directories */
	bool reviewed;			/* what is written goes to the run's review: git directories are looked for all the same */
	int held_fd;			/* the directory since the plan was made, wherever the host moves it; 0: none; owned */
	struct ignore *hide;		/* the policy's hide */
	struct ignore *aiignore;	/* .aiignore: it can add to hide, never take away from it */
	struct ignore *protect;		/* built-in list + policy */
	struct ignore *protect_links;	/* parents of protected names: not to be replaced by a link */
	struct strv rules;		/* what the policy and the tree's git configuration added to protect */
	struct guard_step *steps;	/* parents before children: done in this order */
	size_t step_count, step_cap;
	struct strv baseline;		/* protected names that were there before, relative, sorted; a directory ends in "/" */
	struct strv repositories;	/* git directories that were there before, sorted; "." is the root itself */
	struct strv views;		/* those of which the sandbox sees a private copy, or which it can only read: never swept */
	struct strv links;		/* protected links as they were, "PATH\nTARGET" with "\" and newlines escaped, sorted */
	struct strv tasks;		/* what git would have gone on with before, "PATH\nTASK", sorted; PATH is escaped */
	uint64_t since_ns;		/* when the scan began, by the clock that stamps files */
	struct strv steers;		/* files that steer tools as they were, "PATH\nSTATE", PATH escaped, sorted */
	struct strv notes;		/* what the scan found and could not guard, for the run's notes */
	struct strv beyond;		/* places outside the tree that its protected names lead to (guard_follow.c) */
	struct strv tainted;		/* protected names that came while another run was under way: never put back */
	struct strv lost;		/* protected names that somebody outside took away since: what stands there is new */
	struct strv refused;		/* protected names whose NAME.lock came and went: git tried to write them, in vain */
	size_t lost_on_record;		/* how many of them the run's record has */
	struct guard_dirs *dirs;	/* directories as they were; NULL: the sweep reads everything */
	struct guard_held *held;	/* what each step stood for when the plan was made; NULL: mounts cannot be left behind */
	struct progress *progress;	/* borrowed; NULL: nobody looks */
	size_t file_count;		/* regular files that the scan saw */
};

/* Compiles the patterns of a root from the policy's lists (NULL: empty) and its .aiignore. */
must_check int guard_compile(struct guard_root *g, const struct strv *hide, const struct strv *protect,
			     struct ward_err *e);
/* Walks the tree at root_fd once, fills steps and baseline. */
must_check int guard_scan(struct guard_root *g, int root_fd, struct ward_err *e);
void guard_clear(struct guard_root *g);
/* Holds what the steps cover from now on, for a command that may make mount namespaces: the sweep then puts back whatever is not
 * where it was. What is beyond the bound is said in *notes. */
must_check int guard_hold(struct guard_root *g, int root_fd, struct strv *notes, struct ward_err *e);

/* Takes everything off the lists of g that came since `other` was scanned: the same tree, one around it or one in it, of a run that
 * is not finished yet and may have made it. It counts as new from then on. other needs its rules. */
must_check int guard_taint(struct guard_root *g, const struct guard_root *other, struct ward_err *e);

/* Directories outside the workspace that its .git file needs (a linked worktree's or submodule's gitdir and common
 * directory), if they point back and have the workspace's owner. Appends host paths to *dirs, and a note for each one refused. */
must_check int guard_git_dirs(const char *workspace, struct strv *dirs, struct strv *notes,
			      struct ward_err *e);

/* After the last process is dead: moves newly planted protected names and set-id files of the tree into
 * quarantine_fd (a directory made by the caller); a repository made during the run is judged by content. Appends
 * "path: reason" to *moved. Never deletes, never follows a link. */
must_check int guard_sweep(const struct guard_root *g, int root_fd, int quarantine_fd,
			   struct strv *moved, struct ward_err *e);

/* Watching over-mounted files: a mount on a file dies when somebody outside replaces that file. */
struct guard_watch;

/* Which steps of which root have to be mounted again. */
struct guard_undone {
	size_t root;		/* index into the roots */
	size_t steps[32];	/* indices into its steps, parents before children */
	size_t count;
};

/* Watches the parents of what the roots' steps cover. *ret_watch is NULL when there is nothing to watch. What cannot
 * be watched (the kernel's inotify limits) is said in *notes. roots are borrowed for the life of the watch, which adds to
 * their lost. */
must_check int guard_watch_create(struct guard_root *roots, size_t count,
				  struct guard_watch **ret_watch, struct strv *notes,
				  struct ward_err *e);
int guard_watch_fd(const struct guard_watch *w);
/* Reads what has happened; fills at most cap entries. Returns how many; never blocks. Call until it returns 0. */
size_t guard_watch_read(struct guard_watch *w, struct guard_undone *undone, size_t cap);
/* Reads the rest, once the sandbox is dead; NULL is fine. */
void guard_watch_drain(struct guard_watch *w);
void guard_watch_destroy(struct guard_watch *w);

#endif
