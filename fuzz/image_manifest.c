/* Fuzzes the JSON of images: index, manifest, configuration and docker's list; the first byte
 * chooses. */
#include <assert.h>
#include <string.h>

#include "image/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_digest(const char *hex)
{
	assert(strlen(hex) == DIGEST_HEX - 1 && strspn(hex, "0123456789abcdef") == DIGEST_HEX - 1);
}

static void read_index(const uint8_t *data, size_t n, struct ward_err *e)
{
	struct descriptor d;
	char *name = NULL;
	bool nested;

	if (manifest_read_index(data, n, NULL, &d, &nested, &name, e) == 0)
		check_digest(d.digest);
	free(name);
}

static void read_manifest(const uint8_t *data, size_t n, struct ward_err *e)
{
	struct layers l = { 0 };

	if (manifest_read(data, n, &l, e) == 0) {
		check_digest(l.config.digest);
		assert(l.len <= MANIFEST_LAYERS_MAX);
		for (size_t i = 0; i < l.len; i++)
			check_digest(l.items[i].digest);
	}
	free(l.items);
}

static void read_config(const uint8_t *data, size_t n, struct ward_err *e)
{
	struct image_wish w = { 0 };
	auto_strv ids = { 0 };

	if (manifest_read_config(data, n, &w, &ids, e) == 0)
		for (size_t i = 0; i < w.env.len; i++)
			assert(strchr(w.env.items[i], '=') > w.env.items[i]);
	image_wish_clear(&w);
}

static void read_docker(const uint8_t *data, size_t n, struct ward_err *e)
{
	struct docker_image d = { 0 };

	if (manifest_read_docker(data, n, NULL, &d, e) == 0)
		assert(d.config && d.layers.len <= MANIFEST_LAYERS_MAX);
	docker_image_clear(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static void (*const readers[])(const uint8_t *, size_t,
				       struct ward_err *) = { read_index, read_manifest,
							      read_config, read_docker };
	struct ward_err e = { 0 };

	if (n)
		readers[data[0] % 4](data + 1, n - 1, &e);
	return 0;
}
