/* A box and its commands, as libward's own files see them. */
#ifndef WARD_API_BOX_H
#define WARD_API_BOX_H

#include <pthread.h>

#include "api/api.h"
#include "control/client.h"

/* The host program's ends of a command's 0-2; -1: handed over, or none. */
struct api_streams {
	int fds[3];
	int terminal_fd; /* of a terminal, kept for its size; -1: pipes */
};
#define NO_STREAMS ((struct api_streams){ .fds = { -1, -1, -1 }, .terminal_fd = -1 })

struct ward_box {
	pthread_mutex_t lock; /* of what changes: everything below id and name */
	char id[24];
	char name[BOX_NAME_MAX + 1];
	/* to ward-box, whose life it is; -1: the box is detached, or was opened */
	int sock_fd;
	/* of such a one: a connection that ends with the box; fd -1: not asked for yet */
	struct client waiter;
	struct api_streams streams;
	uint64_t decided; /* the last question that ward_decide() has handed over */
	bool ended;
	int code;             /* when ended */
	char *report;         /* when ended and sock_fd >= 0; owned */
	struct ward_err lost; /* when its supervisor was killed */
};

struct ward_process {
	pthread_mutex_t lock;
	struct client client; /* the command's life */
	struct api_streams streams;
	bool ended;
	int code;
};

/* A new handle; NULL when out of memory. */
must_check struct ward_box *box_new(const char *id, const char *name);
/* Connects to the box; one that has ended is known to have. */
must_check int box_reach(struct ward_box *b, struct client *ret_client, struct ward_err *e);
/* Takes the descriptors that came with a started command: three pipes, or one terminal. */
must_check int streams_take(struct api_streams *s, bool terminal, const int *fds, size_t count,
			    struct ward_err *e);
void streams_close(struct api_streams *s);
/* Hands a stream over. */
must_check int streams_hand(struct api_streams *s, int which, struct ward_err *e);
must_check int streams_resize(const struct api_streams *s, unsigned rows, unsigned columns,
			      struct ward_err *e);
/* What of timeout_ms (-1: all the time) is left at now_ms when it began at began_ms, for poll(). */
int api_time_left(int timeout_ms, uint64_t began_ms, uint64_t now_ms);
/* Waits until fd is readable. 1: it is; 0: the time is up. */
must_check int api_poll(int fd, int timeout_ms, struct ward_err *e);

#endif
