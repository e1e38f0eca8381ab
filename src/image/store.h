/* The store of images as its keeper sees it: what is made, named, listed and removed. */
#ifndef WARD_IMAGE_STORE_H
#define WARD_IMAGE_STORE_H

#include <stdint.h>
#include <time.h>

#include "state/images.h"

/* A directory in which something is made; no other process takes it for a leftover while it is
 * open. */
struct work {
	int images_fd; /* owned */
	int fd;        /* of the directory, locked; owned */
	char name[64];
};

struct store_image {
	char digest[SHA256_HEX];
	struct strv names;
	char *source; /* where it came from, for people */
	uint64_t bytes, files, created;
	bool in_use;
};

struct store_images {
	struct store_image *items;
	size_t len;
};

#define WORK_OUTSIDE_MAX 288

/* Where a work of that name may have an empty directory outside of the store. A process that
 * removes the work removes that, too. */
void work_outside(const char *name, char ret_path[WORK_OUTSIDE_MAX]);
/* Begins: makes an empty directory. What a killed process left of its own is removed first. */
must_check int work_begin(struct work *w, struct ward_err *e);
/* Turns the directory into the image of that digest, if there is none yet. */
must_check int work_commit(struct work *w, const char *digest, struct ward_err *e);
/* Removes what was not committed. Fine after work_commit() too. */
void work_end(struct work *w);
/* Writes what ls shows, before the commit. */
must_check int work_describe(const struct work *w, const char *source, uint64_t bytes,
			     uint64_t files, struct ward_err *e);

/* Gives a name to an image, taking it from another one; with `free_only` -EEXIST where another one
 * has it. */
must_check int images_set_name(const char *name, const char *digest, bool free_only,
			       struct ward_err *e);
/* Remembers which image a file was. */
must_check int images_set_source(const char *key, const char *digest, struct ward_err *e);
/* Every image, the newest first. The caller clears. */
must_check int images_list(struct store_images *ret, struct ward_err *e);
void images_list_clear(struct store_images *v);
/* Takes a name away and, with its last name, the image; or an image by digest with all of its
 * names. *ret_removed: the image itself went. -EBUSY while a sandbox uses it. */
must_check int images_remove(const char *value, bool *ret_removed, struct ward_err *e);
/* Removes images that have no name and are not in use, and leftovers. Counts what went. */
must_check int images_collect(uint64_t *ret_images, uint64_t *ret_bytes, struct ward_err *e);

#endif
