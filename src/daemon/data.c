/*
 * Requests to sandboxes: port 49983 is ward-envd, every other port a program inside. In: a request
 * whose sandbox is named, or whose signature says for which it was made. Out: a stream of the
 * sandbox's link. Whether the client may is decided in data_access.c, before a byte of the request
 * goes inside; what comes back is read in data_answer.c.
 */
#include <string.h>
#include <strings.h>

#include "daemon/control_access.h"
#include "daemon/data.h"

#define OWNER_CONNS_MAX 1024 /* to sandboxes of one owner at one time */

static const char cors[] = "Access-Control-Allow-Methods: GET, POST, PUT, DELETE, OPTIONS\r\n"
			   "Access-Control-Allow-Headers: *\r\nAccess-Control-Max-Age: 7200\r\n";

/* The fields of a request that are sent to ward-envd. */
static const char *const passed[] = { "content-type", "authorization", "keepalive-ping-interval",
				      "connect-timeout-ms", "content-encoding" };

static void not_found(struct conn *c)
{
	auto_buf body = { 0 };
	struct json j = { .out = &body };

	json_begin_object(&j, NULL);
	json_string(&j, "sandboxId", c->to.id);
	json_string(&j, "message", "The sandbox was not found");
	json_uint(&j, "code", 502);
	json_end_object(&j);
	conn_answer(c, 502, "application/json", &body, NULL);
}

/* -- the request goes inside */

static void add_field(struct buf *out, const char *name, struct http_text value)
{
	if (!value.s)
		return;
	buf_printf(out, "%s=", name);
	buf_add(out, value.s, value.n);
	buf_add(out, "", 1);
}

static void open_envd(struct conn *c, struct sandbox *s)
{
	auto_buf fields = { 0 };

	add_field(&fields, "method", c->http.req.method);
	add_field(&fields, "path", c->http.req.path);
	if (c->http.req.query.s)
		add_field(&fields, "query", c->http.req.query);
	for (size_t i = 0; i < ARRAY_LEN(passed); i++)
		add_field(&fields, passed[i], http_field_get(&c->http.req.fields, passed[i]));
	for (unsigned i = 0; i < c->http.req.fields.count; i++) {
		const struct http_field *f = &c->http.req.fields.items[i];
		char name[300] = "x-metadata-";

		if (f->name.n <= 11 || f->name.n >= sizeof(name) ||
		    strncasecmp(f->name.s, "x-metadata-", 11) != 0)
			continue;
		memcpy(name + 11, f->name.s + 11, f->name.n - 11);
		add_field(&fields, name, f->value);
	}
	if (fields.failed || fields.len > ENVD_FRAME_BYTES)
		conn_refuse(c, 431, "the request's head is too large");
	else if (!link_begin(s->link, c, &fields, 0))
		conn_refuse(c, 429, "too many requests to this sandbox are under way");
}

/* A program inside has no business with what opens the server. */
static void drop_secrets(struct http_fields *f)
{
	static const char *const names[] = { "x-api-key", "x-access-token",
					     "e2b-traffic-access-token" };
	unsigned kept = 0;

	for (unsigned i = 0; i < f->count; i++) {
		bool secret = false;

		for (size_t k = 0; k < ARRAY_LEN(names); k++)
			secret |= http_text_is(f->items[i].name, names[k]);
		if (!secret)
			f->items[kept++] = f->items[i];
	}
	f->count = kept;
}

static void open_port(struct conn *c, struct sandbox *s)
{
	auto_buf head = { 0 };
	uint16_t port = c->http.head.port ? c->http.head.port : 80;
	struct host host = c->http.head.host;

	if (s->mask_host && !control_mask_host(s->mask_host, c->to.port, &host, &port)) {
		conn_refuse(c, 500, "the sandbox's maskRequestHost cannot be used");
		return;
	}
	drop_secrets(&c->http.req.fields);
	http_request_write(&c->http.req, &host, port, 80, c->http.req.path, &head);
	if (head.failed || head.len > ENVD_WINDOW / 2)
		conn_refuse(c, 431, "the request's head is too large");
	else if (!link_begin(s->link, c, NULL, c->to.port))
		conn_refuse(c, 429, "too many connections to this sandbox are open");
	else
		stream_send(c->stream, head.data, head.len);
	c->raw = true;
}

static void open_stream(struct conn *c, int result, const char *why)
{
	struct sandbox *s = sandbox_find(c->front, c->sandbox);

	if (!s || s->state == SANDBOX_PAUSED || s->state == SANDBOX_ENDING) {
		not_found(c);
		return;
	}
	if (result < 0 || !s->link) {
		front_log_text("attach_failed", "why", why);
		conn_refuse(c, 503, "the sandbox cannot be reached now");
		return;
	}
	c->state = CONN_STREAM;
	if (c->to.port == ENVD_PORT)
		open_envd(c, s);
	else
		open_port(c, s);
	if (!c->gone && c->stream && !c->raw && c->http.framing.state == BODY_NONE)
		stream_send_end(c->stream);
	conn_again(c);
}

/* The sandbox was resumed, or what was under way with it is done: it may need a link, too. */
static void look_again(struct conn *c, int result, const char *why)
{
	struct sandbox *s = sandbox_find(c->front, c->sandbox);

	if (!s || result < 0 || s->link || s->busy || s->state != SANDBOX_RUNNING) {
		open_stream(c, result, why);
		return;
	}
	if (sandbox_attach(c->front, s) < 0)
		conn_refuse(c, 503, "the server is busy");
	else
		sandbox_wait(s, c, open_stream);
}

/* Connections on their way to sandboxes of the owner, the one that is asked about aside. */
static unsigned under_way(const struct conn *c, const char *owner)
{
	unsigned n = 0;

	for (const struct conn *o = c->front->conns; o; o = o->next)
		n += o != c && o->sandbox_owner && strcmp(o->owner, owner) == 0 &&
		     (o->state == CONN_WAIT || o->state == CONN_STREAM || o->state == CONN_TUNNEL);
	return n;
}

static void go_in(struct conn *c, struct sandbox *s)
{
	int r = 0;

	if (under_way(c, s->owner) >= OWNER_CONNS_MAX) {
		conn_refuse(c, 429, "%d requests to this owner's sandboxes are under way",
			    OWNER_CONNS_MAX);
		return;
	}
	if (!audit_works(c->front)) {
		conn_refuse(c, 503, "the server cannot write its audit log; is the disk full?");
		return;
	}
	audit_sandbox_request(c, s);
	memcpy(c->owner, s->owner, sizeof(c->owner));
	c->sandbox_owner = true;
	c->state = CONN_WAIT;
	if (s->state == SANDBOX_PAUSED && !s->busy)
		r = sandbox_resume(c->front, s, false);
	if (r < 0)
		conn_refuse(c, 503, "the server is busy");
	else if (s->busy)
		sandbox_wait(s, c, look_again);
	else
		look_again(c, 0, "");
}

/* The port of the debug mode asks for no key; so a page in a browser must not reach it, neither as
 * itself nor under a name of its own that leads to this machine. */
static bool is_page(const struct conn *c)
{
	const struct host *h = &c->http.head.host;
	bool here = h->kind == HOST_NAME
			    ? strcmp(h->name, "localhost") == 0
			    : h->kind == HOST_ADDRESS && h->ip.family == 4 && h->ip.bytes[0] == 127;

	return !here || http_field_get(&c->http.req.fields, "origin").s ||
	       http_field_get(&c->http.req.fields, "sec-fetch-site").s;
}

void data_begin(struct conn *c)
{
	struct sandbox *s;

	if (c->debug && is_page(c)) {
		conn_refuse(c, 403,
			    "the debug mode answers programs of this machine, as "
			    "localhost, and no page in a browser");
		return;
	}
	if (c->debug)
		memcpy(c->to.id, c->front->debug_id, sizeof(c->to.id));
	s = *c->to.id ? sandbox_find(c->front, c->to.id) : access_find_signed(c);
	if (!s && !*c->to.id && data_path_is(c, "/files")) {
		conn_refuse(c, 401, "no sandbox has made this signature");
		return;
	}
	if (!s || s->state == SANDBOX_ENDING ||
	    (s->state == SANDBOX_PAUSED && (!s->auto_resume || data_path_is(c, "/health")))) {
		not_found(c);
		return;
	}
	memcpy(c->sandbox, s->id, sizeof(c->sandbox));
	c->resumed = false;
	if (c->to.port != ENVD_PORT) {
		if (c->http.head.minor == 0)
			conn_refuse(c, 505, "ports of sandboxes are reached with HTTP/1.1");
		else if (access_port(c, s))
			go_in(c, s);
		return;
	}
	if (http_text_is(c->http.req.method, "OPTIONS")) {
		conn_answer(c, 204, NULL, NULL, cors);
		return;
	}
	if (data_path_is(c, "/health") && s->state == SANDBOX_RUNNING) {
		conn_answer(c, 204, NULL, NULL, NULL);
		return;
	}
	if (access_envd(c, s))
		go_in(c, s);
}
