/*
 * What a sandbox answers. In: frames of ward-envd, or the bytes of a program at a port; neither is
 * believed anything. Out: one answer, framed here, so that a sandbox cannot write a header of
 * ours, say more than that one answer, or send more than its client takes.
 */
#include <string.h>

#include "daemon/data.h"

static void port_is_closed(struct conn *c)
{
	auto_buf body = { 0 };
	struct json j = { .out = &body };

	json_begin_object(&j, NULL);
	json_string(&j, "sandboxId", c->sandbox);
	json_string(&j, "message", "The sandbox is running but port is not open");
	json_uint(&j, "port", c->to.port);
	json_uint(&j, "code", 502);
	json_end_object(&j);
	conn_answer(c, 502, "application/json", &body, NULL);
}

static void begin_answer(struct conn *c, unsigned status, const char *type, uint64_t length)
{
	c->answered = true;
	c->status = status;
	c->front->counters.requests[status / 100]++;
	c->left = length;
	/* the answer to HEAD has no body, and so no last chunk either */
	c->chunked = length == ENVD_LENGTH_UNKNOWN && c->http.head.minor > 0 && !c->http.head.head;
	c->close |= length == ENVD_LENGTH_UNKNOWN && c->http.head.minor == 0;
	buf_printf(&c->out, "HTTP/1.1 %u %s\r\n", status, status < 300 ? "OK" : "Error");
	if (type)
		buf_printf(&c->out, "Content-Type: %s\r\n", type);
	if (c->chunked)
		buf_puts(&c->out, "Transfer-Encoding: chunked\r\n");
	else if (length != ENVD_LENGTH_UNKNOWN)
		buf_printf(&c->out, "Content-Length: %llu\r\n", (unsigned long long)length);
	conn_usual_fields(c);
	if (c->close)
		buf_puts(&c->out, "Connection: close\r\n");
	buf_puts(&c->out, "\r\n");
	conn_flush(c);
}

void data_head(struct conn *c, const struct envd_head *h)
{
	static const char *const types[ENVD_KINDS] = {
		[ENVD_JSON] = "application/json",
		[ENVD_CONNECT] = "application/connect+json",
		[ENVD_BYTES] = "application/octet-stream",
	};

	if (!c->stream->dial)
		begin_answer(c, h->status, types[h->kind], h->length);
	else if (h->status != 200)
		port_is_closed(c);
}

static void send_piece(struct conn *c, const uint8_t *bytes, size_t n)
{
	if (!n)
		return;
	if (c->chunked)
		buf_printf(&c->out, "%zx\r\n", n);
	buf_add(&c->out, bytes, n);
	if (c->chunked)
		buf_puts(&c->out, "\r\n");
}

/* Whether what came behind the first `before` bytes may have ended the head, or made it one that is
 * refused: else it need not be read again, for each piece of a head that comes in crumbs. */
static bool may_be_head(const struct buf *head, size_t before)
{
	size_t from = before > 2 ? before - 2 : 0;
	const char *at = buf_text(head) + from;
	size_t n = head->len - from;

	return head->failed || !before || head->len > HTTP_ANSWER_MAX || memmem(at, n, "\n\n", 2) ||
	       memmem(at, n, "\n\r\n", 3);
}

/* The head of a program's answer. 1: it was complete; *used bytes belong to it. */
static int take_answer_head(struct conn *c, const uint8_t *bytes, size_t n, size_t *used)
{
	static struct http_response r;
	size_t before = c->answer_head.len;
	int got;

	buf_add(&c->answer_head, bytes, n);
	*used = n;
	if (!may_be_head(&c->answer_head, before))
		return 0;
	got = http_response_read((const uint8_t *)buf_text(&c->answer_head), c->answer_head.len,
				 &r);
	if (got <= 0)
		return got;
	*used = r.len - before;
	if (r.status < 200 && r.status != 101) {
		c->answer_head.len = 0; /* 100, 103: the answer is still to come */
		return 2;
	}
	if (r.status == 101 && !c->websocket)
		return -1;
	if (r.status == 101)
		c->state = CONN_TUNNEL;
	else if (c->http.head.head || r.status == 204 || r.status == 304)
		body_length(&c->answer, 0);
	else if (r.chunked)
		body_chunked(&c->answer);
	else if (r.has_length)
		body_length(&c->answer, r.length);
	else
		body_until_close(&c->answer);
	c->chunked = r.status != 101 && c->answer.state == BODY_CLOSE;
	c->answer_begun = c->answered = true;
	c->status = r.status;
	c->front->counters.requests[r.status < 600 ? r.status / 100 : 5]++;
	http_response_write(&r, c->chunked || (r.chunked && c->answer.state != BODY_NONE), c->close,
			    &c->out);
	return 1;
}

static void port_bytes(struct conn *c, const uint8_t *bytes, size_t n)
{
	while (n && !c->answer_begun) {
		size_t used = 0;
		int r = take_answer_head(c, bytes, n, &used);

		if (r < 0) {
			if (c->answered)
				conn_abort(c);
			else
				conn_refuse(c, 502, "the program's answer is not HTTP");
			return;
		}
		bytes += used;
		n -= used;
	}
	if (!c->answer_begun)
		return;
	if (c->state != CONN_TUNNEL) {
		size_t mine = body_take(&c->answer, bytes, n, true);

		if (c->answer.state == BODY_BAD) {
			conn_abort(c);
			return;
		}
		n = mine;
	}
	send_piece(c, bytes, n);
	if (c->state != CONN_TUNNEL && c->answer.state == BODY_NONE)
		conn_finish(c);
}

void data_bytes(struct conn *c, const uint8_t *bytes, size_t n)
{
	c->owed += n;
	if (c->stream->dial) {
		port_bytes(c, bytes, n);
	} else {
		if (c->left != ENVD_LENGTH_UNKNOWN) {
			if (n > c->left) {
				conn_abort(c); /* it would be read as another answer */
				return;
			}
			c->left -= n;
		}
		if (!c->http.head.head)
			send_piece(c, bytes, n);
	}
	if (c->gone)
		return;
	conn_flush(c);
	/* crumbs, each in a chunk of its own, are more bytes than the stream's window */
	if (!c->gone && c->out.len - c->out_at > 3 * ENVD_WINDOW)
		conn_abort(c);
}

void data_end(struct conn *c)
{
	if (c->stream->dial) {
		if (c->state == CONN_TUNNEL) {
			c->closing = true;
			conn_flush(c);
			return;
		}
		if (!c->answer_begun) {
			conn_refuse(c, 502, "the program closed the connection without an answer");
			return;
		}
		if (c->answer.state != BODY_CLOSE && c->answer.state != BODY_NONE) {
			conn_abort(c);
			return;
		}
	} else if (c->left != ENVD_LENGTH_UNKNOWN && c->left && !c->http.head.head) {
		conn_abort(c);
		return;
	}
	if (c->chunked)
		buf_puts(&c->out, "0\r\n\r\n");
	conn_finish(c);
}

void data_reset(struct conn *c)
{
	if (c->answered) {
		conn_abort(c);
		return;
	}
	c->close = true;
	conn_refuse(c, 502, "the connection inside the sandbox broke");
}
