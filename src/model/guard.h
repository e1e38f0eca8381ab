/* The writable trees of a run: what is guarded in them, and how they were at the start. guard/
 * fills and uses it. */
#ifndef WARD_MODEL_GUARD_H
#define WARD_MODEL_GUARD_H

#include <stdint.h>
#include "base/progress.h"
#include "policy/ignore.h"

enum guard_action {
	GUARD_PIN, /* bind the directory onto itself, so that it cannot be renamed away */
	/* a private git directory is mounted there; made read-only if the host replaces it */
	GUARD_VIEW,
	GUARD_READONLY, /* bind onto itself, read-only, recursively */
	GUARD_HIDE      /* put an empty mode-000 file or directory over it */
};

struct guard_step {
	enum guard_action action;
	bool is_dir;
	char *path; /* relative to the root; "" never occurs */
};

/* One writable tree, and what was found in it. path and target are the caller's to set (owned), the
 * rest is filled here. */
struct guard_root {
	char *path;   /* on the host, absolute, links resolved */
	char *target; /* inside */
	/* false: only hidden files matter, nothing can be planted */
	bool writable;
	/* nothing can be mounted: the sandbox works in the host's git directories */
	bool shares_git;
	/* what is written goes to the run's review: git directories are looked for all the same */
	bool reviewed;
	/* the directory since the plan was made, wherever the host moves it; 0: none; owned */
	int held_fd;
	struct ignore *hide;     /* the policy's hide */
	struct ignore *aiignore; /* .aiignore: it can add to hide, never take away from it */
	struct ignore *protect;  /* built-in list + policy */
	/* parents of protected names: not to be replaced by a link */
	struct ignore *protect_links;
	/* what the policy and the tree's git configuration added to protect */
	struct strv rules;
	struct guard_step *steps; /* parents before children: done in this order */
	size_t step_count, step_cap;
	/* protected names that were there before, relative, sorted; a directory ends in "/" */
	struct strv baseline;
	/* git directories that were there before, sorted; "." is the root itself */
	struct strv repositories;
	/* those of which the sandbox sees a private copy, or which it can only read: never swept */
	struct strv views;
	/* protected links as they were, "PATH\nTARGET" with "\" and newlines escaped, sorted */
	struct strv links;
	/* what git would have gone on with before, "PATH\nTASK", sorted; PATH is escaped */
	struct strv tasks;
	uint64_t since_ns; /* when the scan began, by the clock that stamps files */
	/* files that steer tools as they were, "PATH\nSTATE", PATH escaped, sorted */
	struct strv steers;
	/* what the scan found and could not guard, for the run's notes */
	struct strv notes;
	/* places outside the tree that its protected names lead to (guard_follow.c) */
	struct strv beyond;
	/* protected names that came while another run was under way: never put back */
	struct strv tainted;
	/* protected names that a process outside took away since: what stands there is new */
	struct strv lost;
	/* protected names whose NAME.lock came and went: git tried to write them, in vain */
	struct strv refused;
	size_t lost_on_record; /* how many of them the run's record has */
	/* directories as they were; NULL: the sweep reads everything */
	struct guard_dirs *dirs;
	/* what each step stood for when the plan was made; NULL: mounts cannot be left behind */
	struct guard_held *held;
	struct progress *progress; /* borrowed; NULL: not shown */
	size_t file_count;         /* regular files that the scan saw */
};

/* What the sweep found and left where it is. */
struct guard_news {
	/* "PATH: new|changed, why": what steers tools that a person starts (tables/steers.def) */
	struct strv steers;
	struct strv leaving; /* "PATH -> TARGET": new links that lead out of the tree */
};

#endif
