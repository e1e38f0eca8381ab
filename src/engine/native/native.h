/* The native engine: namespaces, mounts, Landlock and seccomp, each layer in its own file, the
 * order in run.c. */
#ifndef WARD_ENGINE_NATIVE_NATIVE_H
#define WARD_ENGINE_NATIVE_NATIVE_H

#include <errno.h>
#include <linux/filter.h>
#include <sched.h>

#include "base/raw.h"
#include "engine/native/landlock.h"
#include "engine/native/sync.h"
#include "model/running.h"
#include "rules/net.h"
#include "limit/limits.h"

extern const struct engine engine_native;

#define NATIVE_STACK_BYTES (64 * 1024)
#define NATIVE_FILTER_MAX 1024
#define NATIVE_PATHS_MAX 256
#define NATIVE_TREES_MAX PLAN_MOUNTS_MAX
#define NATIVE_PTYS_MAX 256 /* of the host's 4096 */
#define NATIVE_STAGES_MAX 40
#define NATIVE_KEPT_MAX 64 /* trees with guards */

struct native_bytes {
	const char *data;
	size_t len;
};

/* The way out of the sandbox's network namespace: see net_open.c. */
struct native_net {
	bool on;
	struct native_bytes routes4, routes6, rules, log; /* netlink batches */
	const uint16_t *ports; /* of the policy, for kernels without nf_tables */
	size_t port_count;
	bool inward;                    /* ports are published */
	bool asks;                      /* http://ward.internal/ is answered */
	struct net_fd fds[NET_FDS_MAX]; /* written by the child */
	size_t count;
	bool by_port; /* there is no nf_tables */
};

/* Another engine's way: the child builds the root, its /dev and the network, and then becomes a
 * runtime that makes the container of them. */
struct native_bundle {
	int (*main)(void *); /* in place of native_child_main() */
	/* a tmpfs with the bundle is mounted there; the root is built in it */
	const char *dir;
	bool hide_cgroups;          /* else they are read-only */
	struct native_bytes config; /* config.json */
	char *const *argv;          /* the runtime's, behind the name of ward-init's role */
	int log_fd;                 /* what the runtime says when it fails */
};

/*
 * What the supervisor prepares and the child uses. The child shares the supervisor's memory until
 * it executes ward-init, while the supervisor goes on: it reads this, writes the last part, and
 * calls nothing of libc. The first part is there when the child begins, the second when the
 * supervisor has sent the plan. What the processes wait for is in sync.
 */
struct native_child {
	/* known before the policy is */
	const struct plan_system *system; /* there when the child reads a byte for it */
	int control_fd;                   /* the child's end */
	int supervisor_fd;                /* the other end, which the child must not keep */
	/* the new root is built over it; no source may lie beneath */
	const char *base;
	struct plan_ids ids;           /* mode and ids that the maps are made from */
	char uid_map[32], gid_map[32]; /* what the child writes itself; "": the supervisor does */
	bool ids_sent;                 /* a byte says that ids and maps are there */
	char root_options[96], pts_options[96];
	/* NULL: the native engine's own; in the supervisor's memory until the child has ended */
	const struct native_bundle *bundle;
	bool timed; /* the child says when each stage ended */
	/* a helper would count as one of the sandbox's few processes */
	bool no_helper;
	bool parallel;    /* supervisor, child and helper work at the same time */
	bool child_began; /* the child has got a processor */
	/* how many the caller may use; the supervisor's when it launched the child */
	unsigned cpu_count, cpu;
	uint64_t launched_ns; /* and that moment; 0: there is only one processor */
	/* if so: the caller's processors; where the helper, where the child begins */
	cpu_set_t cpus, here, others;

	/* known once the plan was sent */
	const struct plan *plan;
	const struct console_shape *shape; /* of the terminal */
	uint64_t signal_mask;              /* the caller's, for the command */
	/* these three sorts of descriptors come with the plan; -1: the terminal */
	int stdio_fds[3];
	int cgroup_fds[4]; /* v1: the child writes itself into them */
	/* of the plan's devices and mounts that have one, in their order */
	int tree_fds[NATIVE_TREES_MAX];
	/* review: where changes go, as a mount; -1: open layer_path */
	int layer_fd;
	bool has_layer;         /* it comes with the plan */
	const char *layer_path; /* NULL: no review */
	bool layer_copy;        /* the workspace's copy lies in it */
	size_t cgroup_count, tree_count;
	char **argv;         /* "ward-init", CMD... */
	bool starts_command; /* the child may start CMD itself: begin.c */
	char **envp;
	/* for /tmp and the like together, which are parts of the root's file system; 0: each is one
	 * of its own */
	uint64_t private_bytes, private_inodes;
	char **tmpfs_options; /* then, of each mount, NULL: no tmpfs */
	const char *shm_options;
	const struct limits_rlimit *rlimits;
	size_t rlimit_count;
	struct landlock_path paths[NATIVE_PATHS_MAX];
	size_t path_count;
	bool rules_made; /* of these paths, by the process that entered the root first */
	int rules_fd;
	struct sock_filter filter[NATIVE_FILTER_MAX];
	size_t filter_len;
	struct native_net net;

	struct native_sync sync;

	/* the child's and its helper's: helper.c */
	long helper_pid; /* 0: none, or it is known to be dead */
	bool go_at_once; /* there is a processor for the helper from the beginning */
	bool net_own;    /* the child itself makes the network namespace, in its own place */
	/* the network namespace, if the helper made it; -errno: it could not */
	int net_fd;
	bool helped;              /* the helper made the plan's mounts */
	long helper_error;        /* with this result */
	const char *helper_stage; /* and came as far as this */
	/* how the old root was unmounted; -ECHILD until then: the helper owed it and was killed */
	long old_root_error;

	/* the command, if the child starts it */
	bool command_started;
	const char *init_argv[3]; /* of ward-init then */
	int arguments_fd;         /* the child's own, in /proc; -1: they are not looked at */
	char command_pid[RAW_NUMBER_BYTES];

	/* written by either */
	int base_fd;
	int proc_fd;             /* the sandbox's /proc, for the supervisor */
	int master_fd, slave_fd; /* of the terminal inside, for the supervisor; -1: none */
	bool proc_bound;         /* it is the outer one */
	int tmpfs_fds[6];        /* under the watch, for the supervisor */
	size_t tmpfs_count;
	int kept_fds[NATIVE_KEPT_MAX]; /* the mounts that guards are on, for the supervisor */
	size_t kept_count;
	/* with them: the mount namespace; -1: the supervisor finds it itself */
	int view_fd;
	int listener_fd; /* seccomp's, -1: none */
	size_t next_tree;
	bool review_refused; /* the kernel refused the overlay */
	enum layer_state layers[LAYERS];
	const char *layer_notes[LAYERS];
	const char *failed_stage;
	const char *failed_path;                 /* NULL: none */
	long failed_error;                       /* negative errno */
	uint64_t stage_ns[NATIVE_STAGES_MAX][2]; /* timed: when each stage began and ended */

	char helper_stack[NATIVE_STACK_BYTES / 2] __attribute__((aligned(16)));
	char command_stack[NATIVE_STACK_BYTES] __attribute__((aligned(16)));
	char stack[NATIVE_STACK_BYTES] __attribute__((aligned(16)));
};

/* What keeps guards on their trees when the sandbox is gone: see mounts_keep.c. */
struct native_keep {
	int ns_fd;                /* the dead sandbox's mounts, borrowed; -1: they are gone */
	int fds[NATIVE_KEPT_MAX]; /* the trees */
	size_t count;
	int dev_fd;  /* where they are put, as no other process can write it */
	bool review; /* of the trees, one is ward's own overlay */
	bool met;    /* a descriptor handed to another sandbox is reported */
	bool busy;   /* if so: another process has a file there open for writing */
	char stack[NATIVE_STACK_BYTES / 4] __attribute__((aligned(16)));
};

struct native_memory;

/* The process that takes the mounts apart: see mount_reaper.c. */
struct native_reaper {
	int pid_fd, ns_fd;
	struct native_memory *memory; /* the descriptors of keep are this process's own */
};

/* What the supervisor keeps for as long as the child uses it. */
struct native_memory {
	struct native_child child;
	struct native_keep keep;
	struct native_reaper reaper;
	char reaper_stack[NATIVE_STACK_BYTES / 4] __attribute__((aligned(16)));
	struct strv texts;
	char **options, **argv;
	struct buf routes4, routes6, rules, log;
	struct limits_rlimit rlimits[LIMITS_RLIMITS];
	void *own; /* of an engine that builds on this one; NULL: none */
};

/* The child: runs the stages, gives descriptors to the supervisor, becomes ward-init. */
int native_child_main(void *child);
/* The times of the child's stages, into *t. */
void native_stage_times(const struct native_child *c, struct timing *t);
/* "name", "help" pairs, NULL-terminated. */
const char *const *native_stage_names(void);

/* The sandbox's mounts outlive ward-init, where the kernel can do that: a descriptor of their
 * namespace is in mounts_fd. */
void native_pin_mounts(struct running *run);
/* Whether something is hidden or protected in this tree, or others could go on writing to it: see
 * mounts_keep.c. Pure functions. */
bool native_keeps(const struct plan *p, const struct guard_root *g);
bool native_keeps_any(const struct plan *p);
/* If so, when the child is ready: the mounts stay until guards are gathered. */
void native_keep_begin(const struct plan *p, struct running *run);
/* The dead sandbox's guards stay on their trees, for any process that has a descriptor of one. The
 * second call does nothing. */
void native_keep_together(struct native_memory *m);
/* The same for the run, unless the reaper does it. */
void native_keep_end(struct running *run);
/* In a process of its own: enters a mount namespace of a sandbox's, and the user namespace that
 * owns it. */
long native_enter_mounts(int ns_fd);
/* Starts the reaper, which waits for ward-init's end and takes the mounts apart. */
void native_start_reaper(struct running *run);
/* The run takes long enough: ends the reaper, unless it is at work already. */
void native_stop_reaper(struct running *run);

/* Launches the child: it builds what no policy changes and waits for the plan. ids NULL:
 * native_send_ids() follows; into is a cgroup's directory, -1: none; bundle NULL: it becomes
 * ward-init. */
must_check int native_launch(struct running *run, const struct plan_ids *ids, const char *base,
			     int into, const struct native_bundle *bundle, struct ward_err *e);
/* Writes the maps where only the supervisor can, and tells the child that its ids are there. */
must_check int native_send_ids(struct running *run, const struct plan_ids *ids, struct ward_err *e);
/* Prepares the rest and sends the plan to a child that was launched. */
must_check int native_begin(const struct plan *p, const int stdio_fds[3], struct running *run,
			    struct ward_err *e);
/* The run is on record: allows the exec, as soon as all is built. */
void native_allow_exec(struct running *run);
/* Receives ready from the child, with its descriptors. */
must_check int native_receive_ready(struct running *run, struct ward_err *e);
/* The child's side of that. */
#define NATIVE_READY 'r'
long native_send_ready(struct native_child *c);
/* Gives 0-2 and the control socket their places, the caller's signal mask and ids of the command's
 * own /dev/null. */
long native_place_stdio(struct native_child *c);
/* Whether a cgroup holds one of the limits. */
bool native_uses_cgroup(const struct plan *p);
/* Sends the child what every sandbox sees. */
void native_send_system(struct running *run, const struct plan_system *system);
/* In the child: one byte from the supervisor; -ECONNRESET: it is gone. */
long native_wait_byte(struct native_child *c);
/* The same, with a descriptor if one comes. */
long native_wait_tree(struct native_child *c, int *ret_fd);
/* Ends a child that was launched and is not wanted. */
void native_discard(struct running *run);
/* What the root would be built over, if the policy has no say. */
const char *native_choose_base(const struct plan *p);
/* Why the child ended before it was ready: its memory says. */
int native_explain_child(const struct native_child *c, struct ward_err *e);
/* Fills the second part of the child's memory. */
must_check int native_prepare(struct native_memory *m, const struct plan *p, struct ward_err *e);

/* One step inside the child: 0 or -errno; what it was about in failed_path. */
long native_close(struct native_child *c);
/* Sends ready, and starts the command's process where that can be done beside ward-init: it waits
 * until native_allow_command(). */
long native_start_command(struct native_child *c);
long native_allow_command(struct native_child *c);
long native_receive_plan(struct native_child *c);
long native_join_cgroup(struct native_child *c);
long native_ipc(struct native_child *c);
long native_maps(struct native_child *c);
void native_bound_namespaces(void);
long native_host_name(struct native_child *c);
long native_view(struct native_child *c);
long native_root(struct native_child *c);
long native_system(struct native_child *c);
long native_proc(struct native_child *c);
long native_masks(struct native_child *c);
long native_dev(struct native_child *c);
long native_terminal(struct native_child *c);
long native_trust(struct native_child *c);
long native_gpus(struct native_child *c);
long native_late_mounts(struct native_child *c);
long native_guards(struct native_child *c);
long native_pivot(struct native_child *c);
long native_net_enter(struct native_child *c);
/* Without a network: the socket that name lookups go to, for the supervisor, which refuses them. */
long native_net_names(struct native_child *c);
long native_net_open(struct native_child *c);

/* The helper, and what it shares with the child. */
uint64_t native_now(void);
/* In the supervisor: what made the host look busy may be over, and a child that still waits for the
 * supervisor's processor is given another one. */
void native_recheck_idle(const struct running *run);
/* In the child, first of all: whether there is a processor for it. */
void native_note_cpu(struct native_child *c);
/* A new process may be put on its parent's processor, where it waits until the parent sleeps: it
 * begins on one of `where` instead. */
void native_put_on(const struct native_child *c, long pid, const cpu_set_t *where);
/* on another one than ours, if some are idle */
void native_move_away(const struct native_child *c, long pid);
long native_start_helper(struct native_child *c);
long native_share(struct native_child *c);
long native_net_take(struct native_child *c);
long native_meet(struct native_child *c);
long native_end_helper(struct native_child *c);
/* Every stage that either may do; *ret_stage: how far it came. */
long native_either(struct native_child *c, const char **ret_stage);
/* Moves child and helper into the new root; the old one lies over it. */
long native_enter_root(struct native_child *c);
/* In the child, after that: unmounts the old root, or lets the helper do it; it is unmounted when
 * native_end_helper() has come back. */
long native_leave_old_root(struct native_child *c);
/* Lets the helper begin: from now on it has a processor for itself. */
void native_allow_helper(struct native_child *c);
/* Makes a network namespace around the caller; net_fd says how that went. */
void native_net_make(struct native_child *c);

long native_rlimits(struct native_child *c);
/* The limit of open files, which must not hold for ready yet; for the calling process. */
long native_limit_files(const struct native_child *c);
long native_bounding_set(struct native_child *c);
long native_capabilities(struct native_child *c);
long native_no_new_privs(struct native_child *c);
/* In the new root: Landlock's rules; then the child is held to them. */
long native_landlock_rules(struct native_child *c);
long native_landlock(struct native_child *c);
long native_seccomp(struct native_child *c);

/* What the policy changes about /proc: processes only (strict), or writable although it is the
 * outer one (nesting). */
long native_late_proc(struct native_child *c);

/* Puts an image under what ward has made of the root, and the plan's mount points into it. */
long native_image(struct native_child *c, const struct plan_image *image);
/* Makes a link or a file of ward's own in the root. */
long native_make_own(struct native_child *c, const struct plan_mount *m);

/* Mounts the workspace under review; the tree is the real one. */
long native_attach_review(struct native_child *c, const struct plan_mount *m, long lower_tree);

/* Shared by the mounting files; paths are relative to the directory. */
long native_attach(int tree_fd, int dir_fd, const char *target);
long native_make_point(int dir_fd, const char *target, bool is_file);
/* Opens path beneath dir_fd through no link at all (O_PATH). */
long native_open_nolink(int dir_fd, const char *path);
/* Steps that the host's change undid, mounted again through the sandbox's namespaces. */
int native_tproxy(int rules_fd, const struct net_match *matches, size_t count, struct ward_err *e);
/* The same where the first process is in other namespaces than the mounts. */
struct native_view {
	int user_fd, mount_fd; /* the mount namespace, and the user namespace that owns it */
};
int native_remount_in(const struct native_view *view, struct running *run,
		      const struct guard_root *g, const size_t *steps, size_t count,
		      struct ward_err *e);
int native_remount(const struct plan *p, struct running *run, const struct guard_root *g,
		   const size_t *steps, size_t count, struct ward_err *e);

#define NATIVE_EMPTY_FILE ".ward/empty"
#define NATIVE_EMPTY_DIR ".ward/nothing"
#define NATIVE_INIT ".ward/init"
/* with process.commands: the real dynamic loader, and what lies at its place (guest/loader.c) */
#define NATIVE_LOADER ".ward/loader"
#define NATIVE_STAND_IN ".ward/stand-in"
/* what lies at the place of a guarded program (guest/stand_in.c) */
#define NATIVE_GUARD ".ward/guarded"
#define NATIVE_ASK ".ward/ask/ward-ask" /* ASK_DIR of protocol/ask.h (guest/ask.c) */
/* ward inside, where the sandbox may have children (guest/stand_in.c) */
#define NATIVE_CLIENT ".ward/bin/ward"
/* Covers denied programs; with an allow list, puts the stand-in over the loader. */
long native_commands(struct native_child *c);
long native_create_file(int dir_fd, const char *target, const char *text, size_t n, unsigned mode);
#define NATIVE_BEGUN "ward-begun"  /* its name where the command runs already */
#define NATIVE_NODE ".ward/node"   /* gpus.c */
#define NATIVE_LAYER ".ward/layer" /* review.c */

#endif
