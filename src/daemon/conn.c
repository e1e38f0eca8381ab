/*
 * A client's connection, from accept() to its end. In: bytes of anybody who can reach the port;
 * what they say is read in conn_read.c. Out: what was answered (conn_answer.c), which waits in a
 * buffer that the credit of its stream bounds. A client that is slow to send its head, or to take
 * an answer, is cut off; where there are too many, those with nothing under way go first.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/io.h"
#include "daemon/conn.h"
#include "daemon/tls.h"

#define CONNS_MAX 4096
#define ACCEPTS_MAX 256           /* before others have their turn */
#define OUT_SENT_MAX (256 * 1024) /* bytes that were sent, and are still kept */
#define HEAD_MS 30000             /* for a head, or the next one */
#define STALLED_MS 60000 /* without a byte, for a client that owes one or does not take one */

/* -- the end */

void conn_abort(struct conn *c)
{
	struct front *f = c->front;

	if (c->gone)
		return;
	c->gone = true;
	if (c->state == CONN_WAIT)
		sandbox_forget_waiting(f, c);
	if (c->stream)
		stream_leave(c->stream);
	front_close(c->front, &c->source);
	if (c->prev)
		c->prev->next = c->next;
	else
		f->conns = c->next;
	if (c->next)
		c->next->prev = c->prev;
	f->conn_count--;
	c->next = f->gone;
	f->gone = c;
}

void conn_free_gone(struct front *f)
{
	while (f->gone) {
		struct conn *c = f->gone;

		f->gone = c->next;
		http_serve_free(&c->http);
		buf_free(&c->out);
		buf_free(&c->body);
		buf_free(&c->answer_head);
		free(c->who);
		free(c);
	}
}

/* -- what is waited for */

static bool wants_bytes(const struct conn *c)
{
	switch (c->state) {
	case CONN_HEAD:
		return conn_takes_answers(c);
	case CONN_COLLECT:
	case CONN_DRAIN:
		return true;
	case CONN_STREAM:
		return !http_serve_body_is_over(&c->http) && conn_has_room(c);
	case CONN_TUNNEL:
		return conn_has_room(c);
	case CONN_EVENTS:
	case CONN_WAIT:
	default:
		return false;
	}
}

static void update(struct conn *c)
{
	uint32_t events = 0;

	if (c->gone)
		return;
	if (c->out_at < c->out.len)
		events |= EPOLLOUT;
	if (wants_bytes(c) && http_serve_have(&c->http) < CONN_IN_MAX && !c->closing)
		events |= EPOLLIN;
	else if (c->state == CONN_WAIT || c->state == CONN_EVENTS ||
		 (c->state == CONN_STREAM && http_serve_body_is_over(&c->http)))
		events |= EPOLLRDHUP;
	if (events != c->events)
		front_change(c->front, &c->source, events);
	c->events = events;
}

void conn_flush(struct conn *c)
{
	while (!c->gone && c->out_at < c->out.len) {
		ssize_t n = send(c->source.fd, c->out.data + c->out_at, c->out.len - c->out_at,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN) {
			conn_abort(c);
			return;
		}
		if (n < 0)
			break;
		c->out_at += (size_t)n;
		c->since_ms = io_now_ms();
	}
	if (c->gone)
		return;
	if (c->out.failed) {
		conn_abort(c);
		return;
	}
	if (c->out_at == c->out.len) {
		size_t owed = c->owed;

		c->out.len = c->out_at = c->owed = 0;
		if (c->closing) {
			shutdown(c->source.fd, SHUT_WR);
			conn_abort(c);
			return;
		}
		if (owed && c->stream)
			stream_taken(c->stream, owed);
	} else if (c->out_at > OUT_SENT_MAX) {
		memmove(c->out.data, c->out.data + c->out_at, c->out.len - c->out_at);
		c->out.len -= c->out_at;
		c->out_at = 0;
	}
	update(c);
}

static void ready(struct source *source, uint32_t events)
{
	struct conn *c = (struct conn *)((char *)source - offsetof(struct conn, source));
	ssize_t n;

	if (c->gone)
		return;
	if (events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP) && !(events & EPOLLIN)) {
		conn_abort(c);
		return;
	}
	if (events & EPOLLOUT)
		conn_flush(c);
	if (events & EPOLLOUT) /* a request may have waited until its answer has room */
		conn_pump(c);
	if (c->gone || !(events & EPOLLIN))
		return;
	if (!buf_reserve(&c->http.in, 16384)) {
		conn_abort(c);
		return;
	}
	n = recv(source->fd, c->http.in.data + c->http.in.len, 16384, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		conn_abort(c);
		return;
	}
	c->http.in.len += (size_t)n;
	if (c->state != CONN_HEAD) /* a head has its time as a whole */
		c->since_ms = io_now_ms();
	conn_pump(c);
}

/* Ends the connection that has had nothing under way for the longest time. False: all have. */
static bool make_room(struct front *f)
{
	struct conn *oldest = NULL;

	for (struct conn *c = f->conns; c; c = c->next)
		if ((c->state == CONN_HEAD || c->state == CONN_DRAIN) &&
		    (!oldest || c->since_ms <= oldest->since_ms))
			oldest = c;
	if (oldest)
		conn_abort(oldest);
	return oldest;
}

static struct ip source_of(const struct sockaddr_storage *a)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;

	if (a->ss_family == AF_INET)
		return ip_from_4((const uint8_t *)&v4->sin_addr);
	if (a->ss_family == AF_INET6)
		return ip_from_16((const uint8_t *)&v6->sin6_addr);
	return (struct ip){ 0 };
}

/* The last descriptors are for others: without one, what the keeper sends of a new sandbox is
 * lost. */
static bool is_full(const struct front *f)
{
	return f->conn_count >= CONNS_MAX ||
	       f->conn_count + 2 * f->sandbox_count + SPARE_FDS >= f->descriptors;
}

static void begin(struct front *f, int fd, const struct sockaddr_storage *from, bool debug)
{
	struct conn *c = !is_full(f) || make_room(f) ? calloc(1, sizeof(*c)) : NULL;
	int one = 1;

	if (!c) {
		close(fd);
		return;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c->source = (struct source){ fd, ready };
	c->source_ip = source_of(from);
	c->front = f;
	c->debug = debug;
	c->since_ms = io_now_ms();
	c->next = f->conns;
	if (f->conns)
		f->conns->prev = c;
	f->conns = c;
	f->conn_count++;
	c->events = EPOLLIN;
	if (!front_watch(f, &c->source, EPOLLIN))
		conn_abort(c);
}

/* Without a descriptor for a new one epoll would always say that somebody waits: the listeners are
 * left alone until the next tick. */
static void accept_all(struct front *f, int listen_fd, bool debug)
{
	for (int i = 0; i < ACCEPTS_MAX; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t len = sizeof(from);
		int fd = accept4(listen_fd, (struct sockaddr *)&from, &len,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			begin(f, fd, &from, debug);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			   errno == ENOMEM) {
			if (errno == EMFILE && make_room(f))
				continue;
			f->deaf = true;
			front_change(f, &f->listener, 0);
			front_change(f, &f->debug_listener, 0);
			return;
		} else if (errno != ECONNABORTED && errno != EINTR) {
			return;
		}
	}
}

void conn_accept(struct source *s, uint32_t events)
{
	(void)events;
	accept_all((struct front *)((char *)s - offsetof(struct front, listener)), s->fd, false);
}

/* Connections whose TLS wardd-tls takes off, and the addresses of their clients. Its end is the
 * server's: its service manager starts both again. */
void conn_accept_tls(struct source *s, uint32_t events)
{
	struct front *f = (struct front *)((char *)s - offsetof(struct front, tls));
	struct sockaddr_in from = { .sin_family = AF_INET };

	(void)events;
	for (int i = 0; i < ACCEPTS_MAX; i++) {
		struct tls_hello hello;
		size_t count = 0;
		int fd = -1;
		ssize_t n = io_recv_fds(s->fd, &hello, sizeof(hello), &fd, 1, &count);

		if (n == -EAGAIN || n == -EINTR)
			return;
		if (n <= 0) {
			front_log("tls_ended", NULL);
			f->stop = true;
			return;
		}
		if (n == TLS_MAKE_ROOM) {
			(void)!make_room(f);
			continue;
		}
		memcpy(&from.sin_addr, hello.address, sizeof(hello.address));
		if (n == sizeof(hello) && fd >= 0)
			begin(f, fd, (const struct sockaddr_storage *)&from, false);
		else
			own_close_fd(&fd);
	}
}

void conn_accept_debug(struct source *s, uint32_t events)
{
	(void)events;
	accept_all((struct front *)((char *)s - offsetof(struct front, debug_listener)), s->fd,
		   true);
}

void conn_again(struct conn *c)
{
	if (c->again || c->gone)
		return;
	c->again = true;
	c->next_again = c->front->again;
	c->front->again = c;
}

/* What has gone meanwhile is freed after this. */
void conn_go_on(struct front *f)
{
	while (f->again) {
		struct conn *c = f->again;

		f->again = c->next_again;
		c->again = false;
		conn_pump(c);
	}
}

void conn_tick(struct front *f)
{
	uint64_t now = io_now_ms();
	struct conn *next;

	for (struct conn *c = f->conns; c; c = next) {
		bool owes = c->out_at < c->out.len || c->state == CONN_COLLECT ||
			    c->state == CONN_DRAIN || (c->state == CONN_STREAM && wants_bytes(c));

		next = c->next;
		if (c->state != CONN_HEAD ? !owes || now - c->since_ms <= STALLED_MS
					  : now - c->since_ms <= HEAD_MS)
			continue;
		conn_abort(c);
		if (next && next->gone) /* with it went a link, and others that used it */
			next = f->conns;
	}
}
