/*
 * A client's connection. In: bytes of anybody who can reach the port. Out: requests, one at a time,
 * read as strictly as the gateway reads those of sandboxes (rules/http1.h): what two servers might
 * read differently is refused. A body is decoded here and passed on as it comes, as far as the
 * other side has room; an answer waits in a buffer that the credit of its stream bounds. A client
 * that is slow to send its head, or to take an answer, is cut off.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/io.h"
#include "daemon/front.h"

#define CONNS_MAX 4096
#define IN_MAX (64 * 1024)
#define OUT_SENT_MAX (256 * 1024) /* bytes that were sent, and are still kept */
#define DRAIN_MAX (8 * 1024 * 1024)
#define HEAD_MS 30000    /* for a head, or the next one */
#define STALLED_MS 60000 /* without a byte, for a client that owes one or does not take one */

static size_t have(const struct conn *c)
{
	return c->in.len - c->in_at;
}

static bool body_is_over(const struct conn *c)
{
	return c->framing.state == BODY_NONE;
}

/* -- the end */

void conn_abort(struct conn *c)
{
	struct front *f = c->front;

	if (c->gone)
		return;
	c->gone = true;
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
		buf_free(&c->in);
		buf_free(&c->out);
		buf_free(&c->head_bytes);
		buf_free(&c->body);
		buf_free(&c->answer_head);
		free(c);
	}
}

/* -- what is waited for */

/* Whether the client takes its answers: only then another request is read. */
static bool takes_answers(const struct conn *c)
{
	return c->out.len - c->out_at < IN_MAX;
}

/* Whether its stream can take bytes of the client. */
static bool has_room(const struct conn *c)
{
	return c->stream && c->stream->credit > 0 && !link_is_full(c->stream->link);
}

static bool wants_bytes(const struct conn *c)
{
	switch (c->state) {
	case CONN_HEAD:
		return takes_answers(c);
	case CONN_COLLECT:
	case CONN_DRAIN:
		return true;
	case CONN_STREAM:
		return !body_is_over(c) && has_room(c);
	case CONN_TUNNEL:
		return has_room(c);
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
	if (wants_bytes(c) && have(c) < IN_MAX && !c->closing)
		events |= EPOLLIN;
	else if (c->state == CONN_WAIT || (c->state == CONN_STREAM && body_is_over(c)))
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

/* -- answers */

static const char *reason(unsigned status)
{
	static const struct {
		unsigned status;
		const char *text;
	} all[] = {
		{ 200, "OK" },
		{ 201, "Created" },
		{ 204, "No Content" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 409, "Conflict" },
		{ 413, "Content Too Large" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 507, "Insufficient Storage" },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i].status == status)
			return all[i].text;
	return "Status";
}

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
	c->close |= c->expects || c->framing.state == BODY_BAD;
	count(c, status);
	buf_printf(&c->out, "HTTP/1.1 %u %s\r\nContent-Length: %zu\r\n", status, reason(status), n);
	if (type && n)
		buf_printf(&c->out, "Content-Type: %s\r\n", type);
	conn_usual_fields(c);
	if (more_fields)
		buf_puts(&c->out, more_fields);
	if (c->close)
		buf_puts(&c->out, "Connection: close\r\n");
	buf_puts(&c->out, "\r\n");
	if (n && !c->head.head)
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
	if (c->verb > ROUTE_NONE && c->verb < ROUTE_healthz)
		front_log_request(c);
	c->verb = ROUTE_NONE;
	c->answered = true;
	c->drained = 0;
	c->owed = 0; /* its stream is over */
	c->state = CONN_DRAIN;
	c->since_ms = io_now_ms();
	if (c->close && (body_is_over(c) || c->framing.state == BODY_BAD))
		c->closing = true;
	c->front->finished = true;
	conn_flush(c);
}

/* -- requests */

static void next_request(struct conn *c)
{
	if (c->close) {
		c->closing = true;
		return;
	}
	c->state = CONN_HEAD;
	c->scanned = 0;
	c->answered = c->chunked = c->expects = c->websocket = c->raw = c->answer_begun = false;
	c->sandbox_owner = false;
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
	c->expects = http_field_get(&c->req.fields, "expect").s && !body_is_over(c);
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
	int r = http1_head((const uint8_t *)buf_text(&c->in) + c->in_at, have(c), &c->scanned,
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
	while (have(c)) {
		const uint8_t *at = (const uint8_t *)c->in.data + c->in_at;

		if (c->framing.state == BODY_LENGTH || c->framing.state == BODY_DATA) {
			*ret = at;
			return have(c) < c->framing.left ? have(c) : (size_t)c->framing.left;
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
	if (body_is_over(c)) {
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
	size_t n = have(c) < c->stream->credit ? have(c) : (size_t)c->stream->credit, used;
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

	if (!has_room(c) || (c->state == CONN_STREAM && body_is_over(c)))
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
	if (!c->gone && c->stream && body_is_over(c))
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
	if (body_is_over(c)) {
		next_request(c);
		return true;
	}
	return n > 0;
}

static bool step(struct conn *c)
{
	switch (c->state) {
	case CONN_HEAD:
		return takes_answers(c) && take_head(c);
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
		memmove(c->in.data, c->in.data + c->in_at, have(c));
		c->in.len -= c->in_at;
		c->in_at = 0;
	}
	conn_flush(c);
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
	if (!buf_reserve(&c->in, 16384)) {
		conn_abort(c);
		return;
	}
	n = recv(source->fd, c->in.data + c->in.len, 16384, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		conn_abort(c);
		return;
	}
	c->in.len += (size_t)n;
	if (c->state != CONN_HEAD) /* a head has its time as a whole */
		c->since_ms = io_now_ms();
	conn_pump(c);
}

static void accept_all(struct front *f, int listen_fd, bool debug)
{
	int fd, one = 1;

	while ((fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		struct conn *c = f->conn_count < CONNS_MAX ? calloc(1, sizeof(*c)) : NULL;

		if (!c) {
			close(fd);
			continue;
		}
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		c->source = (struct source){ fd, ready };
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
}

void conn_accept(struct source *s, uint32_t events)
{
	(void)events;
	accept_all((struct front *)((char *)s - offsetof(struct front, listener)), s->fd, false);
}

void conn_accept_debug(struct source *s, uint32_t events)
{
	(void)events;
	accept_all((struct front *)((char *)s - offsetof(struct front, debug_listener)), s->fd,
		   true);
}

void conn_go_on(struct front *f)
{
	struct conn *next;

	if (!f->finished)
		return;
	f->finished = false;
	for (struct conn *c = f->conns; c; c = next) {
		next = c->next;
		if (c->state == CONN_DRAIN || c->stream)
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
		if (c->state == CONN_HEAD ? now - c->since_ms > HEAD_MS
					  : owes && now - c->since_ms > STALLED_MS)
			conn_abort(c);
	}
}
