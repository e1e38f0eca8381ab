/* The guardian: a process that finishes the run when ward itself is killed. Made off the start
 * path. */
#ifndef WARD_RUN_GUARDIAN_H
#define WARD_RUN_GUARDIAN_H

#include "host/sidecar.h"

/* Starts it: ward-init in its second role, which becomes `ward recover` when needed. pid_fd is the
 * sandbox's. It ends with sidecar_dismiss(). */
must_check int guardian_start(struct sidecar *g, int pid_fd);

#endif
