/*
 * ward mcp serve: tools for a client on standard input and output (over HTTP: web.c). In: lines of
 * JSON-RPC from a client, untrusted. Out: lines of JSON-RPC, and nothing else on standard output.
 * One loop: it reads lines, hands them to dispatch(), and moves what calls answer. A client that
 * does not read is waited for, and nothing is read from it until it does. When standard input ends,
 * calls have a moment to finish, then they are killed; a signal kills them at once. Runs with the
 * user's rights; whatever a tool does, it does in a sandbox.
 */
#include "cli/mcp/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/trim_memory.h"
#include "mcp/lines.h"

#define READ_BYTES 65536
#define OUT_MAX (16u << 20) /* bytes that wait for the client, before nothing is read from it */
#define END_MS 1500         /* for calls that run when the input ends */
#define IDLE_MS 1000        /* nothing has happened for so long */

struct stdio {
	struct peer peer;
	struct server *server;
	struct mcp_lines lines;
	struct buf out;
	size_t sent;
	unsigned out_type;
	int signal_fd;
	bool ended, broken; /* nothing more comes; nothing is read */
	uint64_t end_ms;
};

static void send_line(struct peer *p, unused_arg uint32_t stream, enum sent what,
		      unused_arg int code, const struct buf *message)
{
	struct stdio *s = (struct stdio *)((char *)p - offsetof(struct stdio, peer));

	if (what == SENT_NOTHING)
		return;
	if (message->failed) {
		s->broken = true; /* an answer that is not whole must not look like one */
		return;
	}
	buf_add(&s->out, buf_text(message), message->len);
	buf_puts(&s->out, "\n");
}

static void flush_out(struct stdio *s)
{
	while (s->sent < s->out.len) {
		ssize_t n = io_write_some(STDOUT_FILENO, s->out_type, s->out.data + s->sent,
					  s->out.len - s->sent);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			s->broken = true;
			return;
		}
		s->sent += (size_t)n;
	}
	s->broken |= s->out.failed;
	if (s->sent == s->out.len) {
		buf_free(&s->out);
		s->sent = 0;
	}
}

static void take_lines(struct stdio *s)
{
	struct mcp_span line;
	int r;

	while ((r = mcp_lines_next(&s->lines, &line)) != 0 && !s->broken) {
		if (r == -ENOMEM)
			s->broken = true;
		else if (r < 0)
			dispatch_too_long(&s->peer);
		else
			dispatch(&s->peer, 0, line);
	}
}

static void read_in(struct stdio *s)
{
	char bytes[READ_BYTES];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		s->ended = true;
		s->end_ms = io_now_ms() + END_MS;
		return;
	}
	mcp_lines_add(&s->lines, bytes, (size_t)n);
	take_lines(s);
}

enum { WAIT_IN, WAIT_OUT, WAIT_SIGNAL, WAIT_REST };

static int wait_ms(struct stdio *s)
{
	int wait = serve_on_time(s->server);
	uint64_t now = io_now_ms();

	return s->ended ? serve_sooner(wait, s->end_ms > now ? (int)(s->end_ms - now) : 0) : wait;
}

/* A server that its client leaves alone gives memory back: there may be many. */
static int wait_for_any(const struct stdio *s, struct pollfd *fds, size_t count, int wait)
{
	int n;

	if (s->server->works || (wait >= 0 && wait <= IDLE_MS))
		return poll(fds, count, wait);
	n = poll(fds, count, IDLE_MS);
	return n ? n : trim_memory_poll(fds, count, wait < 0 ? -1 : wait - IDLE_MS);
}

/* One turn; false: the end. */
static bool turn(struct stdio *s)
{
	struct pollfd fds[WAIT_REST + SERVE_POLLS_MAX];
	struct serve_polls rest;
	int wait = wait_ms(s);
	size_t count;
	bool full = s->out.len - s->sent > OUT_MAX, waits = s->sent < s->out.len;

	fds[WAIT_IN] = (struct pollfd){ s->ended || full ? -1 : STDIN_FILENO, POLLIN, 0 };
	fds[WAIT_OUT] = (struct pollfd){ waits ? STDOUT_FILENO : -1, POLLOUT, 0 };
	fds[WAIT_SIGNAL] = (struct pollfd){ s->signal_fd, POLLIN, 0 };
	count = serve_fill(s->server, full, &rest, fds + WAIT_REST);
	if (wait_for_any(s, fds, WAIT_REST + count, wait) < 0 && errno != EINTR)
		return false;
	if (fds[WAIT_SIGNAL].revents)
		return false;
	serve_ready(s->server, &rest, fds + WAIT_REST);
	if (fds[WAIT_IN].revents)
		read_in(s);
	flush_out(s);
	return !s->broken && !(s->ended && (!s->server->works || io_now_ms() >= s->end_ms));
}

/* -- both ways */

size_t serve_fill(struct server *s, bool full, struct serve_polls *p, struct pollfd *fds)
{
	fds[0] = (struct pollfd){ s->watch_fd, POLLIN, 0 };
	p->work_count = work_polls(s, full, fds + 1, p->works);
	p->queue_count = queue_polls(s, fds + 1 + p->work_count);
	p->wrap_count = wrap_polls(s, fds + 1 + p->work_count + p->queue_count);
	return 1 + p->work_count + p->queue_count + p->wrap_count;
}

void serve_ready(struct server *s, const struct serve_polls *p, const struct pollfd *fds)
{
	if (fds[0].revents)
		listen_ready(s);
	queue_ready(s, fds + 1 + p->work_count, p->queue_count);
	wrap_ready(s, fds + 1 + p->work_count + p->queue_count, p->wrap_count);
	for (size_t i = 0; i < p->work_count; i++)
		if (fds[1 + i].revents)
			work_ready(p->works[i]);
}

int serve_sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

int serve_on_time(struct server *s)
{
	uint64_t now = io_now_ms();
	int wait = serve_sooner(listen_on_time(s, now), ask_on_time(s, now));

	wait = serve_sooner(wait, queue_on_time(s, now));
	wait = serve_sooner(wait, wrap_on_time(s, now));
	return serve_sooner(wait, work_on_time(s, now)); /* last: what was just answered goes on */
}

void serve_end_works(struct server *s)
{
	work_end_all(s, false);
	while (s->works) {
		struct pollfd fd = { s->works->fd, POLLIN, 0 };

		if (poll(&fd, 1, work_on_time(s, io_now_ms())) > 0)
			work_ready(s->works);
	}
}

int serve_open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void serve_lines(struct server *server)
{
	struct stdio s = { .server = server,
			   .peer = { .server = server, .send = send_line },
			   .signal_fd = serve_open_signals() };
	struct stat st = { 0 };

	server->peers = &s.peer;
	fstat(STDOUT_FILENO, &st);
	s.out_type = st.st_mode & S_IFMT;
	while (turn(&s))
		;
	serve_end_works(server);
	flush_out(&s);
	server->peers = NULL;
	own_close_fd(&s.signal_fd);
	mcp_lines_free(&s.lines);
	buf_free(&s.out);
}

static int check_options(const struct options *o, struct ward_err *e)
{
	if (o->approvals && strcmp(o->approvals, "client") != 0 &&
	    strcmp(o->approvals, "queue") != 0)
		return ward_fail(e, EINVAL, "--approvals: client or queue, not %.100s",
				 o->approvals);
	if (o->token_file && !o->http)
		return ward_fail(e, EINVAL, "--token-file is for --http");
	return 0;
}

int mcp_serve(struct options *o)
{
	struct server s = { .options = o, .watch_fd = -1 };
	struct ward_err e = { 0 };
	int r;

	if (check_options(o, &e) < 0)
		return say_error(&e, o->json, EXIT_USAGE);
	r = list_load(&s);
	if (r == 0 &&
	    (work_init(&e) < 0 || (o->mcp_session && session_start(&s.session, o, &e) < 0)))
		r = say_error(&e, o->json, EXIT_REFUSED);
	if (r == 0)
		listen_begin(&s);
	if (r == 0 && o->http)
		r = serve_web(&s);
	else if (r == 0)
		serve_lines(&s);
	session_stop(&s.session);
	listen_end(&s);
	queue_end(&s);
	ask_end(&s);
	catalog_drop(s.catalog);
	return r;
}
