/*
 * Talking to an upstream proxy. In: its URL, where a connection is to go, the bytes that the proxy
 * answers. Out: the bytes to send it, and whether the way is open. HTTP CONNECT with Basic
 * credentials, SOCKS5 with a user name and password (RFC 1928, 1929). The proxy is the operator's
 * choice, but its answers are bounded and read as any others. Pure; run by the process that dials.
 * Fuzzed (fuzz/upstream.c).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "rules/upstream.h"

enum { HTTP_HEAD, SOCKS_METHOD, SOCKS_LOGIN, SOCKS_ANSWER };
enum {
	SOCKS_VERSION = 5,
	LOGIN_VERSION = 1,
	SOCKS_CONNECT = 1,
	METHOD_NONE = 0,
	METHOD_PASSWORD = 2
};
enum { ADDRESS_4 = 1, ADDRESS_NAME = 3, ADDRESS_6 = 4 };

static const struct {
	const char *prefix;
	uint8_t kind;
	uint16_t port;
} schemes[] = {
	{ "http://", UPSTREAM_HTTP, 80 },
	{ "socks5://", UPSTREAM_SOCKS, 1080 },
	{ "socks5h://", UPSTREAM_SOCKS, 1080 },
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A part of the userinfo, %XX taken apart. No NUL, no line break: it goes into a header. */
static bool read_word(const char *s, size_t n, char out[UPSTREAM_WORD + 1], uint8_t *ret_len)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		char c = s[i];

		if (c == '%') {
			int high = n - i < 3 ? -1 : hex_digit(s[i + 1]),
			    low = high < 0 ? -1 : hex_digit(s[i + 2]);

			if (low < 0)
				return false;
			c = (char)(high * 16 + low);
			i += 2;
		}
		if (!c || c == '\r' || c == '\n' || len == UPSTREAM_WORD)
			return false;
		out[len++] = c;
	}
	out[len] = '\0';
	*ret_len = (uint8_t)len;
	return true;
}

static bool read_user(const char *s, size_t n, struct upstream *ret)
{
	const char *colon = memchr(s, ':', n);
	size_t user = colon ? (size_t)(colon - s) : n;

	if (!user || !read_word(s, user, ret->user, &ret->user_len) ||
	    memchr(ret->user, ':', ret->user_len))
		return false;
	return !colon || read_word(colon + 1, n - user - 1, ret->password, &ret->password_len);
}

int upstream_parse(const char *url, struct upstream *ret, struct ward_err *e)
{
	const char *at, *end;
	size_t i = 0;

	memset(ret, 0, sizeof(*ret));
	while (i < ARRAY_LEN(schemes) &&
	       strncasecmp(url, schemes[i].prefix, strlen(schemes[i].prefix)) != 0)
		i++;
	if (i == ARRAY_LEN(schemes)) {
		ward_fail(e, EINVAL,
			  "expected a proxy that begins with http://, socks5:// or socks5h://");
		return ward_remedy(e, "set network.upstream_proxy: \"http://proxy.example:3128\"");
	}
	url += strlen(schemes[i].prefix);
	ret->kind = schemes[i].kind;
	end = url + strcspn(url, "/?#");
	if (*end && strcmp(end, "/") != 0)
		return ward_fail(e, EINVAL, "a proxy URL must not have a path");
	at = memrchr(url, '@', (size_t)(end - url));
	if (at && !read_user(url, (size_t)(at - url), ret))
		return ward_fail(e, EINVAL,
				 "the proxy's credentials must be user:password, with %%XX for "
				 "special characters");
	url = at ? at + 1 : url;
	if (host_read_port(url, (size_t)(end - url), &ret->host, &ret->port) != HOST_FINE)
		return ward_fail(e, EINVAL,
				 "the proxy's host is not a name or an address with a port");
	if (!ret->port)
		ret->port = schemes[i].port;
	return 0;
}

static void put(struct upstream_talk *t, const void *bytes, size_t n)
{
	if (n > sizeof(t->out) - t->out_len)
		return; /* does not happen: each message fits */
	memcpy(t->out + t->out_len, bytes, n);
	t->out_len = (uint16_t)(t->out_len + n);
}

static void put_text(struct upstream_talk *t, const char *text)
{
	put(t, text, strlen(text));
}

static void put_base64(struct upstream_talk *t, const uint8_t *bytes, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < n; i += 3) {
		unsigned word = (unsigned)(bytes[i] << 16) |
				(i + 1 < n ? (unsigned)(bytes[i + 1] << 8) : 0) |
				(i + 2 < n ? bytes[i + 2] : 0u);
		const char out[4] = { digits[word >> 18], digits[word >> 12 & 63],
				      i + 1 < n ? digits[word >> 6 & 63] : '=',
				      i + 2 < n ? digits[word & 63] : '=' };

		put(t, out, 4);
	}
}

static void put_connect(struct upstream_talk *t, const struct upstream *u)
{
	uint8_t login[2 * UPSTREAM_WORD + 1];
	char text[HOST_TEXT], target[HOST_TEXT + 16];
	bool six = t->target.kind == HOST_ADDRESS && t->target.ip.family == 6;

	snprintf(target, sizeof(target), six ? "[%s]:%u" : "%s:%u", host_text(&t->target, text),
		 t->port);
	put_text(t, "CONNECT ");
	put_text(t, target);
	put_text(t, " HTTP/1.1\r\nHost: ");
	put_text(t, target);
	if (u->user_len) {
		memcpy(login, u->user, u->user_len);
		login[u->user_len] = ':';
		memcpy(login + u->user_len + 1, u->password, u->password_len);
		put_text(t, "\r\nProxy-Authorization: Basic ");
		put_base64(t, login, (size_t)u->user_len + 1 + u->password_len);
	}
	put_text(t, "\r\n\r\n");
}

static void put_request(struct upstream_talk *t)
{
	const uint8_t port[2] = { (uint8_t)(t->port >> 8), (uint8_t)t->port };
	uint8_t head[5] = { SOCKS_VERSION, SOCKS_CONNECT, 0, ADDRESS_NAME, t->target.len };

	if (t->target.kind == HOST_ADDRESS)
		head[3] = t->target.ip.family == 4 ? ADDRESS_4 : ADDRESS_6;
	put(t, head, t->target.kind == HOST_NAME ? 5 : 4);
	if (t->target.kind == HOST_NAME)
		put(t, t->target.name, t->target.len);
	else
		put(t, t->target.ip.bytes, t->target.ip.family == 4 ? 4 : 16);
	put(t, port, 2);
	t->state = SOCKS_ANSWER;
}

void upstream_begin(struct upstream_talk *t, const struct upstream *u, const struct host *target,
		    uint16_t port)
{
	memset(t, 0, sizeof(*t));
	t->target = *target;
	t->port = port;
	if (u->kind == UPSTREAM_HTTP) {
		put_connect(t, u);
		return;
	}
	t->state = SOCKS_METHOD;
	put(t,
	    (const uint8_t[]){ SOCKS_VERSION, u->user_len ? 2 : 1, METHOD_NONE, METHOD_PASSWORD },
	    u->user_len ? 4 : 3);
}

static enum upstream_say refused(struct upstream_talk *t, unsigned status)
{
	t->status = (uint16_t)status;
	return UPSTREAM_REFUSED;
}

/* "HTTP/1.x NNN ...", headers, an empty line. */
static enum upstream_say take_head(struct upstream_talk *t, const uint8_t *bytes, size_t n)
{
	static const char version[] = "HTTP/1.";
	size_t known = n < 7 ? n : 7;
	const uint8_t *end;
	unsigned status = 0;

	if (memcmp(bytes, version, known) != 0)
		return refused(t, 0);
	end = memmem(bytes + t->scanned, n - t->scanned, "\r\n\r\n", 4);
	if (!end) {
		t->scanned = n > 3 ? n - 3 : 0;
		return n > UPSTREAM_ANSWER_MAX ? refused(t, 0) : UPSTREAM_MORE;
	}
	if (end - bytes < 12 || bytes[8] != ' ')
		return refused(t, 0);
	for (unsigned i = 9; i < 12; i++) {
		if (bytes[i] < '0' || bytes[i] > '9')
			return refused(t, 0);
		status = status * 10 + bytes[i] - '0';
	}
	t->used = (size_t)(end - bytes) + 4;
	t->status = (uint16_t)status;
	return status >= 200 && status < 300 ? UPSTREAM_OPEN : UPSTREAM_REFUSED;
}

static enum upstream_say take_method(struct upstream_talk *t, const struct upstream *u,
				     const uint8_t *bytes, size_t n)
{
	if (bytes[0] != SOCKS_VERSION)
		return refused(t, 0);
	if (n < 2)
		return UPSTREAM_MORE;
	t->used = 2;
	if (bytes[1] == METHOD_NONE) {
		put_request(t);
		return UPSTREAM_SEND;
	}
	if (bytes[1] != METHOD_PASSWORD || !u->user_len)
		return refused(t, 1255); /* it wants authentication */
	put(t, (const uint8_t[]){ LOGIN_VERSION, u->user_len }, 2);
	put(t, u->user, u->user_len);
	put(t, &u->password_len, 1);
	put(t, u->password, u->password_len);
	t->state = SOCKS_LOGIN;
	return UPSTREAM_SEND;
}

static enum upstream_say take_login(struct upstream_talk *t, const uint8_t *bytes, size_t n)
{
	if (bytes[0] != LOGIN_VERSION)
		return refused(t, 0);
	if (n < 2)
		return UPSTREAM_MORE;
	if (bytes[1])
		return refused(t, 1255);
	t->used = 2;
	put_request(t);
	return UPSTREAM_SEND;
}

static enum upstream_say take_answer(struct upstream_talk *t, const uint8_t *bytes, size_t n)
{
	size_t need;

	if (bytes[0] != SOCKS_VERSION)
		return refused(t, 0);
	if (n >= 2 && bytes[1])
		return refused(t, 1000u + bytes[1]);
	if (n < 5)
		return UPSTREAM_MORE;
	if (bytes[3] != ADDRESS_4 && bytes[3] != ADDRESS_6 && bytes[3] != ADDRESS_NAME)
		return refused(t, 0);
	need = bytes[3] == ADDRESS_4 ? 10 : bytes[3] == ADDRESS_6 ? 22 : 7u + bytes[4];
	if (n < need)
		return UPSTREAM_MORE;
	t->used = need;
	return UPSTREAM_OPEN;
}

enum upstream_say upstream_take(struct upstream_talk *t, const struct upstream *u,
				const uint8_t *bytes, size_t n)
{
	t->out_len = 0;
	t->used = 0;
	if (!n)
		return UPSTREAM_MORE;
	switch (t->state) {
	case SOCKS_METHOD:
		return take_method(t, u, bytes, n);
	case SOCKS_LOGIN:
		return take_login(t, bytes, n);
	case SOCKS_ANSWER:
		return take_answer(t, bytes, n);
	default:
		return take_head(t, bytes, n);
	}
}
