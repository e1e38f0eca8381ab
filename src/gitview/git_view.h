/*
 * The private git directory of a run. A sandbox never sees the host's git directory: it gets a copy
 * of everything but the objects, which it reads from the host's store. `ward-git` takes over by
 * meaning what the sandbox did there (src/git).
 *
 * STATE/git/RUN/N is one view: `record` says what it is of, `base` holds what was copied, and
 * `view` is the directory that the sandbox sees as its git directory.
 */
#ifndef WARD_GITVIEW_GIT_VIEW_H
#define WARD_GITVIEW_GIT_VIEW_H

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/own.h"
#include "rules/git_alternates.h"

#define GIT_VIEWS "git" /* in the state directory */
#define GIT_VIEW_DIR "view"
#define GIT_VIEW_BASE "base"
#define GIT_VIEW_RECORD "record"

/* What a view is made of. Texts are borrowed. */
struct git_view_source {
	const char *git_dir;   /* on the host, absolute, links resolved */
	const char *root;      /* the writable tree it lies in, as the sandbox sees it */
	const char *host_root; /* the same tree on the host */
	uid_t uid;             /* the owner of the copies; as root only */
	gid_t gid;
	bool chown;
	bool free_config; /* the policy releases these: taken over as they are */
	bool free_hooks;
	const struct strv *rules; /* protected names beside the built-in ones */
};

/* Whether the directory is a repository that can be seen as a private copy. A bare shape of links
 * or pipes is not one. */
bool git_view_suits(int git_fd);
/* Makes the view in the directory at dir (absolute, made by the caller). *lent gets a line
 * "IN_VIEW\nIN_GIT_DIR" for each directory of the host's that is to be mounted read-only into the
 * view. */
must_check int git_view_make(const char *dir, const struct git_view_source *s, struct strv *lent,
			     struct ward_err *e);
/* Whether the view at dir is of that repository, which st describes, in that tree. -EINVAL: its
 * record is damaged. */
must_check int git_view_is_of(const char *dir, const struct git_view_source *s,
			      const struct stat *st, struct ward_err *e);
/* Goes on with the view that a former run of a review left: the lines of *lent, as in
 * git_view_make(). What this run's policy does not release is no longer taken over as it is. */
must_check int git_view_reopen(const char *dir, const struct git_view_source *s, struct strv *lent,
			       struct ward_err *e);
/* Whether the sandbox has changed anything in the view since it was made or taken over last. */
bool git_view_changed(const char *dir);

/* Whether the view belongs to that user. */
bool git_view_is_owned(const char *dir, uid_t uid);
/* As root: gives the view with all that is in it to another user. */
must_check int git_view_give(const char *dir, uid_t uid, gid_t gid, struct ward_err *e);

/* What the record of a view says. */
struct git_view_record {
	char *git_dir; /* on the host */
	char *root, *host_root;
	uint64_t device, inode; /* of the host's git directory */
	uid_t uid;
	gid_t gid;
	/* the newest change of what was copied, by the clock that stamps files */
	uint64_t made_ns;
	bool free_config, free_hooks;
	struct strv lent;
	struct strv rules;
};

/* Reads the text of a record. -EINVAL: it is none. A pure function. */
must_check int git_view_record_read(const char *text, size_t n, struct git_view_record *ret_record);
void git_view_record_write(const struct git_view_record *r, struct buf *out);
void git_view_record_clear(struct git_view_record *r);

/* One file of the base. */
typedef int (*git_view_file)(void *ctx, const char *path, const char *bytes, size_t n);
/* Reads the base: "PATH\0LENGTH\0BYTES" each. -EINVAL: it is damaged. A pure function. */
must_check int git_view_base_read(const char *text, size_t n, git_view_file file, void *ctx);
/* What stands in front of the bytes of one file. */
void git_view_base_head(struct buf *out, const char *path, size_t n);
void git_view_base_add(struct buf *out, const char *path, const char *bytes, size_t n);

#endif
