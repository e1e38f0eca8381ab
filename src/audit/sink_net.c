/*
 * Sinks behind a socket: syslog over a Unix socket, UDP, TCP and TLS. In: a batch of messages. Out:
 * datagrams, or a stream in which each message has its length in front. Run by ward-audit in the
 * process of one sink. Nothing waits for ever: connecting has a limit, a write goes on as long as
 * the other side reads (the run does not wait for it), and a peer that is gone is found by TCP's
 * own timer.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "audit/sink.h"
#include "base/io.h"

#define CONNECT_MS 10000
#define SILENT_MS 30000 /* unacknowledged for so long: the peer is gone */
#define GOODBYE_MS 2000

static bool is_tls(const struct sink *s)
{
	return s->policy->way == SINK_TLS || s->policy->way == SINK_HTTPS;
}

/* -- connecting */

static int finish_connect(int fd)
{
	struct pollfd polled = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int code = 0;

	if (errno != EINPROGRESS)
		return -errno;
	if (poll(&polled, 1, CONNECT_MS) <= 0)
		return -ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len) < 0 ? -errno : -code;
}

static int connect_one(const struct addrinfo *a, int *ret_fd)
{
	unsigned silent = SILENT_MS;
	auto_fd fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent, sizeof(silent));
	r = connect(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : finish_connect(fd);
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}

static int connect_name(struct sink *s, int type, struct ward_err *e)
{
	const struct addrinfo hints = { .ai_socktype = type, .ai_flags = AI_ADDRCONFIG };
	struct addrinfo *found = NULL;
	char port[8];
	int r;

	snprintf(port, sizeof(port), "%u", s->policy->port);
	r = getaddrinfo(s->policy->host, port, &hints, &found);
	if (r != 0)
		return ward_fail(e, EHOSTUNREACH, "%s: %s", s->policy->host, gai_strerror(r));
	r = -EHOSTUNREACH;
	for (const struct addrinfo *a = found; a && r != 0; a = a->ai_next)
		r = connect_one(a, &s->fd);
	freeaddrinfo(found);
	return r < 0 ? ward_fail(e, -r, "%s: %s", s->policy->to, strerror(-r)) : 0;
}

int sink_connect(struct sink *s, struct ward_err *e)
{
	int r = connect_name(s, SOCK_STREAM, e);

	s->bytes = s->mark_seq = 0;
	if (r == 0 && is_tls(s))
		r = sink_tls_open(s, e);
	if (r < 0)
		sink_disconnect(s);
	return r;
}

void sink_disconnect(struct sink *s)
{
	sink_tls_close(s);
	own_close_fd(&s->fd);
	s->fd = -1;
}

/* -- bytes */

int sink_write(struct sink *s, const char *bytes, size_t n, struct ward_err *e)
{
	while (n > 0) {
		struct pollfd polled = { .fd = s->fd, .events = POLLOUT };
		ssize_t done = s->ssl ? sink_tls_write(s, bytes, n, &polled.events, e)
				      : send(s->fd, bytes, n, MSG_NOSIGNAL);

		if (done > 0) {
			bytes += done;
			n -= (size_t)done;
			s->bytes += (uint64_t)done;
			continue;
		}
		if (s->ssl && done != -EAGAIN)
			return (int)done;
		if (!s->ssl && errno != EAGAIN && errno != EINTR)
			return ward_fail(e, errno, "%s: %s", s->policy->to, strerror(errno));
		if (poll(&polled, 1, SILENT_MS) == 0)
			return ward_fail(e, ETIMEDOUT, "%s: the receiver does not read",
					 s->policy->to);
	}
	return 0;
}

ssize_t sink_read(struct sink *s, char *bytes, size_t n, int timeout_ms, struct ward_err *e)
{
	uint64_t until = io_now_ms() + (uint64_t)timeout_ms;

	for (;;) {
		struct pollfd polled = { .fd = s->fd, .events = POLLIN };
		ssize_t got = s->ssl ? sink_tls_read(s, bytes, n, &polled.events, e)
				     : recv(s->fd, bytes, n, 0);
		uint64_t now = io_now_ms();

		if (got >= 0 || (s->ssl && got != -EAGAIN))
			return got;
		if (!s->ssl && errno != EAGAIN && errno != EINTR)
			return ward_fail(e, errno, "%s: %s", s->policy->to, strerror(errno));
		if (now >= until || poll(&polled, 1, (int)(until - now)) == 0)
			return -ETIMEDOUT;
	}
}

/* -- streams */

static int stream_send(struct sink *s, struct ward_err *e)
{
	return sink_write(s, s->batch.data, s->batch.len, e);
}

static int64_t stream_unread(struct sink *s)
{
	int n = 0;

	return ioctl(s->fd, SIOCOUTQ, &n) < 0 ? -1 : n;
}

/* We close; a collector that has read everything closes, too, and one that has not resets. One that
 * does neither has at least got it. */
static int stream_finish(struct sink *s, struct ward_err *e)
{
	uint64_t until = io_now_ms() + GOODBYE_MS;
	char bytes[512];

	if (s->ssl)
		sink_tls_end(s);
	shutdown(s->fd, SHUT_WR);
	for (;;) {
		uint64_t now = io_now_ms();
		ssize_t n = now < until ? sink_read(s, bytes, sizeof(bytes), (int)(until - now), e)
					: -ETIMEDOUT;

		if (n > 0)
			continue;
		if (n == 0 || (n == -ETIMEDOUT && stream_unread(s) == 0))
			break;
		return n == -ETIMEDOUT ? ward_fail(e, ETIMEDOUT, "%s: the receiver does not read",
						   s->policy->to)
				       : (int)n;
	}
	sink_disconnect(s);
	return 0;
}

const struct sink_ops sink_stream = { .stream = true,
				      .open = sink_connect,
				      .send = stream_send,
				      .unread = stream_unread,
				      .finish = stream_finish,
				      .close = sink_disconnect };

/* -- datagrams */

static int connect_unix(struct sink *s, struct ward_err *e)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	memcpy(to.sun_path, s->policy->path, strlen(s->policy->path) + 1);
	s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s->fd >= 0 && connect(s->fd, (const struct sockaddr *)&to, sizeof(to)) == 0)
		return 0;
	return ward_fail(e, errno, "%s: %s", s->policy->to, strerror(errno));
}

static int datagram_open(struct sink *s, struct ward_err *e)
{
	int r = s->policy->way == SINK_UNIX ? connect_unix(s, e) : connect_name(s, SOCK_DGRAM, e);

	if (r < 0)
		sink_disconnect(s);
	return r;
}

static int datagram_send(struct sink *s, struct ward_err *e)
{
	uint32_t from = 0;

	for (unsigned i = 0; i < s->count; from = s->ends[i++]) {
		struct pollfd polled = { .fd = s->fd, .events = POLLOUT };

		while (send(s->fd, s->batch.data + from, s->ends[i] - from, MSG_NOSIGNAL) < 0) {
			/* no datagram is that long: it can never be sent */
			if (errno == EMSGSIZE) {
				s->shared->dropped++;
				break;
			}
			if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
				return ward_fail(e, errno, "%s: %s", s->policy->to,
						 strerror(errno));
			poll(&polled, 1, 1000);
		}
	}
	return 0;
}

static int64_t datagram_unread(unused_arg struct sink *s)
{
	return 0;
}

static int datagram_finish(struct sink *s, unused_arg struct ward_err *e)
{
	sink_disconnect(s);
	return 0;
}

const struct sink_ops sink_datagram = { .open = datagram_open,
					.send = datagram_send,
					.unread = datagram_unread,
					.finish = datagram_finish,
					.close = sink_disconnect };
