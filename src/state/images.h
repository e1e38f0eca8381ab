/* The images of this user: found by name, held while they are in use. What fills the store is
 * ward-image (src/image). */
#ifndef WARD_STATE_IMAGES_H
#define WARD_STATE_IMAGES_H

#include <sys/stat.h>

#include "base/buf.h"
#include "base/sha256.h"
#include "model/plan.h"

/* In the state directory: */
#define IMAGES_DIR "images"      /* HEX/ for each image: root/, config, owners, info */
#define IMAGES_NAMES "names"     /* in there: NAME with "/" as "%" -> HEX */
#define IMAGES_SOURCES "sources" /* in there: what a file was when it was imported -> HEX */
/* in there: work-ID/, what is being made; locked while a process does */
#define IMAGES_WORK "work-"
#define IMAGES_ROOT "root"
#define IMAGES_CONFIG "config"
#define IMAGES_INFO "info"
#define IMAGES_NAME_MAX 200

/* Whether the value of `image` is a path: it begins with /, ./, ../ or ~/. A pure function. */
bool image_is_path(const char *value);
/* Whether a name may be given to an image. A pure function. */
bool image_name_is_valid(const char *name);
/* A name as the name of a file; `out` has room for IMAGES_NAME_MAX and a NUL. A pure function. */
void image_name_encode(const char *name, char *out);

/* Reads "KEY VALUE" records that each end with a NUL. Returns the value of the next one, NULL at
 * the end; *at moves, *ret_key is its key's length (the key itself begins at *ret_start). A pure
 * function. */
const char *image_record_next(const char **at, const char *end, const char **ret_start,
			      size_t *ret_key);

/* What a file on disk is called in IMAGES_SOURCES: another one has another name. */
void image_source_key(const char *real_path, const struct stat *st, char ret_hex[SHA256_HEX]);

/* Opens the image of that name or digest (at least 12 digits, with or without sha256:), or the
 * directory or imported file at that path. The caller clears. -ENOENT: there is none (yet), *e says
 * how to get it. */
must_check int images_open(const char *value, struct image *ret, struct ward_err *e);
void image_clear(struct image *i);

#endif
