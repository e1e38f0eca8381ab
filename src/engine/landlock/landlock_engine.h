/* The engine of the Landlock level: for hosts without user namespaces. */
#ifndef WARD_ENGINE_LANDLOCK_ENGINE_H
#define WARD_ENGINE_LANDLOCK_ENGINE_H

#include <linux/filter.h>

#include "engine/native/landlock.h"
#include "engine/native/seccomp.h"
#include "model/running.h"

extern const struct engine engine_landlock;

#define LANDLOCK_STACK_BYTES (32 * 1024)
#define LANDLOCK_PATHS_MAX 256
#define LANDLOCK_CGROUPS_MAX 4

/* What the supervisor prepares and the child uses; as in the native engine the child shares the
 * memory and has no libc. */
struct level_child {
	const struct plan *plan;
	int control_fd, supervisor_fd; /* the child's end, and the one that it must not keep */
	int image_fd;                  /* ward-init */
	int stdio_fds[3];
	uint64_t signal_mask;
	char **argv, **envp;
	int cgroup_fds[LANDLOCK_CGROUPS_MAX];
	size_t cgroup_count;
	struct limits_rlimit rlimits[LIMITS_RLIMITS];
	size_t rlimit_count;
	struct landlock_path paths[LANDLOCK_PATHS_MAX];
	size_t path_count;
	struct sock_filter filter[SECCOMP_PROGRAM_MAX];
	size_t filter_len;

	/* written by the child */
	int listener_fd;
	const char *failed_stage;
	long failed_error;

	/* the supervisor's */
	bool released;
	char tmp_path[64]; /* "": none was made */
	char stack[LANDLOCK_STACK_BYTES] __attribute__((aligned(16)));
};

struct level_stage {
	const char *name;
	long (*run)(struct level_child *c); /* NULL: done by the supervisor */
	const char *help;
};

/* The order of everything, and its length. */
extern const struct level_stage level_stages[];
extern const size_t level_stage_count;

/* The child's whole life up to exec; argument is its struct level_child. */
int level_child_main(void *argument);

#endif
