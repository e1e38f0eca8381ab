/*
 * ward's stand-in for a guarded program (process.commands with ask, or with patterns of words).
 *
 * In: the words of a command line. Out: a request to the supervisor, with descriptors 0-2 and the
 * directory; then the program's output is its own, and its end becomes ours. Lies over the
 * program's file, runs inside with the rights of the process that started it, and decides nothing:
 * the supervisor copies the request once, decides on that copy, and ward-init starts exactly it,
 * with the program's own file (guest/exec.c). A process that writes a request itself gains nothing.
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
#define SAID_MAX 1024
#define SOCKET "/.ward/guard/socket"

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
	char *packet; /* COMMAND_MAX bytes */
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
		fail("the arguments are too long for a program that a person is asked about");
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
	char path[4096];
	long n = raw_call(SYS_readlink, "/proc/self/exe", path, sizeof(path) - 1);

	if (n <= 0 || argc < 1 || argc > COMMAND_WORDS_MAX)
		fail("cannot tell which program this is");
	path[n] = '\0';
	s->len = sizeof(m);
	put(s, path);
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

static void send_request(const struct stand_in *s)
{
	FD_MESSAGE_CONTROL(COMMAND_FDS) control;
	struct iovec iov = { .iov_base = s->packet, .iov_len = s->len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space };
	int fds[COMMAND_FDS] = { 0, 1, 2,
				 (int)raw_call(SYS_openat, AT_FDCWD, ".",
					       O_PATH | O_DIRECTORY | O_CLOEXEC, 0) };
	long n;

	if (fds[3] < 0)
		fail("cannot open the current directory");
	fd_message_put(&m, fds, COMMAND_FDS);
	n = raw_call(SYS_sendmsg, s->socket_fd, &m, MSG_NOSIGNAL);
	raw_call(SYS_close, fds[3]);
	/* one that is refused at once: why is in the socket */
	if (n != (long)s->len && n != -EPIPE && n != -ECONNRESET)
		fail("ward does not take the request");
}

static void connect_to_ward(struct stand_in *s)
{
	static const char path[] = SOCKET;
	struct sockaddr_un at;

	for (size_t i = 0; i < sizeof(at); i++)
		((volatile char *)&at)[i] = 0;
	at.sun_family = AF_UNIX;
	for (size_t i = 0; i < sizeof(path); i++)
		at.sun_path[i] = path[i];
	s->socket_fd = (int)raw_call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (s->socket_fd < 0 || raw_call(SYS_connect, s->socket_fd, &at, sizeof(at)) < 0)
		fail("cannot reach ward, which starts this program");
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

static void on_message(struct stand_in *s)
{
	char bytes[sizeof(struct command_message) + SAID_MAX];
	struct command_message m = { 0, 0, 0, 0 };
	long n = raw_call(SYS_recvfrom, s->socket_fd, bytes, sizeof(bytes), 0, 0, 0);

	if (n == -EINTR || n == -ECONNRESET) /* what was sent before that comes yet */
		return;
	if (n < (long)sizeof(m))
		fail("ward has closed the connection without an answer: the sandbox is ending, or "
		     "this was no request");
	for (size_t i = 0; i < sizeof(m); i++)
		((char *)&m)[i] = bytes[i];
	if (m.op == COMMAND_STARTED)
		s->started = true;
	else if (m.op == COMMAND_ENDED)
		end_like(m.a);
	else if (m.op == COMMAND_REFUSED) {
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
	connect_to_ward(&s);
	write_request(&s, argv, argc, argv + argc + 1);
	send_request(&s);
	for (;;) {
		struct pollfd polled[2] = { { s.socket_fd, POLLIN, 0 },
					    { s.signal_fd, POLLIN, 0 } };
		struct signalfd_siginfo info;

		raw_call(SYS_poll, polled, 2, -1);
		if (polled[1].revents &&
		    raw_call(SYS_read, s.signal_fd, &info, sizeof(info)) == (long)sizeof(info))
			on_signal(&s, (int)info.ssi_signo);
		if (polled[0].revents)
			on_message(&s);
	}
}
