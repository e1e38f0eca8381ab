/* Leaving a sandbox behind: the process that asks, and ward-box, which stays. */
#ifndef WARD_LIB_DETACH_H
#define WARD_LIB_DETACH_H

#include "lib/boxes.h"

struct serve;

/* What ward-box holds beside the run itself. */
struct detached {
	const char *name;	/* of the sandbox, borrowed; NULL: none */
	int ready_fd;		/* to the process that waits for word; -1: it has it */
	bool started;
	struct box_entry entry;
	struct serve *serve;	/* outlives box_run(): who waits for the end shall find the result */
};

/* What that process learns: started, or why not. */
struct detach_answer {
	bool ready;
	char id[24];
	struct ward_err error;
};

/* Forks. In the caller: 1 when *ret_answer is there, or -errno. In the child, which becomes ward-box (a session of its own,
 * none of the caller's descriptors but 0-2): 0; it must call detach_ready() or detach_refuse(). */
must_check int detach_fork(struct detached *d, struct detach_answer *ret_answer, struct ward_err *e);
/* The sandbox runs: tells the caller and leaves its terminal, directory and descriptors 0-2. */
void detach_ready(struct detached *d);
/* Nothing was started. */
void detach_refuse(struct detached *d, const struct ward_err *why);
/* The run is over: keeps its result, then lets go of those who wait for it. */
must_check int detach_end(struct detached *d, const struct plan *p, const struct result *r, struct ward_err *e);

#endif
