/* Shared by the files of ward-git: one view while it is taken over. */
#ifndef WARD_GIT_GIT_H
#define WARD_GIT_GIT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "gitview/git_view.h"
#include "rules/git_judge.h"

enum take_how {
	TAKE_ALL,  /* the sandbox is dead */
	TAKE_LIVE, /* it runs: the host's news go into the view, and refusals wait */
	TAKE_SHOW  /* nothing is changed */
};

/* The bytes of one file, by its path in the git directory. */
struct file {
	char *path;  /* owned */
	char *bytes; /* owned */
	size_t n;
};

/* Files sorted by path; once files_sort() was called where files_add() was. */
struct files {
	struct file *items;
	size_t len, cap;
};

/* One view and the repository that it is a copy of. */
struct take {
	size_t number;   /* of the view, for messages about it */
	const char *dir; /* borrowed */
	struct git_view_record record;
	int dir_fd;           /* borrowed */
	int view_fd, host_fd; /* owned */
	struct files base;    /* what both sides had last */
	/* what the sandbox has now and may have, judged; what is refused is not in it */
	struct files view;
	/* "PREFIX\nPATH": loose objects and packs of the sandbox's */
	struct strv objects;
	struct strv repositories; /* the prefix of each repository in it: "", "modules/x/" */
	unsigned hash;            /* GIT_SHA1 or GIT_SHA256 */
	struct strv indexes;      /* indexes of the sandbox that go to the host */
	/* ids that reflogs of the sandbox's name and the host does not have, sorted */
	struct strv lost;
	struct strv blocked; /* refs that must not move: their index is not taken over */
	/* "ID\tPATH": commits and tags that bring something under the protected name PATH, sorted;
	 * PATH is empty where objects are missing */
	struct strv held;
	struct protect *protect; /* owned; NULL: not needed yet */
	struct buf *out;         /* reports to the supervisor */
	/* the sandbox runs: the host's news go into the view, and refusals wait */
	bool live;
	bool shows; /* nothing is changed, and nothing said but notes */
	/* how often git was called for a part of something that it refused as a whole */
	size_t tries;
	/* lines said, and left out where there are too many */
	size_t refused, noted, lost_count;
	int wait_ms; /* left of the time to wait for locks of the host's */
	bool failed; /* something could not be written: the view must be kept */
	struct ward_err *e;
};

/* ---- files.c: lists of files ---- */

const struct file *files_find(const struct files *f, const char *path);
/* Whether there is a file beneath that directory. */
bool files_any_beneath(const struct files *f, const char *dir);
/* Sets or replaces; the bytes are copied. Kept sorted. */
must_check int files_set(struct files *f, const char *path, const void *bytes, size_t n);
/* Appends; the bytes are copied. The caller sorts before anything is looked for. */
must_check int files_add(struct files *f, const char *path, const void *bytes, size_t n);
/* Of files with one path one stays. */
void files_sort(struct files *f);
/* Removes every file beneath a prefix. */
void files_drop_all(struct files *f, const char *prefix);
void files_drop(struct files *f, const char *path);
void files_clear(struct files *f);
bool files_equal(const struct file *a, const struct file *b); /* NULL: absent */

/* Reads a regular file beneath dir_fd through no link: 0, -ENOENT, or another -errno. */
must_check int file_read(int dir_fd, const char *path, size_t max, struct buf *bytes);
/* Replaces it by way of PATH.lock, as git does, making directories where they are missing. bytes
 * NULL: removes it. Waits for another git that holds the lock at most *wait_ms, which becomes less
 * by that; NULL: not at all. 0 or -errno. */
must_check int file_write(int dir_fd, const char *path, const void *bytes, size_t n, int *wait_ms);

/* ---- say.c: reports to the supervisor ---- */

void say(struct take *t, const char *kind, const char *path, const char *text);
void say_note(struct take *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Something of the sandbox's did not arrive: reported in any case. */
void say_lost(struct take *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* How many lines were left out. */
void say_rest(struct take *t);

/* ---- process.c: git on the host's side ---- */

struct git_call {
	const char *git_dir;      /* absolute */
	const char *const *words; /* NULL-terminated, without "git" */
	const char *input;        /* NULL: none */
	size_t input_n;
	int input_fd;         /* instead of input; 0: none */
	int output_fd;        /* instead of output; 0: none */
	const char *store;    /* where it keeps objects; NULL: in the repository */
	const char *borrowed; /* another store that it reads objects from; NULL: none */
	/* ended then, if that is sooner than a call may take; 0: no such time */
	int64_t until_ms;
};

/* Runs git without hooks, pager or prompts. *output (may be NULL) gets what it writes. Returns its
 * exit code, which is above 128 if it took too long or too much, or -errno if it could not be
 * run. */
must_check int git_call(const struct git_call *c, struct buf *output);
/* Milliseconds of a clock that only goes on. */
int64_t now_ms(void);

/* ---- scan.c: what the sandbox has ---- */

/* Reads the view: fills t->view and t->objects; says what is refused. */
must_check int scan_view(struct take *t);

/* ---- objects.c, incoming.c ---- */

must_check int take_objects(struct take *t);
/* Whether git finds no fault with the files of an index whose names say that git itself reads them
 * (.gitmodules and the like): "MODE ID NAME", one on a line. They are in no tree yet, so nothing
 * has looked at them. */
must_check bool files_are_good(struct take *t, const char *git_dir, const struct strv *entries);

/* ---- refs.c ---- */

must_check int take_refs(struct take *t, const char *prefix);
/* Says which refs the sandbox changed. */
must_check int show_refs(struct take *t, const char *prefix);
/* Whether everything that the ids (one on a line) lead to is in the repository. */
bool ids_complete(const char *git_dir, const char *lines);
/* The ids (one on a line) that the repository, or a store beside it, has no object of. */
must_check int ids_missing(const char *git_dir, const char *store, const struct buf *ids,
			   struct buf *missing);

/* ---- index.c ---- */

/* Decides about each index first: a branch does not move without it. */
must_check int take_indexes(struct take *t);
/* Appends the id of each entry's content, but for those that the old index has, too (NULL: there is
 * none). */
void index_ids(const struct take *t, const struct file *old, const struct file *index,
	       struct strv *ids);
/* The repository on the host that has the objects of a file of the view. The caller frees. */
must_check int repository_of(struct take *t, const char *path, char **ret_git_dir);

/* ---- state.c: everything that is a file of its own ---- */

/* The host's file now; *ret_file borrows bytes. false: it is not there. */
bool read_host(struct take *t, const char *path, struct buf *bytes, struct file *ret_file);
/* Whether a HEAD of the sandbox's may go to the host; says why not. */
bool leads_somewhere(struct take *t, const char *path, const struct file *head);
/* Both sides have the bytes from now on; NULL: neither has the file. */
must_check int agree(struct take *t, const char *path, const struct file *f);
/* The host's file (NULL: it is gone) goes into the view while the sandbox runs. */
must_check int pull(struct take *t, const char *path, const struct file *theirs);
/* Replaces or removes (NULL) it on the host. 1: that failed and was reported. */
must_check int write_host(struct take *t, const char *path, const struct file *f);
/* Every path of both sides, once: reflogs, or all else. */
must_check int for_each_path(struct take *t, int (*fn)(struct take *t, const char *path),
			     bool logs);
must_check int take_state(struct take *t);

/* ---- logs.c ---- */

must_check int take_logs(struct take *t);

/* ---- config.c ---- */

must_check int take_configs(struct take *t);

/* ---- places.c ---- */

/* Refuses worktrees/ID and modules/NAME of the sandbox's own whose work tree is not in the tree or
 * does not point back. */
must_check int check_places(struct take *t);
/* ---- sparse.c ---- */

/* Whether ward keeps protected names out of the work trees of the repository that path lies in:
 * what its commits have of them came with an earlier run. After list_repositories(). */
bool keeps_out(struct take *t, const char *path);
/* Whether path is that of a sparse checkout's patterns there, and the sandbox's (NULL: removed) are
 * others than ward's. */
bool sparse_differs(struct take *t, const char *path, const struct file *now);
/* Whether a setting of the configuration at path would change such a sparse checkout. */
bool sparse_setting(struct take *t, const char *path, const char *name);

/* Refuses worktrees/ID of the sandbox's own without a HEAD that leads somewhere. After take_refs().
 */
must_check int check_heads(struct take *t);
/* Fills t->repositories with the repositories that the view and the host both have. */
must_check int list_repositories(struct take *t);

/* ---- take.c ---- */

/* A failure in the repository of a submodule is reported and does not stop the rest: status, or 0.
 */
must_check int go_on(struct take *t, const char *prefix, int status);
/* Takes over one view; dir_fd is its directory, borrowed. */
/* show: only says what would be taken over. */
must_check int take_view(size_t number, const char *dir, int dir_fd, enum take_how how,
			 struct buf *out, struct ward_err *e);

#endif
