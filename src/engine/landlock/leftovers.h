/* Processes that a run on the Landlock level could leave behind, ended by hand. */
#ifndef WARD_ENGINE_LANDLOCK_LEFTOVERS_H
#define WARD_ENGINE_LANDLOCK_LEFTOVERS_H

#include <sys/types.h>

#include "base/own.h"

/* Kills and reaps the children of this process that carry more filters than it does itself, and in
 * turn their children, which become ours (the process must be a subreaper); not init_pid, which the
 * caller waits for. */
void leftovers_kill(pid_t init_pid);

#endif
