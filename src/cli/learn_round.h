/* One run of ward learn. */
#ifndef WARD_CLI_LEARN_ROUND_H
#define WARD_CLI_LEARN_ROUND_H

#include <signal.h>

#include "cli/learn.h"
#include "cli/run.h"

struct learn_round {
	const char *policy_file;
	const struct learn_policy *learned; /* what is added to it */
	bool as_written; /* nothing is: the file alone, with its changes kept aside */
	bool read_only;  /* the file says that nothing is written */
	bool open;       /* every public name may be reached */
	bool own_file;   /* the policy file is learn's own: it goes with it */
	int expect;      /* the exit status of a round in which all was said to the driver */
};

/* INT, QUIT, TERM and HUP end ward learn, but not before the round has. */
struct learn_stop {
	int fd;       /* of the signals, which are blocked */
	sigset_t old; /* the mask before */
	int signal;   /* that has come; 0: none */
};

/* Speaks to the command of a round, which is a server (ward learn --mcp: src/cli/mcp/learn.c). */
struct learn_driver {
	void *state;
	/* Makes the command's standard input and output (the caller closes them) and a descriptor
	 * that says when all was said. */
	int (*begin)(void *state, int ret_fds[2], int *ret_wait_fd, struct ward_err *e);
	/* All was said, or the command has ended: gives up the streams. Whether it went well. */
	bool (*end)(void *state);
	/* The policy suffices: what the command said is accepted with it. */
	int (*accept)(void *state, const struct options *o, const struct buf *policy,
		      struct ward_err *e);
};

must_check int learn_stop_begin(struct learn_stop *s, struct ward_err *e);
/* Whether one has come. */
bool learn_stop_asked(struct learn_stop *s);
void learn_stop_end(struct learn_stop *s);

/* Runs the command of the user's options; what it came to is in *ret. A command that was not
 * started is an error. */
must_check int learn_run(const struct learn_round *r, const struct options *user,
			 struct learn_stop *stop, struct run_outcome *ret, struct ward_err *e);
/* Drops the changes of a run. */
void learn_forget(const char *run);

#endif
