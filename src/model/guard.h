/* The writable trees of a run: what is guarded in them, and how they were at the start. guard/ fills and uses it. */
#ifndef WARD_MODEL_GUARD_H
#define WARD_MODEL_GUARD_H

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

/* What the sweep found and left where it is. */
struct guard_news {
	struct strv steers;	/* "PATH: new|changed, why": what steers tools that a person starts (tables/steers.def) */
	struct strv leaving;	/* "PATH -> TARGET": new links that lead out of the tree */
};

#endif
