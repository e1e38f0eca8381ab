/*
 * A command in the guest, from start to end. Two processes: the caller of vm_serve() is the command
 * as far as any process outside can see (client.c: signals, terminal, exit status); its child, the
 * server, has the guest's port and a session of its own, so that a command that is stopped with
 * Ctrl-Z stops no other client's command. The server goes through the phases below. Both run inside
 * the native sandbox with its rights. An error goes to the caller as it is.
 */
#include "vm/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "base/io.h"
#include "vm/client.h"
#include "vm/server.h"

#define READY_BYTES (VM_HEAD_BYTES + sizeof(struct vm_ready))

int vm_wait_ready(int serial_fd, int timeout_ms, struct ward_err *e)
{
	uint8_t bytes[READY_BYTES];
	uint64_t until = io_now_ms() + (uint64_t)timeout_ms;
	struct vm_ready ready = { 0 };
	struct vm_frame f;
	size_t len = 0;

	while (len < sizeof(bytes)) {
		struct pollfd p = { .fd = serial_fd, .events = POLLIN };
		uint64_t now = io_now_ms();
		ssize_t n;

		if (now >= until)
			return ward_fail(e, ETIMEDOUT, "the guest was not ready after %d ms",
					 timeout_ms);
		if (poll(&p, 1, (int)(until - now)) <= 0)
			continue;
		n = recv(serial_fd, bytes + len, sizeof(bytes) - len, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return ward_fail(e, EPIPE,
					 "the virtual machine exited before it was ready");
		len += n > 0 ? (size_t)n : 0;
	}
	if (wire_parse(bytes, len, true, &f) != (long)len || f.type != VM_READY)
		return ward_fail(e, EPROTO, "the guest's first message is not its ready message");
	memcpy(&ready, f.payload, sizeof(ready));
	if (ready.version != VM_VERSION)
		return ward_fail(e, EPROTO, "the guest speaks version %u, this ward-vm %u",
				 ready.version, VM_VERSION);
	return 0;
}

static void tell_time(const struct server *v, const char *what)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (v->setup->tell_times)
		dprintf(2, "ward-vm: %s at %lld.%06ld\n", what, (long long)now.tv_sec,
			now.tv_nsec / 1000);
}

/* For measurements: the first answer of the guest, before it is asked for anything that takes time.
 */
static int wait_for_echo(struct server *v, struct ward_err *e)
{
	int r = 0;

	if (!v->setup->tell_times)
		return 0;
	v->session.tell_echo = true;
	while (r == 0 && !v->session.echoed)
		r = server_turn(v, false, e);
	tell_time(v, "answered");
	return r;
}

static int greet(struct server *v, struct ward_err *e)
{
	const struct vm_setup *s = v->setup;
	struct vm_session *to = &v->session;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	to->time = (struct vm_time){ .s = now.tv_sec, .ns = (uint32_t)now.tv_nsec };
	if (getrandom(to->time.seed, sizeof(to->time.seed), 0) != sizeof(to->time.seed))
		return ward_fail_errno(e, "random numbers for the guest");
	to->setup = (struct vm_setup_frame){ .uid = s->uid,
					     .gid = s->gid,
					     .pids = s->pids,
					     .memory_bytes = s->memory_bytes,
					     .files = s->files };
	snprintf(to->setup.hostname, sizeof(to->setup.hostname), "%s",
		 s->hostname ? s->hostname : "");
	to->tell_time = to->tell_setup = true;
	return 0;
}

static int start_first(struct server *v, struct ward_err *e)
{
	const struct vm_setup *s = v->setup;
	struct vm_start start = { .kind = VM_RUN };
	int fds[VM_STREAMS] = { 0, 1, 2 }, channel;
	size_t len = 0;
	char *words = party_words(s->cwd, s->argc, s->argv, s->envp, &len, &start);

	party_terminals(fds, &start);
	channel = session_open(&v->session, &start, words, len, e);
	for (int i = 0; i < VM_STREAMS && channel > 0; i++)
		fds[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
	if (channel > 0)
		party_begin(&v->parties[1], (unsigned)channel, fds, take_fd(&v->early_fd),
			    &v->session.channels[channel]);
	return channel < 0 ? channel : 0;
}

static int run_first(struct server *v, int *ret_status, struct ward_err *e)
{
	const struct party *first = &v->parties[1];
	const struct vm_channel *c = &v->session.channels[first->channel];
	int r = 0;

	while (r == 0 && (c->state != VM_ENDED || !party_flushed(c)))
		r = server_turn(v, true, e);
	*ret_status = c->status | (c->spent ? VM_EXIT_SPENT : 0);
	if (r == 0 && c->error)
		return ward_fail(e, c->error, "the guest could not start the command: %s",
				 strerror(c->error));
	return r;
}

/* Nothing inside goes on once the command has ended: what others asked for until now is started and
 * ended with the rest, and one of them that does not read loses what it has not taken. */
static int quiesce(struct server *v, struct ward_err *e)
{
	int r = 0;

	server_turn_away(v);
	v->session.tell_quiesce = true;
	while (r == 0 && !v->session.quiet) {
		server_drop_slow(v);
		r = server_turn(v, false, e);
	}
	return r;
}

static int serve(struct server *v, int *ret_status, struct ward_err *e)
{
	int r = server_listen(v, e);

	tell_time(v, "began");
	if (r == 0)
		r = wait_for_echo(v, e);
	if (r == 0)
		r = greet(v, e);
	if (r == 0)
		r = server_trees_in(v, e);
	tell_time(v, "trees are in");
	if (r == 0)
		r = start_first(v, e);
	if (r == 0)
		r = run_first(v, ret_status, e);
	tell_time(v, "command ended");
	if (r == 0)
		r = quiesce(v, e);
	if (r == 0)
		r = server_trees_out(v, e);
	tell_time(v, "trees are out");
	if (r == 0 && v->lost && *ret_status == 0)
		*ret_status = 125 << 8;
	return r;
}

static _Noreturn void server_main(int serial_fd, const struct vm_setup *setup, int sock_fd)
{
	struct server *v = calloc(1, sizeof(*v));
	struct party_message last = { .magic = PARTY_MAGIC, .op = PARTY_EXIT };
	struct ward_err e = { 0 };
	int r;

	prctl(PR_SET_NAME, "ward-vm-server");
	setsid();
	if (!v)
		_exit(1);
	v->setup = setup;
	v->serial_fd = serial_fd;
	v->early_fd = sock_fd;
	for (size_t i = 0; i < PARTY_PENDING; i++)
		v->pending[i] = -1;
	for (size_t i = 0; i < VM_CHANNELS; i++)
		v->parties[i] = (struct party){ .fds = { -1, -1, -1 }, .sock_fd = -1 };
	r = serve(v, &last.a, &e);
	if (v->parties[1].sock_fd < 0)
		v->parties[1].sock_fd = take_fd(&v->early_fd);
	if (r < 0)
		last.op = PARTY_ERROR;
	for (unsigned i = VM_CHANNELS - 1; i > 0; i--)
		party_end(&v->parties[i], &last, r < 0 ? &e : NULL);
	_exit(0);
}

int vm_serve(int serial_fd, const struct vm_setup *setup, struct ward_err *e)
{
	sigset_t all, before;
	int pair[2], r;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return ward_fail_errno(e, "a socket for the command");
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		server_main(serial_fd, setup, pair[1]);
	}
	close(pair[1]);
	r = pid < 0 ? ward_fail_errno(e, "a process for the guest's port")
		    : client_follow(pair[0], e);
	close(pair[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}
