/* Unpacks an image into a directory of its own, in a process that can do nothing else. */
#ifndef WARD_IMAGE_UNPACK_H
#define WARD_IMAGE_UNPACK_H

#include "base/progress.h"
#include "image/manifest.h"
#include "image/tree.h"

#define UNPACK_BYTES_MAX (UINT64_C(16) << 30)
#define UNPACK_ENTRIES_MAX 1000000
#define UNPACK_NAME_MAX 256

/* In the directory: */
#define UNPACK_ROOT "root"     /* the tree */
#define UNPACK_CONFIG "config" /* what the image wishes: "KEY VALUE", each ended by a NUL */
#define UNPACK_OWNERS                                                                              \
	"owners" /* "MODE UID GID PATH", each ended by a NUL: what the tree does not have */
#define UNPACK_OUTER "outer" /* while it lasts: what an archive of an image holds */

struct unpack_job {
	int source_fd; /* a file or a directory; borrowed */
	bool is_dir;
	const char *wanted; /* which image of several, NULL: the only one */
	/* of a directory: how it wants to be run, NULL: nothing; borrowed */
	const struct image_wish *wish;
	int target_fd; /* an empty directory; borrowed */
	uint64_t max_bytes, max_entries;
	struct progress *progress; /* NULL: not shown */
};

/* In memory that the worker shares with us: what is in here was written by a process that read
 * bytes of strangers. */
struct unpacked {
	struct tree_count count;
	int result; /* 0, or -errno with error */
	struct ward_err error;
	/* of the manifest, the configuration, the archive's content, or the tree */
	char digest[DIGEST_HEX];
	char name[UNPACK_NAME_MAX]; /* that the image gives itself, "": none */
};

/* Starts the worker, waits for it, and fills *ret. */
must_check int unpack_run(const struct unpack_job *job, struct unpacked *ret, struct ward_err *e);

/* The work itself, in the worker. */
must_check int unpack_work(const struct unpack_job *job, struct unpacked *out, struct ward_err *e);
/* Writes what an image wishes into its directory. */
must_check int unpack_write_config(int target_fd, const struct image_wish *w, struct ward_err *e);
/* Copies the directory source_fd into the tree, and writes the digest of what there is. */
must_check int copy_dir(struct tree *t, int source_fd, char ret_digest[DIGEST_HEX],
			struct ward_err *e);
/* Copies a file or directory to that clean path of the tree, which is not the root. */
must_check int copy_into(struct tree *t, int source_fd, const char *path, struct ward_err *e);
/* Takes away from this process what unpacking does not need. dir_source: files are opened in the
 * source, too. */
must_check int confine_worker(const struct unpack_job *job, struct ward_err *e);

#endif
