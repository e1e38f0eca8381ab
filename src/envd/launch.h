/* Processes in sessions of their own, and threads. */
#ifndef WARD_ENVD_LAUNCH_H
#define WARD_ENVD_LAUNCH_H

#include <spawn.h>

#include "base/buf.h"

/* Starts a program, looked for in PATH if it has no slash, with no signal blocked or ignored. 0 or
 * -errno. */
must_check int launch(const char *program, posix_spawn_file_actions_t *files,
		      const struct strv *argv, char *const *env, pid_t *ret_pid);
/* A detached thread, with a small stack. 0 or -errno. */
must_check int launch_thread(void *(*body)(void *), void *argument);

#endif
