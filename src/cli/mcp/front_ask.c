/*
 * What a request asks for. In: a head and a body that were judged (mcp/http.h). Out: a message for
 * the server and a stream for its answers, or an answer at once. A session is named by 128 random
 * bits, is opened by `initialize`, and ends with DELETE, with the server, or when it was not used
 * for an hour. Runs in the front.
 */
#include <string.h>
#include <sys/random.h>

#include "base/io.h"
#include "cli/mcp/front.h"

#define IDLE_MS (3600u * 1000)

static const struct mcp_no no_session = { 404, MCP_INVALID, "there is no such session" };
static const struct mcp_no no_id = { 400, MCP_INVALID, "mcp-session-id is missing" };
static const struct mcp_no no_room = { 503, MCP_INTERNAL, "too many sessions or requests" };

/* -- sessions */

static struct web_session *find(const struct front *f, const char *id)
{
	struct web_session *s = f->sessions;

	while (s && strcmp(s->id, id) != 0)
		s = s->next;
	return s;
}

void session_end(struct front *f, struct web_session *s, bool tell)
{
	struct web_session **at = &f->sessions;

	for (struct stream *next, *t = f->streams; t; t = next) {
		next = t->next;
		if (t->session == s)
			stream_remove(f, t);
	}
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	f->session_count--;
	if (tell)
		link_put(&f->link, (struct link_head){ .op = LINK_END, .session = s->number }, NULL,
			 0);
	free(s);
}

/* The one that was not used for the longest time, of those that wait for nothing. */
static bool make_room(struct front *f)
{
	struct web_session *oldest = NULL;

	for (struct web_session *s = f->sessions; s; s = s->next)
		if (!s->stream_count && (!oldest || s->used_ms < oldest->used_ms))
			oldest = s;
	if (oldest)
		session_end(f, oldest, true);
	return oldest;
}

static struct web_session *open_session(struct front *f)
{
	uint8_t random[MCP_SESSION_DIGITS / 2];
	struct web_session *s;

	if ((f->session_count >= SESSIONS_MAX && !make_room(f)) ||
	    getrandom(random, sizeof(random), 0) != sizeof(random))
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(s->id + 2 * i, 3, "%02x", random[i]);
	f->next_session += f->next_session == UINT32_MAX ? 2 : 1; /* 0 is none */
	s->number = f->next_session;
	s->used_ms = io_now_ms();
	s->next = f->sessions;
	f->sessions = s;
	f->session_count++;
	return s;
}

void sessions_on_time(struct front *f, uint64_t now)
{
	for (struct web_session *next, *s = f->sessions; s; s = next) {
		next = s->next;
		if (!s->stream_count && now - s->used_ms > IDLE_MS)
			session_end(f, s, true);
	}
}

/* The session that the request names; NULL: it was answered. */
static struct web_session *take_session(struct conn *c)
{
	struct web_session *s = *c->ask.session ? find(c->front, c->ask.session) : NULL;

	if (!s)
		conn_refuse(c, *c->ask.session ? &no_session : &no_id, "");
	else
		s->used_ms = io_now_ms();
	return s;
}

/* -- GET and DELETE */

/* One stream of a session's own: a second one would take the messages of the first. */
static void listen_to(struct conn *c, struct web_session *s)
{
	static const struct mcp_no taken = { 409, MCP_INVALID,
					     "the session has a stream of that kind already" };
	struct stream *t = c->front->streams;

	while (t && !(t->listens && t->session == s && t->conn))
		t = t->next;
	if (t) {
		conn_refuse(c, &taken, "");
		return;
	}
	t = stream_new(c->front, s, c, 0);
	if (!t) {
		conn_refuse(c, &no_room, "");
		return;
	}
	t->listens = true;
	stream_keep(t);
}

static void resume(struct conn *c, struct web_session *s)
{
	static const struct mcp_no no_event = {
		400, MCP_INVALID, "no stream of the session can go on behind that event"
	};
	struct stream *t = NULL;
	uint64_t number;
	uint32_t id;

	if (mcp_http_event(c->ask.event, &id, &number))
		t = stream_find(c->front, id);
	if (!t || t->session != s || !stream_resume(t, c, number))
		conn_refuse(c, &no_event, "");
}

void ask_begin(struct conn *c)
{
	static const struct mcp_no stateless = { 405, MCP_INVALID, "this revision has POST alone" };
	struct web_session *s;

	if (strcmp(c->ask.revision, MCP_STATELESS) == 0) {
		conn_refuse(c, &stateless, "");
		return;
	}
	s = take_session(c);
	if (!s)
		return;
	if (c->ask.verb == MCP_DELETE) {
		session_end(c->front, s, true);
		conn_answer(c, 200, NULL, NULL, 0, NULL);
	} else if (*c->ask.event) {
		resume(c, s);
	} else {
		listen_to(c, s);
	}
}

/* -- POST */

static void pass_on(struct conn *c, const struct web_session *s, const struct stream *t)
{
	const struct link_head head = { .op = LINK_MESSAGE,
					.stream = t ? t->id : 0,
					.session = s ? s->number : 0 };

	link_put(&c->front->link, head, c->body.data, (uint32_t)c->body.len);
}

static void begin(struct conn *c, const struct mcp_body *body, struct web_session *s)
{
	struct stream *t;

	if (s && s->stream_count >= STREAMS_MAX) {
		conn_refuse(c, &no_room, body->id);
		return;
	}
	if (!body->requests) {
		if (s) /* of the stateless revision there is nothing to be notified of */
			pass_on(c, s, NULL);
		conn_answer(c, 202, NULL, NULL, 0, NULL);
		return;
	}
	t = stream_new(c->front, s, c, body->requests);
	if (!t) {
		conn_refuse(c, &no_room, body->id);
		return;
	}
	t->opens = body->initialize;
	pass_on(c, s, t);
}

void ask_message(struct conn *c)
{
	struct mcp_body body;
	struct mcp_no no;
	struct web_session *s = NULL;

	if (!mcp_http_body((const uint8_t *)buf_text(&c->body), c->body.len, &c->ask, &body, &no)) {
		conn_refuse(c, &no, body.id);
		return;
	}
	if (body.stateless || (!body.requests && strcmp(c->ask.revision, MCP_STATELESS) == 0)) {
		begin(c, &body, NULL);
		return;
	}
	if (body.initialize && !*c->ask.session) {
		s = open_session(c->front);
		if (!s)
			conn_refuse(c, &no_room, body.id);
	} else {
		s = take_session(c);
		body.initialize = false;
	}
	if (s)
		begin(c, &body, s);
}
