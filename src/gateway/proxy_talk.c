/*
 * Getting through an upstream proxy. In: a socket that is connected to it. Out: the same socket,
 * connected to the target. What the proxy says is looked at before it is taken, and no more of it
 * is taken than its answers: what the server says behind them is left for front. Runs in dial,
 * which sees nothing else of a connection.
 */
#include <errno.h>
#include <sys/socket.h>

#include "gateway/proxy_talk.h"

static int send_out(int fd, const struct upstream_talk *t)
{
	/* the first bytes of a connection: there is room for all, or something is wrong */
	ssize_t n = send(fd, t->out, t->out_len, MSG_NOSIGNAL | MSG_DONTWAIT);

	return n == t->out_len ? 0 : n < 0 ? -errno : -EIO;
}

int proxy_talk_begin(int fd, struct upstream_talk *t, const struct upstream *u,
		     const struct host *target, uint16_t port)
{
	upstream_begin(t, u, target, port);
	return send_out(fd, t);
}

static int drop(int fd, uint8_t *bytes, size_t n)
{
	return !n || recv(fd, bytes, n, MSG_DONTWAIT) == (ssize_t)n ? 0 : -EIO;
}

int proxy_talk_step(int fd, struct upstream_talk *t, const struct upstream *u)
{
	uint8_t bytes[UPSTREAM_ANSWER_MAX + 1];
	enum upstream_say say;
	ssize_t n;
	int r = 0;

	while (r == 0) {
		n = recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
		if (n <= 0)
			return n == 0                              ? -ECONNRESET
			       : errno == EAGAIN || errno == EINTR ? 0
								   : -errno;
		say = upstream_take(t, u, bytes, (size_t)n);
		if (say == UPSTREAM_MORE)
			return 0;
		if (say == UPSTREAM_REFUSED)
			return -EACCES;
		r = drop(fd, bytes, t->used);
		if (r == 0 && say == UPSTREAM_OPEN)
			return 1;
		if (r == 0)
			r = send_out(fd, t);
	}
	return r;
}
