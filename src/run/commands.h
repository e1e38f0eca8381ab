/* Guarded programs of a run (process.commands with ask or words): what is made before the sandbox
 * starts. Answering stand-ins: box_commands.c. */
#ifndef WARD_RUN_COMMANDS_H
#define WARD_RUN_COMMANDS_H

#include "run/inside_socket.h"

struct commands {
	struct inside_socket socket;
	int *file_fds; /* of plan->commands->guarded, one each */
	size_t count;
};

/* Opens the programs' files, and makes the socket that stand-ins connect to, for a plan that will
 * be started. commands_end() is for it in any case. */
must_check int commands_start(struct plan *p, struct ward_err *e);
/* What the run no longer needs once the sandbox is built. */
void commands_mounted(const struct plan *p);
void commands_end(struct plan *p);

#endif
