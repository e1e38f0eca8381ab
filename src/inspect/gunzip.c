/* Inflating bodies (gunzip.h). In: bytes from inside. Out: what they say. A second stream behind
 * the first is refused: not every server reads it. Runs in front. */
#include "inspect/gunzip.h"

#include <stdlib.h>
#include <zlib.h>

#define BLOCK 16384

struct gunzip {
	z_stream z;
	bool done;
};

struct gunzip *gunzip_new(void)
{
	struct gunzip *g = calloc(1, sizeof(*g));

	if (g && inflateInit2(&g->z, 15 + 16) != Z_OK) {
		free(g);
		return NULL;
	}
	return g;
}

void gunzip_free(struct gunzip *g)
{
	if (g)
		inflateEnd(&g->z);
	free(g);
}

bool gunzip_take(struct gunzip *g, const uint8_t *bytes, size_t n, size_t most, struct buf *out)
{
	uint8_t block[BLOCK];

	g->z.next_in = (Bytef *)(uintptr_t)bytes;
	g->z.avail_in = (unsigned)n;
	while (!g->done && (g->z.avail_in || !g->z.avail_out)) {
		size_t made;
		int r;

		g->z.next_out = block;
		g->z.avail_out = sizeof(block);
		r = inflate(&g->z, Z_NO_FLUSH);
		made = sizeof(block) - g->z.avail_out;
		if ((r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR) || made > most - out->len)
			return false;
		buf_add(out, block, made);
		g->done = r == Z_STREAM_END;
		if (!made && r == Z_BUF_ERROR)
			break;
	}
	return !out->failed && !g->z.avail_in;
}

bool gunzip_is_done(const struct gunzip *g)
{
	return g->done;
}
