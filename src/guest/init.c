/*
 * ward-init: pid 1 of a sandbox, and the guardian of a run. Freestanding: no libc, no heap, a few
 * pages.
 *
 * As "ward-init" it is started by the native engine with everything already taken away (namespaces,
 * capabilities, Landlock, seccomp) and descriptor 3 on the supervisor. It starts the command given
 * behind its own name, reaps whatever becomes an orphan, passes signals on, and says how the
 * command ended. When the supervisor is gone, or the command has ended, it exits, and the kernel
 * kills everything else in the pid namespace. It is not dumpable: the command, which has the same
 * uid, can neither trace it nor reach its descriptors. At the supervisor's word it starts further
 * commands, whose descriptors come with that word (exec.c); they live under everything that the
 * first one does. Without a command it is an idle sandbox that ends on request. As "ward-begun" it
 * does all that, but for its own command, which is its child already (engine/native/begin.c).
 *
 * As "ward-landlock" it does the same where there is no pid namespace (the Landlock level). It is
 * not pid 1 there, so the kernel would not kill what it leaves behind; but its Landlock domain
 * scopes signals, and kill(-1) reaches exactly the processes of that domain. The command gets a
 * domain of its own inside, from which ward-init is out of reach.
 *
 * As "ward-guardian" it sits outside, beside the supervisor, in a session of its own: descriptor 3
 * is one end of a socket pair that the supervisor holds, 4 the sandbox's pidfd, 5 ward's binary.
 * One byte means that all is well and it ends. Its closing without one means that the supervisor
 * was killed: it makes sure that the sandbox is dead and becomes `ward recover`, which cleans up
 * what the kernel does not.
 *
 * As "ward-outer" it is pid 1 around an OCI runtime and the container that the runtime makes: see
 * outer.c. As "/.ward/init" it is started by that runtime, and as "ward-settle" puts the last
 * layers on itself: see container.c.
 *
 * As "ward-keeper" it runs beside the process that has put the operator's terminal into raw mode:
 * see keeper.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "base/clone.h"
#include "base/raw.h"
#include "guest/guest.h"
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

_Noreturn void guest_exit(int code)
{
	for (;;)
		raw_call(SYS_exit_group, code);
}

void guest_say(uint32_t op, int32_t a, int32_t b, uint32_t tag)
{
	struct guest_message m = { op, a, b, tag };

	raw_call(SYS_write, GUEST_CONTROL_FD, &m, sizeof(m));
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

/* What ward-init has open is not for the copy: it reads and writes names that others choose. */
static int guest_copy_words(const struct guest_start *start)
{
	const char *what = start->strings, *path = what + raw_strlen(what) + 1;

	raw_call(SYS_close_range, 3, ~0U, 0);
	return start->argc < 2
		       ? 125
		       : guest_copy(what, path, start->argc > 2 ? path + raw_strlen(path) + 1 : "");
}

/* The new process, until it is the command. */
static _Noreturn void become_command(const struct guest *g, struct guest_start *start)
{
	long err = guest_take_stdio(start);
	int code = 125;

	if (start->opened) /* its terminal is that of the program that asked */
		raw_call(SYS_setsid);
	else
		guest_session(start->tag);
	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &g->command_mask, 0, SIGNAL_SET_BYTES);
	if (err == 0 && g->level)
		err = enter_inner_domain();
	if (err == 0 && start->opened)
		err = raw_call(SYS_fchdir, start->dir_fd);
	else if (err == 0 && start->cwd[0])
		err = raw_call(SYS_chdir, start->cwd);
	if (err == 0 && start->copy)
		guest_exit(guest_copy_words(start));
	if (err == 0) {
		err = -guest_exec(start, g->envp);
		code = err == -ENOENT || err == -ENOTDIR ? 127 : 126;
	}
	guest_say(GUEST_FAILED, (int32_t)-err, code, start->tag);
	guest_exit(code);
}

static long start_command(const struct guest *g, struct guest_start *start)
{
	long pid = raw_call(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		become_command(g, start);
	return pid;
}

struct first_command {
	const struct guest *g;
	struct guest_start *start;
};

static int become_first(void *argument)
{
	const struct first_command *first = argument;

	become_command(first->g, first->start);
}

static bool has_terminal(void)
{
	char modes[64];

	for (int fd = 0; fd < 3; fd++)
		if (raw_call(SYS_ioctl, fd, TCGETS, modes) == 0)
			return true;
	return false;
}

/* The command that everything waits for: in our own memory and further down our stack until it
 * executes, which spares copying both. On a terminal a part of it stays behind (session.c), so it
 * needs memory of its own. */
__attribute__((noinline)) static long start_at_once(const struct guest *g,
						    struct guest_start *start)
{
	/* what this function and the one that it calls use of the stack, and more */
	enum { DISTANCE = 1024 };
	struct first_command first = { g, start };
	char *below = (char *)__builtin_frame_address(0) - DISTANCE;

	if (has_terminal())
		return start_command(g, start);
	return clone_call(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, RAW_ARG(below), 0, 0,
			  become_first, &first);
}

/* One of the commands that were started later has ended. */
static void note_end(struct guest *g, long pid, int status)
{
	for (size_t i = 0; i < GUEST_EXECS_MAX; i++)
		if (g->execs[i].pid == pid) {
			g->execs[i].pid = 0;
			guest_say(GUEST_EXITED, status, 0, g->execs[i].tag);
			return;
		}
}

/* What those that were collected have used: the process that started us does not count it,
 * because it would count the runtime. */
static void say_used(void)
{
	struct rusage used;
	long ms;

	if (raw_call(SYS_getrusage, RUSAGE_CHILDREN, &used) < 0)
		return;
	ms = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
	     (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
	guest_say(GUEST_USED, (int32_t)(ms < INT32_MAX ? ms : INT32_MAX),
		  (int32_t)(used.ru_maxrss < INT32_MAX ? used.ru_maxrss : INT32_MAX), 0);
}

/* Collects the dead; true when the command is among them. */
static bool reap(struct guest *g)
{
	int status = 0;
	long pid;

	while ((pid = raw_call(SYS_wait4, -1, &status, WNOHANG, 0)) > 0) {
		if (pid == g->command) {
			if (g->container)
				say_used();
			guest_say(GUEST_EXITED, status, 0, 0);
			return true;
		}
		note_end(g, pid, status);
	}
	return g->command && pid == -ECHILD;
}

/* The process that a tag stands for; 0: none, or it has ended. */
static long find_pid(const struct guest *g, uint32_t tag)
{
	for (size_t i = 0; tag && i < GUEST_EXECS_MAX; i++)
		if (g->execs[i].pid && g->execs[i].tag == tag)
			return g->execs[i].pid;
	return tag ? 0 : g->command;
}

static void close_all(int fds[GUEST_FDS_MAX])
{
	for (int i = 0; i < GUEST_FDS_MAX; i++) {
		if (fds[i] >= 0)
			raw_call(SYS_close, fds[i]);
		fds[i] = -1;
	}
}

/* Descriptors may be of the sandbox's making, and their last close takes as long as it likes: the
 * supervisor keeps its own open until it is answered here. */
static void start_another(struct guest *g, const struct guest_message *m, size_t len,
			  int fds[GUEST_FDS_MAX])
{
	struct guest_start start = { .tag = m->tag,
				     .from_packet = true,
				     .copy = m->op == GUEST_COPY };
	size_t slot = 0;
	long pid = -EINVAL;

	while (slot < GUEST_EXECS_MAX && g->execs[slot].pid)
		slot++;
	if (slot == GUEST_EXECS_MAX)
		pid = -EAGAIN;
	else if (guest_read_start(m, len, fds, &start))
		pid = start_command(g, &start);
	close_all(fds);
	if (pid < 0) {
		guest_say(GUEST_FAILED, (int32_t)-pid, 125, m->tag);
		return;
	}
	g->execs[slot] = (struct guest_exec){ .pid = pid, .tag = m->tag };
	guest_say(GUEST_READY, (int32_t)pid, 0, m->tag);
}

/* Every process stops or goes on, or an inner runtime's runner is asked to do it. */
static void hold(const struct guest *g, bool stop, bool by_runner)
{
	siginfo_t info;

	if (!by_runner) {
		raw_call(SYS_kill, -1, stop ? SIGSTOP : SIGCONT);
		return;
	}
	for (size_t i = 0; i < sizeof(info); i++)
		((volatile char *)&info)[i] = 0;
	info.si_signo = GUEST_HOLD;
	info.si_code = SI_QUEUE;
	info.si_value.sival_int = stop;
	if (g->command > 0)
		raw_call(SYS_rt_sigqueueinfo, g->command, GUEST_HOLD, &info);
}

static void listen_to(struct guest *g, unsigned long signals)
{
	g->signal_fd = raw_call(SYS_signalfd4, g->signal_fd, &signals, SIGNAL_SET_BYTES,
				O_CLOEXEC | O_NONBLOCK);
}

/* Empties the signals. Of the numbers that the command has reported the last one counts; no
 * other process is believed. */
static void take_signals(const struct guest *g)
{
	struct signalfd_siginfo taken[4];
	long n = raw_call(SYS_read, g->signal_fd, taken, sizeof(taken));
	int32_t pids = -1;

	for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(taken[0]); i++)
		if (taken[i].ssi_signo == GUEST_TELL && taken[i].ssi_code == SI_QUEUE &&
		    (long)taken[i].ssi_pid == g->command)
			pids = taken[i].ssi_int;
	if (pids >= 0)
		guest_say(GUEST_PIDS, pids, 0, 0);
}

/* Carries out one message of the supervisor; false when it is gone. */
static bool dispatch(struct guest *g)
{
	int fds[GUEST_FDS_MAX] = { -1, -1, -1, -1, -1 };
	struct guest_message *m = NULL;
	long n = guest_receive(g, &m, fds), pid;

	if (n < (long)sizeof(*m))
		return n == -EINTR;
	pid = find_pid(g, m->tag);
	if (m->op == GUEST_SIGNAL && pid > 0) {
		if (raw_call(SYS_kill, -pid, m->a) < 0) /* it has not made its group yet */
			raw_call(SYS_kill, pid, m->a);
	} else if (m->op == GUEST_STOP || m->op == GUEST_CONTINUE)
		hold(g, m->op == GUEST_STOP, m->a == 1);
	else if (m->op == GUEST_ASK)
		guest_say(GUEST_READY, (int32_t)g->command, 0, 0);
	else if (m->op == GUEST_COUNT)
		listen_to(g, SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(GUEST_TELL));
	else if (m->op == GUEST_EXEC || m->op == GUEST_COPY || m->op == GUEST_EXEC_FILE)
		start_another(g, m, (size_t)n, fds);
	close_all(fds);
	return m->op != GUEST_END;
}

/* The end of everything: as pid 1 by leaving, on the Landlock level by hand. */
static _Noreturn void end_all(bool level)
{
	long r = 0;

	if (level)
		raw_call(SYS_kill, -1, SIGKILL);
	while (level && (r >= 0 || r == -EINTR))
		r = raw_call(SYS_wait4, -1, 0, 0, 0);
	guest_exit(0);
}

/* kill(-1) is ours only where the engine has confined us: there is a filter, the last thing that it
 * puts on, and the supervisor is out of reach. */
static bool is_confined(long supervisor)
{
	return raw_call(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) == 2 &&
	       raw_call(SYS_kill, supervisor, 0) == -EPERM &&
	       raw_call(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) >= 0;
}

/* The child that was begun before us: its number is our only word. */
static long read_number(const char *text)
{
	long n = 0;

	for (; *text >= '0' && *text <= '9' && n < 100000000; text++)
		n = n * 10 + *text - '0';
	return n;
}

static void start_first(struct guest *g, char **argv, size_t argc)
{
	struct guest_start start = {
		.argv = argv, .argc = argc, .envp = g->envp, .cwd = "", .fds = { 0, 1, 2 }
	};

	if (argc > 0)
		g->command = start_at_once(g, &start);
	if (g->command < 0) {
		guest_say(GUEST_FAILED, (int32_t)-g->command, 126, 0);
		guest_exit(126);
	}
}

static _Noreturn void run_init(char **argv, size_t argc, char **envp, char role)
{
	const bool level = role == 'l', begun = role == 'b' && argc == 1;
	unsigned long all = ~0UL;
	long supervisor = raw_call(SYS_getppid);
	struct guest g;

	g.command = 0;
	g.envp = envp;
	g.packet = 0;
	g.level = level;
	g.container = role == 's';
	for (size_t i = 0; i < GUEST_EXECS_MAX; i++)
		g.execs[i].pid = 0;
	raw_call(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
	raw_call(SYS_fcntl, GUEST_CONTROL_FD, F_SETFD, FD_CLOEXEC);
	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &g.command_mask, SIGNAL_SET_BYTES);
	g.signal_fd = -1;
	listen_to(&g, SIGNAL_BIT(SIGCHLD));
	if (g.signal_fd < 0 || (level && !is_confined(supervisor)))
		guest_exit(125);
	if (begun)
		g.command = read_number(argv[0]);
	else
		start_first(&g, argv, argc);
	if (begun && reap(&g)) /* it may have ended before there was a signalfd */
		end_all(level);
	for (;;) {
		struct pollfd polled[2] = { { GUEST_CONTROL_FD, POLLIN, 0 },
					    { (int)g.signal_fd, POLLIN, 0 } };

		raw_call(SYS_poll, polled, 2, -1);
		if (polled[1].revents) {
			take_signals(&g);
			if (reap(&g))
				end_all(level);
		}
		if (polled[0].revents && !dispatch(&g))
			end_all(level);
	}
}

static _Noreturn void run_guardian(char **argv, char **envp)
{
	struct pollfd dead = { 4, POLLIN, 0 };
	const long supervisor = raw_call(SYS_getppid);
	char byte;
	long n;

	raw_call(SYS_setsid);
	raw_call(SYS_chdir, "/");
	do
		n = raw_call(SYS_read, 3, &byte, 1);
	while (n == -EINTR);
	if (n == 1)
		guest_exit(0);
	/* ward-init lost its supervisor too and ends by itself, on the Landlock level with all the
	 * others: a second is plenty */
	raw_call(SYS_poll, &dead, 1, 1000);
	raw_call(SYS_pidfd_send_signal, 4, SIGKILL, 0, 0);
	/* what is frozen does not die: `ward recover` knows its cgroup */
	raw_call(SYS_poll, &dead, 1, 300);
	/* the supervisor's descriptors close one by one, and some take long: its locks may be held
	 * still */
	for (int i = 0; i < 400 && raw_call(SYS_getppid) == supervisor; i++)
		raw_call(SYS_poll, 0, 0, 5);
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
	/* "ward-init", "ward-begun", "ward-landlock", "ward-guardian", "ward-keeper", "ward-outer",
	 * "ward-settle" or, started by its path, "/.ward/init": the sixth letter tells */
	char role = raw_strlen(argv[0]) > 5 ? argv[0][5] : 'i';

	if (role == 'g')
		run_guardian(argv + 1, envp);
	if (role == 'k')
		guest_keeper();
	if (role == 'o')
		guest_outer(argv + 1, envp);
	if (role == 'd')
		guest_join();
	if (role == 's') {
		argv = guest_settle(&argc, &envp);
		run_init(argv, argc, envp, role);
	}
	run_init(argv + 1, argc - 1, envp, role);
}
