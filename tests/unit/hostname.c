/* Names and addresses in their one canonical form: what is read, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "policy/hostname.h"
#include "policy/idna.h"
#include "policy/suffix.h"

#define TEN "a234567890"
#define SIXTY TEN TEN TEN TEN TEN TEN

struct row {
	const char *text;
	enum host_wrong wrong;
	const char *canonical; /* NULL: none */
	enum host_kind kind;
};

static const struct row rows[] = {
	{ "example.com", HOST_FINE, "example.com", HOST_NAME },
	{ "EXAMPLE.Com.", HOST_FINE, "example.com", HOST_NAME },
	{ "localhost", HOST_FINE, "localhost", HOST_NAME },
	{ "_dmarc.example.com", HOST_FINE, "_dmarc.example.com", HOST_NAME },
	{ "xn--mnchen-3ya.example", HOST_FINE, "xn--mnchen-3ya.example", HOST_NAME },
	{ "1.example", HOST_FINE, "1.example", HOST_NAME },
	{ "1.2.3.4.example", HOST_FINE, "1.2.3.4.example", HOST_NAME },
	{ "0xg.example", HOST_FINE, "0xg.example", HOST_NAME },
	{ SIXTY "abc.example", HOST_FINE, SIXTY "abc.example", HOST_NAME },
	{ SIXTY "abcd.example", HOST_LABEL, NULL, HOST_NONE },
	{ "", HOST_EMPTY, NULL, HOST_NONE },
	{ ".", HOST_EMPTY, NULL, HOST_NONE },
	{ "..", HOST_LABEL, NULL, HOST_NONE },
	{ "a..b", HOST_LABEL, NULL, HOST_NONE },
	{ "example.com..", HOST_LABEL, NULL, HOST_NONE },
	{ ".example.com", HOST_LABEL, NULL, HOST_NONE },
	{ "-a.example", HOST_LABEL, NULL, HOST_NONE },
	{ "a-.example", HOST_LABEL, NULL, HOST_NONE },
	{ "*.example.com", HOST_CHARACTER, NULL, HOST_NONE },
	{ "user@example.com", HOST_CHARACTER, NULL, HOST_NONE },
	{ "example.com/", HOST_CHARACTER, NULL, HOST_NONE },
	{ "exa mple.com", HOST_CHARACTER, NULL, HOST_NONE },
	{ "m\xc3\xbcnchen.example", HOST_CHARACTER, NULL, HOST_NONE },
	{ "example\xe3\x80\x82"
	  "com",
	  HOST_CHARACTER, NULL, HOST_NONE }, /* an ideographic full stop */
	{ "192.0.2.1", HOST_FINE, "192.0.2.1", HOST_ADDRESS },
	{ "192.0.2.1.", HOST_FINE, "192.0.2.1", HOST_ADDRESS },
	{ "0.0.0.0", HOST_FINE, "0.0.0.0", HOST_ADDRESS },
	{ "127.1", HOST_SPELLING, NULL, HOST_NONE },
	{ "2130706433", HOST_SPELLING, NULL, HOST_NONE },
	{ "0x7f000001", HOST_SPELLING, NULL, HOST_NONE },
	{ "0X7F.0.0.1", HOST_SPELLING, NULL, HOST_NONE },
	{ "127.0.0.0x1", HOST_SPELLING, NULL, HOST_NONE },
	{ "0x", HOST_SPELLING, NULL, HOST_NONE },
	{ "0177.0.0.1", HOST_SPELLING, NULL, HOST_NONE },
	{ "192.0.02.1", HOST_SPELLING, NULL, HOST_NONE },
	{ "192.0.2.256", HOST_SPELLING, NULL, HOST_NONE },
	{ "192.0.2.1.1", HOST_SPELLING, NULL, HOST_NONE },
	{ "192.0.2.4294967297", HOST_SPELLING, NULL, HOST_NONE },
	{ "example.1", HOST_SPELLING, NULL, HOST_NONE },
	{ "2001:DB8::1", HOST_FINE, "2001:db8::1", HOST_ADDRESS },
	{ "[2001:db8::1]", HOST_FINE, "2001:db8::1", HOST_ADDRESS },
	{ "::1", HOST_FINE, "::1", HOST_ADDRESS },
	{ "::ffff:127.0.0.1", HOST_FINE, "127.0.0.1", HOST_ADDRESS },
	{ "::ffff:7f00:1", HOST_FINE, "127.0.0.1", HOST_ADDRESS },
	{ "0:0:0:0:0:ffff:7f00:0001", HOST_FINE, "127.0.0.1", HOST_ADDRESS },
	{ "fe80::1%lo", HOST_SPELLING, NULL, HOST_NONE },
	{ "[fe80::1%25lo]", HOST_SPELLING, NULL, HOST_NONE },
	{ "[::1", HOST_SPELLING, NULL, HOST_NONE },
	{ "[127.0.0.1]", HOST_SPELLING, NULL, HOST_NONE },
	{ "[]", HOST_SPELLING, NULL, HOST_NONE },
	{ "example.com:443", HOST_SPELLING, NULL, HOST_NONE },
};

static void test_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct host h;
		char text[HOST_TEXT];

		if (host_read(rows[i].text, strlen(rows[i].text), &h) != rows[i].wrong ||
		    h.kind != rows[i].kind)
			fail_msg("%s: %d, kind %d", rows[i].text,
				 host_read(rows[i].text, strlen(rows[i].text), &h), h.kind);
		if (rows[i].canonical)
			assert_string_equal(host_text(&h, text), rows[i].canonical);
	}
}

static void test_nul(void **state)
{
	struct host h;

	(void)state;
	assert_int_equal(host_read("example.com\0.evil.test", 22, &h), HOST_CHARACTER);
	assert_int_equal(host_read("::1\0", 4, &h), HOST_SPELLING);
}

static void test_length(void **state)
{
	char name[300];
	struct host h;

	(void)state;
	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = i % 50 == 49 ? '.' : 'a';
	assert_int_equal(host_read(name, 253, &h), HOST_FINE);
	assert_int_equal(h.len, 253);
	name[253] = '.';
	assert_int_equal(host_read(name, 254, &h), HOST_FINE);
	name[253] = 'a';
	assert_int_equal(host_read(name, 254, &h), HOST_LONG);
	assert_int_equal(host_read(name, 255, &h), HOST_LONG);
}

static void test_port(void **state)
{
	static const struct {
		const char *text;
		enum host_wrong wrong;
		const char *host;
		uint16_t port;
	} cases[] = {
		{ "a.example:443", HOST_FINE, "a.example", 443 },
		{ "a.example", HOST_FINE, "a.example", 0 },
		{ "A.example.:1", HOST_FINE, "a.example", 1 },
		{ "[::1]:65535", HOST_FINE, "::1", 65535 },
		{ "[::1]", HOST_FINE, "::1", 0 },
		{ "192.0.2.1:80", HOST_FINE, "192.0.2.1", 80 },
		{ "a.example:", HOST_SPELLING, NULL, 0 },
		{ "a.example:0", HOST_SPELLING, NULL, 0 },
		{ "a.example:65536", HOST_SPELLING, NULL, 0 },
		{ "a.example:0443", HOST_SPELLING, NULL, 0 },
		{ "a.example:+1", HOST_SPELLING, NULL, 0 },
		{ "::1", HOST_SPELLING, NULL, 0 },
		{ "a:1:2", HOST_SPELLING, NULL, 0 },
		{ "[::1]x:1", HOST_SPELLING, NULL, 0 },
		{ "[::1", HOST_SPELLING, NULL, 0 },
		{ ":80", HOST_EMPTY, NULL, 0 },
		{ "u@a.example:80", HOST_CHARACTER, NULL, 0 },
		{ "a.example:80 ", HOST_SPELLING, NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct host h;
		uint16_t port;
		char text[HOST_TEXT];

		if (host_read_port(cases[i].text, strlen(cases[i].text), &h, &port) !=
		    cases[i].wrong)
			fail_msg("%s", cases[i].text);
		if (!cases[i].host)
			continue;
		assert_string_equal(host_text(&h, text), cases[i].host);
		assert_int_equal(port, cases[i].port);
	}
}

static void test_within(void **state)
{
	struct ip a = ip_from_4((uint8_t[]){ 10, 1, 2, 3 }),
		  block = ip_from_4((uint8_t[]){ 10, 1, 2, 0 });
	struct ip six = ip_from_16((uint8_t[16]){ 10, 1, 2, 3 });

	(void)state;
	assert_true(ip_within(&a, &block, 24));
	assert_true(ip_within(&a, &block, 30));
	assert_false(ip_within(&a, &block, 31));
	assert_true(ip_within(&a, &block, 0));
	assert_false(ip_within(&six, &block, 0));
	assert_false(ip_within(&a, &block, 33));
}

/* Pairs of RFC 3492 and of registries; and what would have to be changed first. */
static void test_idna(void **state)
{
	static const struct {
		const char *name, *ascii;
	} cases[] = {
		{ "example.com", "example.com" },
		{ "m\xc3\xbcnchen.example", "xn--mnchen-3ya.example" },
		{ "*.b\xc3\xbc"
		  "cher.de",
		  "*.xn--bcher-kva.de" },
		{ "fa\xc3\x9f.de", "xn--fa-hia.de" }, /* not fass.de */
		{ "\xe4\xbe\x8b\xe3\x81\x88.jp", "xn--r8jz45g.jp" },
		{ "\xe4\xbb\x96\xe4\xbb\xac\xe4\xb8\xba\xe4\xbb\x80\xe4\xb9\x88\xe4\xb8\x8d\xe8\xaf"
		  "\xb4\xe4\xb8\xad\xe6\x96\x87",
		  "xn--ihqwcrb4cv8a8dqg056pqjye" },
		{ "\xd0\xbf\xd1\x80\xd0\xb5\xd0\xb7\xd0\xb8\xd0\xb4\xd0\xb5\xd0\xbd\xd1\x82."
		  "\xd1\x80\xd1\x84",
		  "xn--d1abbgf6aiiy.xn--p1ai" },
		{ "\xd7\x9c\xd7\x9e\xd7\x94", "xn--8dbpg" },
		{ "\xf0\xa0\x80\x80.example", "xn--j50i.example" },
		{ "M\xc3\x9cNCHEN.example", NULL },  /* capital */
		{ "mu\xcc\x88nchen.example", NULL }, /* not composed */
		{ "\xef\xbd\x81.example", NULL },    /* full width */
		{ "a\xe2\x80\x8d"
		  "b.example",
		  NULL }, /* zero width joiner */
		{ "a\xc2\xad"
		  "b.example",
		  NULL },                         /* soft hyphen */
		{ "\xe2\x84\xa1.example", NULL }, /* a symbol */
		{ "a\xe3\x80\x82"
		  "b",
		  NULL }, /* a full stop that is none */
		{ "\xf0\x9f\x92\xa9.example", NULL },
		{ "-\xc3\xbc.example", NULL },
		{ "ab--\xc3\xbc.example", NULL },
		{ "\xff.example", NULL },
		{ "\xc3.example", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char out[256] = "";
		const char *wrong = idna_to_ascii(cases[i].name, out, sizeof(out));

		if (!wrong != !!cases[i].ascii)
			fail_msg("%s: %s", cases[i].name, wrong ? wrong : out);
		if (!wrong)
			assert_string_equal(out, cases[i].ascii);
	}
}

static void test_suffix(void **state)
{
	static const char list[] = "// comment\ncom\nuk\nco.uk  "
				   "\r\n\n*.ck\n!www.ck\ngithub.io\n*.wild."
				   "test\n\xe5\x85\xac\xe5\x8f\xb8.cn\nlast.example";
	static const struct {
		const char *name;
		bool public;
	} cases[] = {
		{ "com", true },          { "co.uk", true },         { "example.co.uk", false },
		{ "example.com", false }, { "github.io", true },     { "x.github.io", false },
		{ "ck", true },           { "foo.ck", true },        { "www.ck", false },
		{ "a.foo.ck", false },    { "xn--55qx5d.cn", true }, { "last.example", true },
		{ "unknown", true },      { "o.uk", false },         { "wild.test", true },
		{ "a.wild.test", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (suffix_is_public(list, sizeof(list) - 1, cases[i].name) != cases[i].public)
			fail_msg("%s", cases[i].name);
	assert_true(suffix_is_public("", 0, "com"));
	assert_false(suffix_is_public("", 0, "co.uk"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),   cmocka_unit_test(test_nul),
		cmocka_unit_test(test_length), cmocka_unit_test(test_port),
		cmocka_unit_test(test_within), cmocka_unit_test(test_idna),
		cmocka_unit_test(test_suffix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
