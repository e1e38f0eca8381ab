/*
 * The front of `ward mcp serve --http` (front.h). In: connections of a listening socket, records of
 * the server. Out: records for the server, answers. It is started by the server with an empty
 * environment and two descriptors, locks itself up before it reads a byte of either, and ends when
 * the server does.
 */
#include "cli/mcp/front.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/io.h"
#include "confine/confine.h"

#define TICK_MS 1000
#define ACCEPTS_MAX 64 /* before others have their turn */
#define LINK_READ (256u * 1024)

/* -- the server */

static bool take_records(struct front *f)
{
	struct link_head head;
	struct mcp_span bytes;
	int r;

	while ((r = link_next(&f->link, &head, &bytes)) == 1) {
		if (head.op == LINK_SETUP && bytes.n == sizeof(f->token)) {
			memcpy(f->token, bytes.at, sizeof(f->token));
			f->ready = true;
		} else if (head.op == LINK_SEND || head.op == LINK_NOTHING) {
			stream_take(f, &head, bytes);
		} else {
			return false;
		}
	}
	return r == 0;
}

static bool read_link(struct front *f)
{
	static char bytes[LINK_READ];
	ssize_t n = recv(f->link_fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0)
		return false;
	link_add(&f->link, bytes, (size_t)n);
	return take_records(f);
}

static bool flush_link(struct front *f)
{
	while (link_waiting(&f->link)) {
		ssize_t n = send(f->link_fd, f->link.out.data + f->link.out_at,
				 link_waiting(&f->link), MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		link_sent(&f->link, (size_t)n);
	}
	return !f->link.out.failed;
}

/* -- connections */

/* Ends the one that has had nothing under way for the longest time. */
static bool make_room(struct front *f)
{
	struct conn *oldest = NULL;

	for (struct conn *c = f->conns; c; c = c->next)
		if (!c->gone && c->state == CONN_HEAD &&
		    (!oldest || c->since_ms < oldest->since_ms))
			oldest = c;
	if (oldest)
		conn_end(oldest);
	return oldest;
}

static void accept_all(struct front *f)
{
	for (int i = 0; i < ACCEPTS_MAX; i++) {
		int fd = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			f->deaf = errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
			return;
		}
		if (f->conn_count >= CONNS_MAX && !make_room(f))
			close(fd);
		else if (!conn_begin(f, fd))
			return;
	}
}

static void drop_gone(struct front *f)
{
	struct conn **at = &f->conns;

	while (*at) {
		struct conn *c = *at;

		if (!c->gone) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		f->conn_count--;
		conn_free(c);
	}
}

static void on_time(struct front *f)
{
	uint64_t now = io_now_ms();

	f->deaf = false;
	for (struct conn *c = f->conns; c; c = c->next)
		conn_on_time(c, now);
	streams_on_time(f, now);
	sessions_on_time(f, now);
}

/* -- the loop */

enum { POLL_LINK, POLL_LISTEN, POLL_CONNS };

/* Those that make_room() has ended are freed at the end of a turn. */
#define POLLS_MAX (POLL_CONNS + CONNS_MAX + ACCEPTS_MAX)

static size_t fill(struct front *f, struct pollfd *p, struct conn **who)
{
	size_t n = POLL_CONNS;

	p[POLL_LINK] =
		(struct pollfd){ f->link_fd,
				 (short)(POLLIN | (link_waiting(&f->link) ? POLLOUT : 0)), 0 };
	p[POLL_LISTEN] = (struct pollfd){ f->deaf || !f->ready ? -1 : f->listen_fd, POLLIN, 0 };
	for (struct conn *c = f->conns; c && n < POLLS_MAX; c = c->next) {
		who[n] = c;
		p[n++] = (struct pollfd){ c->fd,
					  (short)((conn_wants_bytes(c) ? POLLIN : 0) |
						  (c->out_at < c->out.len ? POLLOUT : 0)),
					  0 };
	}
	return n;
}

static void run(struct front *f)
{
	static struct pollfd p[POLLS_MAX];
	static struct conn *who[POLLS_MAX];
	uint64_t tick_ms = io_now_ms() + TICK_MS;

	for (;;) {
		size_t n = fill(f, p, who);

		if (poll(p, n, TICK_MS) < 0 && errno != EINTR)
			return;
		if (p[POLL_LINK].revents & ~POLLOUT && !read_link(f))
			return;
		for (size_t i = POLL_CONNS; i < n; i++) {
			if (!who[i]->gone && p[i].revents & POLLOUT)
				conn_flush(who[i]);
			if (!who[i]->gone && p[i].revents & ~POLLOUT)
				conn_readable(who[i]);
		}
		if (p[POLL_LISTEN].revents)
			accept_all(f);
		if (io_now_ms() >= tick_ms) {
			on_time(f);
			tick_ms = io_now_ms() + TICK_MS;
		}
		for (struct conn *c = f->conns; c; c = c->next)
			conn_go_on(c);
		drop_gone(f);
		if (!flush_link(f))
			return;
	}
}

int front_main(void)
{
	static struct front f = { .listen_fd = FRONT_LISTEN_FD,
				  .link_fd = FRONT_LINK_FD,
				  .link.bytes_max = LINK_BYTES_MAX };
	struct ward_err e = { 0 };

	/* the server ends it: a key that is typed on its terminal is for that one */
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	if (confine_enter(PROC_MCP_FRONT, NULL, &e) < 0) {
		fprintf(stderr, "ward mcp serve: the process that reads HTTP: %s%s%s\n", e.what,
			*e.what ? ": " : "", e.why);
		return 1;
	}
	run(&f);
	return 0;
}
