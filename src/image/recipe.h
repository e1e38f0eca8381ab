/* The recipe of an image. A pure function over bytes of a file. */
#ifndef WARD_IMAGE_RECIPE_H
#define WARD_IMAGE_RECIPE_H

#include "image/manifest.h"
#include "policy/policy.h"

struct recipe_file {
	char *from; /* beneath the recipe's directory, clean */
	char *to;   /* in the image, clean, without its first slash */
};

struct recipe {
	char *from; /* the base image; "scratch": nothing */
	struct recipe_file *files;
	size_t file_count;
	struct strv packages; /* names, perhaps with =VERSION; checked */
	struct strv run;      /* each for /bin/sh -c, in this order */
	struct image_wish wish;
};

/* Reads it; every error goes to *errors with its position. -EINVAL: see there. The caller
 * clears. */
must_check int recipe_read(const char *name, const uint8_t *bytes, size_t n, struct recipe *ret,
			   struct policy_errors *errors);
void recipe_clear(struct recipe *r);

#endif
