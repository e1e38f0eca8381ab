/* The verbs of ward-image. */
#ifndef WARD_IMAGE_IMAGE_H
#define WARD_IMAGE_IMAGE_H

#include "base/say.h"
#include "image/unpack.h"
#include "state/images.h"

struct image_options {
	bool json, quiet; /* quiet: only errors */
	const char *name; /* NULL: the image's own */
	uint64_t max_bytes, max_entries;
	char **words; /* behind the verb, NULL-terminated */
	size_t count;
};

/* What came of an import. */
struct imported {
	struct unpacked what;
	char name[UNPACK_NAME_MAX]; /* that it has now, "": none */
	bool name_taken;            /* the image's own name belongs to another one */
};

/* Each verb returns the exit code. */
int image_import(const struct image_options *o);
int image_pull(const struct image_options *o);
int image_list(const struct image_options *o);
int image_remove(const struct image_options *o);
int image_collect(const struct image_options *o);
int image_build(const struct image_options *o);

/* Imports what the descriptor is, and names it. source: where it came from, for people. key: of
 * images_set_source(), NULL: none. */
must_check int import_fd(const struct image_options *o, int fd, bool is_dir, const char *wanted,
			 const char *source, const char *key, struct imported *ret,
			 struct ward_err *e);
/* Imports a tree that was built here, with how it wishes to be run. */
must_check int import_tree(const struct image_options *o, int fd, const struct image_wish *wish,
			   const char *source, struct imported *ret, struct ward_err *e);
int import_say(const struct image_options *o, const struct imported *i);

#endif
