/*
 * What a client says. In: the bytes of a connection. Out: requests, one at a time, read by
 * rules/http_serve.h, which refuses what two servers might read differently. A body is passed on as
 * it comes, as far as the other side has room.
 */
#include <string.h>

#include "base/io.h"
#include "daemon/conn.h"

#define DRAIN_MAX (8 * 1024 * 1024)

static void next_request(struct conn *c)
{
	if (c->close) {
		c->closing = true;
		return;
	}
	c->state = CONN_HEAD;
	c->answered = c->chunked = c->expects = c->websocket = c->raw = c->answer_begun = false;
	c->sandbox_owner = c->asked = false;
	*c->token_id = *c->sandbox = '\0';
	c->body.len = c->answer_head.len = 0;
	c->since_ms = io_now_ms();
}

static bool is_files(const struct conn *c)
{
	return c->http.req.path.n == 6 && memcmp(c->http.req.path.s, "/files", 6) == 0;
}

static void begin_request(struct conn *c)
{
	int r;

	c->began_us = front_now_us();
	c->close = http_serve_wants_close(&c->http);
	c->websocket = c->http.req.websocket;
	c->expects = http_field_get(&c->http.req.fields, "expect").s &&
		     !http_serve_body_is_over(&c->http);
	r = route_host(&c->http.head.host, &c->http.req.fields, &c->to);
	if (r < 0)
		conn_refuse(c, 400, "the sandbox's id or port in the request cannot be read");
	else if (r > 0 || c->debug || is_files(c)) /* whose signature says which sandbox */
		data_begin(c);
	else
		control_begin(c);
}

/* Reads a head, if it is there; false: it is not. */
static bool take_head(struct conn *c)
{
	const char *why;
	unsigned status;
	int r = http_serve_head(&c->http, &status, &why);

	if (r == 0)
		return false;
	if (r < 0) {
		c->close = true;
		conn_refuse(c, status, "%s", why);
		return false;
	}
	begin_request(c);
	return true;
}

static void bad_body(struct conn *c)
{
	c->close = true;
	if (c->answered || c->state == CONN_STREAM)
		conn_abort(c);
	else
		conn_refuse(c, 400, "the request's body is not framed as HTTP has it");
}

static void say_continue(struct conn *c)
{
	if (c->expects)
		buf_puts(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
	c->expects = false;
}

/* Each returns whether something happened, so that it is worth to look again. */
static bool collect(struct conn *c)
{
	const uint8_t *bytes;
	size_t n = http_serve_piece(&c->http, &bytes);

	if (c->http.framing.state == BODY_BAD) {
		bad_body(c);
		return false;
	}
	if (c->body.len + n > CONTROL_BODY_MAX) {
		c->close = true;
		conn_refuse(c, 413, "the body is larger than %d bytes", CONTROL_BODY_MAX);
		return false;
	}
	buf_add(&c->body, bytes, n);
	http_serve_took(&c->http, n);
	if (http_serve_body_is_over(&c->http)) {
		c->state = CONN_WAIT;
		control_run(c);
		return true;
	}
	if (!n)
		say_continue(c);
	return n > 0;
}

/* What goes to a port of the sandbox is passed on as it is framed. */
static bool pass_raw(struct conn *c)
{
	size_t n = http_serve_have(&c->http) < c->stream->credit ? http_serve_have(&c->http)
								 : (size_t)c->stream->credit,
	       used;
	const uint8_t *at = (const uint8_t *)c->http.in.data + c->http.at;

	if (!n)
		return false;
	used = c->state == CONN_TUNNEL ? n : body_take(&c->http.framing, at, n, true);
	if (c->http.framing.state == BODY_BAD) {
		bad_body(c);
		return false;
	}
	c->http.at += used;
	stream_send(c->stream, at, used);
	return used > 0;
}

static bool pass(struct conn *c)
{
	const uint8_t *bytes;
	size_t n;

	if (!conn_has_room(c) || (c->state == CONN_STREAM && http_serve_body_is_over(&c->http)))
		return false;
	say_continue(c);
	if (c->raw || c->state == CONN_TUNNEL)
		return pass_raw(c);
	n = http_serve_piece(&c->http, &bytes);
	if (c->http.framing.state == BODY_BAD) {
		bad_body(c);
		return false;
	}
	n = n < c->stream->credit ? n : (size_t)c->stream->credit;
	if (n)
		stream_send(c->stream, bytes, n);
	if (!c->gone)
		http_serve_took(&c->http, n);
	if (!c->gone && c->stream && http_serve_body_is_over(&c->http))
		stream_send_end(c->stream);
	return n > 0;
}

static bool drain(struct conn *c)
{
	const uint8_t *bytes;
	size_t n = http_serve_piece(&c->http, &bytes);

	if (c->http.framing.state == BODY_BAD || c->drained > DRAIN_MAX || c->closing) {
		c->closing = true;
		return false;
	}
	http_serve_took(&c->http, n);
	c->drained += n;
	if (http_serve_body_is_over(&c->http)) {
		next_request(c);
		return true;
	}
	return n > 0;
}

static bool step(struct conn *c)
{
	switch (c->state) {
	case CONN_HEAD:
		return conn_takes_answers(c) && take_head(c);
	case CONN_COLLECT:
		return collect(c);
	case CONN_STREAM:
	case CONN_TUNNEL:
		return pass(c);
	case CONN_DRAIN:
		return drain(c);
	case CONN_EVENTS:
	case CONN_WAIT:
	default:
		return false;
	}
}

void conn_pump(struct conn *c)
{
	while (!c->gone && !c->closing && step(c))
		;
	if (c->gone)
		return;
	http_serve_compact(&c->http);
	conn_flush(c);
}
