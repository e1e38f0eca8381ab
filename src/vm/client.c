/*
 * The command as others see it: ward-vm, or `ward-vm exec`. It has the terminal and gets the
 * signals, and passes both on; the server moves the bytes. In: what the server says, which has it
 * from the guest: a number for an end, one for a stop, an error to be shown. The terminal is put
 * back whatever happens but a SIGKILL (ward's keeper puts it back then).
 */
#include "vm/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>

#include "base/io.h"
#include "vm/party.h"

#define BOOT_NAP_US 20000
#define BOOT_TRIES 15000 /* five minutes */

struct client {
	int sock_fd, signal_fd;
	bool terminal; /* 0 is one */
	struct termios before;
};

struct answer {
	struct party_message m;
	struct ward_err e;
};

static void go_raw(struct client *c)
{
	struct termios raw;

	if (!c->terminal || tcgetattr(0, &c->before) < 0)
		return;
	raw = c->before;
	cfmakeraw(&raw);
	(void)!tcsetattr(0, TCSADRAIN, &raw);
}

static void go_back(const struct client *c)
{
	if (c->terminal)
		(void)!tcsetattr(0, TCSADRAIN, &c->before);
}

static void tell_size(const struct client *c)
{
	struct vm_start start = { 0 };
	struct party_message m = { .magic = PARTY_MAGIC, .op = PARTY_RESIZE };

	party_terminals((const int[]){ 0, 1, 2 }, &start);
	m.a = start.rows;
	m.b = start.columns;
	if (start.terminals)
		(void)!send(c->sock_fd, &m, sizeof(m), MSG_NOSIGNAL);
}

static void take_signal(struct client *c)
{
	struct signalfd_siginfo info;

	if (read(c->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH) {
		tell_size(c);
		return;
	}
	if (info.ssi_signo == SIGCONT)
		go_raw(c);
	if (info.ssi_signo != SIGCHLD && info.ssi_signo != SIGTTIN && info.ssi_signo != SIGTTOU)
		party_say(c->sock_fd, PARTY_SIGNAL, (int)info.ssi_signo);
}

/* The command was stopped: so is this. What continues it continues the command. */
static void stop(struct client *c)
{
	go_back(c);
	kill(getpid(), SIGSTOP);
}

/* 1: it goes on; else as client_follow(). */
static int take_answer(struct client *c, int *ret_status, struct ward_err *e)
{
	struct answer a;
	ssize_t n = recv(c->sock_fd, &a, sizeof(a), 0);

	if (n < 0 && errno == EINTR)
		return 1;
	if (n < (ssize_t)sizeof(a.m) || a.m.magic != PARTY_MAGIC)
		return ward_fail(e, EPIPE, "the virtual machine ended before the command did");
	if (a.m.op == PARTY_STOPPED) {
		if (c->terminal)
			stop(c);
		return 1;
	}
	if (a.m.op == PARTY_ERROR && n == (ssize_t)sizeof(a)) {
		*e = a.e;
		return -(e->code ? e->code : EIO);
	}
	*ret_status = a.m.a;
	return 0;
}

int client_follow(int sock_fd, struct ward_err *e)
{
	struct client c = { .sock_fd = sock_fd, .terminal = isatty(0) };
	sigset_t all;
	int r = 1, status = 0;

	sigfillset(&all);
	c.signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (c.signal_fd < 0)
		return ward_fail_errno(e, "waiting for signals");
	go_raw(&c);
	while (r == 1) {
		struct pollfd fds[2] = { { .fd = sock_fd, .events = POLLIN },
					 { .fd = c.signal_fd, .events = POLLIN } };

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			r = ward_fail_errno(e, "waiting for the command");
		if (fds[1].revents & POLLIN)
			take_signal(&c);
		if (fds[0].revents)
			r = take_answer(&c, &status, e);
	}
	go_back(&c);
	close(c.signal_fd);
	return r < 0 ? r : status;
}

/* ---- one more command ---- */

/* A machine that boots is waited for: if it ends, so does the sandbox, and this with it. */
static int reach(const char *path, struct ward_err *e)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	auto_fd fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int tries = 0, r;

	if (strlen(path) >= sizeof(to.sun_path))
		return ward_fail(e, ENAMETOOLONG, "the path of the guest's socket is too long: %s",
				 path);
	memcpy(to.sun_path, path, strlen(path) + 1);
	while ((r = connect(fd, (const struct sockaddr *)&to, sizeof(to))) < 0 &&
	       (errno == ENOENT || errno == ECONNREFUSED) && tries++ < BOOT_TRIES)
		usleep(BOOT_NAP_US);
	if (fd < 0 || r < 0)
		return ward_fail_errno(e, "reaching the guest at %s", path);
	return take_fd(&fd);
}

/* Where the watch holds the memory limit, memory files are closed. */
static int open_nameless(void)
{
	int fd = memfd_create("words", MFD_CLOEXEC);

	return fd >= 0 ? fd : open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

static int ask(int sock_fd, struct vm_start *start, const char *words, size_t len,
	       struct ward_err *e)
{
	struct party_message m = { .magic = PARTY_MAGIC, .op = PARTY_START, .start = *start };
	auto_fd memory = open_nameless();
	int fds[4] = { 0, 1, 2, memory }, r;

	if (!words || len > VM_WORDS_MAX)
		return ward_fail(
			e, E2BIG,
			"the arguments and variables of the command are larger than %u bytes",
			VM_WORDS_MAX);
	r = memory < 0 ? -errno : io_write_all(memory, words, len);
	if (r == 0)
		r = io_send_fds(sock_fd, &m, sizeof(m), fds, 4);
	return r < 0 ? ward_fail(e, -r, "handing the command to the guest: %s", strerror(-r)) : 0;
}

static int run(const char *socket_path, enum vm_kind kind, int argc, char **argv, char **envp,
	       struct ward_err *e)
{
	struct vm_start start = { .kind = kind };
	auto_free char *cwd = getcwd(NULL, 0);
	auto_fd sock = reach(socket_path, e);
	size_t len = 0;
	auto_free char *words = party_words(cwd ? cwd : "", argc, argv, envp, &len, &start);
	sigset_t all, before;
	int r;

	if (sock < 0)
		return sock;
	if (kind == VM_RUN)
		party_terminals((const int[]){ 0, 1, 2 }, &start);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	r = ask(sock, &start, words, len, e);
	if (r == 0)
		r = client_follow(sock, e);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}

int vm_exec_client(const char *socket_path, int argc, char **argv, char **envp, struct ward_err *e)
{
	return run(socket_path, VM_RUN, argc, argv, envp, e);
}

int vm_copy_client(const char *socket_path, int argc, char **argv, struct ward_err *e)
{
	return run(socket_path, VM_COPY, argc, argv, NULL, e);
}

void vm_end_like(int status)
{
	sigset_t none;

	if ((status & 0x7f) == 0)
		_exit(status >> 8 & 0xff);
	prctl(PR_SET_DUMPABLE, 0); /* no core of this process for a crash in there */
	signal(status & 0x7f, SIG_DFL);
	sigemptyset(&none);
	kill(getpid(), status & 0x7f);
	sigprocmask(SIG_SETMASK, &none, NULL);
	_exit(128 + (status & 0x7f));
}
