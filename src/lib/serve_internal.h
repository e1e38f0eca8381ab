/* Shared by the control server's own files. */
#ifndef WARD_LIB_SERVE_INTERNAL_H
#define WARD_LIB_SERVE_INTERNAL_H

#include "lib/control.h"
#include "lib/log.h"
#include "lib/serve.h"

struct serve_client {
	int fd;
	uint32_t tag;		/* of the command that it started and that runs; 0: none */
	uint64_t deadline_ms;	/* when silence ends the connection */
	bool waits;		/* for the end of the sandbox */
	bool gone;		/* to be dropped */
};

struct serve {
	struct box *box;		/* borrowed */
	struct box_entry *entry;	/* borrowed */
	int listen_fd;
	int output_fd;			/* what the command writes; -1: it is closed */
	struct log log;
	struct serve_client clients[SERVE_CLIENTS_MAX];
	size_t client_count;
	uint32_t last_tag;
};

/* Sends an answer with descriptors, which stay the caller's. A client that does not take it is marked as gone. */
bool serve_send(struct serve_client *c, const void *bytes, size_t n, const int *fds, size_t fd_count);
void serve_answer(struct serve_client *c, enum control_op op, int32_t a, int32_t b);
void serve_refuse(struct serve_client *c, const struct ward_err *e);
/* Starts a command of a request that was checked; the request's bytes are written over. */
void serve_exec(struct serve *s, struct serve_client *c, char *bytes, size_t n);

#endif
