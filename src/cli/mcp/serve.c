/*
 * ward mcp serve: tools for a client on standard input and output. In: lines of JSON-RPC from a
 * client, untrusted. Out: lines of JSON-RPC, and nothing else on standard output. One loop: it
 * reads lines, hands them to dispatch(), and moves what calls answer. A client that does not read
 * is waited for, and nothing is read from it until it does. When standard input ends, calls have a
 * moment to finish, then they are killed; a signal kills them at once. Runs with the user's rights;
 * whatever a tool does, it does in a sandbox.
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
#include "mcp/lines.h"

#define READ_BYTES 65536
#define OUT_MAX (16u << 20) /* bytes that wait for the client, before nothing is read from it */
#define END_MS 1500         /* for calls that run when the input ends */

struct stdio {
	struct peer peer;
	struct server server;
	struct mcp_lines lines;
	struct buf out;
	size_t sent;
	unsigned out_type;
	int signal_fd;
	bool ended, broken; /* nothing more comes; nobody reads */
	uint64_t end_ms;
};

static void send_line(struct peer *p, const struct buf *message)
{
	struct stdio *s = (struct stdio *)((char *)p - offsetof(struct stdio, peer));

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
			dispatch(&s->peer, line);
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

enum { WAIT_IN, WAIT_OUT, WAIT_SIGNAL, WAIT_WORKS };

static int wait_ms(struct stdio *s)
{
	uint64_t now = io_now_ms();
	int left, wait = work_on_time(&s->server, now);

	if (!s->ended)
		return wait;
	left = s->end_ms > now ? (int)(s->end_ms - now) : 0;
	return wait < 0 || left < wait ? left : wait;
}

/* One turn; false: the end. */
static bool turn(struct stdio *s)
{
	struct pollfd fds[WAIT_WORKS + WORKS_RUNNING_MAX];
	struct work *works[WORKS_RUNNING_MAX], *w;
	int wait = wait_ms(s);
	size_t count = 0;
	bool full = s->out.len - s->sent > OUT_MAX, waits = s->sent < s->out.len;

	fds[WAIT_IN] = (struct pollfd){ s->ended || full ? -1 : STDIN_FILENO, POLLIN, 0 };
	fds[WAIT_OUT] = (struct pollfd){ waits ? STDOUT_FILENO : -1, POLLOUT, 0 };
	fds[WAIT_SIGNAL] = (struct pollfd){ s->signal_fd, POLLIN, 0 };
	for (w = s->server.works; w && count < WORKS_RUNNING_MAX; w = w->next)
		if (w->fd >= 0) {
			fds[WAIT_WORKS + count] = (struct pollfd){ full ? -1 : w->fd, POLLIN, 0 };
			works[count++] = w;
		}
	if (poll(fds, WAIT_WORKS + count, wait) < 0 && errno != EINTR)
		return false;
	if (fds[WAIT_SIGNAL].revents)
		return false;
	for (size_t i = 0; i < count; i++)
		if (fds[WAIT_WORKS + i].revents)
			work_ready(works[i]);
	if (fds[WAIT_IN].revents)
		read_in(s);
	flush_out(s);
	return !s->broken && !(s->ended && (!s->server.works || io_now_ms() >= s->end_ms));
}

/* Until every call is gone: their processes must not outlive the server. */
static void end_works(struct stdio *s)
{
	work_end_all(&s->server, false);
	while (s->server.works) {
		struct pollfd fd = { s->server.works->fd, POLLIN, 0 };

		if (poll(&fd, 1, work_on_time(&s->server, io_now_ms())) > 0)
			work_ready(s->server.works);
	}
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int mcp_serve(struct options *o)
{
	struct stdio s = { .server.options = o, .peer.send = send_line };
	struct ward_err e = { 0 };
	struct stat st = { 0 };
	int r = list_load(&s.server);

	s.peer.server = &s.server;
	if (r == 0 &&
	    (work_init(&e) < 0 || (o->mcp_session && session_start(&s.server.session, o, &e) < 0)))
		r = say_error(&e, o->json, EXIT_REFUSED);
	if (r == 0) {
		fstat(STDOUT_FILENO, &st);
		s.out_type = st.st_mode & S_IFMT;
		s.signal_fd = open_signals();
		while (turn(&s))
			;
		end_works(&s);
		flush_out(&s);
		own_close_fd(&s.signal_fd);
	}
	session_stop(&s.server.session);
	mcp_lines_free(&s.lines);
	buf_free(&s.out);
	list_free(&s.server);
	return r;
}
