/* An engine starts a plan and hands back what the supervisor watches. */
#ifndef WARD_LIB_ENGINE_H
#define WARD_LIB_ENGINE_H

#include "lib/result.h"

/* A sandbox that runs. The supervisor owns every descriptor. */
struct running {
	pid_t init_pid;
	int pid_fd;		/* of ward-init (or of the command on the Landlock rung) */
	int control_fd;		/* SOCK_SEQPACKET to ward-init: guest/protocol.h; closing it ends the sandbox */
	int notify_fd;		/* seccomp listener, -1: none */
	int proc_fd;		/* the sandbox's /proc, -1: none */
	int tmpfs_fds[8];	/* /tmp, /home/agent, /dev/shm, /run */
	size_t tmpfs_count;
	int mount_ns_fd, user_ns_fd;	/* for mounting again what the host replaced, -1: none */
	struct cgroup *cgroup;	/* NULL: none */
};

struct stdio_plan;

struct engine {
	const char *name;
	/* Starts the sandbox. stdio[3] are the descriptors that become 0-2 inside, borrowed. Fills the layers of *r. */
	int (*start)(const struct plan *p, const int stdio_fds[3], struct running *ret_running,
		     struct result *r, struct ward_err *e);
	/* Mounts the steps of root that the host's change undid (indices into its steps) again. */
	int (*remount)(const struct plan *p, struct running *run, const struct guard_root *g,
		       const size_t *steps, size_t count, struct ward_err *e);
	/* "name", "help" pairs, NULL-terminated, in the order in which they happen. */
	const char *const *(*stages)(const struct plan *p);
};

/* Runs the plan to its end: starts it, relays, watches limits, signals and the deadline, sweeps. The result is filled
 * whatever happens; a refusal is result.refused. */
void box_run(const struct engine *engine, const struct plan *p, struct result *r);

#endif
