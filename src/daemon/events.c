/*
 * What happens to sandboxes, as server-sent events: GET /ward/v1/events. In: lines of the front's
 * own log about a sandbox. Out: each to the connections whose credential sees that sandbox at that
 * moment. A client that does not read is cut off; nothing is kept for it: what it missed is in the
 * logs of each sandbox.
 */
#include <string.h>

#include "base/io.h"
#include "daemon/conn.h"
#include "daemon/control_access.h"
#include "envd/query.h"

#define OF_OWNER 32 /* connections */
#define WAITING_MAX (256 * 1024)
#define ALIVE_MS 15000

static void chunk(struct conn *c, const struct buf *text)
{
	if (c->out.len - c->out_at + text->len > WAITING_MAX) {
		conn_abort(c);
		return;
	}
	buf_printf(&c->out, "%zx\r\n", text->len);
	buf_add(&c->out, text->data, text->len);
	buf_puts(&c->out, "\r\n");
	conn_flush(c);
}

void events_push(struct front *f, const char *kind, const struct sandbox *s, const char *why)
{
	auto_buf text = { 0 };
	struct json j = { .out = &text };
	struct conn *next;

	buf_printf(&text, "event: %s\ndata: ", kind);
	json_begin_object(&j, NULL);
	show_time(&j, "time", front_now_ms());
	json_string(&j, "kind", kind);
	json_string(&j, "sandboxID", s->id);
	json_string(&j, "templateID", s->template);
	if (*why)
		json_string(&j, "why", why);
	json_end_object(&j);
	buf_puts(&text, "\n\n");
	for (struct conn *c = f->conns; c; c = next) {
		next = c->next;
		if (c->state == CONN_EVENTS && (!*c->sandbox || strcmp(c->sandbox, s->id) == 0) &&
		    access_sees(c, s))
			chunk(c, &text);
	}
}

/* The credential may have ended since the request. */
static bool still_may(struct conn *c)
{
	const struct access_what nothing = { 0 };

	return registry_find_credential(c->front->db, c->who->own.id, c->who) &&
	       access_may(c, RIGHT_READ, &nothing);
}

void events_tick(struct front *f)
{
	uint64_t now = io_now_ms();
	auto_buf alive = { 0 };
	struct conn *next;

	if (now < f->events_ms)
		return;
	f->events_ms = now + 1000;
	buf_puts(&alive, ": \n\n");
	for (struct conn *c = f->conns; c; c = next) {
		next = c->next;
		if (c->state != CONN_EVENTS)
			continue;
		if (!still_may(c)) {
			conn_abort(c);
		} else if (now - c->since_ms >= ALIVE_MS) {
			c->since_ms = now;
			chunk(c, &alive);
		}
	}
}

static unsigned count_of(const struct front *f, const char *owner)
{
	unsigned n = 0;

	for (const struct conn *c = f->conns; c; c = c->next)
		n += c->state == CONN_EVENTS && strcmp(c->owner, owner) == 0;
	return n;
}

void control_events(struct conn *c)
{
	auto_buf id = { 0 };

	if (query_get(c->http.req.query.s, c->http.req.query.n, "sandboxID", &id) < 0 ||
	    (id.len && !route_is_id(id.data, id.len))) {
		conn_refuse(c, 400, "sandboxID: not the id of a sandbox");
		return;
	}
	memcpy(c->sandbox, buf_text(&id), id.len + 1);
	if (id.len && !control_find_mine(c))
		return;
	if (count_of(c->front, c->owner) >= OF_OWNER) {
		conn_refuse(c, 429, "%d connections listen to your events already", OF_OWNER);
		return;
	}
	c->status = 200;
	audit_call(c);
	c->asked = false;
	c->answered = true;
	c->state = CONN_EVENTS;
	c->since_ms = io_now_ms();
	buf_puts(&c->out, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
			  "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n");
	conn_usual_fields(c);
	buf_puts(&c->out, "\r\n");
	conn_flush(c);
}
