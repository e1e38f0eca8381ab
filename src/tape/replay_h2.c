/*
 * HTTP/2 as the server of a recording (replay.h). In: frames of front. Out: recorded answers, a
 * piece as one frame where it fits; an answer that broke off in the recording resets its stream.
 * Runs in replay.
 */
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <string.h>

#include "tape/replay.h"

struct stream {
	struct stream *next, *prev;
	int32_t id;
	struct buf method, path;
	struct played_request request;
	struct play play;
	bool asked, answered;
};

struct seat_h2 {
	nghttp2_session *session;
	struct stream *streams;
};

static void free_stream(struct seat_h2 *h, struct stream *s)
{
	*(s->prev ? &s->prev->next : &h->streams) = s->next;
	if (s->next)
		s->next->prev = s->prev;
	play_clear(&s->play);
	buf_free(&s->method);
	buf_free(&s->path);
	free(s);
}

/* -- answers */

static nghttp2_nv nv(struct http_text name, struct http_text value)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name.s, (uint8_t *)(uintptr_t)value.s, name.n,
			     value.n, NGHTTP2_NV_FLAG_NONE };
}

static bool is_left_out(struct http_text name)
{
	static const char *const names[] = { "connection",        "keep-alive", "proxy-connection",
					     "transfer-encoding", "upgrade",    REPLAY_WHY };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (http_text_is(name, names[i]))
			return true;
	return name.n && name.s[0] == ':';
}

/* Names in lower case, as HTTP/2 wants them; they live in *names. */
static size_t gather(const struct http_fields *f, nghttp2_nv *fields, size_t at, struct buf *names)
{
	size_t used = 0;

	for (unsigned i = 0; i < f->count; i++)
		buf_add(names, f->items[i].name.s, f->items[i].name.n);
	for (size_t i = 0; i < names->len; i++)
		if (names->data[i] >= 'A' && names->data[i] <= 'Z')
			names->data[i] = (char)(names->data[i] + 'a' - 'A');
	for (unsigned i = 0; i < f->count && !names->failed; i++) {
		struct http_text name = { names->data + used, f->items[i].name.n };

		used += name.n;
		if (!is_left_out(name))
			fields[at++] = nv(name, f->items[i].value);
	}
	return at;
}

static ssize_t give(nghttp2_session *session, int32_t id, uint8_t *to, size_t n, uint32_t *flags,
		    nghttp2_data_source *source, void *user)
{
	struct stream *s = source->ptr;
	struct play *p = &s->play;
	size_t some;

	play_step(user, p);
	some = p->left < n ? p->left : n;
	if (some)
		memcpy(to, p->data, some);
	p->data += some;
	p->left -= some;
	if (p->left || !p->over)
		return (ssize_t)some;
	if (!p->whole)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (p->trailers && p->trailers->count) {
		nghttp2_nv fields[HTTP_FIELDS_MAX];
		auto_buf names = { 0 };
		size_t count = gather(p->trailers, fields, 0, &names);

		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		if (nghttp2_submit_trailer(session, id, fields, count) != 0)
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	}
	return (ssize_t)some;
}

static void answer(struct seat *seat, struct stream *s)
{
	static struct http_fields f; /* one process, one thread; large */
	nghttp2_data_provider body = { { .ptr = s }, give };
	nghttp2_nv fields[HTTP_FIELDS_MAX + 1];
	auto_buf names = { 0 };
	char text[8];
	uint16_t status;
	size_t count;
	bool empty; /* the head is all: gRPC tells that from an empty body */

	s->answered = true;
	if (!play_head(seat, &s->play, &status, &f)) {
		seat->dead = true;
		return;
	}
	snprintf(text, sizeof(text), "%u", status);
	fields[0] =
		nv((struct http_text){ ":status", 7 }, (struct http_text){ text, strlen(text) });
	count = gather(&f, fields, 1, &names);
	play_step(seat, &s->play);
	empty = s->play.over && s->play.whole && !s->play.left &&
		!(s->play.trailers && s->play.trailers->count);
	if (names.failed || nghttp2_submit_response(seat->h2->session, s->id, fields, count,
						    empty ? NULL : &body) != 0)
		seat->dead = true;
}

static void miss(struct seat *seat, struct stream *s)
{
	char why[REPLAY_WHY_MAX], status[8];

	play_why_not(seat, &s->request, why);
	snprintf(status, sizeof(status), "%u", REPLAY_MISS);
	const nghttp2_nv fields[] = { nv((struct http_text){ ":status", 7 },
					 (struct http_text){ status, strlen(status) }),
				      nv((struct http_text){ REPLAY_WHY, strlen(REPLAY_WHY) },
					 (struct http_text){ why, strlen(why) }) };

	s->answered = true;
	seat->dead |= nghttp2_submit_response(seat->h2->session, s->id, fields, ARRAY_LEN(fields),
					      NULL) != 0;
}

/* -- requests */

static void ask(struct seat *seat, struct stream *s)
{
	const char *query = s->path.len ? memchr(s->path.data, '?', s->path.len) : NULL;
	struct http_text path = { s->path.data,
				  query ? (size_t)(query - s->path.data) : s->path.len };
	struct http_text rest = { query ? query + 1 : NULL, query ? s->path.len - path.n - 1 : 0 };

	seat->dead |= s->method.failed || s->path.failed || !s->method.len || !s->path.len;
	if (!seat->dead)
		play_ask(&s->request, seat, (struct http_text){ s->method.data, s->method.len },
			 path, rest);
	s->asked = true;
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct seat *seat = user;
	struct stream *s;

	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	s->id = frame->hd.stream_id;
	s->play.entry = -1;
	s->next = seat->h2->streams;
	if (s->next)
		s->next->prev = s;
	seat->h2->streams = s;
	return nghttp2_session_set_stream_user_data(session, s->id, s) == 0
		       ? 0
		       : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *user)
{
	struct stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	struct http_text t = { (const char *)name, name_n };

	(void)flags;
	(void)user;
	if (s && http_text_is(t, ":method"))
		buf_add(&s->method, value, value_n);
	if (s && http_text_is(t, ":path"))
		buf_add(&s->path, value, value_n);
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct stream *s =
		frame->hd.stream_id
			? nghttp2_session_get_stream_user_data(session, frame->hd.stream_id)
			: NULL;
	struct seat *seat = user;

	if (!s || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
		return 0;
	if (!s->asked)
		ask(seat, s);
	if (s->answered || seat->dead)
		return 0;
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
		if (play_find(seat, &s->request, true, &s->play))
			answer(seat, s);
		else
			miss(seat, s);
	} else if (frame->hd.type == NGHTTP2_HEADERS &&
		   play_find(seat, &s->request, false, &s->play)) {
		answer(seat, s);
	}
	return 0;
}

static int on_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
		    size_t n, void *user)
{
	struct stream *s = nghttp2_session_get_stream_user_data(session, id);

	(void)flags;
	(void)user;
	if (s)
		play_sent(&s->request, bytes, n);
	return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
	struct stream *s = nghttp2_session_get_stream_user_data(session, id);
	struct seat *seat = user;

	(void)error;
	if (s)
		free_stream(seat->h2, s);
	return 0;
}

/* -- the connection */

bool seat_begin_h2(struct seat *s)
{
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1000 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20 }
	};
	nghttp2_session_callbacks *calls = NULL;

	s->h2 = calloc(1, sizeof(*s->h2));
	if (!s->h2 || nghttp2_session_callbacks_new(&calls) != 0)
		return false;
	nghttp2_session_callbacks_set_on_begin_headers_callback(calls, on_begin);
	nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_chunk);
	nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_close);
	if (nghttp2_session_server_new(&s->h2->session, calls, s) != 0)
		s->h2->session = NULL;
	nghttp2_session_callbacks_del(calls);
	return s->h2->session && nghttp2_submit_settings(s->h2->session, NGHTTP2_FLAG_NONE,
							 settings, ARRAY_LEN(settings)) == 0;
}

bool seat_run_h2(struct seat *s)
{
	bool moved = false;

	if (queue_size(&s->in)) {
		size_t n = queue_size(&s->in);

		s->dead |= nghttp2_session_mem_recv(s->h2->session,
						    (const uint8_t *)s->in.data + s->in.at,
						    n) != (ssize_t)n;
		s->in.at += n;
		moved = true;
	}
	while (!s->dead && queue_size(&s->out) < REPLAY_OUT) {
		const uint8_t *bytes;
		ssize_t n = nghttp2_session_mem_send(s->h2->session, &bytes);

		s->dead |= n < 0;
		if (n <= 0)
			break;
		queue_add(&s->out, bytes, (size_t)n);
		moved = true;
	}
	return moved;
}

void seat_end_h2(struct seat *s)
{
	if (!s->h2)
		return;
	nghttp2_session_del(s->h2->session);
	while (s->h2->streams)
		free_stream(s->h2, s->h2->streams);
	free(take_ptr(s->h2));
}
