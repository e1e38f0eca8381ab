/*
 * A connection of ward-keys: front on one side, in the clear, a server on the other, over TLS that
 * is verified here. In: requests that front has decided about and written anew. Out: the same with
 * a secret where a grant says so, and answers without it. What is spoken is what the server chose
 * of what front offers: HTTP/1.1, one request at a time, or HTTP/2 (keys_h2.c). Whatever is wrong
 * ends the connection, and front's end of it.
 */
#include "keys/keys_conn.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/io.h"
#include "keys/keys_h2.h"

#define IDLE_MS (300 * 1000)
#define ROUNDS_MAX 64
#define LOOK_MS 250

void queue_drop(struct queue *q, size_t n)
{
	q->at += n;
	if (q->at == q->bytes.len) {
		q->at = q->bytes.len = 0;
	} else if (q->at > CONN_PENDING_MAX) {
		memmove(q->bytes.data, q->bytes.data + q->at, q->bytes.len - q->at);
		q->bytes.len -= q->at;
		q->at = 0;
	}
}

void conn_kill(struct conn *c)
{
	c->dead = true;
}

void conn_refuse(struct conn *c, unsigned status, const char *why)
{
	const char *reason = status == 400   ? "Bad Request"
			     : status == 403 ? "Forbidden"
			     : status == 413 ? "Content Too Large"
			     : status == 416 ? "Range Not Satisfiable"
					     : "Bad Gateway";
	auto_buf body = { 0 };

	if (c->down_begun || c->finishing) {
		conn_kill(c);
		return;
	}
	ask_words(&body, why);
	buf_printf(&c->back.bytes,
		   "HTTP/1.1 %u %s\r\nContent-Type: application/json\r\nContent-Length: "
		   "%zu\r\n%sConnection: close\r\n\r\n%s",
		   status, reason, body.len, c->ask.leaked ? KEYS_LEAK_LINE : "", buf_text(&body));
	c->finishing = true;
	c->up = UP_DONE;
}

size_t body_data(struct http_body *b, const uint8_t *bytes, size_t n, bool strict, struct buf *data)
{
	size_t used = 0;

	while (used < n && b->state != BODY_NONE && b->state != BODY_BAD) {
		bool is_data =
			b->state == BODY_DATA || b->state == BODY_LENGTH || b->state == BODY_CLOSE;
		size_t some = !is_data                                       ? 1
			      : b->state == BODY_CLOSE || n - used < b->left ? n - used
									     : (size_t)b->left;

		if (is_data)
			buf_add(data, bytes + used, some);
		used += body_take(b, bytes + used, some, strict);
	}
	return used;
}

/* -- the two ends */

static bool read_client(struct conn *c)
{
	uint8_t bytes[CONN_PIECE];
	ssize_t n;

	if (c->client_ended || c->finishing || queue_len(&c->in) >= CONN_PENDING_MAX)
		return false;
	n = recv(c->client_fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		c->client_ended = true;
		return true;
	}
	buf_add(&c->in.bytes, bytes, (size_t)n);
	return true;
}

static bool write_client(struct conn *c)
{
	ssize_t n;

	if (!queue_len(&c->back))
		return false;
	n = send(c->client_fd, c->back.bytes.data + c->back.at, queue_len(&c->back),
		 MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		conn_kill(c);
	if (n <= 0)
		return false;
	queue_drop(&c->back, (size_t)n);
	return true;
}

/* What the server speaks is front's first byte (protocol/secrets.h), and spoken from here on. */
static void greet(struct keys *k, struct conn *c)
{
	bool two = tls_up_alpn(c->tls) == TLS_ALPN_HTTP2;

	c->open = true;
	buf_puts(&c->back.bytes, two ? KEYS_SPEAKS_HTTP2 : KEYS_SPEAKS_HTTP1);
	if (two)
		c->h2 = keys_h2_new(k, c);
	if (two && !c->h2)
		conn_kill(c);
}

static void refuse_greeting(struct conn *c)
{
	const char *why = tls_up_why(c->tls);

	buf_printf(&c->back.bytes, KEYS_SPEAKS_NOTHING "%.190s",
		   *why ? why : "the server ended the connection");
	c->finishing = true;
}

static bool handshake(struct keys *k, struct conn *c)
{
	enum tls_say say;

	if (c->open || c->finishing)
		return false;
	say = tls_up_handshake(c->tls);
	c->server_write = say == TLS_WRITE;
	if (say == TLS_DONE)
		greet(k, c);
	else if (say != TLS_READ && say != TLS_WRITE)
		refuse_greeting(c);
	return c->open || c->finishing;
}

static bool write_server(struct conn *c)
{
	enum tls_say say;
	size_t n = 0;

	if (!c->open || !queue_len(&c->out))
		return false;
	say = tls_up_write(c->tls, c->out.bytes.data + c->out.at, queue_len(&c->out), &n);
	c->server_write = say == TLS_WRITE;
	if (c->h2) /* heads are among it */
		explicit_bzero(c->out.bytes.data + c->out.at, n);
	if (say == TLS_DONE)
		queue_drop(&c->out, n);
	else if (c->h2 && say != TLS_READ && say != TLS_WRITE)
		c->server_ended = true;
	else if (say != TLS_READ && say != TLS_WRITE)
		conn_refuse(c, 502, "the server ended the connection");
	return say == TLS_DONE;
}

/* -- its life */

static void watch(struct keys *k, struct conn *c)
{
	bool more = !c->client_ended && !c->finishing && queue_len(&c->in) < CONN_PENDING_MAX &&
		    c->up != UP_DONE;
	/* its turn was over before its work was: no descriptor tells of that, so it comes back as
	 * soon as front could be written to */
	uint32_t client =
		(more ? EPOLLIN : 0) | (queue_len(&c->back) || c->unfinished ? EPOLLOUT : 0);
	uint32_t server =
		(!c->server_ended && !c->finishing && queue_len(&c->back) < CONN_PENDING_MAX
			 ? EPOLLIN
			 : 0) |
		(c->server_write && !c->finishing ? EPOLLOUT : 0);
	struct epoll_event event = { .events = client, .data.ptr = c };
	/* one that is not waited for must not tell of its end again and again; where only the
	 * answer is missing its end is news */
	bool deaf = !client && (c->client_ended || c->up != UP_DONE);

	if (deaf != c->client_deaf || (!deaf && client != c->client_events))
		epoll_ctl(k->epoll_fd,
			  deaf             ? EPOLL_CTL_DEL
			  : c->client_deaf ? EPOLL_CTL_ADD
					   : EPOLL_CTL_MOD,
			  c->client_fd, &event);
	event.events = server;
	if (server != c->server_events)
		epoll_ctl(k->epoll_fd,
			  !server            ? EPOLL_CTL_DEL
			  : c->server_events ? EPOLL_CTL_MOD
					     : EPOLL_CTL_ADD,
			  c->server_fd, &event);
	c->client_deaf = deaf;
	c->client_events = client;
	c->server_events = server;
}

static void end(struct keys *k, struct conn *c)
{
	if (c->prev)
		c->prev->next = c->next;
	else
		k->conns = c->next;
	if (c->next)
		c->next->prev = c->prev;
	k->conn_count--;
	if (c->tls && c->open)
		tls_up_end(c->tls);
	epoll_ctl(k->epoll_fd, EPOLL_CTL_DEL, c->client_fd, NULL);
	epoll_ctl(k->epoll_fd, EPOLL_CTL_DEL, c->server_fd, NULL);
	close(c->client_fd);
	close(c->server_fd);
	c->dead_next = k->dead;
	k->dead = c;
}

void conn_free_dead(struct keys *k)
{
	while (k->dead) {
		struct conn *c = k->dead;

		k->dead = c->dead_next;
		tls_up_free(c->tls);
		keys_h2_free(k, c->h2);
		ask_clear(k, &c->ask);
		buf_free(&c->in.bytes);
		buf_free(&c->out.bytes);
		buf_free(&c->back.bytes);
		buf_free(&c->up_data);
		buf_free(&c->down_head);
		buf_free(&c->down_data);
		for (int way = 0; way < WS_WAYS; way++)
			buf_free(&c->talk[way].held);
		free(c);
	}
}

static bool has_failed(const struct conn *c)
{
	return c->in.bytes.failed || c->out.bytes.failed || c->back.bytes.failed ||
	       c->ask.base.failed || c->up_data.failed || c->down_head.failed ||
	       c->down_data.failed;
}

/* Nothing is left to be sent, and nothing more will come. */
static bool is_over(const struct conn *c)
{
	if (c->h2)
		return c->client_ended || (!queue_len(&c->back) && keys_h2_is_done(c->h2));
	if (c->client_ended && !queue_len(&c->out) && !(queue_len(&c->in) && c->up != UP_DONE))
		return true; /* front is gone: the answer is not wanted */
	if (queue_len(&c->back))
		return false;
	if (c->finishing)
		return true;
	return (c->client_ended && (c->up == UP_HEAD || c->up == UP_TUNNEL) && !c->asked) ||
	       (c->server_ended && c->up != UP_TUNNEL && !c->asked) ||
	       (c->up == UP_TUNNEL && c->server_ended);
}

void conn_ready(struct keys *k, struct conn *c)
{
	bool moved = true;

	if (c->dead)
		return;
	for (int i = 0; moved && i < ROUNDS_MAX && !c->dead; i++) {
		moved = handshake(k, c);
		moved |= read_client(c);
		moved |= c->h2 ? keys_h2_step(k, c) : up_step(k, c);
		moved |= write_server(c);
		moved |= !c->h2 && down_step(k, c);
		moved |= write_client(c);
		if (moved)
			c->moved_ms = io_now_ms();
	}
	c->unfinished = moved;
	if (c->dead || has_failed(c) || is_over(c)) {
		c->dead = true;
		end(k, c);
		return;
	}
	watch(k, c);
}

void conn_open(struct keys *k, const struct keys_open *open, int server_fd, int client_fd)
{
	struct conn *c = k->conn_count < KEYS_CONNS_MAX ? calloc(1, sizeof(*c)) : NULL;
	struct epoll_event event = { .events = EPOLLIN };

	if (!c || open->host_len > HOSTNAME_MAX || open->offer < TLS_ALPN_HTTP1 ||
	    open->offer > TLS_ALPN_BOTH ||
	    host_read(open->host, open->host_len, &c->host) != HOST_FINE ||
	    c->host.kind != HOST_NAME) {
		free(c);
		close(server_fd);
		close(client_fd);
		return;
	}
	c->client_fd = client_fd;
	c->server_fd = server_fd;
	c->port = open->port;
	c->moved_ms = io_now_ms();
	answer_init(&c->answer);
	c->client_events = c->server_events = EPOLLIN;
	event.data.ptr = c;
	c->tls = tls_up_new(k->trust, server_fd, &c->host, c->port, (enum tls_alpn)open->offer);
	c->next = k->conns;
	if (k->conns)
		k->conns->prev = c;
	k->conns = c;
	k->conn_count++;
	if (!c->tls || epoll_ctl(k->epoll_fd, EPOLL_CTL_ADD, client_fd, &event) < 0 ||
	    epoll_ctl(k->epoll_fd, EPOLL_CTL_ADD, server_fd, &event) < 0)
		c->dead = true;
	if (c->dead)
		end(k, c);
	else
		conn_ready(k, c);
}

void conn_expire(struct keys *k, uint64_t now)
{
	bool look = k->waiting && now >= k->looked_ms + LOOK_MS;
	struct conn *next;

	if (look) {
		k->looked_ms = now;
		k->waiting = false;
	}
	for (struct conn *c = k->conns; c; c = next) {
		next = c->next;
		if (look)
			k->waiting |= c->h2 ? keys_h2_release(k, c, now) : down_release(k, c, now);
		if (c->dead)
			continue;
		/* streams may be silent for as long as front has them open */
		if (!c->h2 && c->ask.person != PERSON_ASKED && now >= c->moved_ms + IDLE_MS) {
			c->dead = true;
			end(k, c);
		}
	}
}
