/* The upstream proxy: its URL, and the talk with it, cut anywhere. */
#include <errno.h>

#include "gateway_help.h"
#include "rules/upstream.h"

static struct upstream proxy_of(const char *url)
{
	struct ward_err e = { 0 };
	struct upstream u;

	if (upstream_parse(url, &u, &e) < 0)
		fail_msg("%s: %s", url, e.why);
	return u;
}

static void test_urls(void **state)
{
	static const char *const wrong[] = { "",
					     "proxy:3128",
					     "https://proxy",
					     "ftp://proxy",
					     "http://",
					     "http://@proxy",
					     "http://:x@proxy",
					     "http://proxy:0",
					     "http://proxy:99999",
					     "http://proxy/path",
					     "http://proxy?x",
					     "http://0x7f.1",
					     "http://a%0d%0ab:c@proxy",
					     "http://a%00:c@proxy",
					     "http://a%zz@proxy",
					     "http://a%3ab:c@proxy",
					     "http://pro xy",
					     "http://[::1" };
	struct upstream u = proxy_of("http://proxy.example:3128/");
	struct ward_err e = { 0 };
	char text[HOST_TEXT];

	(void)state;
	assert_int_equal(u.kind, UPSTREAM_HTTP);
	assert_int_equal(u.port, 3128);
	assert_string_equal(u.host.name, "proxy.example");
	assert_int_equal(u.user_len, 0);
	u = proxy_of("SOCKS5H://us%40er:p%3Ass%2Fw@rd@[2001:db8::1]");
	assert_int_equal(u.kind, UPSTREAM_SOCKS);
	assert_int_equal(u.port, 1080);
	assert_string_equal(host_text(&u.host, text), "2001:db8::1");
	assert_string_equal(u.user, "us@er");
	assert_string_equal(u.password, "p:ss/w@rd");
	u = proxy_of("http://user@192.0.2.1");
	assert_string_equal(u.user, "user");
	assert_int_equal(u.password_len, 0);
	assert_int_equal(u.port, 80);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		if (upstream_parse(wrong[i], &u, &e) != -EINVAL)
			fail_msg("%s is taken", wrong[i]);
	assert_int_equal(upstream_parse("http://user:secret@bad host", &u, &e), -EINVAL);
	assert_null(strstr(e.why, "secret"));
}

static void test_http(void **state)
{
	static const char answer[] = "HTTP/1.1 200 Connection established\r\nX: y\r\n\r\nserver";
	struct upstream u = proxy_of("http://Aladdin:open%20sesame@proxy:3128");
	struct host target = host_of("a.example"), six = host_of("2001:db8::1");
	static const struct {
		const char *text;
		unsigned status;
	} bad[] = { { "HTTP/1.1 407 Who\r\n\r\n", 407 },
		    { "HTTP/1.1 403 No\r\nContent-Length: 9\r\n\r\n", 403 },
		    { "SSH-2.0\r\n", 0 },
		    { "HTTP/2 200\r\n\r\n", 0 },
		    { "HTTP/1.1 2x0 OK\r\n\r\n", 0 },
		    { "HTTP/1.1\r\n\r\n", 0 } };
	struct upstream_talk t;

	(void)state;
	upstream_begin(&t, &u, &target, 443);
	t.out[t.out_len] = '\0';
	assert_string_equal((char *)t.out,
			    "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n"
			    "Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n");
	for (size_t n = 0; n < sizeof(answer) - 1; n++) {
		bool whole = n >= sizeof(answer) - 1 - 6;

		assert_int_equal(upstream_take(&t, &u, (const uint8_t *)answer, n),
				 whole ? UPSTREAM_OPEN : UPSTREAM_MORE);
		if (whole)
			assert_int_equal(t.used, sizeof(answer) - 1 - 6);
	}
	u = proxy_of("http://proxy");
	upstream_begin(&t, &u, &six, 22);
	t.out[t.out_len] = '\0';
	assert_string_equal((char *)t.out,
			    "CONNECT [2001:db8::1]:22 HTTP/1.1\r\nHost: [2001:db8::1]:22\r\n\r\n");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		upstream_begin(&t, &u, &target, 443);
		assert_int_equal(
			upstream_take(&t, &u, (const uint8_t *)bad[i].text, strlen(bad[i].text)),
			UPSTREAM_REFUSED);
		assert_int_equal(t.status, bad[i].status);
	}
}

static void test_http_endless(void **state)
{
	static uint8_t bytes[UPSTREAM_ANSWER_MAX + 2];
	struct upstream u = proxy_of("http://proxy");
	struct host target = host_of("a.example");
	struct upstream_talk t;

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	memcpy(bytes, "HTTP/1.1 200 OK\r\n", 17);
	upstream_begin(&t, &u, &target, 443);
	assert_int_equal(upstream_take(&t, &u, bytes, UPSTREAM_ANSWER_MAX), UPSTREAM_MORE);
	assert_int_equal(upstream_take(&t, &u, bytes, sizeof(bytes)), UPSTREAM_REFUSED);
}

static void take(struct upstream_talk *t, const struct upstream *u, const char *bytes, size_t n,
		 enum upstream_say say)
{
	for (size_t cut = 0; cut < n && say != UPSTREAM_REFUSED; cut++)
		assert_int_equal(upstream_take(t, u, (const uint8_t *)bytes, cut), UPSTREAM_MORE);
	assert_int_equal(upstream_take(t, u, (const uint8_t *)bytes, n), say);
}

static void test_socks(void **state)
{
	struct upstream u = proxy_of("socks5://us:pw@proxy"), open = proxy_of("socks5://proxy");
	struct host name = host_of("a.example"), four = host_of("192.0.2.1"),
		    six = host_of("2001:db8::1");
	struct upstream_talk t;

	(void)state;
	upstream_begin(&t, &u, &name, 443);
	assert_int_equal(t.out_len, 4);
	assert_memory_equal(t.out, "\5\2\0\2", 4);
	take(&t, &u, "\5\2", 2, UPSTREAM_SEND);
	assert_int_equal(t.out_len, 7);
	assert_memory_equal(t.out, "\1\2us\2pw", 7);
	take(&t, &u, "\1\0", 2, UPSTREAM_SEND);
	assert_int_equal(t.out_len, 16);
	assert_memory_equal(t.out, "\5\1\0\3\011a.example\1\273", 16);
	take(&t, &u, "\5\0\0\1\0\0\0\0\0\0", 10, UPSTREAM_OPEN);
	assert_int_equal(t.used, 10);

	upstream_begin(&t, &open, &four, 22);
	assert_memory_equal(t.out, "\5\1\0", 3);
	take(&t, &open, "\5\0", 2, UPSTREAM_SEND);
	assert_memory_equal(t.out, "\5\1\0\1\300\0\2\1\0\26", 10);
	take(&t, &open, "\5\0\0\3\2hi\0\0", 9, UPSTREAM_OPEN);
	upstream_begin(&t, &open, &six, 22);
	take(&t, &open, "\5\0", 2, UPSTREAM_SEND);
	assert_int_equal(t.out_len, 22);
	take(&t, &open, "\5\5\0", 3, UPSTREAM_REFUSED);
	assert_int_equal(t.status, 1005);

	upstream_begin(&t, &open, &four, 22); /* it wants a password, and there is none */
	take(&t, &open, "\5\2", 2, UPSTREAM_REFUSED);
	upstream_begin(&t, &u, &four, 22);
	take(&t, &u, "\5\2", 2, UPSTREAM_SEND);
	take(&t, &u, "\1\1", 2, UPSTREAM_REFUSED);
	upstream_begin(&t, &u, &four, 22);
	take(&t, &u, "\5\377", 2, UPSTREAM_REFUSED);
	upstream_begin(&t, &u, &four, 22);
	take(&t, &u, "HTTP", 4, UPSTREAM_REFUSED);
	assert_int_equal(t.status, 0);
}

static void test_longest(void **state)
{
	auto_buf url = { 0 };
	struct host target = { .kind = HOST_NAME, .len = HOSTNAME_MAX };
	struct upstream_talk t;
	struct upstream u;

	(void)state;
	memset(target.name, 'a', HOSTNAME_MAX);
	buf_puts(&url, "http://");
	for (unsigned i = 0; i < UPSTREAM_WORD; i++)
		buf_puts(&url, "u");
	buf_puts(&url, ":");
	for (unsigned i = 0; i < UPSTREAM_WORD; i++)
		buf_puts(&url, "%70");
	buf_puts(&url, "@proxy");
	u = proxy_of(url.data);
	upstream_begin(&t, &u, &target, 65535);
	assert_memory_equal(t.out + t.out_len - 4, "\r\n\r\n", 4);
	u.kind = UPSTREAM_SOCKS;
	upstream_begin(&t, &u, &target, 65535);
	take(&t, &u, "\5\2", 2, UPSTREAM_SEND);
	assert_int_equal(t.out_len, 3 + 2 * UPSTREAM_WORD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_urls),         cmocka_unit_test(test_http),
		cmocka_unit_test(test_http_endless), cmocka_unit_test(test_socks),
		cmocka_unit_test(test_longest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
