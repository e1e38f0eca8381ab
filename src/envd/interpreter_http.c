/*
 * HTTP/1.1 of the code interpreter: one request a connection, read by the same reader as wardd's
 * and the gateway's. In: a connection of wardd or of a program inside. Out: a request with its
 * body, and what is answered to it. Runs in the sandbox, with its rights.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include "base/io.h"
#include "envd/interpreter.h"
#include "rules/http_body.h"

#define CHUNK 65536

static const char *reason(unsigned status)
{
	return status == 200   ? "OK"
	       : status == 201 ? "Created"
	       : status == 400 ? "Bad Request"
	       : status == 404 ? "Not Found"
	       : status == 413 ? "Content Too Large"
			       : "Internal Server Error";
}

/* False: the client has gone, or is silent for too long. */
static bool receive(struct asked *a)
{
	ssize_t n;

	if (!buf_reserve(&a->bytes, CHUNK))
		return false;
	do
		n = recv(a->fd, a->bytes.data + a->bytes.len, CHUNK, 0);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	a->bytes.len += (size_t)n;
	a->bytes.data[a->bytes.len] = '\0';
	return true;
}

static bool read_head(struct asked *a)
{
	enum http_wrong wrong;
	size_t scanned = 0;
	int r;

	for (;;) {
		r = a->bytes.len ? http1_head((const uint8_t *)a->bytes.data, a->bytes.len,
					      &scanned, &a->head, &wrong)
				 : 0;
		if (r != 0)
			break;
		if (!receive(a))
			return false;
	}
	/* the fields point into what is read now; what comes behind it is kept elsewhere */
	if (r > 0 && !a->head.connect &&
	    http_request_read((const uint8_t *)a->bytes.data, &a->head, &a->request))
		return true;
	asked_refuse(a, 400, "not a request that can be read in one way");
	return false;
}

/* Moves what is there of the body behind place `at` of the bytes; false: it is too long, or not
 * framed as HTTP has it. */
static bool take_body(struct asked *a, struct http_body *b, size_t *at)
{
	while (*at < a->bytes.len && b->state != BODY_NONE && b->state != BODY_BAD) {
		const uint8_t *bytes = (const uint8_t *)a->bytes.data + *at;
		bool data = b->state == BODY_LENGTH || b->state == BODY_DATA;
		size_t n = a->bytes.len - *at;

		n = !data ? 1 : n < b->left ? n : (size_t)b->left;
		if (data)
			buf_add(&a->body, bytes, n);
		*at += body_take(b, bytes, n, true);
	}
	return b->state != BODY_BAD && a->body.len <= INTERPRETER_BODY_MAX && !a->body.failed;
}

static bool read_body(struct asked *a)
{
	struct http_body b = { 0 };
	size_t at = a->head.len;

	if (a->head.chunked)
		body_chunked(&b);
	else
		body_length(&b, a->head.length);
	for (;;) {
		if (!take_body(a, &b, &at)) {
			asked_refuse(a, a->body.len > INTERPRETER_BODY_MAX ? 413 : 400,
				     "the body is too large, or not framed as HTTP has it");
			return false;
		}
		if (b.state == BODY_NONE)
			return true;
		a->bytes.len = at = a->head.len; /* the texts of the head stay where they are */
		if (a->bytes.cap < a->head.len + CHUNK + 1)
			return false;
		if (!receive(a))
			return false;
	}
}

bool asked_read(struct asked *a)
{
	if (!buf_reserve(&a->bytes, HTTP1_HEAD_MAX + 2 * CHUNK) || !read_head(a))
		return false;
	return read_body(a);
}

void asked_free(struct asked *a)
{
	buf_free(&a->bytes);
	buf_free(&a->body);
}

static int send_all(int fd, const char *bytes, size_t n)
{
	while (n) {
		ssize_t some = send(fd, bytes, n, MSG_NOSIGNAL);

		if (some < 0 && errno == EINTR)
			continue;
		if (some < 0)
			return -1;
		bytes += some;
		n -= (size_t)some;
	}
	return 0;
}

int asked_begin(struct asked *a, unsigned status, const char *type)
{
	auto_buf head = { 0 };

	buf_printf(&head, "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nConnection: close\r\n\r\n", status,
		   reason(status), type);
	return head.failed ? -1 : send_all(a->fd, head.data, head.len);
}

void asked_answer(struct asked *a, unsigned status, const char *type, const char *body)
{
	auto_buf out = { 0 };

	buf_printf(&out,
		   "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		   "Connection: close\r\n\r\n",
		   status, reason(status), type, strlen(body));
	buf_puts(&out, body);
	if (!out.failed)
		(void)send_all(a->fd, out.data, out.len);
}

void asked_refuse(struct asked *a, unsigned status, const char *why, ...)
{
	char text[512];
	va_list args;

	va_start(args, why);
	vsnprintf(text, sizeof(text), why, args);
	va_end(args);
	asked_answer(a, status, "text/plain; charset=utf-8", text);
}

bool asked_is_gone(const struct asked *a)
{
	struct pollfd p = { .fd = a->fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR));
}
