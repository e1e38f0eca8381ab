/* Shared by the review's own files. */
#ifndef WARD_REVIEW_REVIEW_INTERNAL_H
#define WARD_REVIEW_REVIEW_INTERNAL_H

#include "base/progress.h"
#include "review/review.h"

#define REVIEW_RECORD "record"
#define REVIEW_APPLIED "applied"   /* there once something was applied; see changes_applied.c */
#define REVIEW_BASE "base"         /* what files were when the run began; see changes_base.c */
#define REVIEW_TRACKED "tracked"   /* which of them the repository has */
#define REVIEW_LAYER "layer"       /* what the sandbox's overlay is made of: */
#define REVIEW_UPPER "layer/upper" /* the changes */
#define REVIEW_WORK "layer/work"   /* the kernel's own */
#define REVIEW_LOWER                                                                               \
	"layer/lower" /* empty, the workspace is mounted on it for a moment; or a copy for a run */

/* Whether the kernel takes the directory as the place of an overlay's changes. */
bool review_place_suits(int dir_fd);
/* Whether the kernel makes an overlay of the workspace; point_fd is an empty directory. Cheap where
 * the file system is a usual one. */
bool review_overlay_fits(int workspace_fd, int point_fd);
/* Whether an overlay can take over everything in the workspace: it cannot what belongs to ids that
 * its user namespace does not have. uid and gid are those on disk that the sandbox has. Otherwise
 * *ret_path is the first that it cannot; the caller frees. */
bool review_ids_fit(int workspace_fd, uid_t uid, gid_t gid, char **ret_path);
/* Copies the workspace into the empty directory copy_fd; as root for that uid and gid, and as far
 * as these may read it. */
must_check int review_copy(int workspace_fd, int copy_fd, uid_t uid, gid_t gid,
			   struct progress *progress, struct ward_err *e);
/* Writes the record, whole or not at all. */
must_check int review_write_record(int dir_fd, const struct review_record *r, struct ward_err *e);
/* Reads the record of the review directory. */
must_check int review_read_record(int dir_fd, struct review_record *ret_record, struct ward_err *e);
/* Removes the directory name of place_fd, which lies at place_path: first it gets a name that
 * nobody takes for a review. */
must_check int review_remove_dir(int place_fd, const char *place_path, const char *name,
				 struct ward_err *e);

#endif
