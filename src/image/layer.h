/* One layer: a tar archive, compressed or not, applied to a tree. */
#ifndef WARD_IMAGE_LAYER_H
#define WARD_IMAGE_LAYER_H

#include "image/manifest.h"
#include "image/tree.h"

struct layer_source {
	int fd;                        /* borrowed, read from where it stands */
	const struct descriptor *blob; /* what it must be, compressed; NULL: anything */
	/* digest that it must have uncompressed, hexadecimal; NULL: any */
	const char *diff_id;
	bool plain; /* names of whiteouts mean nothing: an archive of files */
};

/* Applies it, checks it, and writes the digest of its uncompressed bytes. */
must_check int layer_apply(struct tree *t, const struct layer_source *s,
			   char ret_diff_id[DIGEST_HEX], struct ward_err *e);

#endif
