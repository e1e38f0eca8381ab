/*
 * A client's connection, from accept() to its end. In: bytes of any client that reaches the port,
 * read by rules/http_serve.h. Out: answers, one a request, or a stream of events. A client that is
 * slow to send a request, or does not take its answers, is cut off. Runs in the front.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/io.h"
#include "cli/mcp/front.h"
#include "mcp/say.h"

#define READ_BYTES 65536
#define OUT_MAX (16u << 20)  /* bytes that a client does not take */
#define DRAIN_MAX (8u << 20) /* bytes of a refused body that are read */
#define HEAD_MS 30000        /* for a whole head, or until the next one */
#define STALLED_MS 60000     /* without a byte, for a client that owes one or takes none */
#define KEEP_MS 15000        /* between signs of life */

bool conn_begin(struct front *f, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));
	int one = 1;

	if (!c) {
		close(fd);
		return false;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c->front = f;
	c->fd = fd;
	c->since_ms = io_now_ms();
	c->next = f->conns;
	f->conns = c;
	f->conn_count++;
	return true;
}

void conn_end(struct conn *c)
{
	if (c->gone)
		return;
	c->gone = true;
	if (c->stream)
		stream_leave(c->stream);
	c->stream = NULL;
}

void conn_free(struct conn *c)
{
	close(c->fd);
	http_serve_free(&c->http);
	buf_free(&c->body);
	buf_free(&c->out);
	free(c);
}

void conn_flush(struct conn *c)
{
	while (!c->gone && c->out_at < c->out.len) {
		ssize_t n = send(c->fd, c->out.data + c->out_at, c->out.len - c->out_at,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			conn_end(c);
			return;
		}
		c->out_at += (size_t)n;
		c->since_ms = io_now_ms();
	}
	if (c->out.failed || c->out.len - c->out_at > OUT_MAX) {
		conn_end(c);
	} else if (c->out_at == c->out.len) {
		buf_free(&c->out);
		c->out_at = 0;
		if (c->state == CONN_LAST) {
			shutdown(c->fd, SHUT_WR);
			conn_end(c);
		}
	}
}

/* -- answers */

static void finish(struct conn *c)
{
	c->stream = NULL;
	c->drained = 0;
	c->state = CONN_DRAIN;
	c->since_ms = io_now_ms();
}

static void put_head(struct conn *c, unsigned status, const char *type, const char *more)
{
	buf_printf(&c->out, "HTTP/1.1 %u %s\r\n", status, http_serve_reason(status));
	if (type)
		buf_printf(&c->out, "Content-Type: %s\r\n", type);
	buf_puts(&c->out, "X-Content-Type-Options: nosniff\r\n");
	if (more)
		buf_puts(&c->out, more);
	if (c->close)
		buf_puts(&c->out, "Connection: close\r\n");
}

void conn_answer(struct conn *c, unsigned status, const char *type, const char *bytes, size_t n,
		 const char *more)
{
	if (c->gone)
		return;
	c->close |= c->http.framing.state == BODY_BAD;
	put_head(c, status, n ? type : NULL, more);
	buf_printf(&c->out, "Content-Length: %zu\r\n\r\n", n);
	if (n)
		buf_add(&c->out, bytes, n);
	finish(c);
}

void conn_refuse(struct conn *c, const struct mcp_no *no, const char *id)
{
	auto_buf body = { 0 };

	mcp_put_error(&body, id, no->code, no->why, NULL);
	conn_answer(c, no->status, "application/json", buf_text(&body), body.len,
		    no->status == 401   ? "WWW-Authenticate: Bearer\r\n"
		    : no->status == 405 ? "Allow: POST, GET, DELETE\r\n"
		    : no->status == 503 ? "Retry-After: 1\r\n"
					: NULL);
}

/* To a client of HTTP/1.0 the end of the connection is that of the stream. */
void conn_begin_events(struct conn *c, const char *more)
{
	if (c->gone)
		return;
	c->chunked = c->http.head.minor > 0;
	c->close |= !c->chunked;
	put_head(c, 200, "text/event-stream", more);
	buf_puts(&c->out, "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n");
	buf_puts(&c->out, c->chunked ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
	c->said_ms = io_now_ms();
}

void conn_put_events(struct conn *c, const struct buf *bytes)
{
	if (c->gone || !bytes->len)
		return;
	if (c->chunked)
		buf_printf(&c->out, "%zx\r\n", bytes->len);
	buf_add(&c->out, bytes->data, bytes->len);
	if (c->chunked)
		buf_puts(&c->out, "\r\n");
	c->out.failed |= bytes->failed;
	c->said_ms = io_now_ms();
}

void conn_end_events(struct conn *c)
{
	if (c->gone)
		return;
	if (c->chunked)
		buf_puts(&c->out, "0\r\n\r\n");
	finish(c);
}

/* -- requests */

static bool take_head(struct conn *c)
{
	struct mcp_no no = { .code = MCP_INVALID };
	bool expects;
	int r = http_serve_head(&c->http, &no.status, &no.why);

	if (r == 0)
		return false;
	if (r < 0) {
		c->close = true;
		conn_refuse(c, &no, "");
		return true;
	}
	expects = http_field_get(&c->http.req.fields, "expect").s;
	c->close = http_serve_wants_close(&c->http);
	if (!mcp_http_head(&c->http.head, &c->http.req, c->front->token, &c->ask, &no)) {
		/* what waits for "continue" does not come now */
		c->close |= expects || no.status == 401 || no.status == 403;
		conn_refuse(c, &no, "");
		return true;
	}
	c->body.len = 0;
	c->state = CONN_BODY;
	if (expects && !http_serve_body_is_over(&c->http) && !http_serve_have(&c->http))
		buf_puts(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
	return true;
}

static bool take_body(struct conn *c)
{
	static const struct mcp_no framing = { 400, MCP_INVALID,
					       "the body is not framed as HTTP has it" };
	static const struct mcp_no large = { 413, MCP_INVALID, "a message has at most 4 MiB" };
	const uint8_t *bytes;
	size_t n = http_serve_piece(&c->http, &bytes);

	if (c->http.framing.state == BODY_BAD || c->body.failed ||
	    c->body.len + n > MCP_BYTES_MAX) {
		c->close = true;
		conn_refuse(c, c->http.framing.state == BODY_BAD ? &framing : &large, "");
		return true;
	}
	if (n)
		buf_add(&c->body, bytes, n);
	http_serve_took(&c->http, n);
	if (!http_serve_body_is_over(&c->http))
		return n > 0;
	c->state = CONN_WAIT;
	if (c->ask.verb == MCP_POST)
		ask_message(c);
	else
		ask_begin(c);
	return true;
}

static bool drain(struct conn *c)
{
	const uint8_t *bytes;
	size_t n = http_serve_piece(&c->http, &bytes);

	c->drained += n;
	if (c->http.framing.state == BODY_BAD || c->drained > DRAIN_MAX) {
		c->state = CONN_LAST;
		return false;
	}
	http_serve_took(&c->http, n);
	if (!http_serve_body_is_over(&c->http))
		return n > 0;
	c->state = c->close ? CONN_LAST : CONN_HEAD;
	c->since_ms = io_now_ms();
	return true;
}

static bool step(struct conn *c)
{
	switch (c->state) {
	case CONN_HEAD:
		return take_head(c);
	case CONN_BODY:
		return take_body(c);
	case CONN_DRAIN:
		return drain(c);
	case CONN_WAIT:
	case CONN_LAST:
	default:
		return false;
	}
}

bool conn_wants_bytes(const struct conn *c)
{
	/* in WAIT only its end is looked for; a request that is there already stays where it is */
	return c->state != CONN_LAST && http_serve_have(&c->http) < READ_BYTES &&
	       link_waiting(&c->front->link) < OUT_MAX;
}

static void pump(struct conn *c)
{
	while (!c->gone && step(c))
		;
	http_serve_compact(&c->http);
	conn_flush(c);
}

void conn_go_on(struct conn *c)
{
	if (!c->gone && c->state == CONN_DRAIN)
		pump(c);
}

void conn_readable(struct conn *c)
{
	ssize_t n;

	if (!buf_reserve(&c->http.in, READ_BYTES)) {
		conn_end(c);
		return;
	}
	n = recv(c->fd, c->http.in.data + c->http.in.len, READ_BYTES, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		conn_end(c);
		return;
	}
	c->http.in.len += (size_t)n;
	if (c->state != CONN_HEAD) /* a head has its time as a whole */
		c->since_ms = io_now_ms();
	pump(c);
}

void conn_on_time(struct conn *c, uint64_t now)
{
	uint64_t most = c->state == CONN_HEAD ? HEAD_MS : STALLED_MS;
	bool owes = c->state != CONN_WAIT || c->out_at < c->out.len;

	if (owes && now - c->since_ms > most)
		conn_end(c);
	else if (!c->gone && c->stream && now - c->said_ms > KEEP_MS)
		stream_keep(c->stream);
}
