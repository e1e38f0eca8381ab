/*
 * What a client says. In: the bytes of a connection. Out: requests, one at a time, read as strictly
 * as the gateway reads those of sandboxes (rules/http1.h): what two servers might read differently
 * is refused. A body is decoded here and passed on as it comes, as far as the other side has room.
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
	c->scanned = 0;
	c->answered = c->chunked = c->expects = c->websocket = c->raw = c->answer_begun = false;
	c->sandbox_owner = c->asked = false;
	*c->token_id = *c->sandbox = '\0';
	c->body.len = c->answer_head.len = 0;
	c->since_ms = io_now_ms();
}

static bool says_close(const struct http_fields *f)
{
	for (unsigned i = 0; i < f->count; i++)
		if (http_text_is(f->items[i].name, "connection") &&
		    (http_text_is(f->items[i].value, "close") ||
		     (f->items[i].value.n > 5 &&
		      memmem(f->items[i].value.s, f->items[i].value.n, "close", 5))))
			return true;
	return false;
}

static bool is_files(const struct conn *c)
{
	return c->req.path.n == 6 && memcmp(c->req.path.s, "/files", 6) == 0;
}

static void begin_request(struct conn *c)
{
	int r;

	c->began_us = front_now_us();
	c->close = c->head.minor == 0 || says_close(&c->req.fields);
	c->websocket = c->req.websocket;
	if (c->head.chunked)
		body_chunked(&c->framing);
	else
		body_length(&c->framing, c->head.length);
	c->expects = http_field_get(&c->req.fields, "expect").s && !conn_body_is_over(c);
	r = route_host(&c->head.host, &c->req.fields, &c->to);
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
	enum http_wrong wrong = HTTP_FINE;
	int r = http1_head((const uint8_t *)buf_text(&c->in) + c->in_at, conn_have(c), &c->scanned,
			   &c->head, &wrong);

	if (r == 0)
		return false;
	if (r < 0 || c->head.connect) {
		memset(&c->head, 0, sizeof(c->head));
		c->framing.state = BODY_NONE;
		c->close = true;
		conn_refuse(c, wrong == HTTP_LARGE ? 431 : 400,
			    wrong == HTTP_LARGE ? "the request's head is too large"
						: "not a request that can be read in one way");
		return false;
	}
	c->head_bytes.len = 0;
	buf_add(&c->head_bytes, c->in.data + c->in_at, c->head.len);
	c->in_at += c->head.len;
	if (c->head_bytes.failed ||
	    !http_request_read((const uint8_t *)c->head_bytes.data, &c->head, &c->req)) {
		c->framing.state = BODY_NONE;
		c->close = true;
		conn_refuse(c, 400, "not a request that can be read in one way");
		return false;
	}
	begin_request(c);
	return true;
}

/* Bytes of the body that are there, without what frames them. */
static size_t piece(struct conn *c, const uint8_t **ret)
{
	while (conn_have(c)) {
		const uint8_t *at = (const uint8_t *)c->in.data + c->in_at;

		if (c->framing.state == BODY_LENGTH || c->framing.state == BODY_DATA) {
			*ret = at;
			return conn_have(c) < c->framing.left ? conn_have(c)
							      : (size_t)c->framing.left;
		}
		if (c->framing.state == BODY_NONE || c->framing.state == BODY_BAD)
			break;
		c->in_at += body_take(&c->framing, at, 1, true);
	}
	return 0;
}

static void took(struct conn *c, size_t n)
{
	c->in_at += body_take(&c->framing, (const uint8_t *)c->in.data + c->in_at, n, true);
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
	size_t n = piece(c, &bytes);

	if (c->framing.state == BODY_BAD) {
		bad_body(c);
		return false;
	}
	if (c->body.len + n > CONTROL_BODY_MAX) {
		c->close = true;
		conn_refuse(c, 413, "the body is larger than %d bytes", CONTROL_BODY_MAX);
		return false;
	}
	buf_add(&c->body, bytes, n);
	took(c, n);
	if (conn_body_is_over(c)) {
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
	size_t n = conn_have(c) < c->stream->credit ? conn_have(c) : (size_t)c->stream->credit,
	       used;
	const uint8_t *at = (const uint8_t *)c->in.data + c->in_at;

	if (!n)
		return false;
	used = c->state == CONN_TUNNEL ? n : body_take(&c->framing, at, n, true);
	if (c->framing.state == BODY_BAD) {
		bad_body(c);
		return false;
	}
	c->in_at += used;
	stream_send(c->stream, at, used);
	return used > 0;
}

static bool pass(struct conn *c)
{
	const uint8_t *bytes;
	size_t n;

	if (!conn_has_room(c) || (c->state == CONN_STREAM && conn_body_is_over(c)))
		return false;
	say_continue(c);
	if (c->raw || c->state == CONN_TUNNEL)
		return pass_raw(c);
	n = piece(c, &bytes);
	if (c->framing.state == BODY_BAD) {
		bad_body(c);
		return false;
	}
	n = n < c->stream->credit ? n : (size_t)c->stream->credit;
	if (n)
		stream_send(c->stream, bytes, n);
	if (!c->gone)
		took(c, n);
	if (!c->gone && c->stream && conn_body_is_over(c))
		stream_send_end(c->stream);
	return n > 0;
}

static bool drain(struct conn *c)
{
	const uint8_t *bytes;
	size_t n = piece(c, &bytes);

	if (c->framing.state == BODY_BAD || c->drained > DRAIN_MAX || c->closing) {
		c->closing = true;
		return false;
	}
	took(c, n);
	c->drained += n;
	if (conn_body_is_over(c)) {
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
	if (c->in_at) {
		memmove(c->in.data, c->in.data + c->in_at, conn_have(c));
		c->in.len -= c->in_at;
		c->in_at = 0;
	}
	conn_flush(c);
}
