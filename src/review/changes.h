/* What a review holds: the difference between the workspace and what a run made of it. */
#ifndef WARD_REVIEW_CHANGES_H
#define WARD_REVIEW_CHANGES_H

#include <sys/stat.h>

#include "base/progress.h"
#include "review/review.h"

enum change_kind {
	CHANGE_ADDED,
	CHANGE_CONTENT, /* of a file, or where a link leads; the mode may differ too */
	CHANGE_MODE,    /* only the mode */
	CHANGE_TYPE,    /* a file became a directory, a link, ... */
	CHANGE_DELETED,
	CHANGE_KINDS
};

#define CHANGE_NONE UINT32_MAX

struct change {
	char *path; /* relative to the workspace; owned */
	enum change_kind kind;
	mode_t old_mode, new_mode; /* with the type; 0: not there */
	uint64_t old_size, new_size;
	uint64_t inode;              /* of what is in the workspace now, 0: nothing */
	uint64_t ctime_ns, mtime_ns; /* of that */
	/* DELETED and ADDED: index of the other end of a rename; CHANGE_NONE: none */
	uint32_t twin;
	/* a directory that is there because of what is in it, or goes with it */
	bool implied;
	/* it lies in a directory that was made anew: what the workspace has there is out of view */
	bool opaque;
	bool conflict; /* somebody else has changed it since the run began */
	/* changes_settle(): so it is, and the edits of both sides go together */
	bool merged;
	/* and: they do not, but both are text: markers can show them */
	bool markable;
	bool is_protected;   /* changes_judge() */
	const char *refused; /* why it can never be applied, static text; NULL: it can */
	/* changes_find_news(): how it steers tools that a person starts, static text; NULL: it does
	 * not */
	const char *steers;
	/* and the target of a link that leads out of the workspace; NULL: it does not; owned */
	char *leads_to;
};

struct changes {
	struct change *items; /* sorted by path */
	size_t len, cap;
	size_t hidden;               /* changes of hidden names, which are nobody's business */
	size_t counts[CHANGE_KINDS]; /* without the implied */
	size_t renames;
	/* what the run did with git, a line each: it is applied as a whole (git_run.h) */
	struct strv git;
};

/* Compares the changes of the review with its workspace. progress may be NULL. The caller frees
 * with changes_clear(). */
must_check int changes_read(const struct review *r, struct changes *ret_changes,
			    struct progress *progress, struct ward_err *e);
void changes_clear(struct changes *c);
/* Finds which deleted files are added ones, by content; at most budget bytes are read. */
must_check int changes_find_renames(const struct review *r, struct changes *c, uint64_t budget,
				    struct ward_err *e);
/* Marks what is protected, by the lists and by what git would run, and which links and names are
 * refused. */
must_check int changes_judge(const struct review *r, struct changes *c, struct ward_err *e);
/* Marks what steers tools and which links lead out of the workspace: nothing refuses the former, so
 * a person has to see it. */
must_check int changes_find_news(const struct review *r, struct changes *c, struct ward_err *e);
/* Appends what is marked, in the words of the sweep. */
struct guard_news;
must_check int changes_tell_news(const struct changes *c, struct guard_news *news,
				 struct ward_err *e);
/* Looks closer at conflicts: where the content from before is known, those that are none any more,
 * or that merge, are marked so. */
must_check int changes_settle(const struct review *r, struct changes *c, struct ward_err *e);
/* Puts both sides' edits of a file together; with conflicts between markers. The workspace's side
 * is read from ours_fd, or from its place (-1). *ret_mode is the merged mode. Fails with -ENOENT
 * where the content from before is not known, -EINVAL where one side is no text. */
must_check int changes_merge(const struct review *r, const struct change *c, int ours_fd,
			     struct buf *ret_bytes, mode_t *ret_mode, size_t *ret_conflicts);

/* Whether the workspace lies in a repository whose objects have names of SHA-256. */
bool changes_has_sha256(const char *workspace);

/* What files of the workspace are when a run begins: notes what can be found again later. */
void changes_bases_begin(int review_fd, const char *workspace);
/* A run has ended: keeps what the files were that it changed. */
void changes_bases_keep(const struct review *r, const struct changes *all);
/* The content of a file when the run began; -ENOENT: that is not known. */
must_check int changes_base_read(const struct review *r, const char *path, struct buf *ret_bytes,
				 mode_t *ret_mode);
void changes_base_drop(const struct review *r, const char *path);
/* Finds a path in the list of tracked files: "HEADER\nGIT_DIR\0" and "ID X PATH\0" each. A pure
 * function. */
bool changes_tracked_find(const char *text, size_t n, const char *path, const char **ret_git_dir,
			  char ret_id[65], bool *ret_program);

/* Appends the paths that the workspace's repository tracked when the run began, sorted. -ENOMEM
 * only. */
must_check int changes_list_tracked(const struct review *r, struct strv *ret);

/* The workspace of a review as it is now, with the lists that its record has: filled for
 * guard_sweep(). The caller frees with guard_clear(). */
struct guard_root;
must_check int changes_load_guard(const struct review *r, struct guard_root *ret_root,
				  struct ward_err *e);
/* Whether a link at path (relative to the workspace) with this target leads out of the workspace,
 * or could. A pure function. */
bool changes_link_leaves(const char *workspace, const char *path, const char *target);
/* How many changes a person would count: without the implied, a rename once. */
size_t changes_count(const struct changes *c);

/* Opens the directory that holds the last component of path beneath root_fd, through no link,
 * however deep. *ret_name is that component. -ENOENT, -ENOTDIR, -ELOOP where there is no such
 * directory. */
must_check int changes_open_parent(int root_fd, const char *path, const char **ret_name);
/* Opens a regular file of the review for reading although its owner may not; its mode is as before
 * afterwards. */
must_check int changes_open_file(int dir_fd, const char *name);
/* Whether two open files of the same size hold the same bytes; 0 or 1, or -errno. */
must_check int changes_same_content(int a_fd, int b_fd, uint64_t size);

#endif
