/* An inner runtime (gVisor, a virtual machine, a WASI runtime) that runs inside a native sandbox.
 * The plan is native's; what ward-init starts in it is the inner runtime's runner, which starts the
 * command behind it. The runner's environment, directory and 0-2 are the command's, signals to its
 * group are for the command, and its exit status is the command's. */
#ifndef WARD_MODEL_INNER_H
#define WARD_MODEL_INNER_H

#include "model/plan.h"

/* nothing; what QEMU asks; the few requests of gVisor's kernel */
enum { INNER_KVM_NONE, INNER_KVM_MACHINE, INNER_KVM_SENTRY };

struct inner {
	const char *name; /* as `isolation` has it */
	const char *help; /* what it is, for plan and result */
	/* Whether it can be used here; else why not, and the remedy. */
	int (*probe)(struct ward_err *e);
	/* what it needs may lie in the policy's image: want() looks there, whatever probe says of
	 * the host */
	bool in_image;
	/* what a run would have here, for ward doctor. Static; NULL: help says it */
	const char *(*which)(void);
	/* It was picked: refuses what it cannot do, sets what it needs in s->policy. NULL:
	 * nothing. */
	int (*want)(struct spec *s, struct ward_err *e);
	/* A step of the planner: adds binds and files of its own beneath /.ward (plan/plan_root.h).
	 * NULL: none. */
	int (*mounts)(struct plan *p, struct ward_err *e);
	/* The plan is complete: fills p->inner_run, p->inner_exec, p->inner_copy. */
	int (*words)(struct plan *p, struct ward_err *e);
	/* What there is of it here, for `ward doctor`: version, kind. NULL: nothing to say. */
	void (*about)(struct buf *out);
	/* its runner needs memfd_create(), which the filter refuses where the watch holds the
	 * memory limit: the watch counts what is in such files, and the command cannot make any */
	bool memory_files;
	/* its runner holds what is behind it when ward-init says so (GUEST_STOP): SIGSTOP and
	 * SIGCONT from outside would come to those who trace, who do not expect them */
	bool holds;
	/* the limit of processes is held behind it, and its runner tells how many there are
	 * (GUEST_TELL); what it has itself outside comes on top */
	bool counts;
	bool interfaces; /* its runner asks what network interfaces can do */
	/* WALL_KVM_*: its runner has /dev/kvm, and may ask it for what that is for; 0: it has
	 * none */
	unsigned kvm;
	/* what is behind it has memory of its own (vm.memory): the runner ends by GUEST_SPENT where
	 * that was used up */
	bool own_memory;
	/* an image is inside the inner runtime: the native sandbox around it has the host's root */
	bool own_root;
	/* Words that do nothing behind it, for a sandbox without a command, NULL-terminated. NULL:
	 * it stands only where a command is started. */
	const char *const *idle;
	/* it has a mount namespace of its own: what is mounted later (a hidden file that the host
	 * replaced) must come there, too */
	bool own_view;
	/* idle is NULL, and it must stand before others can be started behind it */
	bool needs_command;
	/* Checkpoints: appends the words that ward-init starts to make one of a sandbox with this
	 * plan (what they write to standard output is it, CHECKPOINT_DONE at its end; nothing
	 * inside goes on until standard input has a byte or ends), or says why there can be none,
	 * with the remedy. NULL: no_snapshot says it. */
	int (*snapshot)(const struct plan *p, struct strv *words, struct ward_err *e);
	const char *no_snapshot; /* why it makes none, and "\n" and the remedy */
	/* "name", "help" pairs, NULL-terminated: what happens behind the native ones; NULL: nothing
	 * to say */
	const char *const *stages;
};

/* What the policy's isolation came to: the inner runtime's name, or the engine's. */
static inline const char *plan_isolation(const struct plan *p)
{
	return p->spec->inner ? p->spec->inner->name : p->engine;
}

#endif
