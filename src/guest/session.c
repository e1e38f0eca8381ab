/*
 * A session for a command. Without a terminal that is one system call. With one, two processes: the
 * leader, which has the terminal as its controlling one, and the command, in a process group of its
 * own in the terminal's foreground. Ctrl-Z needs both: the kernel does not stop a process group
 * that no process of its session could continue. The leader has the rights of ward-init, is not
 * dumpable like it, and does four things: it passes signals on to the command's group, tells the
 * supervisor when the command was stopped, ends the way the command ended, and says nothing else.
 */
#include "guest/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>

#include "base/raw.h"
#include "protocol/guest.h"

#define SIGNAL_SET_BYTES 8
/* a stop by the supervisor is over for all of the sandbox within that time */
#define SETTLE_NS 50000000

/* Ends as the command did: ward-init sees the same wait status. */
static _Noreturn void end_like(int status)
{
	unsigned long none = 0;
	long self = raw_call(SYS_getpid);

	if (WIFSIGNALED(status)) {
		raw_call(SYS_kill, self, WTERMSIG(status));
		raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, SIGNAL_SET_BYTES);
	}
	for (;;)
		raw_call(SYS_exit_group,
			 WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

/* The supervisor stops everybody for moments, by SIGSTOP where there is no freezer: that is not
 * worth a word. */
static bool is_lasting(long command, int signal)
{
	struct timespec settle = { 0, SETTLE_NS };
	int status = 0;

	if (signal != SIGSTOP)
		return true;
	raw_call(SYS_nanosleep, &settle, 0);
	return raw_call(SYS_wait4, command, &status, WNOHANG | WCONTINUED, 0) == 0;
}

static void look_at(long command, uint32_t tag)
{
	int status = 0;

	while (raw_call(SYS_wait4, command, &status, WNOHANG | WUNTRACED, 0) == command) {
		struct guest_message m = { .op = GUEST_STOPPED, .a = WSTOPSIG(status), .tag = tag };

		if (!WIFSTOPPED(status))
			end_like(status);
		if (is_lasting(command, m.a))
			raw_call(SYS_write, GUEST_CONTROL_FD, &m, sizeof(m));
	}
}

static _Noreturn void lead(long command, uint32_t tag)
{
	unsigned long all = ~0UL;

	for (;;) {
		siginfo_t info;
		long signal = raw_call(SYS_rt_sigtimedwait, &all, &info, 0, SIGNAL_SET_BYTES);

		if (signal == SIGCHLD)
			look_at(command, tag);
		else if (signal == GUEST_HOLD && info.si_code == SI_QUEUE)
			/* its value is what matters */
			raw_call(SYS_rt_sigqueueinfo, command, signal, &info);
		else if (signal > 0 && raw_call(SYS_kill, -command, signal) < 0)
			raw_call(SYS_kill, command, signal); /* it has not made its group yet */
	}
}

void guest_session(uint32_t tag)
{
	int terminal = 0, group;
	long pid;

	raw_call(SYS_setsid);
	while (terminal < 3 && raw_call(SYS_ioctl, terminal, TIOCSCTTY, 0) < 0)
		terminal++;
	if (terminal == 3)
		return;
	pid = raw_call(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid > 0)
		lead(pid, tag);
	if (pid < 0)
		return; /* it runs as the leader itself: only Ctrl-Z does not work */
	raw_call(SYS_setpgid, 0, 0);
	group = (int)raw_call(SYS_getpid);
	raw_call(SYS_ioctl, terminal, TIOCSPGRP, &group);
}
