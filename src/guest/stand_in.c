/*
 * ward's stand-in for a guarded program (process.commands with ask, or with patterns of words), and
 * for ward itself inside of a sandbox that may have children (process.children).
 *
 * In: the words of a command line. Out: a request to the supervisor, with descriptors 0-2 and the
 * directory; then the program's output is its own, and its end becomes ours. Lies over the
 * program's file, runs inside with the rights of the process that started it, and decides nothing:
 * the supervisor copies the request once, decides on that copy, and ward-init starts exactly it,
 * with the program's own file (guest/exec.c). A process that writes a request itself gains nothing.
 *
 * At the path of ward the request goes to ward-children outside, which starts another sandbox. No
 * terminal goes there: the output comes through pipes, which are copied to it here, and the input
 * is empty.
 *
 * Signals are passed on to the program's process group, which is in a session of its own. Before it
 * has started they end or stop us as they would end or stop any program. Stops are passed on, too:
 * the job stands still as a whole.
 *
 * Freestanding: static, without a libc, without writable globals.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/fd_message.h"
#include "base/raw.h"
#include "guest/guest.h"
#include "protocol/command.h"

#define SIGNAL_SET_BYTES 8
#define GUARD_SOCKET "/.ward/guard/socket"
#define CHILDREN_SOCKET "/.ward/children/socket"
#define CHANNEL_SOCKET "/.ward/channel/socket"
#define CLIENT "/.ward/bin/ward"
#define COPY_BYTES 4096

_Noreturn void stand_in_main(long *stack);

__asm__(".globl _start\n"
	"_start:\n"
	"	xor %ebp, %ebp\n"
	"	mov %rsp, %rdi\n"
	"	and $-16, %rsp\n"
	"	call stand_in_main\n"
	"	hlt\n");

struct stand_in {
	int socket_fd, signal_fd;
	bool started;
	bool is_ward; /* the request is for ward-children */
	/* what comes for 1 and 2 where they are terminals; -1: they go along themselves */
	int copied_fds[3];
	char path[4096]; /* of this program */
	char *packet;    /* COMMAND_MAX bytes */
	size_t len;
};

static _Noreturn void leave(int code)
{
	for (;;)
		raw_call(SYS_exit_group, code);
}

static _Noreturn void fail(const char *why)
{
	raw_call(SYS_write, 2, "ward: ", 6);
	raw_call(SYS_write, 2, why, raw_strlen(why));
	raw_call(SYS_write, 2, "\n", 1);
	leave(126);
}

static void stop(void)
{
	raw_call(SYS_kill, raw_call(SYS_getpid), SIGSTOP);
}

/* Ends by that signal, or if it does not end anything, goes on. */
static void take(int signal)
{
	unsigned long none = 0, all = ~0UL;

	raw_call(SYS_kill, raw_call(SYS_getpid), signal);
	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &none, 0, SIGNAL_SET_BYTES);
	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, 0, SIGNAL_SET_BYTES);
}

/* -- the request */

static void put(struct stand_in *s, const char *text)
{
	size_t n = raw_strlen(text) + 1;

	if (n > COMMAND_MAX - s->len)
		fail("the arguments are too long for a program that ward starts");
	for (size_t i = 0; i < n; i++)
		s->packet[s->len++] = text[i];
}

/* What 0-2 are is shown, and passed on: none of them is missing. */
static void open_stdio(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (raw_call(SYS_fcntl, fd, F_GETFD) == -EBADF)
			raw_call(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
}

static void write_request(struct stand_in *s, char **argv, size_t argc, char **envp)
{
	struct command_message m = { COMMAND_MAGIC, COMMAND_START, (int32_t)argc, 0 };

	if (argc < 1 || argc > COMMAND_WORDS_MAX)
		fail("too many arguments for a program that ward starts");
	s->len = sizeof(m);
	put(s, s->path);
	for (size_t i = 0; i < argc; i++)
		put(s, argv[i]);
	for (; *envp && m.b < COMMAND_WORDS_MAX; envp++)
		if (command_keeps(*envp)) {
			put(s, *envp);
			m.b++;
		}
	for (size_t i = 0; i < sizeof(m); i++)
		s->packet[i] = ((const char *)&m)[i];
}

static void find_out(struct stand_in *s)
{
	long n = raw_call(SYS_readlink, "/proc/self/exe", s->path, sizeof(s->path) - 1);

	if (n <= 0)
		fail("cannot tell which program this is");
	s->path[n] = '\0';
	s->is_ward = command_behind(s->path, CLIENT) && !s->path[sizeof(CLIENT) - 1];
}

/* What goes along in place of a terminal. */
static int replace_terminal(struct stand_in *s, int fd)
{
	char modes[64];
	int ends[2];

	s->copied_fds[fd] = -1;
	if (!s->is_ward || raw_call(SYS_ioctl, fd, TCGETS, modes) < 0)
		return fd;
	if (fd == 0)
		return (int)raw_call(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC, 0);
	if (raw_call(SYS_pipe2, ends, O_CLOEXEC) < 0)
		fail("cannot make a pipe");
	raw_call(SYS_fcntl, ends[0], F_SETFL, O_NONBLOCK);
	s->copied_fds[fd] = ends[0];
	return ends[1];
}

static void send_request(struct stand_in *s)
{
	FD_MESSAGE_CONTROL(COMMAND_FDS) control;
	struct iovec iov = { .iov_base = s->packet, .iov_len = s->len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space };
	int fds[COMMAND_FDS] = {
		replace_terminal(s, 0), replace_terminal(s, 1), replace_terminal(s, 2),
		(int)raw_call(SYS_openat, AT_FDCWD, ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0)
	};
	long n;

	if (fds[3] < 0)
		fail("cannot open the current directory");
	fd_message_put(&m, fds, COMMAND_FDS);
	n = raw_call(SYS_sendmsg, s->socket_fd, &m, MSG_NOSIGNAL);
	for (int i = 0; i < COMMAND_FDS; i++)
		if (fds[i] > 2)
			raw_call(SYS_close, fds[i]);
	/* one that is refused at once: why is in the socket */
	if (n != (long)s->len && n != -EPIPE && n != -ECONNRESET)
		fail("ward does not take the request");
}

static bool connect_to(const struct stand_in *s, const char *path)
{
	struct sockaddr_un at;

	for (size_t i = 0; i < sizeof(at); i++)
		((volatile char *)&at)[i] = 0;
	at.sun_family = AF_UNIX;
	for (size_t i = 0; path[i]; i++)
		at.sun_path[i] = path[i];
	return raw_call(SYS_connect, s->socket_fd, &at, sizeof(at)) == 0;
}

/* In a child, messages go to its parent's ward, and requests for children of its own to its own. */
static void connect_to_ward(struct stand_in *s, bool runs)
{
	bool there;

	s->socket_fd = (int)raw_call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (s->is_ward)
		there = (!runs && connect_to(s, CHANNEL_SOCKET)) || connect_to(s, CHILDREN_SOCKET);
	else
		there = connect_to(s, GUARD_SOCKET);
	if (!there)
		fail("cannot reach ward, which does what this program asks for");
}

/* -- while it runs */

static void tell_signal(const struct stand_in *s, int signal)
{
	struct command_message m = { COMMAND_MAGIC, COMMAND_SIGNAL, signal, 0 };

	raw_call(SYS_sendto, s->socket_fd, &m, sizeof(m), MSG_NOSIGNAL, 0, 0);
}

static void on_signal(const struct stand_in *s, int signal)
{
	bool stops = signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;

	if (signal == SIGCHLD || signal == SIGURG)
		return;
	if (!s->started && stops)
		stop();
	else if (!s->started)
		take(signal);
	if (!s->started)
		return;
	/* the program's group is an orphaned one, where only SIGSTOP stops */
	tell_signal(s, stops ? SIGSTOP : signal);
	if (stops)
		stop(); /* the SIGCONT that ends it comes here next */
}

/* Signals that the starting process ignores, the program ignores, too (nohup, jobs in the
 * background). */
static unsigned long heeded(void)
{
	unsigned long all = ~0UL;

	for (int i = 1; i <= 64; i++) {
		struct {
			void *handler;
			unsigned long flags;
			void *restorer;
			unsigned long mask;
		} now = { 0, 0, 0, 0 };

		if (i != SIGCONT && raw_call(SYS_rt_sigaction, i, 0, &now, SIGNAL_SET_BYTES) == 0 &&
		    RAW_ARG(now.handler) == 1 /* SIG_IGN */)
			all &= ~(1UL << (i - 1));
	}
	return all;
}

static _Noreturn void end_like(int status)
{
	if (WIFSIGNALED(status))
		take(WTERMSIG(status));
	leave(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

/* Whatever came before the end is there by then. */
static void copy_output(const struct stand_in *s)
{
	for (int fd = 1; fd <= 2; fd++) {
		char bytes[COPY_BYTES];
		long n;

		while (s->copied_fds[fd] >= 0 &&
		       (n = raw_call(SYS_read, s->copied_fds[fd], bytes, sizeof(bytes))) > 0)
			raw_call(SYS_write, fd, bytes, (size_t)n);
	}
}

static void on_message(struct stand_in *s)
{
	char *bytes = s->packet; /* which was sent */
	struct command_message m = { 0, 0, 0, 0 };
	long n = raw_call(SYS_recvfrom, s->socket_fd, bytes, COMMAND_MAX, 0, 0, 0);

	if (n == -EINTR || n == -ECONNRESET) /* what was sent before that comes yet */
		return;
	if (n < (long)sizeof(m))
		fail("ward has closed the connection without an answer: the sandbox is ending, or "
		     "this was no request");
	for (size_t i = 0; i < sizeof(m); i++)
		((char *)&m)[i] = bytes[i];
	if (m.op == COMMAND_STARTED) {
		s->started = true;
	} else if (m.op == COMMAND_ENDED) {
		copy_output(s);
		end_like(m.a);
	} else if (m.op == COMMAND_MESSAGE) {
		raw_call(SYS_write, 1, bytes + sizeof(m), (size_t)n - sizeof(m));
		leave(0);
	} else if (m.op == COMMAND_REFUSED) {
		raw_call(SYS_write, 2, bytes + sizeof(m), (size_t)n - sizeof(m));
		leave(m.a);
	}
}

_Noreturn void stand_in_main(long *stack)
{
	size_t argc = (size_t)stack[0];
	char **argv = (char **)(stack + 1);
	unsigned long all = ~0UL, signals = heeded();
	struct stand_in s;
	long packet;

	raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, 0, SIGNAL_SET_BYTES);
	packet = raw_call(SYS_mmap, 0, COMMAND_MAX, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	open_stdio();
	s.signal_fd = (int)raw_call(SYS_signalfd4, -1, &signals, SIGNAL_SET_BYTES, O_CLOEXEC);
	if ((packet < 0 && packet > -4096) || s.signal_fd < 0)
		fail("out of memory");
	s.packet = (char *)packet;
	s.started = false;
	find_out(&s);
	connect_to_ward(&s, argc > 1 && command_behind(argv[1], "run"));
	write_request(&s, argv, argc, argv + argc + 1);
	send_request(&s);
	for (;;) {
		struct pollfd polled[4] = { { s.socket_fd, POLLIN, 0 },
					    { s.signal_fd, POLLIN, 0 },
					    { s.copied_fds[1], POLLIN, 0 },
					    { s.copied_fds[2], POLLIN, 0 } };
		struct signalfd_siginfo info;

		raw_call(SYS_poll, polled, 4, -1);
		copy_output(&s);
		for (int fd = 1; fd <= 2; fd++)
			if (polled[fd + 1].revents & POLLHUP)
				s.copied_fds[fd] = -1;
		if (polled[1].revents &&
		    raw_call(SYS_read, s.signal_fd, &info, sizeof(info)) == (long)sizeof(info))
			on_signal(&s, (int)info.ssi_signo);
		if (polled[0].revents)
			on_message(&s);
	}
}
