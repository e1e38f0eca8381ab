/*
 * http://ward.internal/: what ward-ask is for shells, for programs. In: a connection of a process
 * inside, to a socket that lies in the sandbox's network namespace. Out: one request, read by
 * rules/http_serve.c and approve/proposal_http.c, which are fuzzed; then one answer. Nothing waits.
 * Runs in the supervisor, with the user's rights; what a request can do is what ward-ask can do.
 */
#include "run/ask_http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "approve/proposal_http.h"
#include "rules/http_serve.h"

#define HAVE_MAX (HTTP1_HEAD_MAX + PROPOSAL_HTTP_BODY)

struct ask_http {
	struct http_serve serve;
	struct buf body;
	bool headed;
};

struct ask_http *ask_http_create(void)
{
	return calloc(1, sizeof(struct ask_http));
}

void ask_http_free(struct ask_http *h)
{
	if (!h)
		return;
	http_serve_free(&h->serve);
	buf_free(&h->body);
	free(h);
}

/* 1: some came; 0: none is there; -EPIPE: there will be none. */
static int receive(struct ask_http *h, int fd)
{
	char bytes[4096];
	ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0 || http_serve_have(&h->serve) + h->body.len + (size_t)n > HAVE_MAX)
		return -EPIPE;
	buf_add(&h->serve.in, bytes, (size_t)n);
	return h->serve.in.failed ? -EPIPE : 1;
}

/* 1: all of it is there. */
static int take_body(struct ask_http *h, unsigned *ret_status, const char **ret_why)
{
	const uint8_t *piece;
	size_t n;

	while ((n = http_serve_piece(&h->serve, &piece)) > 0) {
		buf_add(&h->body, piece, n);
		http_serve_took(&h->serve, n);
	}
	*ret_status = 400;
	*ret_why = "the body cannot be read";
	if (h->serve.framing.state == BODY_BAD || h->body.failed)
		return -1;
	*ret_status = 413;
	*ret_why = "the body is too long";
	if (h->body.len > PROPOSAL_HTTP_BODY)
		return -1;
	return http_serve_body_is_over(&h->serve);
}

int ask_http_read(struct ask_http *h, int fd, struct proposal *ret, unsigned *ret_status,
		  const char **ret_why)
{
	int r = receive(h, fd);

	if (r <= 0)
		return r;
	if (!h->headed) {
		r = http_serve_head(&h->serve, ret_status, ret_why);
		if (r <= 0)
			return r < 0 ? -1 : 0;
		h->headed = true;
	}
	r = take_body(h, ret_status, ret_why);
	if (r <= 0)
		return r;
	*ret_status =
		proposal_http_read(&h->serve.req, &h->serve.head.host, h->serve.head.port,
				   (const uint8_t *)buf_text(&h->body), h->body.len, ret, ret_why);
	return *ret_status ? -1 : 1;
}

bool ask_http_waits(int fd)
{
	char bytes[4096];
	ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	/* one that sends more is not listened to */
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

void ask_http_answer(int fd, unsigned status, const char *text)
{
	auto_buf out = { 0 };
	int room = 512 * 1024;

	buf_printf(&out,
		   "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		   "Cache-Control: no-store\r\nConnection: close\r\n\r\n%s",
		   status, http_serve_reason(status),
		   *text == '{' ? "application/json" : "text/plain; charset=utf-8", strlen(text),
		   text);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	if (!out.failed)
		(void)!send(fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)shutdown(fd, SHUT_WR);
}
