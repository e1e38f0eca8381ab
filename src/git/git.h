/* Shared by the files of ward-git: one view while it is taken over. */
#ifndef WARD_GIT_GIT_H
#define WARD_GIT_GIT_H

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "lib/git_view.h"
#include "rules/git_judge.h"

enum take_how {
	TAKE_ALL,	/* the sandbox is dead */
	TAKE_LIVE,	/* it runs: the host's news go into the view, and refusals wait */
	TAKE_SHOW	/* nothing is changed */
};

/* The bytes of one file, by its path in the git directory. */
struct file {
	char *path;	/* owned */
	char *bytes;	/* owned */
	size_t n;
};

/* Files sorted by path. */
struct files {
	struct file *items;
	size_t len, cap;
};

/* One view and the repository that it is a copy of. */
struct take {
	size_t number;			/* of the view, for what is said about it */
	const char *dir;		/* borrowed */
	struct git_view_record record;
	int dir_fd;			/* borrowed */
	int view_fd, host_fd;		/* owned */
	struct files base;		/* what both sides had last */
	struct files view;		/* what the sandbox has now and may have, judged; what is refused is not in it */
	struct strv objects;		/* "PREFIX\nPATH": loose objects and packs of the sandbox's */
	struct strv repositories;	/* the prefix of each repository in it: "", "modules/x/" */
	unsigned hash;			/* GIT_SHA1 or GIT_SHA256 */
	struct strv indexes;		/* indexes of the sandbox that go to the host */
	struct strv blocked;		/* refs that must not move: their index is not taken over */
	struct buf *out;		/* what the supervisor is told */
	bool live;			/* the sandbox runs: the host's news go into the view, and refusals wait */
	bool shows;			/* nothing is changed, and nothing said but notes */
	size_t single_refs;		/* that git was called for alone */
	bool failed;			/* something could not be written: the view must be kept */
	struct ward_err *e;
};

/* ---- files.c: lists of files ---- */

const struct file *files_find(const struct files *f, const char *path);
/* Sets or replaces; the bytes are copied. Kept sorted. */
must_check int files_set(struct files *f, const char *path, const void *bytes, size_t n);
void files_drop(struct files *f, const char *path);
void files_clear(struct files *f);
bool files_equal(const struct file *a, const struct file *b);	/* NULL: absent */

/* Reads a regular file beneath dir_fd through no link: 0, -ENOENT, or another -errno. */
must_check int file_read(int dir_fd, const char *path, size_t max, struct buf *bytes);
/* Replaces it by way of PATH.lock, as git does, making directories where they are missing. bytes NULL: removes it. Waits a little for
 * another git that holds the lock. 0 or -errno. */
must_check int file_write(int dir_fd, const char *path, const void *bytes, size_t n);

/* ---- say.c: what the supervisor is told ---- */

void say(struct take *t, const char *kind, const char *path, const char *text);
void say_note(struct take *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- process.c: git on the host's side ---- */

struct git_call {
	const char *git_dir;		/* absolute */
	const char *const *words;	/* NULL-terminated, without "git" */
	const char *input;		/* NULL: none */
	size_t input_n;
	int input_fd;			/* instead of input; 0: none */
};

/* Runs git without hooks, pager or prompts. *output (may be NULL) gets what it writes. Returns its exit code or -errno. */
must_check int git_call(const struct git_call *c, struct buf *output);

/* ---- scan.c: what the sandbox has ---- */

/* Reads the view: fills t->view, t->objects, t->repositories; says what is refused. */
must_check int scan_view(struct take *t);

/* ---- objects.c ---- */

must_check int take_objects(struct take *t);

/* ---- refs.c ---- */

must_check int take_refs(struct take *t, const char *prefix);
/* Says which refs the sandbox changed. */
must_check int show_refs(struct take *t, const char *prefix);
/* Whether everything that the ids (one on a line) lead to is in the repository. */
bool ids_complete(const char *git_dir, const char *lines);

/* ---- state.c: everything that is a file of its own ---- */

/* Decides about each index first: a branch does not move without it. */
must_check int take_indexes(struct take *t);
must_check int take_state(struct take *t);
must_check int take_logs(struct take *t);
/* ---- config.c ---- */

must_check int take_configs(struct take *t);

/* ---- worktree.c ---- */

/* Refuses worktrees/ID and modules/NAME of the sandbox's own whose work tree is not in the tree or does not point back. */
must_check int check_places(struct take *t);

/* ---- take.c ---- */

/* Takes over one view; dir_fd is its directory, borrowed. */
/* show: only says what would be taken over. */
must_check int take_view(size_t number, const char *dir, int dir_fd, enum take_how how, struct buf *out, struct ward_err *e);

#endif
