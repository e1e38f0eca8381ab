/* Starting the program `ward` as ward-box, from any thread of any host program. */
#ifndef WARD_API_LAUNCH_H
#define WARD_API_LAUNCH_H

#include "api/request.h"

/* Starts it and hands it the request. *ret_fd is the socket that its answers come over; the caller
 * owns it. program: NULL: it is looked for. keep_stdio: it gets 0-2 of this process instead of
 * /dev/null. */
must_check int launch(const char *program, uint32_t flags, const struct strv *words,
		      bool keep_stdio, int *ret_fd, struct ward_err *e);
/* Waits for the answer and its descriptors (at most max_fds; the caller owns them, *ret_fds is
 * their count). A refusal is an error, and so is any other answer than the one expected. */
must_check int launch_answer(int sock_fd, enum detach_kind expected,
			     struct detach_answer *ret_answer, int *fds, size_t max_fds,
			     size_t *ret_fds, struct ward_err *e);

/* The path of the program: the one given, ../bin/ward beside this code, the place it was built for,
 * PATH. The caller frees *ret_path. */
must_check int launch_find(const char *program, char **ret_path, struct ward_err *e);

#endif
