/* A socket of the supervisor's that is mounted into the sandbox: what programs inside tell ward. */
#ifndef WARD_RUN_INSIDE_SOCKET_H
#define WARD_RUN_INSIDE_SOCKET_H

#include "model/plan.h"

struct inside_socket {
	int parent_fd, dir_fd; /* of the runtime directory; where the socket is */
	char dir[40];
	int listen_fd; /* SOCK_SEQPACKET, does not block */
};

#define NO_INSIDE_SOCKET                                                                           \
	{                                                                                          \
		.parent_fd = -1, .dir_fd = -1, .listen_fd = -1                                     \
	}

/* Makes a socket in a directory of its own, "KIND-NUMBER" in the runtime directory, and fills the
 * plan's mount at `target` with it. field: of the policy, for errors. inside_socket_end() is for it
 * in any case. */
must_check int inside_socket_make(struct plan *p, const char *kind, const char *target,
				  const char *field, struct inside_socket *ret, struct ward_err *e);
/* The sandbox has it: the file is removed outside, so that a supervisor that is killed leaves none.
 * s NULL: none. */
void inside_socket_mounted(struct inside_socket *s);
void inside_socket_end(struct inside_socket *s);

#endif
