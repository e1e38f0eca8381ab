/* The guardian: a process that finishes the run when ward itself is killed. Made off the start path. */
#ifndef WARD_LIB_GUARDIAN_H
#define WARD_LIB_GUARDIAN_H

#include <sys/types.h>

#include "base/own.h"

struct guardian {
	pid_t pid;	/* 0: none */
	int pipe_fd;	/* -1: none; its end without a word means that the supervisor was killed */
};

/* Starts it: ward-init in its second role, which becomes `ward recover` when needed. pid_fd is the sandbox's. */
must_check int guardian_start(struct guardian *g, int pid_fd);
/* All is well: ends and reaps it. */
void guardian_dismiss(struct guardian *g);

#endif
