/*
 * What a client is answered. In: a status and a body of our own. Out: bytes in the connection's
 * buffer, one answer for each request: a second one is not written. Answers of sandboxes are in
 * data_answer.c.
 */
#include <stdarg.h>

#include "base/io.h"
#include "daemon/conn.h"
#include "daemon/control_access.h"

static void count(struct conn *c, unsigned status)
{
	c->status = status;
	if (status / 100 < ARRAY_LEN(c->front->counters.requests))
		c->front->counters.requests[status / 100]++;
}

/* In the debug mode no page in a browser may read an answer. */
void conn_usual_fields(struct conn *c)
{
	if (!c->debug)
		buf_puts(&c->out, "Access-Control-Allow-Origin: *\r\n");
	buf_puts(&c->out, "X-Content-Type-Options: nosniff\r\n");
}

void conn_answer(struct conn *c, unsigned status, const char *type, const struct buf *body,
		 const char *more_fields)
{
	size_t n = body ? body->len : 0;

	if (c->gone || c->answered)
		return;
	c->answered = true;
	c->close |= c->expects || c->http.framing.state == BODY_BAD;
	count(c, status);
	buf_printf(&c->out, "HTTP/1.1 %u %s\r\nContent-Length: %zu\r\n", status,
		   http_serve_reason(status), n);
	if (type && n)
		buf_printf(&c->out, "Content-Type: %s\r\n", type);
	conn_usual_fields(c);
	if (more_fields)
		buf_puts(&c->out, more_fields);
	if (c->close)
		buf_puts(&c->out, "Connection: close\r\n");
	buf_puts(&c->out, "\r\n");
	if (n && !c->http.head.head)
		buf_add(&c->out, body->data, n);
	conn_finish(c);
}

void conn_refuse(struct conn *c, unsigned status, const char *why, ...)
{
	auto_buf body = { 0 };
	struct json j = { .out = &body };
	char text[1024];
	va_list args;

	va_start(args, why);
	vsnprintf(text, sizeof(text), why, args);
	va_end(args);
	json_begin_object(&j, NULL);
	json_uint(&j, "code", status);
	json_string(&j, "message", text);
	json_end_object(&j);
	conn_answer(c, status, "application/json", &body,
		    status == 429 || status == 503 ? "Retry-After: 1\r\n" : NULL);
}

void conn_finish(struct conn *c)
{
	if (c->gone)
		return;
	if (c->stream)
		stream_leave(c->stream);
	if (c->asked && c->verb != ROUTE_healthz)
		audit_call(c);
	c->asked = false;
	c->verb = ROUTE_NONE;
	c->answered = true;
	c->drained = 0;
	c->owed = 0; /* its stream is over */
	c->state = CONN_DRAIN;
	c->since_ms = io_now_ms();
	if (c->close && (http_serve_body_is_over(&c->http) || c->http.framing.state == BODY_BAD))
		c->closing = true;
	conn_again(c);
	conn_flush(c);
}
