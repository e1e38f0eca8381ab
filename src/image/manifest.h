/* The JSON of images: what an index, a manifest, a configuration or docker's list says. Pure
 * functions over untrusted bytes. */
#ifndef WARD_IMAGE_MANIFEST_H
#define WARD_IMAGE_MANIFEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define MANIFEST_BYTES_MAX (1024 * 1024)
#define MANIFEST_LAYERS_MAX 512
#define DIGEST_HEX 65 /* of SHA-256, with its NUL */

/* A blob, as another one names it. */
struct descriptor {
	char digest[DIGEST_HEX]; /* hexadecimal digits alone */
	uint64_t bytes;
};

/* What an image says about how it wants to be run; all of it a wish. */
struct image_wish {
	struct strv env, entrypoint, cmd;
	char *user, *workdir; /* NULL: nothing */
};

struct layers {
	struct descriptor config;
	struct descriptor *items; /* owned */
	size_t len;
};

/* One entry of docker's manifest.json. */
struct docker_image {
	char *config;             /* name in the archive */
	struct strv tags, layers; /* layers: names in the archive */
};

/* Reads "sha256:HEX". */
must_check int digest_read(const char *text, char ret_hex[DIGEST_HEX], struct ward_err *e);

/* The manifest of an index (index.json, or a nested one) for this machine and, where wanted is not
 * NULL, of that name. *ret_nested: it is an index itself. *ret_name is the name that it has there,
 * NULL: none; the caller frees. */
must_check int manifest_read_index(const uint8_t *bytes, size_t n, const char *wanted,
				   struct descriptor *ret, bool *ret_nested, char **ret_name,
				   struct ward_err *e);
/* A manifest. The caller frees items. */
must_check int manifest_read(const uint8_t *bytes, size_t n, struct layers *ret,
			     struct ward_err *e);
/* A configuration: the wishes, and the digests of the layers before compression, one a line in
 * *diff_ids. Refuses another machine's image. */
must_check int manifest_read_config(const uint8_t *bytes, size_t n, struct image_wish *ret,
				    struct strv *diff_ids, struct ward_err *e);
/* docker's manifest.json: the image of that name (NULL: the only one). */
must_check int manifest_read_docker(const uint8_t *bytes, size_t n, const char *wanted,
				    struct docker_image *ret, struct ward_err *e);

void image_wish_clear(struct image_wish *w);
void docker_image_clear(struct docker_image *d);

#endif
