/* Processes that clients start: they outlive the request, and any client may attach to them. */
#ifndef WARD_ENVD_PROCESS_H
#define WARD_ENVD_PROCESS_H

#include <pthread.h>
#include <sys/types.h>

#include "envd/call.h"

#define PROCESS_KEPT_MS 60000 /* how long the end of one can be asked for */

struct subscriber {
	struct stream *stream; /* held */
	unsigned keepalive_s;
	bool bounds; /* its deadline is the process's, and how it ends is told accordingly */
};

struct process {
	struct process *next;
	pthread_mutex_t lock; /* of all but the subscribers */
	pthread_mutex_t
		listen_lock; /* of the subscribers; taken before lock, held while they read */
	unsigned count;      /* under the list's lock */
	pid_t pid;
	int pid_fd;
	int stdin_fd; /* -1: none, or closed */
	int pty_fd;
	int out_fds[2]; /* what it writes: 1 and 2; -1: has ended */
	bool pty, reaped, killed, late, ended;
	int status; /* of wait, once it was reaped */
	uint64_t ended_ms, deadline_ms;
	char *tag;      /* NULL: none */
	char *config;   /* JSON */
	struct buf end; /* the event of its end */
	struct subscriber *subscribers;
	size_t subscriber_count;
};

/* What a client wants started. */
struct process_spec {
	struct strv argv, env;
	struct buf cwd, tag;
	unsigned rows, columns; /* 0: pipes */
	bool has_cwd, has_tag, pty, no_stdin;
};

void process_spec_free(struct process_spec *s);
/* Starts it: fills pid and descriptors. -1: the call's error is set. */
must_check int process_spawn(struct call *c, const struct process_spec *s, struct process *p);
/* Reads what it writes and passes that to all subscribers until it has ended. */
void process_pump(struct process *p);
/* Attaches a stream: the event of its start is sent, and if it has ended, the one of its end. */
void process_subscribe(struct process *p, struct stream *s, unsigned keepalive_s, bool bounds);

#endif
