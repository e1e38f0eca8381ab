/*
 * A connection of HTTP/2 (h2.h). In: bytes of both sides. Out: frames of both sides. Windows bound
 * what is held: a body's bytes are given back to the sender's window when they have gone on.
 * Streams that the program opens and takes back at once are counted; too many of them end the
 * connection. Runs in front.
 */
#include "inspect/body_scan.h"
#include "inspect/h2.h"

#include <string.h>

/* frames for a program that does not read: nghttp2 bounds only those that answer PING and SETTINGS,
 * not those that refuse a stream */
#define WAITING_MAX 2048
/* streams that may be taken back, beside one for each that was completed */
#define RESETS_FREE 100

static struct h2_stream *stream_of(nghttp2_session *session, int32_t id)
{
	return nghttp2_session_get_stream_user_data(session, id);
}

/* -- what comes */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2 *h = user;
	struct h2_stream *s = stream_of(session, frame->hd.stream_id);

	if (session == h->down && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		s = h2_stream_new(h, frame->hd.stream_id);
	if (!s)
		return session == h->down ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : 0;
	if (s->head)
		buf_free(&s->head->text);
	free(s->head);
	s->head = calloc(1, sizeof(*s->head));
	return s->head ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *user)
{
	struct h2_stream *s = stream_of(session, frame->hd.stream_id);

	(void)flags;
	(void)user;
	if (!s || !s->head)
		return 0;
	return h2_head_add(s, name, name_n, value, value_n) ? 0
							    : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2 *h = user;
	struct h2_stream *s = frame->hd.stream_id ? stream_of(session, frame->hd.stream_id) : NULL;
	enum direction d = session == h->down ? UP : DOWN;
	bool ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	if (frame->hd.type == NGHTTP2_RST_STREAM && d == UP &&
	    ++h->resets > RESETS_FREE + h->completed)
		h->broken = true;
	if (!s || (s->own && d == DOWN) ||
	    (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS && s->head) {
		if (d == UP && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
			s->up_ended = ends;
			h2_request(h, s);
			return 0;
		}
		if (d == DOWN && !s->answered)
			h2_response(h, s, ends);
	}
	if (ends)
		h2_ended(h, s, d);
	return 0;
}

static int on_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
		    size_t n, void *user)
{
	struct h2 *h = user;
	struct h2_stream *s = stream_of(session, id);
	enum direction d = session == h->down ? UP : DOWN;

	(void)flags;
	if (!s || s->own || s->refused) { /* no process wants it */
		nghttp2_session_consume(session, id, n);
		return 0;
	}
	if (!h2_data(h, s, d, bytes, n)) {
		nghttp2_session_consume(session, id, n);
		h2_refuse(h, s, d == UP ? REASON_REQUEST_SIZE : REASON_RESPONSE_SIZE);
	}
	return 0;
}

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	const struct h2 *h = user;
	struct h2_stream *s = session == h->up && frame->hd.type == NGHTTP2_HEADERS
				      ? stream_of(session, frame->hd.stream_id)
				      : NULL;

	if (s)
		s->gone = true;
	return 0;
}

/* A request that was sent is reported once, whatever became of it. One that was taken back while it
 * waited has not; the server's stream is there as soon as it does not wait. */
static void tell(const struct h2 *h, struct h2_stream *s)
{
	s->gone |= s->status || (s->up_id > 0 && nghttp2_session_find_stream(h->up, s->up_id));
	if (s->gone)
		front_flow_report_http(h->f, h->ex->flow, s->rule, s->what, s->status, s->bytes[UP],
				       s->bytes[DOWN]);
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
	struct h2 *h = user;
	struct h2_stream *s = stream_of(session, id);

	if (!s)
		return 0;
	if (session == h->up) {
		s->up_open = false;
		s->refused = true; /* what is left of the request */
		s->declined = error == NGHTTP2_REFUSED_STREAM && !s->answered;
		h2_drop(h, s);
		if (error != NGHTTP2_NO_ERROR && !s->own && !s->cut)
			nghttp2_submit_rst_stream(h->down, NGHTTP2_FLAG_NONE, s->down_id, error);
		return 0;
	}
	tell(h, s);
	/* what is left of it is not wanted; give() must not find it any more */
	if (s->up_open) {
		nghttp2_submit_rst_stream(h->up, NGHTTP2_FLAG_NONE, s->up_id, NGHTTP2_CANCEL);
		nghttp2_session_set_stream_user_data(h->up, s->up_id, NULL);
	}
	if (!s->own)
		nghttp2_session_consume_connection(h->up, queue_size(&s->data[DOWN]));
	h->completed += error == NGHTTP2_NO_ERROR;
	nghttp2_session_consume_connection(h->down, body_scan_held(s->scan));
	h2_stream_free(h, s);
	return 0;
}

/* -- the beginning and the end */

struct h2 *h2_new(struct front *f, struct exchange *ex)
{
	static const struct h2_calls calls = {
		.begin_headers = on_begin_headers,
		.header = on_header,
		.frame = on_frame,
		.chunk = on_chunk,
		.close = on_close,
		.sent = on_sent,
		.streams = H2_STREAMS,
		.fields_bytes = H2_FIELDS_BYTES,
	};
	struct h2 *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->f = f;
	h->ex = ex;
	if (h2_sessions_new(&calls, h, &h->down, &h->up))
		return h;
	h2_free(h);
	return NULL;
}

void h2_free(struct h2 *h)
{
	if (!h)
		return;
	for (struct h2_stream *s = h->streams; s; s = s->next)
		tell(h, s);
	nghttp2_session_del(h->down);
	nghttp2_session_del(h->up);
	while (h->streams)
		h2_stream_free(h, h->streams);
	free(h);
}

/* -- bytes */

/* Frames that wait become bytes, and go. False: broken. */
static bool push(struct h2 *h, enum direction d, bool *moved)
{
	nghttp2_session *session = d == UP ? h->up : h->down;
	struct queue *q = d == UP ? &h->ex->up : &h->ex->down;
	struct flow *w = h->ex->flow; /* outlives h in this round */

	for (;;) {
		const uint8_t *bytes;
		ssize_t n = 0;
		enum tls_say say;
		size_t went;

		while (queue_size(q) < H2_OUT_BYTES &&
		       (n = nghttp2_session_mem_send(session, &bytes)) > 0)
			queue_add(q, bytes, (size_t)n);
		if (n < 0 || q->failed)
			return false;
		if (!queue_size(q))
			return true;
		say = d == UP ? exchange_flush(h->f, h->ex, &went)
			      : queue_flush(q, &h->ex->wire, &went);
		*moved |= went > 0;
		if (w->state != FLOW_INSPECT)
			return false;
		if (say == TLS_READ || say == TLS_WRITE)
			return true;
		if (say != TLS_DONE)
			return false;
	}
}

/* Bytes that have come become frames. False: the end. */
static bool pull(struct h2 *h, enum direction d, bool *moved)
{
	nghttp2_session *session = d == UP ? h->down : h->up;
	struct front *f = h->f;
	struct flow *w = h->ex->flow; /* outlives h in this round */
	size_t n;
	enum tls_say say = exchange_read(f, h->ex, d, f->scratch, sizeof(f->scratch), &n);

	if (w->state != FLOW_INSPECT)
		return false;
	if (say == TLS_READ || say == TLS_WRITE)
		return true;
	if (say != TLS_DONE)
		return false;
	*moved = true;
	if (nghttp2_session_mem_recv(session, h->f->scratch, n) != (ssize_t)n)
		return false;
	h->broken |= nghttp2_session_get_outbound_queue_size(h->down) > WAITING_MAX;
	return true;
}

/* The server is gone: what it owes is refused, and no more is taken. */
static void lose_server(struct h2 *h)
{
	enum verdict_reason reason =
		h->ex->lost ? (enum verdict_reason)h->ex->lost : REASON_UNREACHABLE;

	server_put(h->f, h->ex, false);
	h->over = true;
	for (struct h2_stream *s = h->streams, *next; s; s = next) {
		next = s->next;
		s->up_open = false;
		if (s->own)
			continue;
		if (s->answered)
			nghttp2_submit_rst_stream(h->down, NGHTTP2_FLAG_NONE, s->down_id,
						  NGHTTP2_INTERNAL_ERROR);
		else
			h2_refuse(h, s, reason);
	}
	h2_session_leave(h->down);
}

/* All is said: the server is gone, or the program has taken its leave. */
static bool is_done(const struct h2 *h)
{
	if (queue_size(&h->ex->down))
		return false;
	return (h->over && !h->streams) ||
	       (!nghttp2_session_want_read(h->down) && !nghttp2_session_want_write(h->down));
}

bool h2_run(struct h2 *h)
{
	struct exchange *ex = h->ex;
	struct front *f = h->f;
	struct flow *w = ex->flow;
	bool moved = false;

	if (!ex->server && !h->over)
		lose_server(h);
	if (ex->server && ex->server->state != SERVER_OPEN) {
		if (w->has_ended[CLIENT])
			flow_close(f, w, true);
		return false;
	}
	if (ex->server && ex->server->alpn != TLS_ALPN_HTTP2) /* it did when it was asked */
		lose_server(h);
	if (!pull(h, UP, &moved)) {
		if (w->state == FLOW_INSPECT)
			flow_close(f, w, false);
		return false;
	}
	if (h->broken) {
		flow_close(f, w, true);
		return false;
	}
	if (ex->server && !push(h, UP, &moved)) {
		if (w->state != FLOW_INSPECT)
			return false;
		lose_server(h);
	}
	if (ex->server && !pull(h, DOWN, &moved)) {
		if (w->state != FLOW_INSPECT)
			return false;
		lose_server(h);
	}
	if (!push(h, DOWN, &moved) || is_done(h)) {
		flow_close(h->f, w, false);
		return false;
	}
	return moved;
}
