/* What libward asks the program `ward` for, as bytes: written in the host program, read by
 * ward-box. */
#ifndef WARD_API_REQUEST_H
#define WARD_API_REQUEST_H

#include "run/detach.h"

#define REQUEST_BYTES_MAX (4U << 20)
#define REQUEST_FD 3 /* where ward-box finds its socket */

enum request_flags {
	/* compile the plan, answer with it and end; without it: start the sandbox */
	REQUEST_PLAN = 1,
	REQUEST_DETACHED = 2, /* the sandbox outlives the process that asks */
};
#define REQUEST_FLAGS (REQUEST_PLAN | REQUEST_DETACHED)

struct request {
	uint32_t flags;
	/* options and command, as they stand behind `ward run` or `ward plan`; NULL-terminated. The
	 * array is owned, the words are borrowed from the bytes */
	char **words;
	size_t count;
};

/* Appends the request as bytes. */
must_check int request_write(uint32_t flags, const struct strv *words, struct buf *out,
			     struct ward_err *e);
/* Reads n bytes, which must outlive *ret_request; -EINVAL for whatever request_write() would not
 * write. The caller frees with request_clear(). */
must_check int request_read(char *bytes, size_t n, struct request *ret_request, struct ward_err *e);
void request_clear(struct request *r);

/* What goes over the socket, with the request as a descriptor. */
struct request_call {
	uint32_t magic, bytes;
};

#endif
