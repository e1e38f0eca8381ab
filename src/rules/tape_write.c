/*
 * The bytes of a recording's frames. In: requests and responses as front has them: a secret that
 * ward-keys puts in is not in the one and was overwritten in the other. Out: bytes without anything
 * else that may be secret. Of a request only what is known to be harmless is kept as it is: method,
 * path, and the values of the fields below; of the query the names. Of a response everything but
 * the values of cookies. Pure. Runs in front.
 */
#include <string.h>

#include "rules/tape.h"

#define REDACTED "redacted"

/* Fields of requests whose values do not identify the client. */
static const char *const harmless[] = { "accept",
					"accept-charset",
					"accept-encoding",
					"accept-language",
					"cache-control",
					"content-encoding",
					"content-language",
					"content-length",
					"content-type",
					"expect",
					"grpc-accept-encoding",
					"grpc-encoding",
					"grpc-timeout",
					"host",
					"if-modified-since",
					"if-none-match",
					"if-unmodified-since",
					"max-forwards",
					"origin",
					"pragma",
					"range",
					"sec-websocket-version",
					"te",
					"trailer",
					"transfer-encoding",
					"upgrade",
					"user-agent",
					"via" };

static void put_number(struct buf *out, uint64_t v, size_t n)
{
	buf_add(out, &v, n);
}

static void put_text(struct buf *out, struct http_text t)
{
	put_number(out, t.n, 4);
	buf_add(out, t.s, t.n);
}

static struct http_text word(const char *s)
{
	return (struct http_text){ s, strlen(s) };
}

static bool is_harmless(struct http_text name)
{
	for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
		if (http_text_is(name, harmless[i]))
			return true;
	return false;
}

/* NAME=redacted of NAME=VALUE; ATTRIBUTES: a program that keeps cookies has one to keep. */
static void put_cookie(struct buf *out, struct http_text value)
{
	auto_buf shown = { 0 };
	const char *sign = value.n ? memchr(value.s, '=', value.n) : NULL;

	buf_add(&shown, value.s, sign ? (size_t)(sign + 1 - value.s) : 0);
	buf_puts(&shown, REDACTED);
	out->failed |= shown.failed;
	put_text(out, (struct http_text){ shown.data, shown.len });
}

static void put_fields(struct buf *out, const struct http_fields *f, bool request)
{
	put_number(out, f ? f->count : 0, 4);
	for (unsigned i = 0; f && i < f->count; i++) {
		struct http_text name = f->items[i].name;

		put_text(out, name);
		if (http_text_is(name, "set-cookie") || http_text_is(name, "set-cookie2"))
			put_cookie(out, f->items[i].value);
		else
			put_text(out, (request && !is_harmless(name)) ||
						      http_text_is(name, "authorization")
					      ? word(REDACTED)
					      : f->items[i].value);
	}
}

/* The path and the names in the query: "/v1/x?key=&page=". */
static void put_path(struct buf *out, struct http_text path, struct http_text query)
{
	auto_buf shown = { 0 };
	bool in_name = true;

	buf_add(&shown, path.s, path.n);
	if (query.s)
		buf_puts(&shown, "?");
	for (size_t i = 0; query.s && i < query.n; i++) {
		if (in_name || query.s[i] == '&')
			buf_add(&shown, query.s + i, 1);
		in_name = query.s[i] == '&' || (in_name && query.s[i] != '=');
	}
	out->failed |= shown.failed;
	put_text(out, (struct http_text){ shown.data, shown.len });
}

void tape_write_ask(struct buf *out, const struct http_request *r, bool tls, unsigned version,
		    const char *host, uint16_t port, struct http_text path)
{
	uint8_t key[SHA256_BYTES];

	tape_key(r->method, host, port, path, r->query, key);
	put_number(out, version, 1);
	put_number(out, tls, 1);
	put_number(out, port, 2);
	buf_add(out, key, sizeof(key));
	put_text(out, r->method);
	put_text(out, word(host));
	put_path(out, path, r->query);
	put_fields(out, &r->fields, true);
}

void tape_write_head(struct buf *out, uint16_t status, const struct http_fields *f)
{
	put_number(out, status, 2);
	put_fields(out, f, false);
}

void tape_write_end(struct buf *out, enum tape_end how, const struct http_fields *trailers)
{
	put_number(out, how, 1);
	put_fields(out, trailers, false);
}
