/*
 * ward-box's side of the control socket. In: requests of the user's own processes (control.h), one
 * packet each. Out: answers, descriptors of commands that run inside. Part of the supervisor's one
 * loop: nothing here waits. A peer must have the same uid, or be root, and must live in the same
 * user namespace: what runs in a sandbox of the same user is none of ours, even where it can see
 * the socket. A client that says nothing, or does not read, is dropped; there is a fixed number of
 * them.
 *
 * Descriptors of an exec are pipes made here: the inner ends go to ward-init, the outer ends to the
 * client, and no byte of them passes through this process. Nothing that the client has open goes
 * inside.
 */
#include "run/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/io.h"
#include "egress/secrets.h"
#include "run/box_internal.h"
#include "run/detach.h"
#include "run/serve_internal.h"

#define SILENT_MS 5000 /* a client that asks nothing */
#define REQUEST_SMALL 2048
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

_Static_assert(sizeof(struct guest_message) == sizeof(struct control_message),
	       "one is written over the other");
_Static_assert(GUEST_PACKET_MAX >= CONTROL_MAX,
	       "what a client may say must fit through to ward-init");

/* ---- answers ---- */

bool serve_send(struct serve_client *c, const void *bytes, size_t n, const int *fds,
		size_t fd_count)
{
	c->gone |= io_sendmsg_fds(c->fd, bytes, n, fds, fd_count, MSG_DONTWAIT) != (ssize_t)n;
	return !c->gone;
}

void serve_answer(struct serve_client *c, enum control_op op, int32_t a, int32_t b)
{
	struct control_message m = { .magic = CONTROL_MAGIC, .op = op, .a = a, .b = b };

	serve_send(c, &m, sizeof(m), NULL, 0);
}

void serve_refuse(struct serve_client *c, const struct ward_err *e)
{
	auto_buf out = { 0 };

	control_write_error(e, &out);
	if (out.failed || !serve_send(c, out.data, out.len, NULL, 0))
		c->gone = true;
}

/* ---- requests ---- */

static void answer_usage(struct serve *s, struct serve_client *c)
{
	struct box *b = s->box;
	struct {
		struct control_message m;
		struct control_usage u;
	} answer = { .m = { .magic = CONTROL_MAGIC, .op = CONTROL_USAGE } };
	struct usage *u = &b->result->usage;

	box_look_now(b);
	answer.u = (struct control_usage){
		.memory_bytes = u->memory_bytes,
		.memory_peak_bytes = u->memory_peak_bytes,
		.cpu_ms = u->cpu_ms,
		.pids = u->inside_pids ? u->inside_pids : u->pids,
		.disk_bytes = b->watch ? watch_own_disk(b->watch, u) : u->disk_bytes,
		.uptime_ms = io_now_ms() - b->started_ms,
		.output_bytes = b->streams.out_bytes,
		.clients = s->client_count,
	};
	for (size_t i = 0; i < b->result->denial_count; i++)
		answer.u.denials += b->result->denials[i].count;
	serve_send(c, &answer, sizeof(answer), NULL, 0);
}

static void do_signal(struct serve *s, struct serve_client *c, int signal)
{
	struct ward_err e = { 0 };

	if (!c->tag && box_is_idle(s->box)) {
		ward_fail(&e, ESRCH, "the sandbox is idle: it has no command to signal");
		ward_remedy(&e, "to stop it: ward stop %s", s->entry->id);
		serve_refuse(c, &e);
		return;
	}
	box_signal(s->box, signal, c->tag);
	serve_answer(c, CONTROL_OK, 0, 0);
}

static void do_pause(struct serve *s, struct serve_client *c, bool pause, bool quick)
{
	box_hold(s->box, pause, quick);
	s->box->kept = pause;
	s->box->suspect &= pause;
	boxes_set_state(s->entry, pause ? BOX_PAUSED : BOX_RUNNING);
	serve_answer(c, CONTROL_OK, 0, 0);
}

static void do_stop(struct serve *s, struct serve_client *c, int grace_ms)
{
	serve_answer(c, CONTROL_OK, 0, 0);
	for (size_t i = 0; i < s->client_count; i++)
		if (s->clients[i].tag)
			box_signal(s->box, SIGTERM, s->clients[i].tag);
	box_stop(s->box, (uint64_t)grace_ms);
}

static void do_kill(struct serve *s, struct serve_client *c)
{
	if (c->tag && c->tag == s->checkpoint_tag) { /* it was kept and is not to go on */
		s->checkpoint_tag = 0;
		serve_checkpoint_answer(s, true);
	}
	serve_answer(c, CONTROL_OK, 0, 0);
	box_kill(s->box);
}

/* A run in the foreground belongs to somebody's terminal: it can be looked at, stopped and ended,
 * and its network and secrets changed; nobody joins it. */
static bool is_for_foreground(uint32_t op)
{
	return op != CONTROL_EXEC && op != CONTROL_ATTACH && op != CONTROL_SIZE;
}

static void refuse_to_join(const struct serve *s, struct serve_client *c)
{
	struct ward_err e = { 0 };

	ward_fail(&e, ENOTSUP,
		  "%s runs in the foreground: no command can join it and no terminal can attach "
		  "to it",
		  s->entry->id);
	ward_remedy(&e, "start it with ward run -d for that");
	serve_refuse(c, &e);
}

static void dispatch(struct serve *s, struct serve_client *c, char *bytes, size_t n, int fd)
{
	struct control_message m;
	struct ward_err e = { 0 };

	memcpy(&m, bytes, sizeof(m));
	if (s->net_only && !is_for_foreground(m.op)) {
		refuse_to_join(s, c);
		return;
	}
	serve_report(s, c, &m, bytes + sizeof(m), n - sizeof(m));
	switch ((enum control_op)m.op) {
	case CONTROL_STATS:
		answer_usage(s, c);
		break;
	case CONTROL_EXEC:
		serve_exec(s, c, bytes, n);
		break;
	case CONTROL_SIGNAL:
		do_signal(s, c, m.a);
		break;
	case CONTROL_KILL:
		do_kill(s, c);
		break;
	case CONTROL_STOP:
		do_stop(s, c, m.a);
		break;
	case CONTROL_PAUSE:
	case CONTROL_RESUME:
		do_pause(s, c, m.op == CONTROL_PAUSE, m.a == 1);
		break;
	case CONTROL_WAIT:
		c->waits = true;
		serve_answer(c, CONTROL_OK, 0, 0);
		break;
	case CONTROL_ATTACH:
		serve_attach(s, c, m.flags);
		break;
	case CONTROL_SIZE:
		serve_size(s, c, m.a, m.b);
		break;
	case CONTROL_NET_SHOW:
	case CONTROL_NET_ALLOW:
	case CONTROL_NET_DENY:
		serve_net(s, c, &m, bytes + sizeof(m), n - sizeof(m));
		break;
	case CONTROL_SECRET_LIST:
	case CONTROL_SECRET_GRANT:
	case CONTROL_SECRET_REVOKE:
		serve_secret(s, c, &m, bytes + sizeof(m), fd);
		break;
	case CONTROL_QUESTION_LIST ... CONTROL_QUESTION_WATCH:
		serve_approve(s, c, &m, bytes + sizeof(m));
		break;
	/* answers */
	case CONTROL_OK ... CONTROL_QUESTIONS:
	case CONTROL_REQUESTS:
		ward_fail(&e, ENOTSUP, "this sandbox does not know the request %u", m.op);
		serve_refuse(c, &e);
		break;
	}
}

static void read_request(struct serve *s, struct serve_client *c)
{
	char small[REQUEST_SMALL];
	auto_free char *big = NULL;
	ssize_t n = recv(c->fd, NULL, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
	auto_fd fd = -1;
	size_t fds = 0;
	char *at;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > (ssize_t)sizeof(small) && n <= CONTROL_MAX)
		big = malloc((size_t)n);
	at = n > (ssize_t)sizeof(small) ? big : small;
	if (n <= 0 || n > CONTROL_MAX || !at ||
	    io_recv_fds(c->fd, at, (size_t)n, &fd, 1, &fds) != n ||
	    control_check_request(at, (size_t)n) < 0) {
		c->gone = true;
		return;
	}
	c->deadline_ms = io_now_ms() + SILENT_MS;
	dispatch(s, c, at, (size_t)n, fd);
}

/* ---- clients ---- */

static bool has_our_user_namespace(int fd, pid_t pid, bool *ret_known)
{
	char path[64];
	struct stat own, other;
	int pidfd = -1;
	socklen_t len = sizeof(pidfd);
	bool same;

	/* as long as we hold it, the pid is this process's and no other's */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) < 0)
		pidfd = -1;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	*ret_known = stat("/proc/self/ns/user", &own) == 0 && stat(path, &other) == 0;
	same = *ret_known && own.st_dev == other.st_dev && own.st_ino == other.st_ino;
	if (pidfd >= 0) {
		struct pollfd dead = { .fd = pidfd, .events = POLLIN };

		same = same && poll(&dead, 1, 0) == 0;
		close(pidfd);
	}
	return same;
}

bool serve_may_ask(int fd)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(peer);
	bool known = false;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ||
	    (peer.uid != geteuid() && peer.uid != 0))
		return false;
	return has_our_user_namespace(fd, peer.pid, &known) ||
	       (!known && peer.uid == 0 && geteuid() != 0);
}

static void take_client(struct serve *s, uint64_t now)
{
	int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct serve_client c = { .fd = fd, .stream_fd = -1, .deadline_ms = now + SILENT_MS };
	struct ward_err e = { 0 };

	if (fd < 0)
		return;
	if (!serve_may_ask(fd)) {
		close(fd);
		return;
	}
	if (s->client_count == SERVE_CLIENTS_MAX) {
		ward_fail(&e, EAGAIN, "the sandbox already has %d connections", SERVE_CLIENTS_MAX);
		serve_refuse(&c, &e);
		close(fd);
		return;
	}
	c.number = ++s->last_number;
	s->clients[s->client_count++] = c;
}

/* Whose command still runs: it learns that its client is gone, as from a terminal that was closed.
 */
static void drop_client(struct serve *s, size_t i)
{
	struct serve_client *c = &s->clients[i];

	if (c->tag) {
		/* what makes a checkpoint may wait for a kernel that never answers */
		box_signal(s->box, c->tag == s->checkpoint_tag ? SIGKILL : SIGHUP, c->tag);
		box_signal(s->box, SIGCONT, c->tag);
	}
	serve_detach(s, c);
	close(c->fd);
	s->clients[i] = s->clients[--s->client_count];
}

/* Whether it may be silent. A source of secrets may take its time. */
static bool may_be_silent(const struct serve *s, const struct serve_client *c)
{
	return c->tag || c->waits || c->watches || c->net_op || c->stream_fd >= 0 ||
	       (c->asks_secret && secrets_fd(s->box->plan->live->secrets) >= 0);
}

static void drop_gone(struct serve *s, uint64_t now)
{
	for (size_t i = s->client_count; i-- > 0;) {
		struct serve_client *c = &s->clients[i];

		if (c->gone || (!may_be_silent(s, c) && now >= c->deadline_ms))
			drop_client(s, i);
	}
}

uint64_t serve_due_ms(const struct serve *s)
{
	uint64_t due = 0;

	for (size_t i = 0; i < s->client_count; i++) {
		const struct serve_client *c = &s->clients[i];

		if (!may_be_silent(s, c) && (!due || c->deadline_ms < due))
			due = c->deadline_ms;
	}
	return due;
}

size_t serve_poll(struct serve *s, struct pollfd *polled)
{
	bool typing = s->typed_done < s->typed_len;
	struct pollfd *p = polled;

	*p++ = (struct pollfd){ .fd = s->listen_fd, .events = POLLIN };
	*p++ = (struct pollfd){ .fd = s->output_fd,
				.events = (short)(POLLIN | (typing ? POLLOUT : 0)) };
	*p++ = (struct pollfd){ .fd = s->life_fd, .events = POLLIN };
	for (size_t i = 0; i < s->client_count; i++) {
		*p++ = (struct pollfd){ .fd = s->clients[i].fd, .events = POLLIN };
		*p++ = (struct pollfd){ .fd = typing ? -1 : s->clients[i].stream_fd,
					.events = POLLIN };
	}
	return (size_t)(p - polled);
}

/* One read of the command's output. */
static bool take_output(struct serve *s)
{
	char data[4096];
	ssize_t n = read(s->output_fd, data, sizeof(data));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		close(s->output_fd);
		s->output_fd = -1;
		return false;
	}
	s->box->streams.out_bytes += (size_t)n;
	log_add(&s->log, data, (size_t)n);
	serve_show(s, data, (size_t)n);
	if (s->terminal)
		serve_answer_queries(s, data, (size_t)n);
	return true;
}

bool serve_handle(struct serve *s, const struct pollfd *polled, size_t count, uint64_t now)
{
	bool some = false;

	for (size_t i = 0; i < count; i++)
		some |= polled[i].revents != 0;
	if (polled[1].revents & POLLOUT && s->typed_len)
		serve_push(s);
	if (polled[1].revents & ~POLLOUT)
		take_output(s);
	if (polled[2].revents) {
		/* the process it was started for has gone, or speaks where nothing is to be said */
		s->life_fd = -1;
		box_kill(s->box);
	}
	for (size_t i = 0; 2 * i + 3 < count; i++) {
		if (polled[3 + 2 * i].revents)
			read_request(s, &s->clients[i]);
		/* first: a client with exclusive input gives it back when it leaves */
		if (s->clients[i].gone)
			serve_detach(s, &s->clients[i]);
	}
	for (size_t i = 0; 2 * i + 3 < count; i++)
		if (polled[4 + 2 * i].revents && s->clients[i].stream_fd >= 0 && !s->typed_len)
			serve_type(s, &s->clients[i]);
	drop_gone(s, now);
	if (polled[0].revents)
		take_client(s, now);
	return some;
}

void serve_drain(struct serve *s)
{
	own_close_fd(&s->slave_fd); /* then the terminal's end is an end */
	s->slave_fd = -1;
	while (s->output_fd >= 0 && take_output(s))
		;
}

bool serve_is_busy(const struct serve *s)
{
	for (size_t i = 0; i < s->client_count; i++)
		if (s->clients[i].tag)
			return true;
	return false;
}

/* ---- beginning and end ---- */

static int listen_in(int dir_fd, const char *name, struct ward_err *e)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	auto_fd fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	/* through the descriptor: the path itself may be longer than a socket's address */
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", dir_fd, name);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, 128) < 0)
		return ward_fail_errno(e, "cannot make the sandbox's control socket");
	return take_fd(&fd);
}

int serve_listen_late(int dir_fd, struct ward_err *e)
{
	auto_fd fd = listen_in(dir_fd, "control.new", e);

	/* it gets its name only when it listens: a socket without a listener is a dead one's */
	if (fd >= 0 && renameat(dir_fd, "control.new", dir_fd, "control") < 0)
		return ward_fail_errno(e, "cannot make the run's control socket");
	return fd < 0 ? fd : take_fd(&fd);
}

/* Standard input is at its end, output and error are one pipe: their lines stay in order. */
static int make_output(struct serve *s, int inside_fds[3], struct ward_err *e)
{
	const struct plan *p = s->box->plan;
	int in[2] = { -1, -1 }, out[2] = { -1, -1 };

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0) {
		own_close_fd(&in[0]);
		own_close_fd(&in[1]);
		return ward_fail_errno(e, "cannot make a pipe for the command's output");
	}
	close(in[1]);
	inside_fds[0] = in[0];
	inside_fds[1] = out[1];
	inside_fds[2] = fcntl(out[1], F_DUPFD_CLOEXEC, 10);
	s->output_fd = out[0];
	if (p->ids.host_uid != geteuid()) { /* without it only the names in /dev do not work */
		(void)!fchown(in[0], p->ids.host_uid, p->ids.host_gid);
		(void)!fchown(out[0], p->ids.host_uid, p->ids.host_gid);
	}
	if (inside_fds[2] < 0 || fcntl(s->output_fd, F_SETFL, O_NONBLOCK) < 0)
		return ward_fail_errno(e, "cannot make a pipe for the command's output");
	return 0;
}

void serve_open_terminal(struct serve *s, int master_fd, int slave_fd)
{
	const struct winsize size = { .ws_row = 24, .ws_col = 80 };

	(void)ioctl(master_fd, TIOCSWINSZ, &size);
	/* its outer end is for the process it was started for */
	if (s->box->detached->attached) {
		s->box->detached->outer_fds[0] = master_fd;
		own_close_fd(&slave_fd);
		return;
	}
	s->output_fd = master_fd;
	s->slave_fd = slave_fd;
	s->filter.answers = true;
	s->filter.cursor.rows = size.ws_row;
	s->filter.cursor.cols = size.ws_col;
	(void)fcntl(master_fd, F_SETFL, O_NONBLOCK);
}

/* Attached: three pipes, whose outer ends go to the process it was started for; nothing for an idle
 * one. */
static int make_streams(struct serve *s, int inside_fds[3], struct ward_err *e)
{
	const struct plan *p = s->box->plan;
	int *outer = s->box->detached->outer_fds;

	for (int i = 0; i < 3; i++) {
		int fds[2] = { -1, -1 };

		if (box_is_idle(s->box)) {
			inside_fds[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
			continue;
		}
		if (pipe2(fds, O_CLOEXEC) < 0)
			return ward_fail_errno(e, "cannot make a pipe for the command");
		/* without it only the names in /dev do not work */
		if (p->ids.host_uid != geteuid())
			(void)!fchown(fds[0], p->ids.host_uid, p->ids.host_gid);
		inside_fds[i] = fds[i ? 1 : 0];
		outer[i] = fds[i ? 0 : 1];
		if (i && p->limits[LIMIT_OUTPUT].value != POLICY_NONE &&
		    streams_count_output(&s->box->streams, &outer[i], e) < 0)
			return -e->code;
	}
	return 0;
}

int serve_create(struct box *b, struct box_entry *entry, bool terminal, struct serve **ret_serve,
		 int inside_fds[3], struct ward_err *e)
{
	struct serve *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return ward_fail(e, ENOMEM, "out of memory");
	if (terminal && b->detached->attached &&
	    b->plan->limits[LIMIT_OUTPUT].value != POLICY_NONE) {
		free(s);
		return ward_fail(e, ENOTSUP,
				 "resources.output_limit cannot be enforced for a terminal that "
				 "another program reads");
	}
	s->box = b;
	s->entry = entry;
	s->output_fd = s->slave_fd = s->log.fd = -1;
	s->life_fd = b->detached->attached ? b->detached->asker_fd : -1;
	s->terminal = terminal;
	r = s->listen_fd = listen_in(entry->run_fd, "control", e);
	if (r >= 0 && !b->detached->attached)
		r = log_open(&s->log, entry->dir_fd, e);
	if (r >= 0 && !terminal)
		r = b->detached->attached ? make_streams(s, inside_fds, e)
					  : make_output(s, inside_fds, e);
	if (r < 0) {
		serve_destroy(s);
		return r;
	}
	*ret_serve = s;
	return 0;
}

int serve_create_net(struct box *b, struct box_entry *entry, struct serve **ret_serve,
		     struct ward_err *e)
{
	struct serve *s = calloc(1, sizeof(*s));

	if (!s)
		return ward_fail(e, ENOMEM, "out of memory");
	s->box = b;
	s->entry = entry;
	s->net_only = true;
	s->output_fd = s->slave_fd = s->log.fd = s->life_fd = -1;
	s->listen_fd = serve_listen_late(entry->run_fd, e);
	if (s->listen_fd < 0) {
		serve_destroy(s);
		return -e->code;
	}
	*ret_serve = s;
	return 0;
}

/* Who connects from now on is not answered and learns of the end when the result is kept. */
void serve_close(struct serve *s)
{
	boxes_set_state(s->entry, BOX_ENDING);
	for (size_t i = s->client_count; i-- > 0;)
		if (!s->clients[i].waits && !s->clients[i].tag)
			drop_client(s, i);
}

void serve_destroy(struct serve *s)
{
	if (!s)
		return;
	own_close_fd(&s->listen_fd);
	own_close_fd(&s->output_fd);
	log_close(&s->log);
	own_close_fd(&s->slave_fd);
	for (size_t i = 0; i < s->client_count; i++) {
		own_close_fd(&s->clients[i].stream_fd);
		close(s->clients[i].fd);
	}
	free(s);
}
