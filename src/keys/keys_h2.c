/*
 * A connection of HTTP/2 in ward-keys (keys_h2.h). In: frames of front's and of the server's. Out:
 * frames to both. nghttp2 speaks on both sides; windows bound what is held of bodies: their bytes
 * are given back to the sender's window when they have gone on. Frames that carry a secret are
 * zeroed where they have been, and their field is never put into a table (keys_h2_up.c).
 */
#include "keys/keys_h2.h"

#include <string.h>

#include "base/io.h"

#define WINDOW_LEAST 16384 /* of a window that is open: a frame */

static struct keys_stream *stream_of(nghttp2_session *session, int32_t id)
{
	return id ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

/* -- streams */

static struct keys_stream *stream_new(struct keys_h2 *h, int32_t down_id)
{
	struct keys_stream *s = calloc(1, sizeof(*s));

	if (!s || nghttp2_session_set_stream_user_data(h->down, down_id, s) != 0) {
		free(s);
		return NULL;
	}
	s->down_id = down_id;
	s->next = h->streams;
	if (h->streams)
		h->streams->prev = s;
	h->streams = s;
	return s;
}

static void stream_free(struct keys_h2 *h, struct keys_stream *s)
{
	*(s->prev ? &s->prev->next : &h->streams) = s->next;
	if (s->next)
		s->next->prev = s->prev;
	h->open -= s->up_open;
	keys_h2_forget(h, s);
	ask_clear(h->k, &s->ask);
	buf_free(&s->method);
	buf_free(&s->path);
	buf_free(&s->authority);
	buf_free(&s->lines);
	for (int way = 0; way < WAYS; way++) {
		if (s->held[way].data)
			explicit_bzero(s->held[way].data, s->held[way].len);
		buf_free(&s->held[way]);
		buf_free(&s->data[way].bytes);
		buf_free(&s->trailers[way]);
	}
	free(s);
}

/* What is left of the request's body goes nowhere. */
static void drop_request(struct keys_h2 *h, struct keys_stream *s)
{
	nghttp2_session_consume_connection(h->down, s->owed[WAY_UP]);
	s->owed[WAY_UP] = 0;
	buf_free(&s->held[WAY_UP]);
	buf_free(&s->data[WAY_UP].bytes);
	s->data[WAY_UP].at = 0;
	ask_end(h->k, &s->ask);
}

/* -- fields */

nghttp2_nv keys_h2_field(const char *name, const char *value, size_t n, uint8_t flags)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
			     n, flags };
}

size_t keys_h2_fields(char *lines, size_t n, nghttp2_nv *out, size_t room, uint8_t flags)
{
	char *at = lines, *end = n ? lines + n : lines;
	size_t count = 0;

	while (at && at < end && count < room) {
		char *line_end = memmem(at, (size_t)(end - at), "\r\n", 2),
		     *colon = line_end ? memchr(at, ':', (size_t)(line_end - at)) : NULL;
		char *value, *value_end = line_end;

		if (!colon)
			break;
		value = colon + 1;
		for (char *c = at; c < colon; c++)
			*c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
		while (value < value_end && (*value == ' ' || *value == '\t'))
			value++;
		while (value_end > value && (value_end[-1] == ' ' || value_end[-1] == '\t'))
			value_end--;
		if (colon - at != 4 || memcmp(at, "host", 4) != 0) /* it is :authority */
			out[count++] =
				(nghttp2_nv){ (uint8_t *)at, (uint8_t *)value, (size_t)(colon - at),
					      (size_t)(value_end - value), flags };
		at = line_end + 2;
	}
	return count;
}

/* -- bodies */

/* Bytes of a body go on. */
static void emit(struct keys_h2 *h, struct keys_stream *s, enum keys_way way,
		 const struct buf *data, size_t at, size_t n)
{
	size_t from = 0, some = way == WAY_DOWN ? part_pass(&s->down_window, n, &from) : n,
	       rest = n - some;

	if (some)
		buf_add(&s->data[way].bytes, data->data + at + from, some);
	rest = rest < s->owed[way] ? rest : s->owed[way];
	if (rest) { /* those will not be asked for */
		s->owed[way] -= rest;
		nghttp2_session_consume(h->up, s->up_id, rest);
	}
}

void keys_h2_pass(struct keys_h2 *h, struct keys_stream *s, enum keys_way way, size_t clean)
{
	struct buf *held = &s->held[way];
	size_t sent = way == WAY_DOWN ? hold_pass(&s->hold, clean, held->len, io_now_ms()) : 0;

	emit(h, s, way, held, sent, clean - sent);
	if (held->len) {
		memmove(held->data, held->data + clean, held->len - clean);
		explicit_bzero(held->data + held->len - clean, clean);
	}
	held->len -= clean;
	h->broken |= held->failed || s->data[way].bytes.failed;
	if (way == WAY_DOWN)
		nghttp2_session_resume_data(h->down, s->down_id);
	else if (s->up_open)
		nghttp2_session_resume_data(h->up, s->up_id);
}

/* What nghttp2 asks for when it may send: of the queue, then the end or the trailers. */
static ssize_t give(nghttp2_session *session, int32_t id, uint8_t *to, size_t n, uint32_t *flags,
		    nghttp2_data_source *source, void *user)
{
	struct keys_h2 *h = user;
	struct keys_stream *s = stream_of(session, id);
	enum keys_way way = session == h->up ? WAY_UP : WAY_DOWN;
	struct queue *q = s ? &s->data[way] : NULL;
	nghttp2_nv fields[KEYS_H2_FIELDS];
	size_t some, back;

	(void)source;
	if (!s)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	some = queue_len(q) < n ? queue_len(q) : n;
	if (some)
		memcpy(to, q->bytes.data + q->at, some);
	queue_drop(q, some);
	if (!queue_len(q))
		buf_free(&q->bytes);
	back = some < s->owed[way] ? some : s->owed[way];
	s->owed[way] -= back;
	if (back) /* its sender may send as much again */
		nghttp2_session_consume(way == WAY_UP ? h->down : h->up,
					way == WAY_UP ? s->down_id : s->up_id, back);
	if (queue_len(q) || !s->ended[way] || s->held[way].len)
		return some ? (ssize_t)some : NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (s->trailers[way].len) {
		size_t count = keys_h2_fields(s->trailers[way].data, s->trailers[way].len, fields,
					      ARRAY_LEN(fields), NGHTTP2_NV_FLAG_NONE);

		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		if (nghttp2_submit_trailer(session, id, fields, count) != 0)
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	}
	return (ssize_t)some;
}
const nghttp2_data_source_read_callback keys_h2_give = give;

void keys_h2_refuse(struct keys_h2 *h, struct keys_stream *s, unsigned status, const char *why)
{
	nghttp2_data_provider body_of = { { .ptr = s }, give };
	auto_buf body = { 0 };
	char code[8], length[24];
	nghttp2_nv fields[4];
	size_t count = 0;

	s->refused = true;
	s->waiting = s->collecting = false;
	if (s->up_open)
		nghttp2_submit_rst_stream(h->up, NGHTTP2_FLAG_NONE, s->up_id, NGHTTP2_CANCEL);
	drop_request(h, s);
	if (s->own)
		return;
	if (s->answered) {
		nghttp2_submit_rst_stream(h->down, NGHTTP2_FLAG_NONE, s->down_id, NGHTTP2_CANCEL);
		return;
	}
	ask_words(&body, why);
	s->own = s->answered = s->ended[WAY_DOWN] = true;
	s->held[WAY_DOWN].len = s->trailers[WAY_DOWN].len = 0;
	snprintf(code, sizeof(code), "%u", status);
	snprintf(length, sizeof(length), "%zu", body.len);
	fields[count++] = keys_h2_field(":status", code, strlen(code), NGHTTP2_NV_FLAG_NONE);
	fields[count++] =
		keys_h2_field("content-type", "application/json", 16, NGHTTP2_NV_FLAG_NONE);
	fields[count++] =
		keys_h2_field("content-length", length, strlen(length), NGHTTP2_NV_FLAG_NONE);
	if (s->ask.leaked)
		fields[count++] = keys_h2_field(KEYS_LEAK_FIELD, "yes", 3, NGHTTP2_NV_FLAG_NONE);
	buf_add(&s->data[WAY_DOWN].bytes, body.data, body.len);
	h->broken |= body.failed || s->data[WAY_DOWN].bytes.failed ||
		     nghttp2_submit_response(h->down, s->down_id, fields, count,
					     s->ask.head.head ? NULL : &body_of) != 0;
}

/* -- what comes */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct keys_h2 *h = user;
	struct keys_stream *s = stream_of(session, frame->hd.stream_id);

	if (session == h->down && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		s = stream_new(h, frame->hd.stream_id);
	if (!s)
		return session == h->down ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : 0;
	s->lines.len = s->fields = s->status = 0;
	s->has_head = true;
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *user)
{
	static const char *const pseudo[] = { ":method", ":path", ":authority" };
	struct keys_stream *s = stream_of(session, frame->hd.stream_id);

	(void)flags;
	(void)user;
	if (!s || !s->has_head)
		return 0;
	if (++s->fields > HTTP1_HEADERS_MAX ||
	    s->lines.len + s->path.len + name_n + value_n + 4 > KEYS_H2_FIELDS_BYTES)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	for (size_t i = 0; i < ARRAY_LEN(pseudo); i++)
		if (name_n == strlen(pseudo[i]) && memcmp(name, pseudo[i], name_n) == 0) {
			buf_add((struct buf *[]){ &s->method, &s->path, &s->authority }[i], value,
				value_n);
			return 0;
		}
	if (name_n && name[0] == ':') {
		/* digits: nghttp2 has looked */
		if (name_n == 7 && memcmp(name, ":status", 7) == 0 && value_n == 3)
			s->status = (unsigned)(value[0] - '0') * 100 +
				    (unsigned)(value[1] - '0') * 10 + (unsigned)(value[2] - '0');
		return 0;
	}
	buf_add(&s->lines, name, name_n);
	buf_puts(&s->lines, ": ");
	buf_add(&s->lines, value, value_n);
	buf_puts(&s->lines, "\r\n");
	return s->lines.failed ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct keys_h2 *h = user;
	struct keys_stream *s = stream_of(session, frame->hd.stream_id);
	bool down = session == h->down, ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	if (!s || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) ||
	    (s->own && !down))
		return 0;
	if (down && frame->hd.type == NGHTTP2_HEADERS &&
	    frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
		keys_h2_request(h, s, ends);
	} else if (!down && frame->hd.type == NGHTTP2_HEADERS && !s->answered) {
		keys_h2_answer(h, s, ends);
	} else if (ends && down && !s->refused) {
		keys_h2_sent_all(h, s);
	} else if (ends && !down) {
		keys_h2_came_all(h, s);
	}
	if (frame->hd.type == NGHTTP2_HEADERS) {
		s->has_head = false;
		s->lines.len = 0;
	}
	return 0;
}

static int on_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
		    size_t n, void *user)
{
	struct keys_h2 *h = user;
	struct keys_stream *s = stream_of(session, id);

	(void)flags;
	if (!s || s->own || (session == h->down && s->refused)) /* no process wants it */
		nghttp2_session_consume(session, id, n);
	else if (session == h->down)
		keys_h2_sent(h, s, bytes, n);
	else
		keys_h2_came(h, s, bytes, n);
	return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
	struct keys_h2 *h = user;
	struct keys_stream *s = stream_of(session, id);

	if (!s)
		return 0;
	if (session == h->up) {
		h->open -= s->up_open;
		s->up_open = false;
		if (!s->refused)
			drop_request(h, s);
		if (error != NGHTTP2_NO_ERROR && !s->own && !s->refused)
			nghttp2_submit_rst_stream(h->down, NGHTTP2_FLAG_NONE, s->down_id, error);
		s->refused = true;
		return 0;
	}
	/* no process waits for what is left of it; give() must not find it any more */
	if (s->up_open) {
		nghttp2_submit_rst_stream(h->up, NGHTTP2_FLAG_NONE, s->up_id, NGHTTP2_CANCEL);
		nghttp2_session_set_stream_user_data(h->up, s->up_id, NULL);
	}
	nghttp2_session_consume_connection(h->up, s->owed[WAY_DOWN]);
	nghttp2_session_consume_connection(h->down, s->owed[WAY_UP]);
	stream_free(h, s);
	return 0;
}

static struct keys_stream *by_up_id(const struct keys_h2 *h, int32_t id)
{
	struct keys_stream *s = h->streams;

	while (s && s->up_id != id)
		s = s->next;
	return s;
}

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct keys_h2 *h = user;
	struct keys_stream *s = frame->hd.type == NGHTTP2_HEADERS && session == h->up
					? stream_of(session, frame->hd.stream_id)
					: NULL;

	if (s)
		keys_h2_forget(h, s);
	return 0;
}

/* A request that the server does not take any more. */
static int on_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int error, void *user)
{
	struct keys_h2 *h = user;
	struct keys_stream *s = frame->hd.type == NGHTTP2_HEADERS && session == h->up &&
						frame->headers.cat == NGHTTP2_HCAT_REQUEST
					? by_up_id(h, frame->hd.stream_id)
					: NULL;

	(void)error;
	if (!s)
		return 0;
	keys_h2_forget(h, s);
	h->open -= s->up_open;
	s->up_open = false;
	s->refused = true;
	nghttp2_submit_rst_stream(h->down, NGHTTP2_FLAG_NONE, s->down_id, NGHTTP2_REFUSED_STREAM);
	return 0;
}

/* -- the beginning and the end */

struct keys_h2 *keys_h2_new(struct keys *k, struct conn *c)
{
	static const struct h2_calls calls = {
		.begin_headers = on_begin_headers,
		.header = on_header,
		.frame = on_frame,
		.chunk = on_chunk,
		.close = on_close,
		.sent = on_sent,
		.not_sent = on_not_sent,
		.streams = KEYS_H2_STREAMS,
		.fields_bytes = KEYS_H2_FIELDS_BYTES,
	};
	struct keys_h2 *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->k = k;
	h->c = c;
	if (h2_sessions_new(&calls, h, &h->down, &h->up))
		return h;
	keys_h2_free(k, h);
	return NULL;
}

void keys_h2_free(struct keys *k, struct keys_h2 *h)
{
	(void)k;
	if (!h)
		return;
	nghttp2_session_del(h->down);
	nghttp2_session_del(h->up);
	while (h->streams)
		stream_free(h, h->streams);
	free(h);
}

/* The server is gone: what it owes is refused, and no more is taken. */
static void lose_server(struct keys_h2 *h)
{
	h->lost = true;
	h->open = 0;
	for (struct keys_stream *s = h->streams, *next; s; s = next) {
		next = s->next;
		s->up_open = false;
		if (s->own || (s->answered && s->ended[WAY_DOWN]))
			continue;
		if (s->answered)
			nghttp2_submit_rst_stream(h->down, NGHTTP2_FLAG_NONE, s->down_id,
						  NGHTTP2_INTERNAL_ERROR);
		else
			keys_h2_refuse(h, s, 502,
				       "the server ended the connection without an answer");
	}
	h2_session_leave(h->down);
}

/* Whether its program may be why nothing comes: it has not said all, or does not take what it asked
 * for, there or in other streams, so that windows are shut. */
static bool is_stalled(const struct keys_h2 *h, const struct keys_stream *s)
{
	return !s->ended[WAY_UP] || queue_len(&s->data[WAY_UP]) || queue_len(&s->data[WAY_DOWN]) ||
	       queue_len(&h->c->out) || queue_len(&h->c->back) ||
	       nghttp2_session_get_local_window_size(h->up) < WINDOW_LEAST ||
	       nghttp2_session_get_stream_local_window_size(h->up, s->up_id) < WINDOW_LEAST;
}

static bool is_held(const struct keys_stream *s)
{
	return s->held[WAY_DOWN].len > s->hold.ahead && !s->own && s->answered;
}

/* Whether some stream has something that is held; *ret_due: it may go. */
static bool look_at_held(struct keys_h2 *h, uint64_t now, bool *ret_due)
{
	bool held = false;

	*ret_due = false;
	for (struct keys_stream *s = h->streams; s; s = s->next) {
		if (!is_held(s))
			continue;
		held = true;
		if (is_stalled(h, s))
			hold_again(&s->hold, now);
		*ret_due |= hold_is_due(&s->hold, s->held[WAY_DOWN].len, now);
	}
	return held;
}

static void show_held(struct keys_h2 *h, struct keys_stream *s)
{
	auto_buf shown = { 0 };

	hold_show(&s->hold, h->k, &s->held[WAY_DOWN], &s->down_found, &shown);
	emit(h, s, WAY_DOWN, &shown, 0, shown.len);
	h->broken |= shown.failed;
	nghttp2_session_resume_data(h->down, s->down_id);
}

bool keys_h2_release(struct keys *k, struct conn *c, uint64_t now)
{
	bool due;

	if (!look_at_held(c->h2, now, &due) || !due)
		return look_at_held(c->h2, now, &due);
	conn_ready(k, c); /* does the server say something after all? */
	if (c->dead || !look_at_held(c->h2, now, &due))
		return false;
	if (!due || c->dry_ms < now)
		return true;
	for (struct keys_stream *s = c->h2->streams; s; s = s->next)
		if (is_held(s) && hold_is_due(&s->hold, s->held[WAY_DOWN].len, now))
			show_held(c->h2, s);
	conn_ready(k, c);
	return !c->dead && look_at_held(c->h2, now, &due);
}

bool keys_h2_is_done(const struct keys_h2 *h)
{
	if (nghttp2_session_want_write(h->down))
		return false;
	return (h->lost && !h->streams) || !nghttp2_session_want_read(h->down);
}

/* -- bytes */

/* Frames that wait become bytes. */
static bool push(struct keys_h2 *h, nghttp2_session *session, struct queue *q)
{
	const uint8_t *bytes;
	bool moved = false;
	ssize_t n = 0;

	while (queue_len(q) < H2_OUT_BYTES && (n = nghttp2_session_mem_send(session, &bytes)) > 0) {
		buf_add(&q->bytes, bytes, (size_t)n);
		if (session == h->up)
			/* nghttp2's own buffer, done with */
			explicit_bzero((uint8_t *)(uintptr_t)bytes, (size_t)n);
		moved = true;
	}
	h->broken |= n < 0;
	return moved;
}

static bool read_front(struct keys_h2 *h, struct conn *c)
{
	size_t n = queue_len(&c->in);

	if (!n || queue_len(&c->out) >= CONN_PENDING_MAX)
		return false;
	h->broken |= nghttp2_session_mem_recv(h->down, (const uint8_t *)c->in.bytes.data + c->in.at,
					      n) != (ssize_t)n;
	queue_drop(&c->in, n);
	return true;
}

static bool read_server(struct keys_h2 *h, struct conn *c)
{
	uint8_t bytes[CONN_PIECE];
	enum tls_say say;
	size_t n = 0;

	if (c->server_ended || queue_len(&c->back) >= CONN_PENDING_MAX)
		return false;
	say = tls_up_read(c->tls, bytes, sizeof(bytes), &n);
	if (say == TLS_READ || say == TLS_WRITE) {
		c->server_write |= say == TLS_WRITE;
		c->dry_ms = io_now_ms();
		return false;
	}
	c->server_ended =
		say != TLS_DONE || nghttp2_session_mem_recv(h->up, bytes, n) != (ssize_t)n;
	explicit_bzero(bytes, n); /* it may have sent the secret back */
	return true;
}

/* Requests that may be sent are, each into its frame at once: no more at one time than the server
 * and the way to it take, so that no secret waits. */
static void submit(struct keys_h2 *h, struct conn *c)
{
	uint32_t most =
		nghttp2_session_get_remote_settings(h->up, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);

	for (struct keys_stream *s = h->streams, *next;
	     s && h->open < most && queue_len(&c->out) < H2_OUT_BYTES; s = next) {
		next = s->next;
		if (!s->waiting)
			continue;
		keys_h2_submit(h, s);
		if (!h->lost)
			push(h, h->up, &c->out); /* frees no stream */
	}
}

bool keys_h2_step(struct keys *k, struct conn *c)
{
	struct keys_h2 *h = c->h2;
	bool moved;

	if (!k->scan) { /* nothing passes that cannot be looked through */
		conn_kill(c);
		return false;
	}
	moved = read_front(h, c);
	moved |= read_server(h, c);
	if (!c->server_ended && !nghttp2_session_want_read(h->up) &&
	    !nghttp2_session_want_write(h->up))
		c->server_ended = true;
	if (c->server_ended && !h->lost)
		lose_server(h);
	submit(h, c);
	if (!h->lost)
		moved |= push(h, h->up, &c->out);
	else
		queue_drop(&c->out, queue_len(&c->out));
	moved |= push(h, h->down, &c->back);
	if (h->broken)
		conn_kill(c);
	return moved;
}
