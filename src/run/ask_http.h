/* One connection to http://ward.internal/: a request, and its answer. */
#ifndef WARD_RUN_ASK_HTTP_H
#define WARD_RUN_ASK_HTTP_H

#include "approve/proposal.h"
#include "base/buf.h"

struct ask_http;

/* NULL: out of memory. ask_http_free(NULL) is fine. */
must_check struct ask_http *ask_http_create(void);
void ask_http_free(struct ask_http *h);
/* Reads what is there, without waiting. 1: *ret is the request; 0: more is needed; -1: it is
 * refused with *ret_status and *ret_why; -EPIPE: the client is gone. */
must_check int ask_http_read(struct ask_http *h, int fd, struct proposal *ret, unsigned *ret_status,
			     const char **ret_why);
/* Whether the client of a request is still there. */
bool ask_http_waits(int fd);
/* The answer, and the end. One that does not read gets less. */
void ask_http_answer(int fd, unsigned status, const char *text);

#endif
