/*
 * Streams. In: messages of the server's. Out: one JSON answer where there is no more to say, else a
 * stream of events. Of a session, events have ids and are kept for a while: a client whose
 * connection broke comes back with the last one that it saw and gets the rest; its calls go on
 * meanwhile. In the stateless revision a client that goes has cancelled. Runs in the front.
 */
#include <inttypes.h>
#include <string.h>

#include "base/io.h"
#include "cli/mcp/front.h"

#define OVER_MS 60000 /* that a stream that is over is kept for */
#define RETRY_MS 1000 /* after which a client should come back */

struct stream *stream_new(struct front *f, struct web_session *s, struct conn *c, size_t expected)
{
	struct stream *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	f->next_stream += f->next_stream == UINT32_MAX ? 2 : 1; /* 0 is none */
	t->id = f->next_stream;
	t->session = s;
	t->conn = c;
	t->expected = expected;
	t->next = f->streams;
	f->streams = t;
	if (s)
		s->stream_count++;
	if (c) {
		c->stream = t;
		c->said_ms = io_now_ms();
	}
	return t;
}

struct stream *stream_find(struct front *f, uint32_t id)
{
	struct stream *t = f->streams;

	while (t && t->id != id)
		t = t->next;
	return t;
}

static void forget_first(struct stream *t)
{
	struct event *e = t->first;

	t->first = e->next;
	t->kept_bytes -= e->text.len;
	buf_free(&e->text);
	free(e);
}

void stream_remove(struct front *f, struct stream *t)
{
	struct stream **at = &f->streams;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	if (t->conn) {
		t->conn->stream = NULL;
		conn_end(t->conn);
	}
	while (t->first)
		forget_first(t);
	if (t->session)
		t->session->stream_count--;
	free(t);
}

/* -- events */

static void put_event(const struct stream *t, const struct event *e, struct buf *out)
{
	if (t->session)
		buf_printf(out, "id: %" PRIu32 "-%" PRIu64 "\n", t->id, e->number);
	buf_puts(out, "event: message\ndata: ");
	buf_add(out, e->text.data, e->text.len);
	buf_puts(out, "\n\n");
}

/* An event without a message, where the revision has that: a client that is cut off before the
 * first message can come back, too. */
static void begin_events(struct stream *t)
{
	auto_buf first = { 0 };
	char more[64] = "";

	if (!t->conn || t->events)
		return;
	t->events = true;
	if (t->opens && t->session && t->session->open)
		snprintf(more, sizeof(more), "Mcp-Session-Id: %s\r\n", t->session->id);
	conn_begin_events(t->conn, more);
	if (!t->session || !t->session->priming)
		return;
	buf_printf(&first, "id: %" PRIu32 "-%" PRIu64 "\nretry: %d\ndata:\n\n", t->id,
		   t->next_number++, RETRY_MS);
	conn_put_events(t->conn, &first);
}

/* Keeps what a client could miss. */
static struct event *keep(struct stream *t, struct mcp_span bytes)
{
	struct event *e = calloc(1, sizeof(*e)), **at = &t->first;

	if (!e)
		return NULL;
	buf_add(&e->text, bytes.at, bytes.n);
	if (e->text.failed) {
		free(e);
		return NULL;
	}
	e->number = t->next_number++;
	while (*at)
		at = &(*at)->next;
	*at = e;
	t->kept_bytes += bytes.n;
	return e;
}

static void send_event(struct stream *t, struct mcp_span bytes)
{
	struct event *e = keep(t, bytes);
	auto_buf text = { 0 };

	if (!e) {
		if (t->conn)
			t->conn->out.failed = true; /* which ends it */
		return;
	}
	put_event(t, e, &text);
	if (t->conn)
		conn_put_events(t->conn, &text);
	while (t->first && (!t->session || t->kept_bytes > EVENTS_BYTES_MAX))
		forget_first(t);
}

void stream_keep(struct stream *t)
{
	auto_buf sign = { 0 };

	begin_events(t);
	buf_puts(&sign, ": alive\n\n");
	conn_put_events(t->conn, &sign);
	conn_flush(t->conn);
}

/* -- what the server says */

/* The status of an error in the stateless revision. */
static unsigned status_of(const struct stream *t, int code)
{
	if (t->session || !code)
		return 200;
	switch (code) {
	case MCP_NO_METHOD:
		return 404;
	case MCP_NO_REVISION:
	case MCP_NO_CAPABILITY:
	case MCP_HEADER_MISMATCH:
	case MCP_INVALID:
		return 400;
	default:
		return 200;
	}
}

static void answer_whole(struct stream *t, int code, struct mcp_span bytes)
{
	struct conn *c = t->conn;
	char more[64] = "";

	if (t->opens && !code)
		snprintf(more, sizeof(more), "Mcp-Session-Id: %s\r\n", t->session->id);
	t->conn = NULL;
	conn_answer(c, status_of(t, code), "application/json", (const char *)bytes.at, bytes.n,
		    more);
	conn_flush(c);
}

/* Nothing more is due. */
static void end_stream(struct front *f, struct stream *t)
{
	struct conn *c = t->conn;

	t->over = true;
	t->over_ms = io_now_ms();
	if (c) {
		begin_events(t);
		t->conn = NULL;
		conn_end_events(c);
		conn_flush(c);
	}
	if (!t->session || !t->events)
		stream_remove(f, t);
}

static struct stream *listener_of(struct front *f, uint32_t session)
{
	struct stream *t = f->streams;

	while (t && !(t->listens && t->session && t->session->number == session))
		t = t->next;
	return t;
}

static void take_answer(struct front *f, struct stream *t, const struct link_head *head,
			struct mcp_span bytes)
{
	bool failed = head->code != 0;

	t->expected -= t->expected > 0;
	if (t->opens) {
		t->session->open = !failed;
		t->session->priming = head->flags & LINK_PRIMING;
	}
	if (!t->expected && !t->events && t->conn) {
		answer_whole(t, head->code, bytes);
	} else {
		begin_events(t);
		send_event(t, bytes);
	}
	if (t->opens && failed)
		session_end(f, t->session, true);
	else if (!t->expected)
		end_stream(f, t);
}

void stream_take(struct front *f, const struct link_head *head, struct mcp_span bytes)
{
	struct stream *t =
		head->stream ? stream_find(f, head->stream) : listener_of(f, head->session);

	if (!t || t->over)
		return;
	if (head->op == LINK_NOTHING) {
		t->expected -= t->expected > 0;
		if (!t->expected)
			end_stream(f, t);
		return;
	}
	if (head->flags & LINK_LAST && !t->listens) {
		take_answer(f, t, head, bytes);
		return;
	}
	begin_events(t);
	send_event(t, bytes);
	if (t->conn)
		conn_flush(t->conn);
}

/* -- clients that go and come back */

void stream_leave(struct stream *t)
{
	struct front *f = t->conn->front;

	t->conn = NULL;
	if (!t->session)
		link_put(&f->link, (struct link_head){ .op = LINK_LEFT, .stream = t->id }, NULL, 0);
	/* an answer that was to be one piece has no event that a client could name */
	if (!t->session || (t->listens && !t->events))
		stream_remove(f, t);
}

bool stream_resume(struct stream *t, struct conn *c, uint64_t seen)
{
	auto_buf text = { 0 };

	if (seen >= t->next_number || (t->first && t->first->number > seen + 1) ||
	    (!t->first && t->next_number > seen + 1))
		return false;
	if (t->conn) { /* the old one may hang without knowing it */
		t->conn->stream = NULL;
		conn_end(t->conn);
	}
	t->conn = c;
	c->stream = t;
	conn_begin_events(c, NULL);
	for (const struct event *e = t->first; e; e = e->next)
		if (e->number > seen)
			put_event(t, e, &text);
	conn_put_events(c, &text);
	if (t->over) {
		t->conn = NULL;
		conn_end_events(c);
	}
	return true;
}

void streams_on_time(struct front *f, uint64_t now)
{
	for (struct stream *next, *t = f->streams; t; t = next) {
		next = t->next;
		if (t->over && now - t->over_ms > OVER_MS)
			stream_remove(f, t);
	}
}
