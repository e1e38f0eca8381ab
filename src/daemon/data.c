/*
 * Requests to sandboxes: port 49983 is ward-envd, every other port a program inside. In: a request
 * whose sandbox is named, or whose signature says for which it was made. Out: a stream of the
 * sandbox's link. Whether the client may is decided here, before a byte of the request goes inside;
 * what comes back is framed here, so that a sandbox cannot say more than the one answer.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "daemon/front.h"
#include "envd/query.h"

#define OWNER_CONNS_MAX 1024 /* to sandboxes of one owner at one time */
#define SIGNED_QUERY_MAX 2048
#define SIGNATURE_LEN 46 /* "v1_" and the base64 of a digest, without its "=" */

static const char cors[] = "Access-Control-Allow-Methods: GET, POST, PUT, DELETE, OPTIONS\r\n"
			   "Access-Control-Allow-Headers: *\r\nAccess-Control-Max-Age: 7200\r\n";

/* The fields of a request that ward-envd is told. */
static const char *const passed[] = { "content-type", "authorization", "keepalive-ping-interval",
				      "connect-timeout-ms", "content-encoding" };

static bool path_is(const struct conn *c, const char *path)
{
	return c->req.path.n == strlen(path) && memcmp(c->req.path.s, path, c->req.path.n) == 0;
}

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

/* The value of a header as a text; NULL: there is none. The caller frees. */
static char *field(const struct conn *c, const char *name)
{
	struct http_text t = http_field_get(&c->req.fields, name);

	return t.s ? strndup(t.s, t.n) : NULL;
}

static void query(const struct conn *c, const char *name, struct buf *out)
{
	if (query_get(c->req.query.s, c->req.query.n, name, out) <= 0)
		out->len = 0;
}

/* -- who may */

enum signed_as { SIGNED_NOT, SIGNED_WRONG, SIGNED_LATE, SIGNED_FINE };

/* What a file URL says. */
struct signed_url {
	struct buf path, user, given, expires;
};

static void read_signed(const struct conn *c, struct signed_url *ret)
{
	*ret = (struct signed_url){ 0 };
	query(c, "path", &ret->path);
	query(c, "username", &ret->user);
	query(c, "signature", &ret->given);
	query(c, "signature_expiration", &ret->expires);
}

static void free_signed(struct signed_url *u)
{
	buf_free(&u->path);
	buf_free(&u->user);
	buf_free(&u->given);
	buf_free(&u->expires);
}

static enum signed_as check_signature(const struct conn *c, const struct signed_url *u,
				      const char *token)
{
	auto_buf right = { 0 };

	if (!u->given.len)
		return SIGNED_NOT;
	if (u->given.len != SIGNATURE_LEN)
		return SIGNED_WRONG;
	route_signature(u->path.len ? u->path.data : "",
			http_text_is(c->req.method, "GET") ? "read" : "write",
			u->user.len ? u->user.data : "", token,
			u->expires.len ? u->expires.data : NULL, &right);
	if (right.failed || !route_equal(buf_text(&u->given), buf_text(&right)))
		return SIGNED_WRONG;
	if (u->expires.len && strtoll(u->expires.data, NULL, 10) < time(NULL))
		return SIGNED_LATE;
	return SIGNED_FINE;
}

/* A file URL without a sandbox: its signature belongs to one. Anybody may send one, and each
 * sandbox's token is tried: so it is short, and read once. */
static struct sandbox *find_signed(struct conn *c)
{
	struct sandbox *s = NULL;
	struct signed_url u;

	if (!path_is(c, "/files") || c->to.port != ENVD_PORT || c->req.query.n > SIGNED_QUERY_MAX)
		return NULL;
	read_signed(c, &u);
	if (u.given.len == SIGNATURE_LEN)
		s = c->front->sandboxes;
	while (s && check_signature(c, &u, s->token) < SIGNED_LATE)
		s = s->next;
	free_signed(&u);
	if (s)
		memcpy(c->to.id, s->id, sizeof(s->id));
	return s;
}

/* Answers, and returns false, if the client may not ask ward-envd. */
static bool may_ask_envd(struct conn *c, const struct sandbox *s)
{
	auto_free char *token = field(c, "x-access-token");
	struct signed_url u;
	enum signed_as as;

	if (c->debug)
		return true;
	if (token && *token) {
		if (route_equal(token, s->token))
			return true;
		conn_refuse(c, 401, "unauthorized access, please provide a valid access token");
		return false;
	}
	if (!path_is(c, "/files")) {
		conn_refuse(c, 401, "unauthorized access, please provide a valid access token");
		return false;
	}
	read_signed(c, &u);
	as = check_signature(c, &u, s->token);
	free_signed(&u);
	if (as == SIGNED_FINE)
		return true;
	conn_refuse(c, 401, "%s",
		    as == SIGNED_NOT    ? "missing signature query parameter"
		    : as == SIGNED_LATE ? "signature is already expired"
					: "invalid signature");
	return false;
}

static bool may_reach_port(struct conn *c, const struct sandbox *s)
{
	auto_free char *token = field(c, "e2b-traffic-access-token");

	if (!s->private_traffic || (token && route_equal(token, s->traffic_token)))
		return true;
	conn_refuse(c, 403, "this sandbox's ports need the header e2b-traffic-access-token");
	return false;
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

	add_field(&fields, "method", c->req.method);
	add_field(&fields, "path", c->req.path);
	if (c->req.query.s)
		add_field(&fields, "query", c->req.query);
	for (size_t i = 0; i < ARRAY_LEN(passed); i++)
		add_field(&fields, passed[i], http_field_get(&c->req.fields, passed[i]));
	for (unsigned i = 0; i < c->req.fields.count; i++) {
		const struct http_field *f = &c->req.fields.items[i];
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
	uint16_t port = c->head.port;

	drop_secrets(&c->req.fields);
	http_request_write(&c->req, &c->head.host, port ? port : 80, 80, c->req.path, &head);
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
	if (!c->gone && c->stream && !c->raw && c->framing.state == BODY_NONE)
		stream_send_end(c->stream);
	if (!c->gone)
		conn_pump(c);
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
	memcpy(c->owner, s->owner, sizeof(c->owner));
	c->sandbox_owner = true;
	c->state = CONN_WAIT;
	if (s->state == SANDBOX_PAUSED && !s->busy)
		r = sandbox_resume(c->front, s);
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
	const struct host *h = &c->head.host;
	bool here = h->kind == HOST_NAME
			    ? strcmp(h->name, "localhost") == 0
			    : h->kind == HOST_ADDRESS && h->ip.family == 4 && h->ip.bytes[0] == 127;

	return !here || http_field_get(&c->req.fields, "origin").s ||
	       http_field_get(&c->req.fields, "sec-fetch-site").s;
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
	s = *c->to.id ? sandbox_find(c->front, c->to.id) : find_signed(c);
	if (!s && !*c->to.id && path_is(c, "/files")) {
		conn_refuse(c, 401, "no sandbox has made this signature");
		return;
	}
	if (!s || s->state == SANDBOX_ENDING ||
	    (s->state == SANDBOX_PAUSED && (!s->auto_resume || path_is(c, "/health")))) {
		not_found(c);
		return;
	}
	memcpy(c->sandbox, s->id, sizeof(c->sandbox));
	c->resumed = false;
	if (c->to.port != ENVD_PORT) {
		if (c->head.minor == 0)
			conn_refuse(c, 505, "ports of sandboxes are reached with HTTP/1.1");
		else if (may_reach_port(c, s))
			go_in(c, s);
		return;
	}
	if (http_text_is(c->req.method, "OPTIONS")) {
		conn_answer(c, 204, NULL, NULL, cors);
		return;
	}
	if (path_is(c, "/health") && s->state == SANDBOX_RUNNING) {
		conn_answer(c, 204, NULL, NULL, NULL);
		return;
	}
	if (may_ask_envd(c, s))
		go_in(c, s);
}

/* -- the answer comes out */

static void begin_answer(struct conn *c, unsigned status, const char *type, uint64_t length)
{
	c->answered = true;
	c->status = status;
	c->front->counters.requests[status / 100]++;
	c->left = length;
	/* the answer to HEAD has no body, and so no last chunk either */
	c->chunked = length == ENVD_LENGTH_UNKNOWN && c->head.minor > 0 && !c->head.head;
	c->close |= length == ENVD_LENGTH_UNKNOWN && c->head.minor == 0;
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
	else if (c->head.head || r.status == 204 || r.status == 304)
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
		if (!c->head.head)
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
	} else if (c->left != ENVD_LENGTH_UNKNOWN && c->left && !c->head.head) {
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
