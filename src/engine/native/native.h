/* The native engine: namespaces, mounts, Landlock and seccomp, each layer in its own file, the order in run.c. */
#ifndef WARD_ENGINE_NATIVE_NATIVE_H
#define WARD_ENGINE_NATIVE_NATIVE_H

#include <linux/filter.h>

#include "engine/native/landlock.h"
#include "lib/engine.h"

extern const struct engine engine_native;

#define NATIVE_STACK_BYTES (64 * 1024)
#define NATIVE_FILTER_MAX 1024
#define NATIVE_PATHS_MAX 64

/*
 * What the supervisor prepares and the child uses. The child shares the supervisor's memory until it executes
 * ward-init, while the supervisor goes on: it reads this, writes the last part, and calls nothing of libc.
 */
struct native_child {
	const struct plan *plan;
	int control_fd;			/* the child's end */
	int supervisor_fd;		/* the other end, which the child must not keep */
	uint64_t signal_mask;		/* the caller's, for the command */
	int stdio_fds[3];
	char **argv;			/* "ward-init", CMD... */
	char **envp;
	const char *base;		/* the new root is built over it; no source lies beneath */
	const char *root_options;	/* tmpfs options of the root */
	char **tmpfs_options;		/* of each mount, NULL: no tmpfs */
	const char *shm_options;
	const char *uid_map, *gid_map;	/* what the child writes itself; NULL: the supervisor does */
	int cgroup_fds[4];		/* v1: the child writes itself into them */
	size_t cgroup_count;
	const struct limits_rlimit *rlimits;
	size_t rlimit_count;
	struct landlock_path paths[NATIVE_PATHS_MAX];
	size_t path_count;
	struct sock_filter filter[NATIVE_FILTER_MAX];
	size_t filter_len;

	/* written by the child and its helper */
	long net_pid;
	int net_fd;			/* the network namespace, or -errno */
	uint32_t net_done;		/* a futex */
	int base_fd;
	int listener_fd;		/* seccomp's, -1: none */
	int passed_fds[8];		/* for the supervisor: proc, then under the watch the tmpfs mounts */
	size_t passed_count;
	enum layer_state layers[LAYERS];
	const char *layer_notes[LAYERS];
	const char *failed_stage;
	const char *failed_path;	/* NULL: none */
	long failed_error;		/* negative errno */

	char net_stack[4096] __attribute__((aligned(16)));
	char stack[NATIVE_STACK_BYTES] __attribute__((aligned(16)));
};

/* One step inside the child: 0 or -errno; what it was about in failed_path. */
long native_join_cgroup(struct native_child *c);
long native_maps(struct native_child *c);
long native_host_name(struct native_child *c);
long native_root(struct native_child *c);
long native_proc(struct native_child *c);
long native_dev(struct native_child *c);
long native_late_mounts(struct native_child *c);
long native_guards(struct native_child *c);
long native_pivot(struct native_child *c);
long native_net_begin(struct native_child *c);
long native_net_enter(struct native_child *c);
long native_rlimits(struct native_child *c);
long native_capabilities(struct native_child *c);
long native_no_new_privs(struct native_child *c);
long native_landlock(struct native_child *c);
long native_seccomp(struct native_child *c);

/* Shared by the mounting files; paths are relative to the directory. */
long native_attach(int tree_fd, int dir_fd, const char *target);
long native_make_point(int dir_fd, const char *target, bool is_file);
/* Opens path beneath dir_fd through no link at all (O_PATH). */
long native_open_nolink(int dir_fd, const char *path);
/* Steps that the host's change undid, mounted again through the sandbox's namespaces. */
int native_remount(const struct plan *p, struct running *run, const struct guard_root *g,
		   const size_t *steps, size_t count, struct ward_err *e);

#define NATIVE_EMPTY_FILE ".ward/empty"
#define NATIVE_EMPTY_DIR ".ward/nothing"
#define NATIVE_INIT ".ward/init"

#endif
