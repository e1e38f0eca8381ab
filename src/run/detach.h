/* ward-box and the process that asked for it. */
#ifndef WARD_RUN_DETACH_H
#define WARD_RUN_DETACH_H

#include "state/boxes.h"

struct serve;

/* What ward-box holds beside the run itself. */
struct detached {
	const char *name; /* of the sandbox, borrowed; NULL: none */
	/* socket to the process that asked; -1: it is gone, or has got all messages */
	int asker_fd;
	/* that process stays: its end is the sandbox's, the streams are its own, and nothing is
	 * kept */
	bool attached;
	bool started;
	/* attached: its ends of the command's streams, until it has them; -1: none */
	int outer_fds[3];
	struct box_entry entry;
	/* outlives box_run(): a client that waits for the end must find the result */
	struct serve *serve;
};
#define NO_OUTER                                                                                   \
	{                                                                                          \
		-1, -1, -1                                                                         \
	}

/* Messages to that process. */
enum detach_kind {
	DETACH_REFUSED = 1, /* nothing was started: error, and the exit code for it */
	DETACH_PLAN,        /* with a descriptor: the plan's JSON */
	/* the sandbox runs: id; attached: with its ends of 0-2, or of the terminal; code: how
	 * many */
	DETACH_READY,
	DETACH_ENDED /* attached: code; with a descriptor: the report */
};

/* "wrd1": another version of either side is refused, not misread */
#define DETACH_MAGIC 0x31647277U

struct detach_answer {
	uint32_t magic, kind;
	int32_t code;
	char id[24];
	struct ward_err error;
};

/* Tells it something; fds stay the caller's. A peer that does not read any more is not an error. */
void detach_tell(int asker_fd, enum detach_kind kind, const struct detach_answer *a, const int *fds,
		 size_t count);
/* A text as a descriptor to read it from. */
must_check int detach_text_fd(const struct buf *text, struct ward_err *e);

/* The sandbox is there: leaves the asker's terminal, directory and descriptors 0-2, which no child
 * of ours shall have either. */
void detach_leave(void);
/* The sandbox runs: tells it. */
void detach_ready(struct detached *d);
/* Nothing was started, which makes this exit code. */
void detach_refuse(struct detached *d, const struct ward_err *why, int code);
/* The run is over: keeps its result, or hands it over, then releases the waiting clients. */
must_check int detach_end(struct detached *d, const struct plan *p, const struct result *r,
			  struct ward_err *e);

#endif
