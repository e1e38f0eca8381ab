/* The body of an upload, as the client meant it: without its content-encoding. */
#ifndef WARD_ENVD_BODY_H
#define WARD_ENVD_BODY_H

#include <zlib.h>

#include "envd/call.h"

struct body {
	struct stream *stream; /* borrowed */
	bool gzip, over;
	z_stream z;
	uint8_t in[16384];
};

/* Begins to read the body of the call. False: its content-encoding is none that is known here. */
must_check bool body_begin(struct body *b, struct call *c);
/* Waits for bytes. 0: the end; -EPIPE: the stream was reset; -EBADMSG: it is no gzip, or not the
 * whole of it. */
must_check ssize_t body_read(struct body *b, void *bytes, size_t n);
void body_end(struct body *b);

#endif
