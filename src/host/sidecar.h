/* A process of ward's own image that sits beside the caller: the guardian of a run, the keeper of a
 * terminal. */
#ifndef WARD_HOST_SIDECAR_H
#define WARD_HOST_SIDECAR_H

#include <sys/types.h>

#include "base/own.h"

#define SIDECAR_FDS 3

struct sidecar {
	pid_t pid;  /* 0: none */
	int end_fd; /* -1: none; its end without a word means that the caller was killed */
};

/* Starts ward-init in the role that argv[0] names, in a session of its own. Its descriptor 3 is one
 * end of a socket pair whose other end is a->end_fd; fds (borrowed, at most SIDECAR_FDS - 1) become
 * 4 and up. Returns 0 or -errno. */
must_check int sidecar_start(struct sidecar *a, const char *const *argv, const int *fds,
			     size_t count);
/* All is well: ends and reaps it. */
void sidecar_dismiss(struct sidecar *a);

#endif
