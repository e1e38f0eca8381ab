/* Where ward keeps its own files. */
#ifndef WARD_HOST_STATE_DIR_H
#define WARD_HOST_STATE_DIR_H

#include "base/buf.h"
#include "base/err.h"

#define STATE_DIR_MEMORY "/dev/shm/ward-" /* and the uid */
#define STATE_DIR_MEMORY_BYTES 64

/* The state directory, whether it is there or not: WARD_STATE_DIR, /var/lib/ward as root,
 * $XDG_STATE_HOME/ward or ~/.local/state/ward. The caller frees. */
must_check int state_dir_path(char **ret_path, struct ward_err *e);
/* The directory in memory that reviews lie in where the kernel takes no overlay in the state
 * directory. */
void state_dir_memory(char ret_path[STATE_DIR_MEMORY_BYTES]);

#endif
