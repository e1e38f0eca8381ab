/* An engine starts a plan and hands back what the supervisor watches. */
#ifndef WARD_MODEL_RUNNING_H
#define WARD_MODEL_RUNNING_H

#include <signal.h>

#include "base/timing.h"
#include "model/plan.h"
#include "model/result.h"

/* How a terminal inside begins: as the operator has his. */
struct console_shape {
	unsigned short size[4];  /* struct winsize */
	unsigned char modes[60]; /* struct termios as the kernel has it, and room */
	bool has_modes;
};

struct cgroup;
struct detached;

/* A sandbox that runs. The supervisor owns every descriptor; -1: none. */
struct running {
	pid_t init_pid;
	/* ward-init, where init_pid is a process around it; 0: init_pid is */
	pid_t inside_pid;
	/* of init_pid: ward-init (or of the command on the Landlock level) */
	int pid_fd;
	/* SOCK_SEQPACKET to ward-init: protocol/guest.h; closing it ends the sandbox */
	int control_fd;
	int notify_fd; /* seccomp listener, -1: none */
	int proc_fd;   /* the sandbox's /proc, -1: none */
	/* of the terminal inside, where there is one; for the engine */
	struct console_shape shape;
	int master_fd, slave_fd; /* of that terminal, -1: none */
	int tmpfs_fds[6];        /* under the watch: /tmp, /home/agent, /dev/shm, /run */
	size_t tmpfs_count;
	struct net_fd net_fds[NET_FDS_MAX]; /* for the gateway only */
	size_t net_count;
	bool net_ports;        /* they listen one a port: the kernel has no nf_tables */
	struct cgroup *cgroup; /* NULL: none */
	/* review: the mount that changes go to, -1: the engine opens layer_path; borrowed */
	int layer_fd;
	const char *layer_path; /* borrowed; NULL: no review */
	/* it holds what is reviewed, too: the workspace itself is not mounted */
	bool layer_copy;
	int mounts_fd;    /* holds the sandbox's mounts, -1: only the sandbox does */
	pid_t reaper_pid; /* the process that takes them apart, to be reaped; 0: none */
	/* at the end: another process can still write to a tree of the sandbox's */
	bool trees_busy;
	/* the limit of processes is so low that one more to build the sandbox would reach it */
	bool no_helper;
	bool asked; /* ward-init will be asked whether the command could be started */
	/* a child has got the kept /etc that the plan opened: another one needs its own */
	bool etc_given;
	/* as far as is known before there is a plan: no cgroup will be made */
	bool unlimited;
	sigset_t caller_mask;  /* blocked signals as the command shall have them */
	struct timing *timing; /* borrowed; NULL: not timed */
	void *child;           /* memory that the child used before exec; freed with the rest */
};

struct engine {
	const char *name;
	bool terminals; /* it can make a terminal inside */
	/* Whether it can be used here at all; else why not, and the remedy. NULL: always, or start
	 * says it. */
	int (*probe)(struct ward_err *e);
	/* Adds the cgroup directories that it will make beside the run's own, inner ones first.
	 * NULL: none. */
	void (*add_dirs)(const struct plan *p, struct strv *dirs);
	/* Whether it can carry out this plan; what it cannot is a refusal. NULL: any. */
	int (*check)(const struct plan *p, struct ward_err *e);
	/* Begins what no policy changes, while the policy is being read; *ret_system is what it has
	 * read of the host for that. What goes wrong is said by start. NULL: nothing to begin. */
	void (*prelaunch)(struct running *run, struct plan_system **ret_system);
	/* Begins: everything up to the point where only the exec is missing. stdio_fds become 0-2
	 * inside, borrowed; -1: the terminal inside, where the engine has terminals. The sandbox
	 * may still be building itself when this returns. */
	int (*start)(const struct plan *p, const int stdio_fds[3], struct running *run,
		     struct ward_err *e);
	/* Allows the exec, when the run is on record and can be supervised. Fills the layers of
	 * *r. */
	int (*release)(const struct plan *p, struct running *run, struct result *r,
		       struct ward_err *e);
	/* Mounts the steps of root that the host's change undid (indices into its steps) again.
	 * NULL: cannot. */
	int (*remount)(const struct plan *p, struct running *run, const struct guard_root *g,
		       const size_t *steps, size_t count, struct ward_err *e);
	/* Lets the kernel bring other connections to the gateway of a sandbox that runs, by the
	 * socket NET_RULES; all at once or not at all. NULL: cannot. */
	int (*tproxy)(int rules_fd, const struct net_match *matches, size_t count,
			 struct ward_err *e);
	/* Kills every process of the sandbox, as often as asked. NULL: SIGKILL to pid_fd does
	 * it. */
	void (*kill)(struct running *run);
	/* The command runs for longer than a moment. NULL: nothing to do. */
	void (*on_long_run)(struct running *run);
	/* The command has ended, says ward-init, and will be followed by it. NULL: nothing to
	 * do. */
	void (*exited)(struct running *run);
	/* Whether the dead sandbox failed before it could become ward-init, and why. NULL: cannot
	 * happen. */
	bool (*start_error)(const struct running *run, struct ward_err *e);
	/* Every process of the sandbox is dead and reaped. NULL: nothing to do. */
	void (*on_reaped)(struct running *run);
	/* Frees what the engine itself keeps in *run, when every process of the sandbox is dead. */
	void (*finish)(struct running *run);
	/* "name", "help" pairs, NULL-terminated, in the order in which they happen. */
	const char *const *(*stages)(void);
	/* why it makes no checkpoints without an inner runtime (plan/inner.h), and "\n" and the
	 * remedy */
	const char *no_snapshot;
};

/* ward-init, as our own /proc names it. */
static inline pid_t running_inside(const struct running *run)
{
	return run->inside_pid ? run->inside_pid : run->init_pid;
}

/* What has begun before there is a plan. */
struct box_early {
	const struct engine *engine; /* that has begun; NULL: none */
	struct running run;
	/* signals that are for the command; -1: none could be had */
	int signal_fd;
	/* for plan_compile(); NULL: could not be read, it will say why */
	struct plan_system *system;
	/* the caller's, for long work before the command; NULL: not shown */
	struct progress *progress;
	/* the caller's, for a detached run; NULL: an ordinary one */
	struct detached *detached;
};

#endif
