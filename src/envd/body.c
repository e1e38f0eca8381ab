/*
 * Bodies of uploads (body.h). In: the bytes that a client sent, as they are or packed by gzip. Out:
 * the bytes that it meant. What a small body unpacks to is bounded by the sandbox's own limits: it
 * is written into its files as it comes, and never held. Run by ward-envd.
 */
#include "envd/body.h"

#include <errno.h>
#include <strings.h>

bool body_begin(struct body *b, struct call *c)
{
	const char *coding = call_field(c, "content-encoding");

	b->stream = c->stream;
	b->over = false;
	b->gzip = coding && strcasecmp(coding, "gzip") == 0;
	b->z = (z_stream){ 0 };
	if (coding && *coding && !b->gzip && strcasecmp(coding, "identity") != 0)
		return false;
	return !b->gzip || inflateInit2(&b->z, 16 + MAX_WBITS) == Z_OK; /* gzip alone */
}

/* Fills z's input. 1: there is some; 0: the end. */
static int fill(struct body *b)
{
	ssize_t n;

	if (b->z.avail_in)
		return 1;
	n = stream_read(b->stream, b->in, sizeof(b->in));
	if (n < 0)
		return -EPIPE;
	b->z.next_in = b->in;
	b->z.avail_in = (uInt)n;
	return n > 0;
}

ssize_t body_read(struct body *b, void *bytes, size_t n)
{
	if (!b->gzip) {
		ssize_t got = stream_read(b->stream, bytes, n);

		return got < 0 ? -EPIPE : got;
	}
	b->z.next_out = bytes;
	b->z.avail_out = (uInt)n;
	while (b->z.avail_out == n) {
		int r = fill(b);

		if (r < 0)
			return r;
		if (r == 0) /* within a member, or before the first one */
			return b->over ? 0 : -EBADMSG;
		if (b->over && inflateReset(&b->z) != Z_OK) /* members may follow each other */
			return -EBADMSG;
		b->over = false;
		r = inflate(&b->z, Z_NO_FLUSH);
		if (r == Z_STREAM_END)
			b->over = true;
		else if (r != Z_OK)
			return -EBADMSG;
	}
	return (ssize_t)(n - b->z.avail_out);
}

void body_end(struct body *b)
{
	if (b->gzip)
		inflateEnd(&b->z);
}
