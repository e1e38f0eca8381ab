/* Forms, placeholders, answers, heads with a secret, and the scanner's pure neighbours. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "creds/answer.h"
#include "creds/forms.h"
#include "creds/placeholder.h"
#include "creds/safe.h"
#include "keys/inject.h"
#include "keys/part.h"
#include "keys/unzip.h"

static void expect_form(enum form f, const char *value, const char *wanted)
{
	uint8_t out[FORM_ROOM(64)];
	size_t n = form_write(f, (const uint8_t *)value, strlen(value), out);

	assert_int_equal(n, strlen(wanted));
	assert_memory_equal(out, wanted, n);
}

static void test_forms(void **state)
{
	uint8_t out[128];
	size_t n;

	(void)state;
	expect_form(FORM_PLAIN, "secret42", "secret42");
	/* c2VjcmV0NDI=: the last character depends on what follows */
	expect_form(FORM_BASE64_0, "secret42", "c2VjcmV0ND");
	/* of "xsecret42": eHNlY3JldDQy, without "eH" */
	expect_form(FORM_BASE64_1, "secret42", "NlY3JldDQy");
	/* of "xxsecret42": eHhzZWNyZXQ0Mg==, without "eHh" */
	expect_form(FORM_BASE64_2, "secret42", "zZWNyZXQ0M");
	expect_form(FORM_BASE64URL_0, "secret42", "");
	expect_form(FORM_BASE64URL_0, "\xfb\xff\xfe?\?>", "-__-Pz8-");
	expect_form(FORM_HEX, "secret42", "7365637265743432");
	expect_form(FORM_HEX_UPPER, "secret42", "");
	expect_form(FORM_HEX_UPPER, "secret/-", "7365637265742F2D");
	expect_form(FORM_URL, "secret42", "");
	expect_form(FORM_URL, "a/b+c d=", "a%2Fb%2Bc%20d%3D");
	expect_form(FORM_JSON_QUOTES, "sec/ret+42", "");
	expect_form(FORM_JSON_QUOTES, "sec/re\"t+42", "sec/re\\\"t+42");
	expect_form(FORM_JSON_GO, "sec/re<t+42", "sec/re\\u003ct+42");
	expect_form(FORM_JSON_NET, "sec/ret+42", "sec/ret\\u002B42");
	expect_form(FORM_JSON_NET, "++++++", ""); /* six times as long */
	expect_form(FORM_HTML, "sec'ret+42", "sec&#39;ret+42");
	expect_form(FORM_HTML_GO, "sec\"ret+42", "sec&#34;ret&#43;42");
	expect_form(FORM_URL_LOWER, "a/b+c d=", "a%2fb%2bc%20d%3d");
	expect_form(FORM_JSON_GSON, "sec/ret+42=", "sec/ret+42\\u003d");
	expect_form(FORM_HTML_PYTHON, "sec'ret+42", "sec&#x27;ret+42");
	expect_form(FORM_HTML_PYTHON, "sec\"ret+42", ""); /* as FORM_HTML */
	expect_form(FORM_HTML_MUSTACHE, "sec/ret=42", "sec&#x2F;ret&#x3D;42");
	expect_form(FORM_URL_QUOTE, "a/b+c d=", "a/b%2Bc%20d%3D");
	expect_form(FORM_URL_COMPONENT, "sec*ret/42", "sec*ret%2F42");
	expect_form(FORM_URL_FORM, "sec ret/42", "sec+ret%2F42");
	expect_form(FORM_URL_PATH, "sec/ret*42", "");
	expect_form(FORM_JSON, "a/b\"cdef", "a\\/b\\\"cdef");
	expect_form(FORM_PLAIN, "short", "");
	/* of "x:" and a secret: eDpzZWM/P3I+dDQy */
	n = form_write_basic(FORM_JSON, (const uint8_t *)"sec??r>t42", 10, 2, out);
	assert_int_equal(n, 14);
	assert_memory_equal(out, "zZWM\\/P3I+dDQy", 14);
	n = form_write_basic(FORM_URL, (const uint8_t *)"sec??r>t42", 10, 2, out);
	assert_int_equal(n, 17);
	assert_memory_equal(out, "zZWM%2FP3I%2BdDQy", 17);
	assert_int_equal(form_write_basic(FORM_URL, (const uint8_t *)"secret42", 8, 2, out), 0);
	assert_int_equal(form_base64((const uint8_t *)"ab", 2, out), 4);
	assert_memory_equal(out, "YWI=", 4);
}

static void test_placeholders(void **state)
{
	static const char *const values[] = { "sk-ant-api03-AbCdEfGhIjKlMnOp0123456789",
					      "ghp_abcdefghijABCDEFGHIJ0123456789abcd",
					      "AKIAIOSFODNN7EXAMPLE",
					      "0123456789abcdef0123456789abcdef",
					      "xoxb-123456789012-abcdefABCDEF",
					      "12345678901234567890" };
	uint8_t random[64], out[64];

	(void)state;
	for (size_t i = 0; i < sizeof(random); i++)
		random[i] = (uint8_t)(i * 37 + 11);
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		size_t n = strlen(values[i]), same = 0;

		placeholder_write((const uint8_t *)values[i], n, random, out);
		for (size_t k = 0; k < n; k++) {
			same += out[k] == (uint8_t)values[i][k];
			assert_true(out[k] > ' ' && out[k] < 127);
		}
		assert_true(n - same >= 8);
	}
	placeholder_write((const uint8_t *)values[0], strlen(values[0]), random, out);
	assert_memory_equal(out, "sk-ant-api03-WARD", 17);
	placeholder_write((const uint8_t *)values[1], strlen(values[1]), random, out);
	assert_memory_equal(out, "ghp_WARD", 8);
	placeholder_write((const uint8_t *)values[3], 32, random, out);
	for (size_t k = 0; k < 32; k++)
		assert_non_null(strchr("0123456789abcdef", out[k]));
	placeholder_write((const uint8_t *)values[4], strlen(values[4]), random, out);
	assert_memory_equal(out, "xoxb-", 5);
	assert_int_equal(out[17], '-');
}

static void test_answers(void **state)
{
	static const struct {
		const char *text, *field, *value, *why;
		uint64_t lease;
	} cases[] = {
		{ "{\"data\":{\"data\":{\"key\":\"VALUE\"},\"metadata\":{\"created\":\"x\"}},"
		  "\"lease_duration\":7}",
		  NULL, "VALUE", NULL, 7 },
		{ "{\"data\":{\"key\":\"VALUE\",\"n\":3}}", NULL, "VALUE", NULL, 0 },
		{ "{\"data\":{\"a\":\"VALUE\",\"b\":\"OTHER\"}}", NULL, NULL,
		  "the answer contains 2 strings", 0 },
		{ "{\"data\":{\"a\":\"VALUE\",\"b\":\"OTHER\"}}", "data.b", "OTHER", NULL, 0 },
		{ "{\"data\":{\"a\":\"VALUE\"}}", "data.b", NULL,
		  "the answer has no string at data.b", 0 },
		{ "{\"data\":{\"a\":{\"x\":1}}}", "data.a", NULL,
		  "the answer has no string at data.a", 0 },
		{ "VALUE", NULL, NULL, "the answer is not JSON", 0 },
	};
	uint8_t out[64];
	size_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ward_err e = { 0 };
		uint64_t lease = 99;
		int r;

		n = sizeof(out);
		r = answer_read((const uint8_t *)cases[i].text, strlen(cases[i].text),
				cases[i].field, out, &n, &lease, &e);
		assert_int_equal(r < 0, cases[i].why != NULL);
		if (cases[i].why) {
			assert_string_equal(e.why, cases[i].why);
			assert_null(strstr(e.why, "VALUE"));
		} else {
			assert_int_equal(n, strlen(cases[i].value));
			assert_memory_equal(out, cases[i].value, n);
			assert_int_equal(lease, cases[i].lease);
		}
	}
}

static void test_heads(void **state)
{
	static const char text[] =
		"GET /a?key=old&x=1 HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer "
		"mine\r\nAccept-Encoding: br\r\nX: y\r\n\r\n";
	const uint8_t *values[] = { (const uint8_t *)"REAL/VALUE" };
	const size_t bytes[] = { 10 };
	auto_grant header = { 0 }, basic = { 0 }, query = { 0 };
	struct {
		struct policy_grant *g;
		const char *spec, *wanted;
	} cases[] = {
		{ &header, "{name: n, source: 'env:K', hosts: [a.example]}",
		  "GET /a?key=old&x=1 HTTP/1.1\r\nHost: a.example\r\nX: y\r\nAccept-Encoding: "
		  "identity\r\nAuthorization: Bearer REAL/VALUE\r\n\r\n" },
		{ &basic, "{name: n, source: 'env:K', hosts: [a.example], basic: joe}",
		  "GET /a?key=old&x=1 HTTP/1.1\r\nHost: a.example\r\nX: y\r\nAccept-Encoding: "
		  "identity\r\nAuthorization: Basic am9lOlJFQUwvVkFMVUU=\r\n\r\n" },
		{ &query, "{name: n, source: 'env:K', hosts: [a.example], query: key}",
		  "GET /a?x=1&key=REAL%2FVALUE HTTP/1.1\r\nHost: a.example\r\nAuthorization: "
		  "Bearer mine\r\nX: y\r\nAccept-Encoding: identity\r\n\r\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ward_err e = { 0 };
		struct http_head h;
		enum http_wrong wrong;
		struct inject_secret one;
		size_t scanned = 0, n;
		auto_buf base = { 0 };
		uint8_t out[4096];

		assert_int_equal(policy_grant_parse(cases[i].spec, cases[i].g, NULL, &e), 0);
		assert_int_equal(
			http1_head((const uint8_t *)text, strlen(text), &scanned, &h, &wrong), 1);
		one = (struct inject_secret){ .grant = cases[i].g,
					      .values = { values[0] },
					      .bytes = { bytes[0] },
					      .count = 1 };
		assert_true(inject_base(&one, 1, (const uint8_t *)text, &h, &base, NULL));
		assert_null(strstr(base.data, "REAL"));
		n = inject_write(&one, 1, &base, NULL, out, sizeof(out));
		assert_int_equal(n, strlen(cases[i].wanted));
		assert_memory_equal(out, cases[i].wanted, n);
		for (size_t room = 0; room < n; room++)
			assert_int_equal(inject_write(&one, 1, &base, NULL, out, room), 0);
	}
}

/* Several grants of one request: parameters, headers, and a signature over all of them; what a
 * program wrote there is gone. */
static void test_several_grants(void **state)
{
	static const char text[] =
		"GET /a?x=1&key=old HTTP/1.1\r\nHost: a.example\r\nX-Id: mine\r\nX_Key: mine\r\nX: "
		"y\r\n"
		"x-amz-date: 20130524T000000Z\r\nx-amz-content-sha256: UNSIGNED-PAYLOAD\r\n"
		"Authorization: AWS4-HMAC-SHA256 Credential=P/20130524/us-east-1/s3/aws4_request, "
		"SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-id, Signature=00\r\n\r\n";
	static const char *const specs[] = { "sigv4: 'us-east-1/s3'", "header: 'X-Id: {}'",
					     "query: key", "header: 'X-Key: <{}>'", "query: more" };
	static const char wanted[] =
		"GET /a?x=1&key=VALUE2&more=VALUE4 HTTP/1.1\r\nHost: a.example\r\nX: "
		"y\r\nx-amz-date: 20130524T000000Z\r\n"
		"x-amz-content-sha256: UNSIGNED-PAYLOAD\r\nAccept-Encoding: identity\r\nX-Id: "
		"VALUE1\r\nX-Key: <VALUE3>\r\n"
		"Authorization: AWS4-HMAC-SHA256 "
		"Credential=VALUE0/20130524/us-east-1/s3/aws4_request, "
		"SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-id, Signature=";
	static const char *const values[] = { "VALUE0", "VALUE1", "VALUE2", "VALUE3", "VALUE4" };
	struct policy_grant grants[5] = { { .name = NULL } };
	struct inject_secret secrets[5];
	struct sigv4_request sign;
	auto_buf base = { 0 };
	struct ward_err e = { 0 };
	struct http_head h;
	enum http_wrong wrong;
	uint8_t out[4096] = { 0 };
	size_t scanned = 0, n;

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		auto_buf spec = { 0 };

		buf_printf(&spec, "{name: n%zu, source: 'env:%s', hosts: [a.example], %s}", i,
			   i ? "K" : "K,L", specs[i]);
		assert_int_equal(policy_grant_parse(buf_text(&spec), &grants[i], NULL, &e), 0);
		secrets[i] = (struct inject_secret){ .grant = &grants[i], .count = i ? 1 : 2 };
		secrets[i].values[0] = secrets[i].values[1] = (const uint8_t *)values[i];
		secrets[i].bytes[0] = secrets[i].bytes[1] = 6;
	}
	assert_int_equal(http1_head((const uint8_t *)text, strlen(text), &scanned, &h, &wrong), 1);
	assert_true(inject_base(secrets, 5, (const uint8_t *)text, &h, &base, &sign));
	assert_null(strstr(base.data, "mine"));
	assert_null(strstr(base.data, "old"));
	n = inject_write(secrets, 5, &base, &sign, out, sizeof(out) - 1);
	assert_true(n > strlen(wanted));
	assert_memory_equal(out, wanted, strlen(wanted));
	assert_memory_equal(out + n - 4, "\r\n\r\n", 4);
	for (size_t room = 0; room < n; room++)
		assert_int_equal(inject_write(secrets, 5, &base, &sign, out, room), 0);
	for (size_t i = 0; i < 5; i++)
		policy_grant_clear(&grants[i]);
}

static bool fits(const struct policy_grant *g, const char *line, const char *field)
{
	static struct http_request request;
	static struct http_path room;
	struct http_head h;
	enum http_wrong wrong;
	size_t scanned = 0;
	auto_buf text = { 0 };

	buf_printf(&text, "%s HTTP/1.1\r\nHost: a.example\r\n%s\r\n", line, field);
	assert_int_equal(http1_head((const uint8_t *)text.data, text.len, &scanned, &h, &wrong), 1);
	assert_true(http_request_read((const uint8_t *)text.data, &h, &request));
	return inject_fits(g, &request, &room);
}

/* However a server may read the request: a grant's secret goes to its paths and by its methods. */
static void test_requests_of_a_grant(void **state)
{
	struct ward_err e = { 0 };
	auto_grant g = { 0 }, any = { 0 };

	(void)state;
	assert_int_equal(policy_grant_parse("{name: n, source: 'env:K', hosts: [a.example], "
					    "methods: [GET, POST], paths: ['/v1/*', '/x/*/y']}",
					    &g, NULL, &e),
			 0);
	assert_int_equal(policy_grant_parse("{name: n, source: 'env:K', hosts: [a.example]}", &any,
					    NULL, &e),
			 0);
	assert_true(fits(&g, "GET /v1/", ""));
	assert_true(fits(&g, "GET /v1/a?b=../c", ""));
	assert_true(fits(&g, "GET /v1/@scope%2fname", ""));
	assert_true(fits(&g, "GET /v1/a%7eb%20c/./d", ""));
	assert_true(fits(&g, "POST /x/1/2/y", "X-HTTP-Method-Override: get\r\n"));
	assert_false(fits(&g, "GET /v1", ""));
	assert_false(fits(&g, "GET /x/y", ""));
	assert_false(fits(&g, "DELETE /v1/a", ""));
	assert_false(fits(&g, "GETX /v1/a", ""));
	assert_false(fits(&g, "GET /v1/../admin", ""));
	assert_false(fits(&g, "GET /v1/%2e%2E/admin", ""));
	assert_false(fits(&g, "GET /v1/..%2fadmin", ""));
	assert_false(fits(&g, "GET /v1/..;/admin", ""));
	assert_false(fits(&g, "GET /v1/%252e%252e/admin", ""));
	assert_false(fits(&g, "GET /v1/%5c..%5cadmin", ""));
	assert_false(fits(&g, "POST /v1/a", "X-HTTP-Method-Override: DELETE\r\n"));
	assert_false(fits(&g, "POST /v1/a", "x_http_method: DELETE\r\n"));
	assert_false(fits(&g, "POST /v1/a?b=c&%5fmethod=DELETE", ""));
	assert_false(fits(&g, "POST /v1/a?_HttpMethod=PATCH", ""));
	assert_false(fits(&g, "POST /v1/a?_method=GET&_httpmethod=PATCH", ""));
	assert_true(fits(&g, "POST /v1/a?_HttpMethod=GET", ""));
	assert_false(fits(&g, "GET /v1/a", "X-Original-URL: /admin\r\n"));
	assert_false(fits(&g, "GET /v1/a", "X_Rewrite_Url: /admin\r\n"));
	assert_true(fits(&any, "GET /v1/a", "X-Original-URL: /admin\r\n"));
	assert_true(fits(&any, "DELETE /a/../b", "X-HTTP-Method-Override: PUT\r\n"));
}

/* Every reading is one of the grant's paths, not all of them the same one. */
static void test_escaped_slashes(void **state)
{
	struct ward_err e = { 0 };
	auto_grant g = { 0 };

	(void)state;
	assert_int_equal(
		policy_grant_parse("{name: n, source: 'env:K', hosts: [a.example], paths: "
				   "['/p/a%2fb/*', '/p/a/b/*', '/only%2Fone', '/d/x', '/t~/*']}",
				   &g, NULL, &e),
		0);
	assert_true(fits(&g, "GET /p/a%2Fb/issues", ""));
	assert_true(fits(&g, "GET /p/a%2fb/issues", ""));
	assert_true(fits(&g, "GET /p/a/b/issues", ""));
	assert_true(fits(&g, "GET /t%7e/1", ""));
	assert_true(fits(&g, "GET /t~//1", ""));
	assert_false(fits(&g, "GET /p/A%2fb/issues", ""));
	assert_false(fits(&g, "GET /p%2fa%2fb/issues", ""));
	assert_false(fits(&g, "GET /p/a%2fc/issues", ""));
	assert_false(fits(&g, "GET /only%2Fone", ""));
	assert_false(fits(&g, "GET /d/../d/x", ""));
	assert_false(fits(&g, "GET /t~/../d/y", ""));
}

/* What a program writes into a grant's place goes, in every spelling that a server may take for
 * it. */
static void test_other_spellings(void **state)
{
	static const struct {
		const char *spec, *line, *field, *wanted;
	} cases[] = {
		{ "query: api_key",
		  "GET "
		  "/a?api%5Fkey=A&API_KEY=B&api.key=C&+api_key=D&api_key[]=E&x=1;api_key=F;y=2&api_"
		  "keys=3",
		  "", "/a?x=1;y=2&api_keys=3&api_key=REALVALUE HTTP" },
		{ "query: k", "GET /a?%6b=A", "", "/a?k=REALVALUE HTTP" },
		{ "header: 'X-Api-Key: {}'", "GET /a", "X_Api-key: A\r\nX-Api-Keys: B\r\n",
		  "\r\nX-Api-Keys: B\r\nAccept-Encoding: identity\r\nX-Api-Key: REALVALUE\r\n" },
	};
	const uint8_t *values[] = { (const uint8_t *)"REALVALUE" };
	const size_t bytes[] = { 9 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ward_err e = { 0 };
		auto_grant g = { 0 };
		auto_buf text = { 0 }, spec = { 0 }, base = { 0 };
		struct http_head h;
		enum http_wrong wrong;
		struct inject_secret one;
		uint8_t out[4096] = { 0 };
		size_t scanned = 0;

		buf_printf(&spec, "{name: n, source: 'env:K', hosts: [a.example], %s}",
			   cases[i].spec);
		buf_printf(&text, "%s HTTP/1.1\r\nHost: a.example\r\n%s\r\n", cases[i].line,
			   cases[i].field);
		assert_int_equal(policy_grant_parse(buf_text(&spec), &g, NULL, &e), 0);
		assert_int_equal(
			http1_head((const uint8_t *)text.data, text.len, &scanned, &h, &wrong), 1);
		one = (struct inject_secret){
			.grant = &g, .values = { values[0] }, .bytes = { bytes[0] }, .count = 1
		};
		assert_true(inject_base(&one, 1, (const uint8_t *)text.data, &h, &base, NULL));
		assert_true(inject_write(&one, 1, &base, NULL, out, sizeof(out) - 1) > 0);
		assert_non_null(strstr((char *)out, cases[i].wanted));
	}
}

static struct part expect_asked(bool reads, const char *asked, const char *sent)
{
	auto_buf head = { 0 }, wanted = { 0 };
	struct part p;

	buf_printf(&head, "GET / HTTP/1.1\r\nHost: a\r\n%sX: y\r\n\r\n", asked);
	buf_printf(&wanted, "GET / HTTP/1.1\r\nHost: a\r\n%sX: y\r\n\r\n", sent);
	assert_true(part_request(&head, 100, reads, &p));
	assert_string_equal(buf_text(&head), buf_text(&wanted));
	return p;
}

static void expect_range(const char *asked, const char *sent)
{
	(void)expect_asked(true, asked, sent);
}

static void expect_part(const char *range, const char *came, enum part_say say, const char *told,
			uint64_t skip, uint64_t left)
{
	auto_buf head = { 0 }, lines = { 0 }, length = { 0 };
	unsigned long long first, last;
	struct part_window w;
	struct part p;

	buf_printf(&head, "GET / HTTP/1.1\r\nrange: bytes=%s\r\n\r\n", range);
	assert_true(part_request(&head, 100, true, &p));
	if (sscanf(came, " bytes %llu-%llu", &first, &last) == 2)
		buf_printf(&length, "Content-Length: %llu\n", last - first + 1);
	buf_printf(&lines, "HTTP/1.1 206 Part\r\n%sContent-Range:%s\r\n\r\n", buf_text(&length),
		   came);
	assert_int_equal(part_answer(&lines, &p, &w), say);
	assert_int_equal(w.on, say == PART_FINE);
	if (say != PART_FINE)
		return;
	assert_true(w.skip == skip && w.left == left);
	assert_non_null(strstr(buf_text(&lines), told));
}

/* More is asked for on either side, and what was asked for goes on. */
static void test_parts(void **state)
{
	struct part_window w = { .on = true, .skip = 5, .left = 4 };
	size_t from;

	(void)state;
	expect_range("", "");
	expect_range("Range: bytes=500-599\r\n", "Range: bytes=400-699\r\n");
	expect_range("range: Bytes=5-5\r\n", "range: bytes=0-105\r\n");
	expect_range("x-ms-range: bytes=101-\r\n", "x-ms-range: bytes=1-\r\n");
	expect_range("Range: bytes=-7\r\n", "Range: bytes=-107\r\n");
	expect_range("Range: bytes=1-2,4-5\r\n", "");
	expect_range("Range: bytes=2-1\r\n", "");
	expect_range("Range: bytes=99999999999999999999-\r\n", "");
	expect_range("Range: bytes=200-201\r\nRange: bytes=1-2\r\nRequest-Range: bytes=3-3\r\n",
		     "Range: bytes=100-301\r\n");
	expect_part("500-599", " bytes 400-699/1000", PART_FINE,
		    "content-length: 100\r\ncontent-range: bytes 500-599/1000\r\n\r\n", 100, 100);
	expect_part("500-599", "bytes 400-549/550", PART_FINE, "bytes 500-549/550", 100, 50);
	expect_part("5-", "bytes 0-9/*", PART_FINE, "bytes 5-9/*", 5, 5);
	expect_part("-3", "bytes 0-9/10", PART_FINE, "bytes 7-9/10", 7, 3);
	expect_part("-30", "bytes 0-9/10", PART_FINE, "bytes 0-9/10", 0, 10);
	expect_part("-3", "bytes 0-9/*", PART_ODD, "", 0, 0);
	expect_part("500-599", "bytes 400-450/451", PART_BEYOND, "", 0, 0);
	expect_part("500-599", "bytes 400-450/1000", PART_ODD, "", 0, 0);
	expect_part("500-599", "bytes 400-450/*", PART_ODD, "", 0, 0);
	expect_part("500-599", "bytes 501-599/1000", PART_ODD, "", 0, 0);
	expect_part("5-6", "bytes 9-3/10", PART_ODD, "", 0, 0);
	expect_part("5-6", "lines 0-9/10", PART_ODD, "", 0, 0);
	assert_int_equal(part_pass(&w, 3, &from), 0);
	assert_int_equal(part_pass(&w, 3, &from), 1);
	assert_int_equal(from, 2);
	assert_int_equal(part_pass(&w, 9, &from), 3);
	assert_int_equal(part_pass(&w, 9, &from), 0);
}

static enum part_say say_of(struct part p, const char *fields, struct buf *lines)
{
	struct part_window w;

	lines->len = 0;
	buf_printf(lines, "HTTP/1.1 206 Part\r\n%s\r\n", fields);
	return part_answer(lines, &p, &w);
}

/* What is written goes where it was meant to; other units than bytes pass; lengths are true, and
 * hashes those of what goes on. */
static void test_other_parts(void **state)
{
	static const char units[] = "Range: id ]abc..; max=10\r\n",
			  write[] = "x-ms-range: bytes=512-1023\r\nx-ms-write: clear\r\n";
	auto_buf lines = { 0 };
	struct part p;

	(void)state;
	p = expect_asked(false, write, write);
	assert_int_equal(say_of(p, "Content-Range: bytes 512-1023/2000\r\n", &lines), PART_ODD);
	p = expect_asked(true, units, units);
	assert_int_equal(say_of(p, "Content-Range: id a..b\r\n", &lines), PART_FINE);
	assert_int_equal(say_of(p, "Content-Range: Bytes 1-2/3\r\n", &lines), PART_ODD);
	assert_int_equal(say_of(p, "", &lines), PART_ODD);
	expect_range("Range-Unit: items\r\nRange: 0-24\r\n",
		     "Range-Unit: items\r\nRange: 0-24\r\n");
	expect_range("Range: 0-24\r\nRange: bytes=200-300\r\n", "Range: bytes=100-400\r\n");
	p = expect_asked(true, "Range: bytes=1-2,4-5\r\n", "");
	assert_int_equal(p.gone, 1);
	assert_int_equal(say_of(p, "Content-Range: bytes 1-2/3\r\n", &lines), PART_ODD);
	p = expect_asked(true, "x-ms-range: bytes=200-201\r\nx-ms-range-get-content-md5: true\r\n",
			 "x-ms-range: bytes=100-301\r\n");
	assert_int_equal(p.gone, 0);
	assert_int_equal(
		say_of(p, "Content-Range: bytes 100-301/999\r\nContent-Length: 200\r\n", &lines),
		PART_ODD);
	assert_int_equal(
		say_of(p,
		       "Content-Range: bytes 100-301/999\r\nContent-MD5: A\r\ncontent-digest: "
		       "B\r\nx-ms-content-crc64: C\r\nx-amz-checksum-crc32: D\r\nX: y\r\n",
		       &lines),
		PART_FINE);
	assert_string_equal(
		buf_text(&lines),
		"HTTP/1.1 206 Part\r\ncontent-range: bytes 200-201/999\r\nX: y\r\n\r\n");
	assert_int_equal(
		say_of(p, "Content-Range: bytes 200-201/202\r\nContent-MD5: A\r\n", &lines),
		PART_FINE);
	assert_non_null(strstr(buf_text(&lines), "Content-MD5: A"));
}

/* The example of AWS's own documentation ("GET Object"). */
static void test_sigv4(void **state)
{
	static const char head[] = "GET /test.txt HTTP/1.1\r\nHost: "
				   "examplebucket.s3.amazonaws.com\r\nRange: bytes=0-9\r\n"
				   "x-amz-content-sha256: "
				   "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b85"
				   "5\r\nx-amz-date: 20130524T000000Z\r\n\r\n";
	static const char authorization[] =
		"AWS4-HMAC-SHA256 Credential=PLACEHOLDER/20130524/us-east-1/s3/aws4_request, "
		"SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, Signature=00";
	struct sigv4_key key = {
		.id = (const uint8_t *)"AKIAIOSFODNN7EXAMPLE",
		.id_len = 20,
		.secret = (const uint8_t *)"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
		.secret_len = 40
	};
	struct sigv4_request s = { 0 };
	char out[2048];
	size_t n;

	(void)state;
	sigv4_read(&s, authorization, strlen(authorization));
	sigv4_read_field(&s, "x-amz-date", 10, "20130524T000000Z", 16);
	sigv4_read_field(&s, "x-amz-content-sha256", 20,
			 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 64);
	assert_int_equal(sigv4_check(&s, "us-east-1", "s3"), SIGV4_FINE);
	assert_int_equal(sigv4_check(&s, "*", "*"), SIGV4_FINE);
	assert_int_equal(sigv4_check(&s, "us-east-2", "s3"), SIGV4_SCOPE);
	n = sigv4_sign(&s, &key, (const uint8_t *)head, strlen(head), out, sizeof(out));
	assert_true(n > 0);
	out[n] = '\0';
	assert_non_null(strstr(
		out,
		"Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41\r\n"));
	assert_null(strstr(out, "PLACEHOLDER"));
	sigv4_forget(&s, "range");
	assert_string_equal(s.headers, "host;x-amz-content-sha256;x-amz-date");
	memcpy(s.hash, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", 35);
	assert_int_equal(sigv4_check(&s, "*", "*"), SIGV4_STREAMED);
}

static void test_safe(void **state)
{
	struct safe s = { 0 };
	struct ward_err e = { 0 };
	uint8_t *a, *b, *c;

	(void)state;
	assert_int_equal(safe_open(&s, 64 * 1024, &e), 0);
	a = safe_take(&s, 100);
	b = safe_take(&s, 1);
	assert_true(a && b && b >= a + 100);
	memset(a, 'x', 100);
	safe_give(&s, a);
	c = safe_take(&s, 100);
	assert_ptr_equal(c, a);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(c[i], 0);
	assert_null(safe_take(&s, 64 * 1024));
	assert_null(safe_take(&s, SIZE_MAX));
	/* what was taken too large: its rest is free, and pages that come back are empty */
	a = safe_take(&s, 48 * 1024);
	assert_non_null(a);
	memset(a, 'y', 20 * 1024);
	safe_shrink(&s, a, 20 * 1024);
	b = safe_take(&s, 24 * 1024);
	assert_true(b && b >= a + 20 * 1024);
	memset(b, 'z', 24 * 1024);
	safe_give(&s, a);
	c = safe_take(&s, 20 * 1024);
	assert_ptr_equal(c, a);
	for (size_t i = 0; i < 20 * 1024; i++)
		assert_int_equal(c[i], 0);
	assert_int_equal(b[0], 'z');
	safe_close(&s);
}

static void test_codings(void **state)
{
	(void)state;
	assert_int_equal(unzip_kind(" gzip ", 6), UNZIP_GZIP);
	assert_int_equal(unzip_kind("identity", 8), UNZIP_NONE);
	assert_int_equal(unzip_kind("gzip, br", 8), UNZIP_UNKNOWN);
	assert_int_equal(unzip_kind("br", 2), UNZIP_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),           cmocka_unit_test(test_placeholders),
		cmocka_unit_test(test_answers),         cmocka_unit_test(test_heads),
		cmocka_unit_test(test_several_grants),  cmocka_unit_test(test_requests_of_a_grant),
		cmocka_unit_test(test_escaped_slashes), cmocka_unit_test(test_other_spellings),
		cmocka_unit_test(test_parts),           cmocka_unit_test(test_other_parts),
		cmocka_unit_test(test_sigv4),           cmocka_unit_test(test_safe),
		cmocka_unit_test(test_codings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
