/*
 * The command is started by the child itself, while that becomes ward-init: the two programs are
 * loaded at the same time, and ward-init finds the command as its child. In: a child with every
 * layer on. Out: ready was sent, the command runs; or the supervisor learns why it could not be
 * executed, as it would from ward-init.
 *
 * The command's process is made while the run is being recorded and the helper ends, and waits:
 * nothing is executed before native_allow_command(). If the child ends instead, the kernel ends it,
 * too.
 *
 * Until the command executes, its process shares the supervisor's memory like the child. It
 * executes only when the child has left that memory: the command never runs beside a process that
 * has the supervisor's memory, and so its arguments. The kernel tells by clearing the word of
 * set_tid_address(2), but a moment too early, and a long one where another process has that memory
 * locked; so the child's arguments are looked at, too. That memory is not dumpable from here on,
 * and neither is ward-init from its first instruction on, because its file cannot be read (root.c).
 * If the child cannot become ward-init it ends, and the command's process with it.
 *
 * Everything else is left to ward-init itself: a terminal, whose session needs a leader; a detached
 * run, which asks whether the command could be started; an observer, which reads the caller's
 * memory when the command is executed.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include "base/clone.h"
#include "base/raw.h"
#include "engine/native/native.h"
#include "guest/command.h"
#include "start_tricks.h"
#include "protocol/guest.h"

_Static_assert(sizeof(((struct native_child *)0)->command_stack) >= GUEST_EXEC_STACK,
	       "the command's stack is too small");

static bool has_terminal(void)
{
	char modes[64];

	for (int fd = 0; fd < 3; fd++)
		if (raw_call(SYS_ioctl, fd, TCGETS, modes) == 0)
			return true;
	return false;
}

/* The arguments of pid 1 are ward-init's, or none yet. */
static bool has_left(void *argument)
{
	const struct native_child *c = argument;
	static const char begun[] = NATIVE_BEGUN;
	char name[sizeof(begun)];
	long n = raw_call(SYS_pread64, c->arguments_fd, name, sizeof(name), 0);
	bool same = n == sizeof(name);

	for (size_t i = 0; same && i < sizeof(name); i++)
		same = name[i] == begun[i];
	return n == 0 || same;
}

/* The command's process: descriptors 0-2 are its own already, all others close when it executes. */
static int become_command(void *argument)
{
	struct native_child *c = argument;
	const struct sync_peer pid1 = { .is_done = has_left, .argument = c };
	struct guest_message failed = { .op = GUEST_FAILED };
	size_t argc = 0;
	long r;

	raw_call(SYS_setsid);
	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &c->signal_mask, 0, 8);
	sync_wait(&c->sync, SYNC_COMMAND_GO, NULL);
	sync_wait(&c->sync, SYNC_CHILD_LEFT, NULL);
	if (c->arguments_fd >= 0)
		sync_wait(&c->sync, SYNC_ARGUMENTS, &pid1);
	while (c->argv[argc + 1])
		argc++;
	r = native_limit_files(c);
	failed.a = r < 0 ? (int32_t)-r : (int32_t)guest_exec_words(c->argv + 1, argc, c->envp);
	failed.b = failed.a == ENOENT || failed.a == ENOTDIR ? 127 : 126;
	raw_call(SYS_write, c->control_fd, &failed, sizeof(failed));
	return failed.b;
}

long native_start_command(struct native_child *c)
{
	long r = native_place_stdio(c);

	if (r >= 0)
		/* ward-init's and not the command's */
		r = raw_call(SYS_fcntl, GUEST_CONTROL_FD, F_SETFD, FD_CLOEXEC);
	if (r >= 0)
		/* the supervisor, which this wakes, has the processor that the command gets, and
		 * is done before that executes */
		r = native_send_ready(c);
	if (r < 0 || !TRICK_EARLY_COMMAND || !c->starts_command || has_terminal())
		return r < 0 ? r : 0;
	/* the outer one shows the supervisor anyway */
	r = c->proc_bound ? -1
			  : raw_call(SYS_openat, c->proc_fd, "1/cmdline", O_RDONLY | O_CLOEXEC);
	if (r < 0 && !c->proc_bound)
		return 0; /* ward-init starts it */
	c->arguments_fd = (int)r;
	c->sync.child_in_memory = 1;
	r = raw_call(SYS_set_tid_address, &c->sync.child_in_memory);
	if (r > 0)
		r = clone_call(SYS_clone, CLONE_VM | SIGCHLD,
			       RAW_ARG(c->command_stack + sizeof(c->command_stack)), 0, 0,
			       become_command, c);
	if (r == -EAGAIN)
		/* a limit of processes has no room beside the helper: ward-init starts it, when
		 * that is gone */
		return 0;
	if (r < 0)
		return r;
	native_move_away(c, r);
	raw_put_number(c->command_pid, (uint64_t)r);
	c->init_argv[0] = NATIVE_BEGUN;
	c->init_argv[1] = c->command_pid;
	c->command_started = true;
	return 0;
}

long native_allow_command(struct native_child *c)
{
	long r;

	if (c->command_started) {
		/* not before the supervisor has what it wants of the child */
		raw_call(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
		sync_set(&c->sync.command_go, 1);
	}
	r = native_limit_files(c);
	return r < 0 ? r : raw_call(SYS_fcntl, GUEST_CONTROL_FD, F_SETFD, 0);
}
