/* ward's own programs: found beside ward, never in PATH, and started away from everything that the
 * caller has open. */
#ifndef WARD_HOST_PROGRAM_H
#define WARD_HOST_PROGRAM_H

#include <limits.h>
#include <sys/types.h>

#include "base/err.h"

#define PROGRAM_FDS 8

/* The directory of the program that runs, with a slash at its end. */
must_check int program_own_dir(char ret[PATH_MAX], struct ward_err *e);

/* Where ward's programs may lie, from the directory of ward's own: relative paths, NULL behind the
 * last. */
const char *program_place(size_t i);

/* Opens one by its name (O_PATH, above the descriptors that a child gets). -ENOENT says how to get
 * it. */
must_check int program_open(const char *name, struct ward_err *e);

/* The real path of one, or of ward itself ("ward") for a program of its own. The caller frees. */
must_check int program_path(const char *name, char **ret_path, struct ward_err *e);

/* The path of a program of the system's own directories, whatever stands in PATH: what is started
 * outside of every sandbox. -ENOENT: it is in none. */
must_check int program_find_system(const char *name, char ret[PATH_MAX], struct ward_err *e);

/* Becomes the program that the first word names. Comes back only if it cannot. */
must_check int program_become(char *const *argv, struct ward_err *e);

struct program {
	int fd; /* borrowed */
	char *const *argv, *const *envp;
	int fds[PROGRAM_FDS]; /* become 3, 4, ...; borrowed; 0-2 are /dev/null */
	size_t fd_count;
	int out_fd;      /* becomes 1 and 2 instead; borrowed; 0: none */
	const char *dir; /* it starts there; NULL: where ward is */
};

/* Starts it in a session of its own, no signal blocked. */
must_check int program_start(const struct program *p, pid_t *ret_pid, struct ward_err *e);

/* The error for one that ended with this status of waitpid(). Returns -EIO. */
int program_failed(const char *name, int status, struct ward_err *e);

#endif
