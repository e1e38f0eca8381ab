/*
 * Compressed bodies. In: gzip or deflate from inside. Out: whether a secret is in it. Bounded in
 * memory (one window, one block, what is held back of a text) and in work: what inflates to more
 * than a thousand times its size, as zlib's format hardly can by accident, is refused. Runs in
 * ward-keys; fuzzed (fuzz/unzip.c).
 */
#include "keys/unzip.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#define BLOCK 16384
#define HELD_MAX 16384 /* longest text, with room: see SECRET_MOST */
#define RATIO_MAX 1000
#define GRACE_BYTES (1024 * 1024)

struct unzip {
	z_stream z;
	bool ended;
	uint64_t in, out;
	size_t held;
	uint8_t bytes[HELD_MAX + BLOCK];
};

enum unzip_kind unzip_kind(const char *value, size_t n)
{
	static const struct {
		const char *name;
		enum unzip_kind kind;
	} kinds[] = { { "identity", UNZIP_NONE },   { "", UNZIP_NONE },
		      { "gzip", UNZIP_GZIP },       { "x-gzip", UNZIP_GZIP },
		      { "deflate", UNZIP_DEFLATE }, { "aws-chunked", UNZIP_NONE } };

	while (n && (*value == ' ' || *value == '\t'))
		value++, n--;
	while (n && (value[n - 1] == ' ' || value[n - 1] == '\t'))
		n--;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (n == strlen(kinds[i].name) && strncasecmp(value, kinds[i].name, n) == 0)
			return kinds[i].kind;
	return UNZIP_UNKNOWN;
}

struct unzip *unzip_new(enum unzip_kind kind)
{
	struct unzip *u = calloc(1, sizeof(*u));

	/* 32: gzip and zlib, whichever it is */
	if (u && inflateInit2(&u->z, kind == UNZIP_GZIP ? 15 + 16 : 15 + 32) != Z_OK) {
		free(u);
		return NULL;
	}
	return u;
}

void unzip_free(struct unzip *u)
{
	if (!u)
		return;
	inflateEnd(&u->z);
	explicit_bzero(u->bytes, sizeof(u->bytes));
	free(u);
}

bool unzip_look(struct unzip *u, const struct scan *s, const uint8_t *bytes, size_t n,
		struct scan_for *f)
{
	u->z.next_in = (Bytef *)(uintptr_t)bytes;
	u->z.avail_in = (unsigned)n;
	u->in += n;
	while (u->z.avail_in || !u->z.avail_out) {
		size_t made, clean;
		int r;

		if (u->ended && u->z.avail_in && inflateReset(&u->z) != Z_OK)
			return false;
		u->ended = false;
		u->z.next_out = u->bytes + u->held;
		u->z.avail_out = (unsigned)(sizeof(u->bytes) - u->held);
		r = inflate(&u->z, Z_NO_FLUSH);
		made = sizeof(u->bytes) - u->held - u->z.avail_out;
		u->out += made;
		if ((r != Z_OK && r != Z_STREAM_END && r != Z_BUF_ERROR) ||
		    u->out > GRACE_BYTES + RATIO_MAX * u->in)
			return false;
		u->ended = r == Z_STREAM_END;
		/* never final: another member may go on with the text */
		clean = scan_run(s, u->bytes, u->held + made, false, f);
		u->held = u->held + made - clean;
		if (u->held > HELD_MAX)
			return false;
		memmove(u->bytes, u->bytes + clean, u->held);
		if (!made && r != Z_STREAM_END)
			break;
	}
	return true;
}
