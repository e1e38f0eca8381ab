/* Requests that are looked into: normal paths, heads written anew, what rules say about them. */
#include "gateway_help.h"
#include "rules/http_message.h"
#include "rules/http_rule.h"

static void test_paths(void **state)
{
	static const struct {
		const char *in, *out, *other; /* out NULL: refused */
	} rows[] = {
		{ "/", "/", NULL },
		{ "/a/b", "/a/b", NULL },
		{ "/a/./b/../c", "/a/c", NULL },
		{ "/a//b///", "/a/b/", NULL },
		{ "/a/b/..", "/a/", NULL },
		{ "/%61%7E%2d", "/a~-", NULL },
		{ "/%2e%2E/a", NULL, NULL },
		{ "/a/%2e%2e/b", "/b", NULL },
		{ "/%c3%a9\xc3\xa9", "/%C3%A9%C3%A9", NULL },
		{ "/a b", "/a%20b", NULL },
		{ "/a;x=1/b", "/a;x=1/b", NULL },
		{ "/a/..;x/b", NULL, NULL },
		{ "/@scope%2fname", "/@scope%2Fname", "/@scope/name" },
		{ "/a%2f..%2fb", NULL, NULL },
		{ "/a%5c..%5cb", NULL, NULL },
		{ "/a\\b", NULL, NULL },
		{ "/..", NULL, NULL },
		{ "/a/../..", NULL, NULL },
		{ "/%00", NULL, NULL },
		{ "/%0d%0a", NULL, NULL },
		{ "/%zz", NULL, NULL },
		{ "/%4", NULL, NULL },
		{ "/%c0%ae", NULL, NULL },
		{ "/%e0%80%ae", NULL, NULL },
		{ "/%252e", NULL, NULL },
		{ "/100%25", "/100%25", NULL },
		{ "/a?b", NULL, NULL },
		{ "a", NULL, NULL },
		{ "", NULL, NULL },
	};
	struct http_path p;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool fine = http_path_read(rows[i].in, strlen(rows[i].in), &p);

		if (fine != (rows[i].out != NULL))
			fail_msg("%s: %s", rows[i].in, fine ? "accepted" : "refused");
		if (!fine)
			continue;
		p.text[p.len] = p.other[p.other_len] = '\0';
		assert_string_equal(p.text, rows[i].out);
		assert_int_equal(p.two, rows[i].other != NULL);
		if (p.two)
			assert_string_equal(p.other, rows[i].other);
	}
}

static void test_patterns(void **state)
{
	(void)state;
	assert_true(http_glob("/v1/*", 5, "/v1/a/b", 7));
	assert_true(http_glob("*", 1, "", 0));
	assert_true(http_glob("/*/end", 6, "/a/end/end", 10));
	assert_false(http_glob("/v1/*", 5, "/v1", 3));
	assert_false(http_glob("/a", 2, "/ab", 3));
	assert_false(http_glob("", 0, "a", 1));
}

static struct http_verdict verdict(const char *rules_text, const char *head_text)
{
	struct rules *rules = rules_of(rules_text);
	struct host host = host_of("a.example");
	struct http_head head;
	static struct http_request request;
	static struct http_path room;
	struct http_verdict v;
	enum http_wrong wrong;
	size_t scanned = 0;

	assert_int_equal(
		http1_head((const uint8_t *)head_text, strlen(head_text), &scanned, &head, &wrong),
		1);
	assert_true(http_request_read((const uint8_t *)head_text, &head, &request));
	http_decide(rules, rules_match(rules, &host, 443).rule, 443, &request, &room, &v);
	rules_free(rules);
	return v;
}

static enum verdict_reason decide(const char *rules_text, const char *head_text)
{
	return (enum verdict_reason)verdict(rules_text, head_text).reason;
}

static int32_t decided_by(const char *rules_text, const char *head_text)
{
	return verdict(rules_text, head_text).rule;
}

#define REQUEST(line, more) line " HTTP/1.1\r\nHost: a.example\r\n" more "\r\n"
#define RULE(more) "{mode: restricted, egress_allowlist: [{host: a.example, " more "}]}"

/* One that allows wins, wherever it stands; one that asks over none; without a person it denies. */
static void test_rules_that_ask(void **state)
{
#define BOTH                                                                                       \
	"{mode: restricted, egress_allowlist: [{host: a.example, methods: [POST, GET], ask: "      \
	"true}, {host: a.example, methods: [GET]}]}"
	(void)state;
	assert_int_equal(decided_by(BOTH "\napprovals: {mode: ask}", REQUEST("GET /", "")), 1);
	assert_int_equal(decided_by(BOTH "\napprovals: {mode: ask}", REQUEST("POST /", "")), 0);
	assert_int_equal(decide(BOTH "\napprovals: {mode: ask}", REQUEST("POST /", "")),
			 REASON_ALLOWED);
	assert_int_equal(decide(BOTH "\napprovals: {mode: ask}", REQUEST("PUT /", "")),
			 REASON_METHOD);
	assert_int_equal(decide(BOTH, REQUEST("POST /", "")), REASON_NOT_ASKED);
	assert_int_equal(decide(BOTH, REQUEST("GET /", "")), REASON_ALLOWED);
#undef BOTH
}

static void test_conditions(void **state)
{
	static const char two[] =
		"{mode: restricted, egress_allowlist: [{host: a.example, methods: [GET]}, {host: "
		"a.example, ports: [80], "
		"methods: [PUT]}, {host: a.example, methods: [POST], paths: [/in/*]}]}";

	(void)state;
	assert_int_equal(decide(RULE("mode: inspect"), REQUEST("PUT /x", "")), REASON_ALLOWED);
	assert_int_equal(decide(RULE("methods: [get]"), REQUEST("GET /x", "")), REASON_ALLOWED);
	assert_int_equal(decide(RULE("methods: [GET]"), REQUEST("GETX /x", "")), REASON_METHOD);
	assert_int_equal(decide(RULE("methods: []"), REQUEST("GET /x", "")), REASON_METHOD);
	assert_int_equal(decide(RULE("paths: [/a, '/b/*']"), REQUEST("GET /b/c?d", "")),
			 REASON_ALLOWED);
	assert_int_equal(decide(RULE("paths: [/a, '/b/*']"), REQUEST("GET /c", "")), REASON_PATH);
	assert_int_equal(decide(RULE("paths: ['/a/*']"), REQUEST("OPTIONS *", "")),
			 REASON_PATH_BAD);
	/* one pattern for both */
	assert_int_equal(decide(RULE("paths: ['/s%2Fn', '/s/n']"), REQUEST("GET /s%2fn", "")),
			 REASON_PATH);
	assert_int_equal(decide(RULE("paths: ['/s*']"), REQUEST("GET /s%2fn", "")), REASON_ALLOWED);
	assert_int_equal(decide(RULE("query: [a, 'b=1*']"), REQUEST("GET /?b=12&a=&a=x", "")),
			 REASON_ALLOWED);
	assert_int_equal(decide(RULE("query: [a, 'b=1*']"), REQUEST("GET /?b=2", "")),
			 REASON_QUERY);
	assert_int_equal(decide(RULE("query: [a]"), REQUEST("GET /?%61=1", "")), REASON_ALLOWED);
	assert_int_equal(decide(RULE("query: [a]"), REQUEST("GET /?a=1;b=2", "")), REASON_QUERY);
	assert_int_equal(decide(RULE("query: [a]"), REQUEST("GET /?ab=1", "")), REASON_QUERY);
	assert_int_equal(decide(RULE("headers: ['X-A: 1', 'X-B: *']"),
				REQUEST("GET /", "x-a: 1\r\nx-b: 2\r\n")),
			 REASON_ALLOWED);
	assert_int_equal(
		decide(RULE("headers: ['X-A: 1', 'X-B: *']"), REQUEST("GET /", "x-b: 2\r\n")),
		REASON_HEADER);
	assert_int_equal(
		decide(RULE("headers: ['X-A: 1']"), REQUEST("GET /", "x-a: 1\r\nx-a: 2\r\n")),
		REASON_HEADER);
	assert_int_equal(
		decide(RULE("content_types: [text/*]"),
		       REQUEST("PUT /", "Content-Length: 1\r\nContent-Type: Text/Plain; a=b\r\n")),
		REASON_ALLOWED);
	assert_int_equal(
		decide(RULE("content_types: [text/*]"), REQUEST("PUT /", "Content-Length: 1\r\n")),
		REASON_TYPE);
	assert_int_equal(decide(RULE("content_types: [text/*]"), REQUEST("GET /", "")),
			 REASON_ALLOWED);
	assert_int_equal(
		decide(RULE("request_limit: 10"), REQUEST("PUT /", "Content-Length: 11\r\n")),
		REASON_REQUEST_SIZE);
	assert_int_equal(decide(RULE("mode: inspect"), REQUEST("GET /", "Upgrade: websocket\r\n")),
			 REASON_WEBSOCKET);
	assert_int_equal(
		decide(RULE("websocket: true"), REQUEST("GET /", "Upgrade: websocket\r\n")),
		REASON_ALLOWED);
	/* of several rules for one host any one may allow it; one for another port is none of
	 * them */
	assert_int_equal(decide(two, REQUEST("POST /in/x", "")), REASON_ALLOWED);
	assert_int_equal(decide(two, REQUEST("POST /out/x", "")), REASON_PATH);
	assert_int_equal(decide(two, REQUEST("PUT /in/x", "")), REASON_METHOD);
}

/* What some servers read otherwise than their neighbours: the rule must hold for all of them. */
static void test_other_readings(void **state)
{
	(void)state;
	/* the method from elsewhere */
	assert_int_equal(decide(RULE("methods: [GET, POST]"),
				REQUEST("POST /", "X-HTTP-Method-Override: get\r\n")),
			 REASON_ALLOWED);
	assert_int_equal(decide(RULE("methods: [GET, POST]"),
				REQUEST("POST /", "X-HTTP-Method-Override: DELETE\r\n")),
			 REASON_METHOD);
	assert_int_equal(
		decide(RULE("methods: [GET, POST]"), REQUEST("POST /?_HttpMethod=PATCH", "")),
		REASON_METHOD);
	assert_int_equal(decide(RULE("paths: ['/a/*']"), REQUEST("GET /a/b", "")), REASON_ALLOWED);
	assert_int_equal(
		decide(RULE("paths: ['/a/*']"), REQUEST("GET /a/b", "X-Original-URL: /admin\r\n")),
		REASON_PATH);
	assert_int_equal(
		decide(RULE("paths: ['/a/*']"), REQUEST("GET /a/b", "X_Rewrite_URL: /admin\r\n")),
		REASON_PATH);
	assert_int_equal(
		decide(RULE("methods: [GET]"), REQUEST("GET /a/b", "X-Original-URL: /admin\r\n")),
		REASON_ALLOWED);
	assert_int_equal(decide(RULE("methods: [GET, POST]"),
				REQUEST("POST /", "X_HTTP_Method: DELETE\r\n")),
			 REASON_METHOD);
	assert_int_equal(
		decide(RULE("methods: [GET, POST]"),
		       REQUEST("POST /", "X-Method-Override: GET\r\nX-Method-Override: PUT\r\n")),
		REASON_METHOD);
	assert_int_equal(
		decide(RULE("methods: [GET, POST]"), REQUEST("POST /?a=b&_method=delete", "")),
		REASON_METHOD);
	assert_int_equal(
		decide(RULE("methods: [GET, POST]"), REQUEST("POST /?%5Fmetho%64=delete", "")),
		REASON_METHOD);
	assert_int_equal(decide(RULE("methods: [GET, POST]"),
				REQUEST("POST /?my_method=delete&method=x", "")),
			 REASON_ALLOWED);
	assert_int_equal(decide(RULE("mode: inspect"),
				REQUEST("POST /", "X-HTTP-Method-Override: DELETE\r\n")),
			 REASON_ALLOWED);
	/* a field that stays behind is none */
	assert_int_equal(decide(RULE("headers: ['X-A: 1']"),
				REQUEST("GET /", "X-A: 1\r\nConnection: close, x-a\r\n")),
			 REASON_HEADER);
	assert_int_equal(decide(RULE("content_types: [text/*]"),
				REQUEST("PUT /", "Connection: content-type\r\nContent-Length: "
						 "1\r\nContent-Type: text/plain\r\n")),
			 REASON_TYPE);
	/* the same name in another spelling, and two of one */
	assert_int_equal(
		decide(RULE("headers: ['X-A: 1']"), REQUEST("GET /", "X-A: 1\r\nX_A: 2\r\n")),
		REASON_HEADER);
	assert_int_equal(decide(RULE("headers: ['X-A: 1']"), REQUEST("GET /", "X_A: 1\r\n")),
			 REASON_HEADER);
	assert_int_equal(decide(RULE("content_types: [text/*]"),
				REQUEST("PUT /", "Content-Length: 1\r\nContent-Type: "
						 "text/plain\r\nContent-Type: a/b\r\n")),
			 REASON_TYPE);
	assert_int_equal(decide(RULE("content_types: [text/*]"),
				REQUEST("PUT /", "Content-Length: 1\r\nContent-Type: "
						 "text/plain\r\ncontent_type: a/b\r\n")),
			 REASON_TYPE);
}

static void test_written_anew(void **state)
{
	static const char fine[] = "POST http://a.example/p?q HTTP/1.1\r\nConnection: X-Hop, "
				   "close\r\nHost: A.Example.\r\nX-Hop: 1\r\n"
				   "X-Stays:   2 \r\nTE: gzip, trailers\r\nKeep-Alive: "
				   "1\r\nTransfer-Encoding: chunked\r\n\r\n";
	struct host host = host_of("a.example");
	static struct http_request r;
	struct http_head head;
	enum http_wrong wrong;
	size_t scanned = 0;
	auto_buf out = { 0 };

	(void)state;
	assert_int_equal(http1_head((const uint8_t *)fine, strlen(fine), &scanned, &head, &wrong),
			 1);
	assert_true(http_request_read((const uint8_t *)fine, &head, &r));
	http_request_write(&r, &host, 8443, 443, (struct http_text){ "/P", 2 }, &out);
	assert_string_equal(buf_text(&out),
			    "POST /P?q HTTP/1.1\r\nHost: a.example:8443\r\nX-Stays: 2\r\nTE: "
			    "trailers\r\nConnection: TE\r\n"
			    "Transfer-Encoding: chunked\r\n\r\n");
}

static int read_response(const char *text, struct http_response *r)
{
	return http_response_read((const uint8_t *)text, strlen(text), r);
}

static void test_responses(void **state)
{
	static struct http_response r;
	auto_buf out = { 0 };

	(void)state;
	assert_int_equal(
		read_response("HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 3\r\n\r\nabc", &r), 1);
	assert_int_equal(r.len, 44);
	assert_true(r.has_length && r.length == 3 && !r.close);
	http_response_write(&r, false, true, &out);
	assert_string_equal(
		buf_text(&out),
		"HTTP/1.1 200 OK\r\nA: b\r\nConnection: close\r\nContent-Length: 3\r\n\r\n");
	assert_int_equal(read_response("HTTP/1.0 200\r\n\r\n", &r), 1);
	assert_true(r.close);
	assert_int_equal(read_response("HTTP/1.1 200 OK\nA: b\n\n", &r), 1);
	assert_int_equal(read_response("HTTP/1.1 200 OK\r\nA: b\r\n", &r), 0);
	assert_int_equal(
		read_response("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
			      &r),
		-1);
	assert_int_equal(read_response("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: "
				       "chunked\r\n\r\n",
				       &r),
			 -1);
	assert_int_equal(
		read_response("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", &r),
		-1);
	assert_int_equal(read_response("HTTP/1.1 200 OK\r\n folded: x\r\n\r\n", &r), -1);
	assert_int_equal(read_response("HTTP/2 200 OK\r\n\r\n", &r), -1);
	assert_int_equal(read_response("SSH-2.0", &r), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),          cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_conditions),     cmocka_unit_test(test_rules_that_ask),
		cmocka_unit_test(test_other_readings), cmocka_unit_test(test_written_anew),
		cmocka_unit_test(test_responses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
