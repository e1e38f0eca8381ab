/* The gate of mode http, the proxy heads and SOCKS: which requests pass, cut anywhere, and what is
 * refused. */
#include "gateway_help.h"
#include "rules/sniff.h"
#include "rules/socks.h"

#define HOST "Host: a.example\r\n"
#define GET "GET / HTTP/1.1\r\n" HOST "\r\n"

static struct sniff gate_for(const char *name, uint16_t port)
{
	struct host h = host_of(name);
	struct sniff g;

	sniff_init(&g, RULE_HTTP, &h, port);
	return g;
}

/* Feeds text in pieces; what passed is appended to *out. */
static enum sniff_say feed(struct sniff *g, const char *text, size_t n, size_t piece,
			   struct buf *out)
{
	auto_buf held = { 0 };

	for (size_t at = 0; at < n; at += piece) {
		enum sniff_say say;
		size_t release;

		buf_add(&held, text + at, n - at < piece ? n - at : piece);
		say = sniff_client(g, (uint8_t *)(uintptr_t)held.data, held.len, &release);
		if (say == SNIFF_REFUSE) {
			assert_int_equal(release, 0);
			return say;
		}
		buf_add(out, held.data, release);
		memmove(held.data, held.data + release, held.len - release);
		held.len -= release;
	}
	return SNIFF_OPEN;
}

static const size_t pieces[] = { 1, 2, 7, 64, 100000 };

static void passes_n(const char *text, size_t n)
{
	for (size_t p = 0; p < ARRAY_LEN(pieces); p++) {
		struct sniff g = gate_for("a.example", 80);
		auto_buf out = { 0 };

		if (feed(&g, text, n, pieces[p], &out) != SNIFF_OPEN)
			fail_msg("refused (%s): %s", verdict_reason_name(g.reason), text);
		if (out.len != n || memcmp(out.data, text, n) != 0)
			fail_msg("%zu of %zu bytes pass: %s", out.len, n, text);
	}
}

static void passes(const char *text)
{
	passes_n(text, strlen(text));
}

/* Refused for this reason; before it, only this passes. */
static void refused_n(const char *text, size_t n, const char *before, const char *reason)
{
	for (size_t p = 0; p < ARRAY_LEN(pieces); p++) {
		struct sniff g = gate_for("a.example", 80);
		auto_buf out = { 0 };

		if (feed(&g, text, n, pieces[p], &out) != SNIFF_REFUSE)
			fail_msg("passes in pieces of %zu: %s", pieces[p], text);
		if (strcmp(verdict_reason_name(g.reason), reason) != 0)
			fail_msg("%s, not %s: %s", verdict_reason_name(g.reason), reason, text);
		if (out.len > strlen(before) || memcmp(buf_text(&out), before, out.len) != 0)
			fail_msg("\"%s\" went out of: %s", buf_text(&out), text);
	}
}

static void refused(const char *text, const char *reason)
{
	refused_n(text, strlen(text), "", reason);
}

static void test_requests(void **state)
{
	(void)state;
	passes(GET);
	passes("GET /a/b?c=d HTTP/1.0\r\nhOST:  A.Example.:80 \r\nAccept: */*\r\n\r\n");
	passes("GET http://a.example/x HTTP/1.1\r\n" HOST "\r\n");
	passes("GET HTTP://A.EXAMPLE:80?x HTTP/1.1\r\n" HOST "\r\n");
	passes("OPTIONS * HTTP/1.1\r\n" HOST "\r\n");
	passes("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello" GET);
	passes("POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n" GET GET);
	passes("POST / HTTP/1.1\r\n" HOST
	       "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0A\r\n0123456789\r\n0\r\n\r\n" GET);
	passes("POST / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nxx");
	passes("M-SEARCH / HTTP/1.1\r\n" HOST "X: \xc3\xbc\t\r\nConnection: keep-alive, x\r\n\r\n");
}

static void test_hosts(void **state)
{
	(void)state;
	refused("GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "wrong_host");
	refused("GET / HTTP/1.1\r\nHost: a.example:81\r\n\r\n", "wrong_host");
	refused("GET / HTTP/1.1\r\nHost: a.example.evil.test\r\n\r\n", "wrong_host");
	refused("GET / HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n", "wrong_host");
	refused("GET / HTTP/1.1\r\n\r\n", "http_bad");
	refused("GET / HTTP/1.0\r\n\r\n", "http_bad");
	refused("GET / HTTP/1.1\r\nHost:\r\n\r\n", "http_bad");
	refused("GET / HTTP/1.1\r\nHost: a.example@evil.test\r\n\r\n", "http_bad");
	refused("GET / HTTP/1.1\r\nHost: evil.test, a.example\r\n\r\n", "http_bad");
	refused("GET / HTTP/1.1\r\n" HOST "Host: evil.test\r\n\r\n", "http_bad");
	refused("GET / HTTP/1.1\r\n" HOST HOST "\r\n", "http_bad");
	refused("GET http://evil.test/ HTTP/1.1\r\n" HOST "\r\n", "http_bad");
	refused("GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n", "wrong_host");
	refused("GET http://a.example/ HTTP/1.1\r\nHost: evil.test\r\n\r\n", "http_bad");
	refused("GET http://u@a.example/ HTTP/1.1\r\n" HOST "\r\n", "http_bad");
	refused("GET http://a.example:81/ HTTP/1.1\r\n" HOST "\r\n", "http_bad");
	refused("GET https://a.example/ HTTP/1.1\r\n" HOST "\r\n", "http_bad");
	refused("GET http://a.example\\.evil.test/ HTTP/1.1\r\n" HOST "\r\n", "http_bad");
	refused("GET //evil.test HTTP/1.1\r\nHost: \r\n\r\n", "http_bad");
	refused("GET evil.test/ HTTP/1.1\r\n" HOST "\r\n", "http_bad");
	refused("GET / HTTP/1.1\r\n" HOST "Connection: close, Host\r\n\r\n", "http_bad");
	refused("CONNECT a.example:80 HTTP/1.1\r\n" HOST "\r\n", "http_tunnel");
}

/* The second request of a connection counts as the first did. */
static void test_keep_alive(void **state)
{
	static const char evil[] = GET "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n";
	static const char body[] =
		"POST / HTTP/1.1\r\n" HOST
		"Content-Length: 3\r\n\r\nxyzGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n";
	static const char chunks[] = "POST / HTTP/1.1\r\n" HOST
				     "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\nGET / "
				     "HTTP/1.1\r\nHost: evil.test\r\n\r\n";

	(void)state;
	refused_n(evil, strlen(evil), GET, "wrong_host");
	refused_n(body, strlen(body), body, "wrong_host");
	refused_n(chunks, strlen(chunks), chunks, "wrong_host");
}

static void test_smuggling(void **state)
{
	static const char nul[] = "GET / HTTP/1.1\r\nHost: a.example\r\nX: a\0b\r\n\r\n";
	static const char *const bodies[] = { "x\r\n",
					      "\r\n",
					      "5;ext=1\r\nhello\r\n0\r\n\r\n",
					      "5\nhello\n0\n\n",
					      "5\r\nhelloX",
					      "0\r\nTrailer: x\r\n\r\n",
					      " 5\r\nhello\r\n0\r\n\r\n",
					      "+5\r\n",
					      "0x5\r\nhello\r\n",
					      "-1\r\n",
					      "5 \r\nhello\r\n0\r\n\r\n",
					      "11111111111111111\r\n",
					      "5\rXhello\r\n" };

	(void)state;
	refused("POST / HTTP/1.1\r\n" HOST
		"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		"http_bad");
	refused("POST / HTTP/1.1\r\n" HOST
		"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
		"http_bad");
	refused("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
		"http_bad");
	refused("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n",
		"http_bad");
	refused("POST / HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\n", "http_bad");
	refused("POST / HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\n", "http_bad");
	refused("POST / HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\n", "http_bad");
	refused("POST / HTTP/1.1\r\n" HOST "Content-Length: \r\n\r\n", "http_bad");
	refused("POST / HTTP/1.1\r\n" HOST "Content-Length: 9999999999999999999\r\n\r\n",
		"http_bad");
	refused("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", "http_bad");
	refused("POST / HTTP/1.1\r\n" HOST
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		"http_bad");
	refused("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n", "http_bad");
	refused("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \x0b"
		"chunked\r\n\r\n",
		"http_bad");
	refused("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding : chunked\r\n\r\n", "http_bad");
	refused("POST / HTTP/1.1\r\n" HOST "Transfer_Encoding: chunked\r\n\r\n", "http_bad");
	refused("POST / HTTP/1.1\r\n" HOST " Transfer-Encoding: chunked\r\n\r\n", "http_bad");
	refused("POST / HTTP/1.1\r\n" HOST "X: a\r\n Transfer-Encoding: chunked\r\n\r\n",
		"http_bad");
	refused("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", "http_bad");
	refused("GET / HTTP/1.1\r\n" HOST "X: a\rHost: evil.test\r\n\r\n", "http_bad");
	refused("GET / HTTP/1.1\r\nHost: a.example\nX: y\r\n\r\n", "http_bad");
	refused("GET / HTTP/1.1\n" HOST "\r\n", "http_bad");
	refused("GET / HTTP/1.1\r\n" HOST "\n", "http_bad");
	refused("GET / HTTP/1.1\r\n" HOST "no colon\r\n\r\n", "http_bad");
	refused("GET / HTTP/1.1\r\n" HOST ": empty\r\n\r\n", "http_bad");
	refused("GET / HTTP/1.1\r\n" HOST "Connection: Transfer-Encoding\r\n\r\n", "http_bad");
	refused_n(nul, sizeof(nul) - 1, "", "http_bad");
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		auto_buf text = { 0 };

		buf_printf(&text, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n%s",
			   bodies[i]);
		refused_n(text.data, text.len, text.data, "http_bad");
	}
}

static void test_other_protocols(void **state)
{
	(void)state;
	refused_n("\x16\x03\x01\x02\x00", 5, "", "not_http");
	refused("SSH-2.0-OpenSSH\r\n", "not_http");
	refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "not_http");
	refused("GET /\r\n\r\n", "not_http");
	refused("GET  / HTTP/1.1\r\n" HOST "\r\n", "not_http");
	refused("GET / HTTP/1.2\r\n" HOST "\r\n", "not_http");
	refused("GET / http/1.1\r\n" HOST "\r\n", "not_http");
	refused("\r\n" GET, "not_http");
	refused("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJ / HTTP/1.1\r\n", "not_http");
}

static void test_large(void **state)
{
	auto_buf text = { 0 }, many = { 0 };

	(void)state;
	buf_puts(&text, "GET / HTTP/1.1\r\n" HOST "X: ");
	while (text.len <= HTTP1_HEAD_MAX)
		buf_puts(&text,
			 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	refused(text.data, "http_large");
	buf_puts(&many, "GET / HTTP/1.1\r\n" HOST);
	for (unsigned i = 0; i < HTTP1_HEADERS_MAX; i++)
		buf_puts(&many, "X: y\r\n");
	buf_puts(&many, "\r\n");
	refused(many.data, "http_large");
}

static enum sniff_say answer(struct sniff *g, const char *text, size_t piece)
{
	enum sniff_say say = SNIFF_OPEN;

	for (size_t at = 0, n = strlen(text); at < n && say != SNIFF_REFUSE && say != SNIFF_BLIND;
	     at += piece) {
		enum sniff_say now = sniff_server(g, (const uint8_t *)text + at,
						  n - at < piece ? n - at : piece);

		say = now == SNIFF_OPEN ? say : now;
	}
	return say;
}

#define UPGRADE(to) "GET / HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: " to "\r\n\r\n"
#define SWITCHING "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"

/* What an answer that is full of traps looks like; the gate must find its end. */
#define FAKE "HTTP/1.1 101 Switching Protocols\r\n\r\n"
#define WITH_LENGTH "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 36\r\n\r\n" FAKE
#define WITH_CHUNKS                                                                                \
	"HTTP/1.1 200 OK\nTransfer-Encoding: gzip, chunked\r\n\r\n24;x=y\r\n" FAKE                 \
	"\r\n0\r\nTrailer: HTTP/1.1 101\r\n\r\n"
#define NO_CONTENT "HTTP/1.1 304 Not Modified\r\nContent-Length: 36\r\n\r\n"

static void test_upgrade(void **state)
{
	static const struct {
		const char *client, *server;
		enum sniff_say say;
		bool more; /* of the client passes afterwards */
	} rows[] = {
		{ UPGRADE("websocket"), SWITCHING, SNIFF_BLIND, true },
		{ UPGRADE("WebSocket"), "HTTP/1.1 100 Continue\r\n\r\n" SWITCHING, SNIFF_BLIND,
		  true },
		{ UPGRADE("websocket"), "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
		  SNIFF_AGAIN, true },
		{ UPGRADE("websocket"), "garbage\r\n", SNIFF_REFUSE, false },
		{ GET UPGRADE("websocket"), WITH_LENGTH SWITCHING, SNIFF_BLIND, true },
		{ GET UPGRADE("websocket"), WITH_LENGTH, SNIFF_OPEN, false },
		{ GET UPGRADE("websocket"), WITH_CHUNKS NO_CONTENT, SNIFF_AGAIN, true },
		{ GET UPGRADE("websocket"), SWITCHING, SNIFF_REFUSE, false },
		{ "HEAD / HTTP/1.1\r\n" HOST "\r\n" UPGRADE("websocket"),
		  "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" SWITCHING, SNIFF_BLIND, true },
		{ GET UPGRADE("websocket"), "HTTP/1.0 200 OK\r\n\r\n" SWITCHING, SNIFF_OPEN,
		  false }, /* until the end */
		{ GET UPGRADE("websocket"),
		  "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n" SWITCHING, SNIFF_REFUSE, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t p = 0; p < ARRAY_LEN(pieces); p++) {
			struct sniff g = gate_for("a.example", 80);
			auto_buf out = { 0 };
			enum sniff_say say;
			size_t release = 0;

			assert_int_equal(
				feed(&g, rows[i].client, strlen(rows[i].client), pieces[p], &out),
				SNIFF_OPEN);
			assert_int_equal(out.len, strlen(rows[i].client));
			/* nothing more before the answer */
			assert_int_equal(
				sniff_client(&g, (uint8_t *)(uintptr_t)GET, strlen(GET), &release),
				SNIFF_OPEN);
			assert_int_equal(release, 0);
			say = answer(&g, rows[i].server, pieces[p]);
			if (say != rows[i].say)
				fail_msg("row %zu in pieces of %zu: %d (%s)", i, pieces[p], say,
					 verdict_reason_name(g.reason));
			say = sniff_client(&g, (uint8_t *)(uintptr_t)GET, strlen(GET), &release);
			assert_int_equal(release, rows[i].more ? strlen(GET) : 0);
		}
}

/* An upgrade to anything but a websocket is ignored: the server never sees it, and cannot agree to
 * it. */
static void test_upgrade_ignored(void **state)
{
	static const char *const rows[] = { UPGRADE("h2c"), UPGRADE("websocket, h2c"),
					    UPGRADE("TLS/1.0"),
					    UPGRADE("websocket\r\nuPGRADE: h2c"), UPGRADE("") };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t p = 0; p < ARRAY_LEN(pieces); p++) {
			struct sniff g = gate_for("a.example", 80);
			auto_buf out = { 0 };

			assert_int_equal(feed(&g, rows[i], strlen(rows[i]), pieces[p], &out),
					 SNIFF_OPEN);
			assert_int_equal(feed(&g, GET, strlen(GET), pieces[p], &out), SNIFF_OPEN);
			/* nothing waits */
			assert_int_equal(out.len, strlen(rows[i]) + strlen(GET));
			assert_null(strcasestr(buf_text(&out), "\nupgrade"));
			assert_non_null(strstr(buf_text(&out), "\nIgnored: "));
			assert_int_equal(answer(&g, WITH_LENGTH, pieces[p]), SNIFF_OPEN);
			assert_int_equal(answer(&g, SWITCHING, pieces[p]), SNIFF_REFUSE);
		}
}

/* Answers that cannot be followed pass, but then no upgrade does. */
static void test_lost(void **state)
{
	struct sniff g = gate_for("a.example", 80);
	auto_buf out = { 0 };

	(void)state;
	assert_int_equal(answer(&g, "HTTP/1.1 408 Request Timeout\r\n\r\n", 5), SNIFF_OPEN);
	assert_int_equal(feed(&g, GET, strlen(GET), 5, &out), SNIFF_OPEN);
	assert_int_equal(out.len, strlen(GET));
	assert_int_equal(feed(&g, UPGRADE("websocket"), strlen(UPGRADE("websocket")), 5, &out),
			 SNIFF_REFUSE);
	assert_int_equal(g.reason, REASON_HTTP_TUNNEL);
}

/* Many requests without waiting: they are held, not refused. */
static void test_pipeline(void **state)
{
	struct sniff g = gate_for("a.example", 80);
	auto_buf text = { 0 };
	size_t release;

	(void)state;
	for (unsigned i = 0; i < HTTP1_PIPELINE + 1; i++)
		buf_puts(&text, GET);
	assert_int_equal(sniff_client(&g, (uint8_t *)(uintptr_t)text.data, text.len, &release),
			 SNIFF_OPEN);
	assert_int_equal(release, strlen(GET) * HTTP1_PIPELINE);
	assert_int_equal(answer(&g, "HTTP/1.1 204 No Content\r\n\r\n", 1), SNIFF_AGAIN);
	assert_int_equal(sniff_client(&g, (uint8_t *)(uintptr_t)GET, strlen(GET), &release),
			 SNIFF_OPEN);
	assert_int_equal(release, strlen(GET));
}

static void test_port(void **state)
{
	struct sniff g = gate_for("a.example", 8080);
	auto_buf out = { 0 };
	static const char other[] = "GET / HTTP/1.1\r\nHost: a.example:80\r\n\r\n";
	static const char fine[] = "GET / HTTP/1.1\r\nHost: a.example:8080\r\n\r\n" GET;

	(void)state;
	assert_int_equal(feed(&g, fine, strlen(fine), 7, &out), SNIFF_OPEN);
	assert_int_equal(out.len, strlen(fine));
	assert_int_equal(feed(&g, other, strlen(other), 7, &out), SNIFF_REFUSE);
}

/* Our own answer comes only where the client expects one. */
static void test_reply(void **state)
{
	static const char evil[] = "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n";
	struct sniff g = gate_for("a.example", 80);
	auto_buf out = { 0 };

	(void)state;
	assert_int_equal(feed(&g, GET, strlen(GET), 100, &out), SNIFF_OPEN);
	assert_int_equal(feed(&g, evil, strlen(evil), 100, &out), SNIFF_REFUSE);
	assert_string_equal(sniff_reply(&g), ""); /* the first is not answered yet */
	g = gate_for("a.example", 80);
	assert_int_equal(feed(&g, GET, strlen(GET), 100, &out), SNIFF_OPEN);
	assert_int_equal(answer(&g, WITH_LENGTH, 7), SNIFF_OPEN);
	assert_int_equal(feed(&g, evil, strlen(evil), 100, &out), SNIFF_REFUSE);
	assert_non_null(strstr(sniff_reply(&g), "403"));
}

static void test_proxy(void **state)
{
	static const struct {
		const char *text;
		int result;
		const char *host;
		uint16_t port;
		bool tunnel;
	} rows[] = {
		{ "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nProxy-Connection: "
		  "Keep-Alive\r\n\r\n",
		  1, "a.example", 443, true },
		{ "CONNECT A.Example.:443 HTTP/1.0\r\n\r\n", 1, "a.example", 443, true },
		{ "CONNECT [2001:db8::1]:22 HTTP/1.1\r\n\r\n", 1, "2001:db8::1", 22, true },
		{ "GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n", 1, "a.example", 80,
		  false },
		{ "GET http://a.example:8080/x HTTP/1.1\r\nHost: a.example:8080\r\n\r\n", 1,
		  "a.example", 8080, false },
		{ "CONNECT a.example HTTP/1.1\r\n\r\n", -1, NULL, 0, false },
		{ "CONNECT a.example:0 HTTP/1.1\r\n\r\n", -1, NULL, 0, false },
		{ "CONNECT u@a.example:443 HTTP/1.1\r\n\r\n", -1, NULL, 0, false },
		{ "CONNECT 0x7f.1:443 HTTP/1.1\r\n\r\n", -1, NULL, 0, false },
		{ "CONNECT 0177.0.0.1:443 HTTP/1.1\r\n\r\n", -1, NULL, 0, false },
		{ "CONNECT 2130706433:443 HTTP/1.1\r\n\r\n", -1, NULL, 0, false },
		{ "CONNECT [::ffff:127.0.0.1]:443 HTTP/1.1\r\n\r\n", 1, "127.0.0.1", 443, true },
		{ "CONNECT \xd0\xb0.example:443 HTTP/1.1\r\n\r\n", -1, NULL, 0,
		  false }, /* a cyrillic a */
		{ "CONNECT a.example:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n", -1, NULL, 0,
		  false },
		{ "CONNECT a.example:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\n", -1, NULL, 0,
		  false },
		{ "CONNECT http://a.example:443 HTTP/1.1\r\n\r\n", -1, NULL, 0, false },
		{ "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", -1, NULL, 0, false },
		{ "GET ftp://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", -1, NULL, 0, false },
		{ "\x05\x01\x00", -1, NULL, 0, false },
		{ "CONNECT a.example:443 HTTP/1.1\r\n", 0, NULL, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct http_proxy p;
		enum http_wrong wrong;
		size_t scanned = 0, n = strlen(rows[i].text);
		char text[HOST_TEXT];
		int r = http1_proxy_head((const uint8_t *)rows[i].text, n, &scanned, &p, &wrong);

		if (r != rows[i].result)
			fail_msg("%d: %s", r, rows[i].text);
		if (r <= 0)
			continue;
		assert_string_equal(host_text(&p.host, text), rows[i].host);
		assert_int_equal(p.port, rows[i].port);
		assert_int_equal(p.tunnel, rows[i].tunnel);
		assert_int_equal(p.len, n);
	}
	assert_non_null(strstr(http1_proxy_reply(200), "200"));
	assert_non_null(strstr(http1_proxy_reply(502), "502"));
}

static void test_socks(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		int result;
		const char *host;
		uint16_t port;
		enum socks_code code;
	} rows[] = {
		{ "\5\1\0\3\011a.example\1\273", 16, 16, "a.example", 443, SOCKS_OK },
		{ "\5\1\0\3\011A.EXAMPLE\1\273extra", 21, 16, "a.example", 443, SOCKS_OK },
		{ "\5\1\0\1\300\0\2\1\0\26", 10, 10, "192.0.2.1", 22, SOCKS_OK },
		{ "\5\1\0\4\0\0\0\0\0\0\0\0\0\0\377\377\177\0\0\1\0\120", 22, 22, "127.0.0.1", 80,
		  SOCKS_OK },
		{ "\5\1\0\3\0111.2.3.256\1\273", 16, -1, NULL, 0, SOCKS_NOT_ALLOWED },
		{ "\5\1\0\3\011a\0example\1\273", 16, -1, NULL, 0, SOCKS_NOT_ALLOWED },
		{ "\5\1\0\3\011u@example\1\273", 16, -1, NULL, 0, SOCKS_NOT_ALLOWED },
		{ "\5\1\0\3\0110x7f00001\1\273", 16, -1, NULL, 0, SOCKS_NOT_ALLOWED },
		{ "\5\1\0\3\0\1\273", 7, -1, NULL, 0, SOCKS_NOT_ALLOWED },
		{ "\5\1\0\1\300\0\2\1\0\0", 10, -1, NULL, 0, SOCKS_NOT_ALLOWED },
		{ "\5\1\1\1\300\0\2\1\0\26", 10, -1, NULL, 0, SOCKS_NOT_ALLOWED },
		{ "\5\2\0\1\300\0\2\1\0\26", 10, -1, NULL, 0, SOCKS_COMMAND }, /* BIND */
		{ "\5\3\0\1\0\0\0\0\0\0", 10, -1, NULL, 0, SOCKS_COMMAND },    /* UDP ASSOCIATE */
		{ "\5\1\0\2\300\0\2\1\0\26", 10, -1, NULL, 0, SOCKS_ADDRESS },
		{ "\4\1\0\26\300\0\2\1\0", 9, -1, NULL, 0, SOCKS_FAILED }, /* SOCKS4 */
	};
	uint8_t reply[SOCKS_REPLY_MAX];

	(void)state;
	assert_int_equal(socks_greeting((const uint8_t *)"\5\1\0", 3, reply), 3);
	assert_int_equal(reply[1], 0);
	assert_int_equal(socks_greeting((const uint8_t *)"\5\2\2\0", 4, reply), 4);
	assert_int_equal(reply[1], 0);
	assert_int_equal(socks_greeting((const uint8_t *)"\5\1\2", 3, reply), 3);
	assert_int_equal(reply[1], 0xff);
	assert_int_equal(socks_greeting((const uint8_t *)"\5\0", 2, reply), 2);
	assert_int_equal(reply[1], 0xff);
	assert_int_equal(socks_greeting((const uint8_t *)"\5\2\0", 3, reply), 0);
	assert_int_equal(socks_greeting((const uint8_t *)"\4\1", 2, reply), -1);
	assert_int_equal(socks_greeting((const uint8_t *)"GET", 3, reply), -1);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const uint8_t *bytes = (const uint8_t *)rows[i].bytes;
		enum socks_code code;
		char text[HOST_TEXT];
		struct host h;
		uint16_t port;
		int r = socks_request(bytes, rows[i].n, &h, &port, &code);

		if (r != rows[i].result || code != rows[i].code)
			fail_msg("row %zu: %d, code %d", i, r, code);
		for (int cut = 0; cut < r; cut++)
			assert_int_equal(socks_request(bytes, (size_t)cut, &h, &port, &code), 0);
		if (r <= 0)
			continue;
		assert_int_equal(socks_request(bytes, rows[i].n, &h, &port, &code), r);
		assert_string_equal(host_text(&h, text), rows[i].host);
		assert_int_equal(port, rows[i].port);
	}
	assert_int_equal(socks_reply(SOCKS_NOT_ALLOWED, reply), 10);
	assert_int_equal(reply[1], 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_keep_alive),
		cmocka_unit_test(test_smuggling),
		cmocka_unit_test(test_other_protocols),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_upgrade),
		cmocka_unit_test(test_upgrade_ignored),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_pipeline),
		cmocka_unit_test(test_port),
		cmocka_unit_test(test_proxy),
		cmocka_unit_test(test_reply),
		cmocka_unit_test(test_socks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
