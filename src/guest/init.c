/*
 * ward-init: pid 1 of a sandbox, and the guardian of a run. Freestanding: no libc, no heap, a few pages.
 *
 * As "ward-init" it is started by the native engine with everything already taken away (namespaces, capabilities,
 * Landlock, seccomp) and descriptor 3 on the supervisor. It starts the command given behind its own name, reaps
 * whatever becomes an orphan, passes signals on, and says how the command ended. When the supervisor is gone, or the
 * command has ended, it exits, and the kernel kills everything else in the pid namespace. It is not dumpable: the
 * command, which has the same uid, can neither trace it nor reach its descriptors.
 *
 * As "ward-rung" it does the same where there is no pid namespace (the Landlock rung). It is no pid 1 there, so the
 * kernel would not kill what it leaves behind; but its Landlock domain scopes signals, and kill(-1) reaches exactly
 * the processes of that domain. The command gets a domain of its own inside, from which ward-init is out of reach.
 *
 * As "ward-guardian" it sits outside, beside the supervisor, in a session of its own: descriptor 3 is the end of a
 * pipe that the supervisor holds, 4 the sandbox's pidfd, 5 ward's binary. One byte means that all is well and it ends.
 * The pipe closing without one means that the supervisor was killed: it makes sure that the sandbox is dead and
 * becomes `ward recover`, which cleans up what the kernel does not.
 *
 * As "ward-keeper" it sits beside whoever has put the operator's terminal into raw mode: see keeper.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/raw.h"
#include "guest/protocol.h"
#include "guest/session.h"

#define SIGNAL_SET_BYTES 8
#define SIGNAL_BIT(n) (1UL << ((n)-1))

_Noreturn void guest_main(long *stack);

__asm__(".globl _start\n"
	"_start:\n"
	"	xor %ebp, %ebp\n"
	"	mov %rsp, %rdi\n"
	"	and $-16, %rsp\n"
	"	call guest_main\n"
	"	hlt\n");

static _Noreturn void guest_exit(int code)
{
	for (;;)
		raw_call(SYS_exit_group, code);
}

static void say(uint32_t op, int32_t a, int32_t b)
{
	struct guest_message m = { op, a, b };

	raw_call(SYS_write, GUEST_CONTROL_FD, &m, sizeof(m));
}

static const char *find_env(char **envp, const char *name)
{
	size_t n = raw_strlen(name);

	for (; *envp; envp++) {
		size_t i = 0;

		while (i < n && (*envp)[i] == name[i])
			i++;
		if (i == n && (*envp)[n] == '=')
			return *envp + n + 1;
	}
	return "";
}

/* A file without a format that the kernel knows is a shell script, as every shell and execvp(3) treat it. */
static long exec_one(const char *path, char **argv, size_t argc, char **envp)
{
	long err = raw_call(SYS_execve, path, argv, envp);

	if (err == -ENOEXEC && argc < 4096) {
		const char *shell[4099];	/* argc + sh + NULL */

		shell[0] = "/bin/sh";
		shell[1] = path;
		for (size_t i = 1; i <= argc; i++)
			shell[i + 1] = argv[i];
		err = raw_call(SYS_execve, shell[0], shell, envp);
	}
	return err;
}

/* Tries the directories of PATH; a name with a slash is taken as it is. Returns the errno to report. */
static long exec_command(char **argv, size_t argc, char **envp)
{
	const char *dirs = find_env(envp, "PATH"), *name = argv[0];
	long result = ENOENT;
	char path[4096];
	size_t len = raw_strlen(name);

	for (size_t i = 0; i < len; i++)
		if (name[i] == '/')
			return -exec_one(name, argv, argc, envp);
	if (len == 0 || len >= 256)
		return ENOENT;
	while (*dirs) {
		size_t n = 0;
		long err;

		for (; *dirs && *dirs != ':'; dirs++)
			if (n < sizeof(path) - 258)
				path[n++] = *dirs;
		dirs += *dirs == ':';
		if (n == 0 || path[0] != '/')
			continue;	/* an empty or relative entry would mean the workspace */
		path[n++] = '/';
		for (size_t i = 0; i <= len; i++)
			path[n + i] = name[i];
		err = -exec_one(path, argv, argc, envp);
		if (err != ENOENT && err != ENOTDIR)
			result = err;
		if (err != ENOENT && err != ENOTDIR && err != EACCES)
			break;
	}
	return result;
}

/* A domain for the command inside our own: it cannot signal or trace us any more. */
static long enter_inner_domain(void)
{
	const struct {
		uint64_t files, net, scoped;
	} attr = { 0, 0, 3 /* abstract sockets, signals */ };
	long fd = raw_call(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	long err = fd < 0 ? fd : raw_call(SYS_landlock_restrict_self, fd, 0);

	if (fd >= 0)
		raw_call(SYS_close, fd);
	return err;
}

static long start_command(char **argv, size_t argc, char **envp, unsigned long old_mask, bool rung)
{
	long pid = raw_call(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	long err;

	if (pid != 0)
		return pid;
	guest_session();
	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &old_mask, 0, SIGNAL_SET_BYTES);
	err = rung ? enter_inner_domain() : 0;
	err = err < 0 ? -err : exec_command(argv, argc, envp);
	say(GUEST_FAILED, (int32_t)err, err == ENOENT || err == ENOTDIR ? 127 : 126);
	guest_exit(err == ENOENT || err == ENOTDIR ? 127 : 126);
}

/* Collects the dead; true when the command is among them. */
static bool reap(long command)
{
	int status = 0;
	long pid;

	while ((pid = raw_call(SYS_wait4, -1, &status, WNOHANG, 0)) > 0)
		if (pid == command) {
			say(GUEST_EXITED, status, 0);
			return true;
		}
	return pid == -ECHILD;
}

/* Does what the supervisor says; false when it is gone. */
static bool obey(long command)
{
	struct guest_message m = { 0 };
	long n = raw_call(SYS_read, GUEST_CONTROL_FD, &m, sizeof(m));

	if (n != (long)sizeof(m))
		return n == -EINTR;
	if (m.op == GUEST_SIGNAL) {
		if (raw_call(SYS_kill, -command, m.a) < 0)	/* it has not made its group yet */
			raw_call(SYS_kill, command, m.a);
	} else if (m.op == GUEST_STOP)
		raw_call(SYS_kill, -1, SIGSTOP);
	else if (m.op == GUEST_CONTINUE)
		raw_call(SYS_kill, -1, SIGCONT);
	return m.op != GUEST_END;
}

/* The end of everything: as pid 1 by leaving, on the rung by hand. */
static _Noreturn void end_all(bool rung)
{
	long r = 0;

	if (rung)
		raw_call(SYS_kill, -1, SIGKILL);
	while (rung && (r >= 0 || r == -EINTR))
		r = raw_call(SYS_wait4, -1, 0, 0, 0);
	guest_exit(0);
}

static _Noreturn void run_init(char **argv, size_t argc, char **envp, bool rung)
{
	unsigned long all = ~0UL, old_mask = 0, child = SIGNAL_BIT(SIGCHLD);
	long command, signal_fd, supervisor = raw_call(SYS_getppid);

	raw_call(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
	raw_call(SYS_fcntl, GUEST_CONTROL_FD, F_SETFD, FD_CLOEXEC);
	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old_mask, SIGNAL_SET_BYTES);
	signal_fd = raw_call(SYS_signalfd4, -1, &child, SIGNAL_SET_BYTES, O_CLOEXEC | O_NONBLOCK);
	if (argc < 1 || signal_fd < 0)
		guest_exit(125);
	/* kill(-1) is ours only where the engine has confined us: there is a filter, the last thing that it puts on, and
	 * the supervisor is out of reach */
	if (rung && (raw_call(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) != 2 ||
		     raw_call(SYS_kill, supervisor, 0) != -EPERM ||
		     raw_call(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0))
		guest_exit(125);
	command = start_command(argv, argc, envp, old_mask, rung);
	if (command < 0) {
		say(GUEST_FAILED, (int32_t)-command, 126);
		guest_exit(126);
	}
	say(GUEST_READY, (int32_t)command, 0);
	for (;;) {
		struct pollfd polled[2] = { { GUEST_CONTROL_FD, POLLIN, 0 }, { (int)signal_fd, POLLIN, 0 } };
		char drain[512];

		raw_call(SYS_poll, polled, 2, -1);
		if (polled[1].revents) {
			raw_call(SYS_read, signal_fd, drain, sizeof(drain));
			if (reap(command))
				end_all(rung);
		}
		if (polled[0].revents && !obey(command))
			end_all(rung);
	}
}

static _Noreturn void run_guardian(char **argv, char **envp)
{
	struct pollfd dead = { 4, POLLIN, 0 };
	char byte;
	long n;

	raw_call(SYS_setsid);
	raw_call(SYS_chdir, "/");
	do
		n = raw_call(SYS_read, 3, &byte, 1);
	while (n == -EINTR);
	if (n == 1)
		guest_exit(0);
	/* ward-init lost its supervisor too and ends by itself, on the rung with all the others: a second is plenty */
	raw_call(SYS_poll, &dead, 1, 1000);
	raw_call(SYS_pidfd_send_signal, 4, SIGKILL, 0, 0);
	while (raw_call(SYS_poll, &dead, 1, -1) == -EINTR)
		;
	raw_call(SYS_execveat, 5, "", argv, envp, AT_EMPTY_PATH);
	guest_exit(125);
}

_Noreturn void guest_main(long *stack)
{
	size_t argc = (size_t)stack[0];
	char **argv = (char **)(stack + 1);
	char **envp = argv + argc + 1;

	if (argc < 1)
		guest_exit(125);
	/* "ward-init", "ward-rung", "ward-guardian" or "ward-keeper": the sixth letter tells */
	char role = raw_strlen(argv[0]) > 5 ? argv[0][5] : 'i';

	if (role == 'g')
		run_guardian(argv + 1, envp);
	if (role == 'k')
		guest_keeper();
	run_init(argv + 1, argc - 1, envp, role == 'r');
}
