/* What libward asks the program `ward` for, as bytes: encoded in the host program, read by ward-box. */
#ifndef WARD_API_REQUEST_H
#define WARD_API_REQUEST_H

#include "base/buf.h"

#define REQUEST_MAGIC 0x31647277U	/* "wrd1": another version of either side is refused, not misread */
#define REQUEST_BYTES_MAX (4U << 20)
#define REQUEST_FD 3			/* where ward-box finds its socket */

enum request_flags {
	REQUEST_PLAN = 1,	/* compile the plan, answer with it and end */
	REQUEST_WIDEN = 2,
};
#define REQUEST_FLAGS (REQUEST_PLAN | REQUEST_WIDEN)

/* Texts, each at most once; "" is none. */
enum request_text { REQUEST_POLICY, REQUEST_WORKSPACE, REQUEST_DIRECTORY, REQUEST_TEXTS };

/* One field of the policy. */
struct request_option {
	const char *field, *value, *origin;
	bool append;
};

/* A request. The texts are borrowed: from the spec, or from the bytes that were read. */
struct request {
	uint32_t flags;
	const char *texts[REQUEST_TEXTS];	/* NULL: none */
	struct request_option *options;		/* the array is owned */
	size_t option_count;
	char **argv;				/* NULL-terminated; the array is owned, the words are not */
	size_t arg_count;
};

/* Appends the request as bytes. */
must_check int request_write(const struct request *r, struct buf *out, struct ward_err *e);
/* Reads n bytes, which must outlive *ret_request; -EINVAL for whatever request_write() would not write. The caller frees with
 * request_clear(). */
must_check int request_read(char *bytes, size_t n, struct request *ret_request, struct ward_err *e);
void request_clear(struct request *r);

/* What goes over the socket with the request (a memfd) and comes back. */
enum answer_kind { ANSWER_REFUSED = 1, ANSWER_PLAN };
struct request_call {
	uint32_t magic, bytes;
};
struct request_answer {
	uint32_t magic, kind;
	struct ward_err error;	/* REFUSED */
};

#endif
