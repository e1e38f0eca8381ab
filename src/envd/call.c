/*
 * Requests to ward-envd (call.h). In: method, path and body of a client that wardd has let in. Out:
 * the answer of the method that tables name. Runs in the sandbox, a thread for each request: what a
 * client can do here it can do with a command, too.
 */
#include "envd/call.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "envd/base64.h"
#include "envd/envelope.h"
#include "envd/query.h"

static const struct {
	const char *name;
	unsigned status;
} codes[] = {
	[RPC_OK] = { "ok", 200 },
	[RPC_INVALID_ARGUMENT] = { "invalid_argument", 400 },
	[RPC_NOT_FOUND] = { "not_found", 404 },
	[RPC_ALREADY_EXISTS] = { "already_exists", 409 },
	[RPC_PERMISSION_DENIED] = { "permission_denied", 403 },
	[RPC_RESOURCE_EXHAUSTED] = { "resource_exhausted", 429 },
	[RPC_FAILED_PRECONDITION] = { "failed_precondition", 400 },
	[RPC_UNIMPLEMENTED] = { "unimplemented", 501 },
	[RPC_INTERNAL] = { "internal", 500 },
	[RPC_UNAUTHENTICATED] = { "unauthenticated", 401 },
	[RPC_DEADLINE_EXCEEDED] = { "deadline_exceeded", 504 },
};

static const struct {
	const char *path;
	int (*run)(struct call *c);
	bool stream;
} methods[] = {
#define RPC_UNARY(service, name, function) { "/" service "/" name, function, false },
#define RPC_STREAM(service, name, function) { "/" service "/" name, function, true },
#include "envd/methods.def"
};

static const struct {
	const char *method, *path;
	void (*run)(struct call *c);
} rest[] = {
	{ "GET", "/files", files_get },
	{ "POST", "/files", files_post },
	{ "GET", "/metrics", machine_metrics },
	{ "GET", "/envs", machine_envs },
};

const char *call_field(const struct call *c, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; i < c->fields->len; i++)
		if (strncmp(c->fields->items[i], name, n) == 0 && c->fields->items[i][n] == '=')
			return c->fields->items[i] + n + 1;
	return NULL;
}

int call_fail(struct call *c, enum rpc_code code, const char *why, ...)
{
	va_list args;

	va_start(args, why);
	vsnprintf(c->why, sizeof(c->why), why, args);
	va_end(args);
	c->code = code;
	return -1;
}

int call_fail_path(struct call *c, int error, const char *path)
{
	switch (error) {
	case ENOENT:
		return call_fail(c, RPC_NOT_FOUND, "path '%s' does not exist", path);
	case ELOOP:
		return call_fail(c, RPC_FAILED_PRECONDITION, "too many links in '%s'", path);
	case EACCES:
	case EPERM:
	case EROFS:
		return call_fail(c, RPC_PERMISSION_DENIED, "'%s': %s", path, strerror(error));
	case ENOSPC:
	case EDQUOT:
		return call_fail(c, RPC_RESOURCE_EXHAUSTED, "'%s': %s", path, strerror(error));
	case ENOTDIR:
	case EISDIR:
	case EINVAL:
	case ENAMETOOLONG:
		return call_fail(c, RPC_INVALID_ARGUMENT, "'%s': %s", path, strerror(error));
	default:
		return call_fail(c, RPC_INTERNAL, "'%s': %s", path, strerror(error));
	}
}

void call_answer(struct call *c, unsigned status, const struct buf *body)
{
	stream_head(c->stream, status, ENVD_JSON, body->len);
	stream_write(c->stream, buf_text(body), body->len);
	stream_end(c->stream);
}

void call_refuse(struct call *c, unsigned status, const char *why, ...)
{
	char text[1024];
	auto_buf body = { 0 };
	struct json j = { .out = &body };
	va_list args;

	va_start(args, why);
	vsnprintf(text, sizeof(text), why, args);
	va_end(args);
	json_begin_object(&j, NULL);
	json_uint(&j, "code", status);
	json_string(&j, "message", text);
	json_end_object(&j);
	call_answer(c, status, &body);
}

static void error_text(struct buf *out, enum rpc_code code, const char *why)
{
	buf_puts(out, "{\"code\":");
	json_quote(out, codes[code].name);
	buf_puts(out, ",\"message\":");
	json_quote(out, why);
	buf_puts(out, "}");
}

int call_message(struct stream *s, const struct buf *message)
{
	auto_buf out = { 0 };

	envelope_write(0, buf_text(message), message->len, &out);
	return out.failed ? -1 : stream_write(s, out.data, out.len);
}

void call_end(struct stream *s, enum rpc_code code, const char *why)
{
	auto_buf body = { 0 }, out = { 0 };

	buf_puts(&body, code == RPC_OK ? "{}" : "{\"error\":");
	if (code != RPC_OK) {
		error_text(&body, code, why);
		buf_puts(&body, "}");
	}
	envelope_write(ENVELOPE_END, buf_text(&body), body.len, &out);
	stream_write(s, buf_text(&out), out.len);
	stream_end(s);
}

bool call_query(const struct call *c, const char *name, struct buf *out)
{
	return query_get(c->query, strlen(c->query), name, out) > 0;
}

/* Basic base64("name:"); false: there is no such user here. */
static bool choose_person(struct call *c)
{
	auto_buf name = { 0 }, query = { 0 };

	if (c->authorization && strncasecmp(c->authorization, "Basic ", 6) == 0) {
		if (!base64_read(c->authorization + 6, strlen(c->authorization + 6), &name))
			return false;
		name.data[strcspn(name.data, ":")] = '\0';
	}
	if (call_query(c, "username", &query))
		return person_find(buf_text(&query), &c->person) == 0;
	return person_find(buf_text(&name), &c->person) == 0;
}

static void end_rpc(struct call *c, bool stream, int r)
{
	if (stream) {
		if (r < 0)
			call_end(c->stream, c->code, c->why);
		return;
	}
	if (r < 0) {
		c->answer.len = 0;
		error_text(&c->answer, c->code, c->why);
	} else if (!c->answer.len) {
		buf_puts(&c->answer, "{}");
	}
	call_answer(c, codes[r < 0 ? c->code : RPC_OK].status, &c->answer);
}

static void run_rpc(struct call *c, size_t i)
{
	auto_buf body = { 0 };
	bool stream = methods[i].stream;
	int r = stream_read_all(c->stream, CALL_BODY_MAX, &body);

	if (r == -EPIPE)
		return;
	if (stream)
		stream_head(c->stream, 200, ENVD_CONNECT, ENVD_LENGTH_UNKNOWN);
	c->message = (const uint8_t *)buf_text(&body);
	c->message_len = body.len;
	if (r < 0)
		r = call_fail(c, RPC_RESOURCE_EXHAUSTED, "the message is larger than %d bytes",
			      CALL_BODY_MAX);
	else if (stream && envelope_read((const uint8_t *)buf_text(&body), body.len, &c->message,
					 &c->message_len) < 0)
		r = call_fail(c, RPC_INVALID_ARGUMENT, "the body is not one enveloped message");
	else if (!choose_person(c))
		r = call_fail(c, RPC_UNAUTHENTICATED, "there is no such user in this sandbox");
	else
		r = methods[i].run(c);
	end_rpc(c, stream, r);
	buf_free(&c->answer);
}

static void run_call(struct call *c)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (strcmp(c->path, methods[i].path) == 0) {
			if (strcmp(c->method, "POST") != 0)
				call_refuse(c, 405, "%s is called with POST", c->path);
			else
				run_rpc(c, i);
			return;
		}
	for (size_t i = 0; i < ARRAY_LEN(rest); i++)
		if (strcmp(c->path, rest[i].path) == 0 && strcmp(c->method, rest[i].method) == 0) {
			if (choose_person(c))
				rest[i].run(c);
			else
				call_refuse(c, 401, "there is no such user in this sandbox");
			return;
		}
	call_refuse(c, 404, "ward-envd has no %s %s", c->method, c->path);
}

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

void call_serve(struct stream *s, struct strv *fields, unsigned port)
{
	struct call c = { .stream = s, .fields = fields };
	const char *keepalive, *timeout;

	if (!fields) {
		dial_serve(s, port);
		return;
	}
	c.method = or_empty(call_field(&c, "method"));
	c.path = or_empty(call_field(&c, "path"));
	c.query = or_empty(call_field(&c, "query"));
	c.content_type = or_empty(call_field(&c, "content-type"));
	c.authorization = call_field(&c, "authorization");
	keepalive = call_field(&c, "keepalive-ping-interval");
	timeout = call_field(&c, "connect-timeout-ms");
	c.keepalive_s = keepalive ? (unsigned)strtoul(keepalive, NULL, 10) : 0;
	if (c.keepalive_s < 1 || c.keepalive_s > 3600)
		c.keepalive_s = 90;
	c.timeout_ms = timeout ? strtoull(timeout, NULL, 10) : 0;
	run_call(&c);
}
