/*
 * Connections as bytes (wire.h). In: a descriptor, perhaps with TLS over it. Out: reads and writes
 * that never block and say what they wait for. Runs in front, over sockets that epoll watches by
 * edges: a caller that gets TLS_READ waits for the next event.
 */
#include "transport/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define KEEP_BYTES 4096 /* a queue that has run empty gives more than that back */

void wire_free(struct wire *w)
{
	tls_down_free(take_ptr(w->down));
	tls_up_free(take_ptr(w->up));
	w->fd = -1;
}

enum tls_say wire_read(struct wire *w, void *bytes, size_t n, size_t *ret_n)
{
	ssize_t got;

	*ret_n = 0;
	if (w->down)
		return tls_down_read(w->down, bytes, n, ret_n);
	if (w->up)
		return tls_up_read(w->up, bytes, n, ret_n);
	do
		got = recv(w->fd, bytes, n, MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	if (got > 0)
		*ret_n = (size_t)got;
	return got > 0 ? TLS_DONE : got == 0 ? TLS_END : errno == EAGAIN ? TLS_READ : TLS_FAILED;
}

enum tls_say wire_peek(struct wire *w)
{
	ssize_t got;
	char byte;

	if (w->down)
		return tls_down_peek(w->down);
	if (w->up)
		return tls_up_peek(w->up);
	do
		got = recv(w->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	return got > 0 ? TLS_DONE : got == 0 ? TLS_END : errno == EAGAIN ? TLS_READ : TLS_FAILED;
}

enum tls_say wire_write(struct wire *w, const void *bytes, size_t n, size_t *ret_n)
{
	ssize_t put;

	*ret_n = 0;
	if (w->down)
		return tls_down_write(w->down, bytes, n, ret_n);
	if (w->up)
		return tls_up_write(w->up, bytes, n, ret_n);
	do
		put = send(w->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (put < 0 && errno == EINTR);
	if (put > 0)
		*ret_n = (size_t)put;
	return put >= 0 ? TLS_DONE : errno == EAGAIN ? TLS_WRITE : TLS_FAILED;
}

void wire_end(struct wire *w)
{
	if (w->down)
		tls_down_end(w->down);
	if (w->up)
		tls_up_end(w->up);
	shutdown(w->fd, SHUT_WR);
}

void queue_add(struct queue *q, const void *bytes, size_t n)
{
	if (q->failed || !n)
		return;
	if (q->at && q->len + n > q->cap) {
		memmove(q->data, q->data + q->at, queue_size(q));
		q->len -= q->at;
		q->at = 0;
	}
	if (q->len + n > q->cap) {
		size_t cap = q->len + n < 1024 ? 1024 : (q->len + n) * 5 / 4;
		char *grown = realloc(q->data, cap);

		q->failed = !grown;
		if (!grown)
			return;
		q->data = grown;
		q->cap = cap;
	}
	memcpy(q->data + q->len, bytes, n);
	q->len += n;
}

void queue_free(struct queue *q)
{
	free(q->data);
	*q = (struct queue){ 0 };
}

enum tls_say queue_flush(struct queue *q, struct wire *w, size_t *ret_n)
{
	enum tls_say say = TLS_DONE;

	*ret_n = 0;
	while (queue_size(q) && say == TLS_DONE) {
		size_t n = 0;

		say = wire_write(w, q->data + q->at, queue_size(q), &n);
		q->at += n;
		*ret_n += n;
	}
	if (!queue_size(q)) {
		q->at = q->len = 0;
		if (q->cap > KEEP_BYTES)
			queue_free(q);
	}
	return say;
}
