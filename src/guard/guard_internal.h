/* Shared by the guard's own files: the verdict over one path, and what makes a directory a git
 * directory. */
#ifndef WARD_GUARD_GUARD_INTERNAL_H
#define WARD_GUARD_GUARD_INTERNAL_H

#include <sys/types.h>

#include "base/walk.h"
#include "guard/guard.h"

/* Names that make a directory a git directory, and its parts that are protected. */
enum git_part {
#define GIT_PART(id, name, why) GIT_##id,
#include "protect.def"
	GIT_PROTECTED, /* the number of the protected ones */
	GIT_HEAD = GIT_PROTECTED,
	GIT_OBJECTS,
	GIT_REFS,
	GIT_LOGS,
	GIT_PARTS
};

/* What was seen of them in one directory: a DT_* each, 0 for absent. */
struct git_seen {
	unsigned char type[GIT_PARTS];
	bool any;
};

const char *guard_git_name(enum git_part part);
/* Notes an entry if it is one of the parts. */
void guard_git_note(struct git_seen *s, const struct walk_entry *entry);
/* Whether git would take the directory at path (of path_len) for a repository, or could once it is
 * completed. */
bool guard_is_git_dir(const struct git_seen *s, const char *path, size_t path_len);
/* Whether name is a part that holds data only: nothing in it is found by its name. Only in what
 * lies in a ".git": anybody can make any directory look like a bare repository, and call a
 * directory of the project "objects" or "logs". */
bool guard_is_git_data(const struct guard_root *g, const struct walk_dir *d, const char *name);

/* Whether path (of n bytes) is a git directory that the sandbox sees as a private copy, or lies in
 * one. */
bool guard_in_view(const struct guard_root *g, const char *path, size_t n);
/* Whether a path of length n goes through a ".git". */
bool guard_is_in_git(const char *path, size_t n);

/* Notes an entry that steers tools (tables/steers.def), with what tells later whether it
 * changed. */
must_check int guard_steer_note(struct guard_root *g, const struct walk_dir *d,
				const struct walk_entry *entry, struct ward_err *e);
/* How an entry of dir_fd steers tools, static text; NULL: it does not. */
const char *guard_steer_why(int dir_fd, const struct walk_entry *entry);
/* Whether a file that steers tools was at path before. */
bool guard_steer_known(const struct guard_root *g, const char *path);
/* Appends "PATH: new, why" if the entry is such a file and was not there before. */
must_check int guard_steer_new(const struct guard_root *g, const struct walk_dir *d,
			       const struct walk_entry *entry, struct strv *list,
			       struct ward_err *e);
/* Appends "PATH: changed, why" for each that was there and is another now. */
must_check int guard_steer_changed(const struct guard_root *g, int root_fd, struct strv *list,
				   struct ward_err *e);

/* Whether the last name of a path is a version file's (tables/versions.def). */
bool guard_is_version_file(const char *path);
/* Judges an entry of dir_fd that a run made or changed, if it is a version file. 0: it may stay; 1:
 * it may not, and why is appended; -ENOMEM. */
must_check int guard_judge_version(int dir_fd, const struct walk_entry *entry, struct buf *why);
/* The same for a link that was there before the run: what it leads to counts, if that lies in the
 * tree. */
must_check int guard_judge_old_link(const struct guard_root *g, int dir_fd,
				    const struct walk_entry *entry, struct buf *why);

/* Files that are known by their number, because they have more names than one. */
struct guard_hardlink {
	dev_t device;
	ino_t inode;
	bool hide; /* hidden, else read-only */
};
struct guard_hardlinks {
	struct guard_hardlink *items;
	size_t len, cap;
};
/* Whether dir_fd/name is a file with more than one name. */
bool guard_has_twin(int dir_fd, const char *name);
/* Notes dir_fd/name ("": dir_fd itself) if it is. */
must_check int guard_hardlink_note(struct guard_hardlinks *t, int dir_fd, const char *name,
				   bool hide, struct ward_err *e);
/* Hides every name that the noted files have in the tree, or makes it read-only. */
must_check int guard_hardlink_steps(struct guard_root *g, int root_fd, struct guard_hardlinks *t,
				    struct ward_err *e);

/* Whether the lists protect an entry; a link counts as the directory it may stand for. */
bool guard_is_protected(const struct guard_root *g, const struct walk_entry *entry);
/* Whether the policy took this path out of protection ("!NAME"). */
bool guard_is_released(const struct guard_root *g, const char *path, bool is_dir);
/* Whether an entry is a .git file or link, which leads git to another directory. */
bool guard_is_gitlink(const struct guard_root *g, const struct walk_entry *entry);
/* Why an entry is protected; static text. */
const char *guard_reason(const struct guard_root *g, const struct walk_entry *entry);

/* Why a path (without a slash in front) is protected, or a directory on the way to it; static text,
 * NULL: it is not. */
const char *guard_ask_way(const struct guard_root *g, const char *path, unsigned char type);

/* Adds patterns to the protected ones, with the links that could stand for their parents. */
must_check int guard_add_rules(struct guard_root *g, const char *text, size_t n,
			       struct ward_err *e);
/* Adds what a pattern for any depth means for a tree whose own path has the pattern's first
 * names. */
must_check int guard_add_rooted(struct guard_root *g, const char *pattern, struct ward_err *e);
/* The built-in rules, and those that a record kept. */
must_check int guard_restore_rules(struct guard_root *g, struct ward_err *e);
/* The built-in names; ignore_free() leaves them. */
struct ignore *guard_builtin_protect(void);
struct ignore *guard_builtin_steers(void); /* tables/steers.def, versions.def */
/* the directories that lead to them, asked for links */
struct ignore *guard_builtin_links(void);
/* Adds a literal path as a rule of the root. */
must_check int guard_add_path_rule(struct guard_root *g, const char *path, bool is_dir,
				   struct ward_err *e);
must_check int guard_add_step(struct guard_root *g, enum guard_action action, const char *path,
			      bool is_dir, struct ward_err *e);
/* Sorts the steps, adds the pins, drops what another step covers. */
must_check int guard_finish_steps(struct guard_root *g, struct ward_err *e);
/* Whether the sorted list holds text of length n with suffix (0: none) behind it. */
bool guard_list_has(const struct strv *sorted, const char *text, size_t n, char suffix);

/* Appends s with "\\", newlines and tabs escaped, so that it is one field of a line. */
void guard_escape(struct buf *out, const char *s);
/* Undoes that, in place. */
void guard_unescape(char *s);
/* Appends "PATH\nTARGET" (both escaped) of the link entry in dir_fd. */
must_check int guard_link_text(int dir_fd, const struct walk_entry *entry, struct buf *out,
			       struct ward_err *e);

/* Appends to *list what git would run, or write anywhere, when it goes on with what is under way,
 * if entry is a file that it goes by then: "PATH\nTASK" each, for a link "PATH\nTARGET". Returns 0,
 * 1 when entry is such a file and cannot be read, or -errno. */
must_check int guard_git_tasks(const struct walk_dir *d, const struct walk_entry *entry,
			       struct strv *list, struct ward_err *e);
/* Keeps them as those that were there before. */
must_check int guard_note_tasks(struct guard_root *g, const struct walk_dir *d,
				const struct walk_entry *entry, struct ward_err *e);
/* Whether name is that of a directory where such files lie. */
bool guard_is_state_dir(const char *name);

/* Reads the .aiignore of a directory behind *ig; none there is fine. */
must_check int guard_read_aiignore(int dir_fd, const char *where, struct ignore **ig,
				   struct ward_err *e);

/* Protects a path of the host's in the tree, if it lies there. */
must_check int guard_protect_place(struct guard_root *g, const char *place, bool is_dir,
				   struct ward_err *e);
/* Protects each link of the tree that leads to path; *ret_real is where that is, as far as it
 * exists. The caller frees. */
must_check int guard_protect_way(struct guard_root *g, const char *path, char **ret_real,
				 struct ward_err *e);

/* Whether a path that a link in `tree` leads to lies where ward keeps what sandboxes made (unless
 * the tree lies there, too), or in the /proc of a
 * process. */
bool guard_is_own(const char *tree, const char *path);

/* Lets go of what is held. */
void guard_hold_end(struct guard_root *g);
/* Whether the first len bytes of path are a step whose thing is held. */
bool guard_is_held(const struct guard_root *g, const char *path, size_t len);
/* How dir_fd/name is taken out of the tree; path is its path there. */
struct guard_taker {
	int (*take)(void *ctx, int dir_fd, const char *name, const char *path, const char *why);
	void *ctx;
};
/* Takes away every version file that was there before the run and holds more than versions now. */
must_check int guard_steer_judge(const struct guard_root *g, int root_fd,
				 const struct guard_taker *taker, struct ward_err *e);
/* Once the sandbox is dead: puts back what is held and not where it was. Appends "path: what" to
 * *told; the first failure is returned when the rest is done. */
must_check int guard_put_back(const struct guard_root *g, int root_fd,
			      const struct guard_taker *taker, struct strv *told,
			      struct ward_err *e);

/* The step for exactly the first len bytes of path among the first n, which are sorted; NULL: there
 * is none. */
const struct guard_step *guard_find_step(const struct guard_root *g, size_t n, const char *path,
					 size_t len);

#endif
