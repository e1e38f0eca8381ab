/* Grants: what a policy may say, what is refused with which words, and whom a grant is for. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "policy/policy_grant.h"

#define GRANT "{name: n, hosts: [a.example], "

static const struct {
	const char *text, *why, *remedy; /* what they begin with */
} bad[] = {
	{ GRANT "source: sk-12345}", "credentials.grants[0].source: expected env:NAME",
	  "name the source of the secret" },
	{ GRANT "source: 'env:1A'}", "credentials.grants[0].source: expected env:NAME with", "" },
	{ GRANT "source: 'env:A,B'}", "credentials.grants[0].source: expected one variable",
	  "several variables are for sigv4" },
	{ GRANT "source: 'env:A', sigv4: 'eu/s3'}", "credentials.grants[0].source: sigv4 needs two",
	  "write env:AWS_ACCESS" },
	{ GRANT "source: 'file:key'}",
	  "credentials.grants[0].source: expected file:PATH with an absolute", "" },
	{ GRANT "source: 'cmd:a \"b'}", "credentials.grants[0].source: expected cmd:COMMAND", "" },
	{ GRANT "source: 'handed:'}", "credentials.grants[0].source: expected env:NAME", "" },
	{ GRANT "source: 'http://vault.example/x'}",
	  "credentials.grants[0].source: expected https://", "without TLS, only" },
	{ GRANT "source: 'env:A', field: x}", "credentials.grants[0].field: only works with",
	  "remove it" },
	{ GRANT "source: 'https://v/x', token: 'https://v/y'}",
	  "credentials.grants[0].token: a token cannot", "use env:" },
	{ GRANT "source: 'env:A', header: Authorization}",
	  "credentials.grants[0].header: expected NAME: TEXT", "" },
	{ GRANT "source: 'env:A', header: 'X: {} {}'}",
	  "credentials.grants[0].header: expected NAME: TEXT", "" },
	{ GRANT "source: 'env:A', header: \"X: {}\\r\\nY: 1\"}",
	  "credentials.grants[0].header: expected NAME: TEXT", "" },
	{ GRANT "source: 'env:A', header: 'Host: {}'}",
	  "credentials.grants[0].header: expected NAME: TEXT", "this header belongs" },
	{ GRANT "source: 'env:A', header: 'X: {}', basic: u}",
	  "credentials.grants[0].basic: a grant has one place", "split it" },
	{ GRANT "source: 'env:A', basic: 'u:v'}",
	  "credentials.grants[0].basic: expected a user name", "" },
	{ GRANT "source: 'env:A', query: 'a&b'}",
	  "credentials.grants[0].query: expected the name of a parameter", "" },
	{ GRANT "source: 'env:A,B', sigv4: 'eu'}",
	  "credentials.grants[0].sigv4: expected REGION/SERVICE", "" },
	{ GRANT "source: 'env:A,B', sigv4: 'eu/s3', as: C}",
	  "credentials.grants[0].as: sigv4 has more", "" },
	{ GRANT "source: 'env:A', as: '1A'}",
	  "credentials.grants[0].as: expected the name of a variable", "" },
	{ GRANT "source: 'env:A', methods: [get]}",
	  "credentials.grants[0].methods[0]: expected an HTTP method", "" },
	{ GRANT "source: 'env:A', paths: [v1]}", "credentials.grants[0].paths[0]: expected a path",
	  "" },
	{ GRANT "source: 'env:A', ttl_seconds: 0}", "credentials.grants[0].ttl_seconds: expected",
	  "" },
	{ GRANT "source: 'env:A', max_uses: 0}", "credentials.grants[0].max_uses: expected", "" },
	{ "{name: n, source: 'env:A', hosts: []}",
	  "credentials.grants[0].hosts: expected at least one", "" },
	{ "{name: n, source: 'env:A', hosts: ['*']}",
	  "credentials.grants[0].hosts[0]: a secret cannot go", "name each" },
	{ "{name: n, source: 'env:A', hosts: [10.0.0.0/8]}",
	  "credentials.grants[0].hosts[0]: a secret goes to names only", "" },
	{ "{name: n, source: 'env:A', hosts: [192.0.2.1]}",
	  "credentials.grants[0].hosts[0]: a secret goes to names only", "" },
	{ "{name: 'a/b', source: 'env:A', hosts: [a.example]}",
	  "credentials.grants[0].name: expected a name", "" },
	{ "{source: 'env:A', hosts: [a.example]}",
	  "credentials.grants[0]: the key \"name\" is missing", "" },
	{ GRANT "sorce: 'env:A'}", "credentials.grants[0]", "" },
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct ward_err e = { 0 };
		struct policy_grant g = { 0 };

		assert_int_equal(policy_grant_parse(bad[i].text, &g, NULL, &e), -EINVAL);
		if (strncmp(e.why, bad[i].why, strlen(bad[i].why)) != 0 ||
		    strncmp(e.remedy, bad[i].remedy, strlen(bad[i].remedy)) != 0)
			fail_msg("%s: %s; %s", bad[i].text, e.why, e.remedy);
	}
}

static void parse(const char *text, struct policy_grant *g)
{
	struct ward_err e = { 0 };

	if (policy_grant_parse(text, g, NULL, &e) < 0)
		fail_msg("%s: %s", text, e.why);
}

static void test_ways(void **state)
{
	auto_grant plain = { 0 }, header = { 0 }, basic = { 0 }, query = { 0 }, aws = { 0 },
		   vault = { 0 };

	(void)state;
	parse(GRANT "source: 'env:KEY'}", &plain);
	assert_int_equal(plain.from, GRANT_ENV);
	assert_string_equal(plain.source, "KEY");
	assert_string_equal(plain.header, "Authorization");
	assert_string_equal(plain.before, "Bearer ");
	assert_string_equal(plain.behind, "");
	assert_string_equal(plain.variables.items[0], "KEY");
	assert_int_equal(plain.ttl_ms, 900000);
	assert_true(plain.max_uses == POLICY_NONE);

	parse(GRANT
	      "source: 'file:/k', header: 'X-Api-Key: <{}>', as: K, ttl_seconds: 5, max_uses: 3}",
	      &header);
	assert_int_equal(header.from, GRANT_FILE);
	assert_string_equal(header.header, "X-Api-Key");
	assert_string_equal(header.before, "<");
	assert_string_equal(header.behind, ">");
	assert_string_equal(header.variables.items[0], "K");
	assert_int_equal(header.ttl_ms, 5000);
	assert_int_equal(header.max_uses, 3);

	parse(GRANT "source: 'cmd:op read', basic: joe}", &basic);
	assert_int_equal(basic.way, GRANT_BASIC);
	assert_string_equal(basic.user, "joe");
	assert_int_equal(basic.variables.len, 0);

	parse(GRANT "source: 'keyring:k', query: api_key}", &query);
	assert_int_equal(query.way, GRANT_QUERY);
	assert_string_equal(query.parameter, "api_key");

	parse(GRANT "source: 'env:ID,SECRET', sigv4: 'eu-west-1/*'}", &aws);
	assert_int_equal(aws.way, GRANT_SIGV4);
	assert_string_equal(aws.region, "eu-west-1");
	assert_string_equal(aws.service, "*");
	assert_int_equal(aws.variables.len, 2);
	assert_string_equal(aws.variables.items[1], "SECRET");

	parse(GRANT "source: 'http:https://v.example/v1/x', token: 'env:T', field: data.key}",
	      &vault);
	assert_int_equal(vault.from, GRANT_HTTP);
	assert_string_equal(vault.source, "https://v.example/v1/x");
	assert_string_equal(vault.token, "env:T");
	assert_string_equal(vault.field, "data.key");
}

static void test_words(void **state)
{
	static const struct {
		const char *text, *joined; /* NULL: refused */
	} cases[] = {
		{ "op read op://a/b", "op|read|op://a/b" },
		{ "  a   b ", "a|b" },
		{ "a 'b c' \"d e\"", "a|b c|d e" },
		{ "a b\\ c '\\'", "a|b c|\\" },
		{ "a '' x", "a||x" },
		{ "a $HOME `b` ;c", "a|$HOME|`b`|;c" },
		{ "a 'b", NULL },
		{ "", NULL },
		{ "''", NULL },
		{ "a\nb", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_strv words = { 0 };
		auto_buf joined = { 0 };
		int r = grant_command_words(cases[i].text, &words);

		assert_int_equal(r, cases[i].joined ? 0 : -EINVAL);
		for (size_t k = 0; cases[i].joined && k < words.len; k++)
			buf_printf(&joined, "%s%s", k ? "|" : "", words.items[k]);
		if (cases[i].joined)
			assert_string_equal(buf_text(&joined), cases[i].joined);
	}
}

static void test_matching(void **state)
{
	auto_grant g = { 0 };

	(void)state;
	parse("{name: n, source: 'env:K', hosts: [Api.Example., '*.corp.example'], methods: [GET, "
	      "POST], paths: ['/v1/*', '/x/*/y']}",
	      &g);
	assert_true(grant_is_for_host(&g, "api.example"));
	assert_true(grant_is_for_host(&g, "a.corp.example"));
	assert_false(grant_is_for_host(&g, "corp.example"));
	assert_false(grant_is_for_host(&g, "acorp.example"));
	assert_false(grant_is_for_host(&g, "api.example.evil"));
	assert_true(grant_path_matches("*", "", 0));
	assert_true(grant_path_matches("/a*b*c", "/aXbYbZc", 8));
	assert_false(grant_path_matches("/a*b*c", "/aXbYbZ", 7));
}

/* Two grants that could be put into one place of one request do not go together; others do. */
static void test_overlaps(void **state)
{
	static const struct {
		const char *a, *b;
		bool overlap;
	} cases[] = {
		{ "hosts: [a.example]", "hosts: [a.example]", true },
		{ "hosts: [a.example]", "hosts: [b.example]", false },
		{ "hosts: ['*.a.example']", "hosts: [x.y.a.example]", true },
		{ "hosts: ['*.a.example']", "hosts: ['*.x.a.example']", true },
		{ "hosts: ['*.a.example']", "hosts: [a.example]", false },
		{ "hosts: [a.example], header: 'X-Key: {}'", "hosts: [a.example]", false },
		{ "hosts: [a.example], header: 'X-Key: {}'",
		  "hosts: [a.example], header: 'x_key: <{}>'", true },
		{ "hosts: [a.example], header: 'X-Id: {}'",
		  "hosts: [a.example], header: 'X-Key: {}'", false },
		{ "hosts: [a.example], basic: joe", "hosts: [a.example]", true },
		{ "hosts: [a.example], basic: joe", "hosts: [a.example], sigv4: '*/*'", true },
		{ "hosts: [a.example], header: 'X-Amz-Security-Token: {}'",
		  "hosts: [a.example], sigv4: '*/*'", true },
		{ "hosts: [a.example], header: 'X-Key: {}'", "hosts: [a.example], sigv4: '*/*'",
		  false },
		{ "hosts: [a.example], query: api_key", "hosts: [a.example], query: API_KEY",
		  true },
		{ "hosts: [a.example], query: key", "hosts: [a.example], header: 'key: {}'",
		  false },
		{ "hosts: [a.example], query: key", "hosts: [a.example], query: id", false },
		{ "hosts: [a.example], methods: [GET]", "hosts: [a.example], methods: [POST, PUT]",
		  false },
		{ "hosts: [a.example], methods: [GET, POST]", "hosts: [a.example], methods: [POST]",
		  true },
		{ "hosts: [a.example], methods: [GET]", "hosts: [a.example]", true },
		{ "hosts: [a.example], paths: ['/a/*']", "hosts: [a.example], paths: ['/b/*']",
		  false },
		{ "hosts: [a.example], paths: ['/a/*']",
		  "hosts: [a.example], paths: ['/b/*', '*/c']", true },
		{ "hosts: [a.example], paths: ['/a/*/x']", "hosts: [a.example], paths: ['/a/b/*']",
		  true },
		{ "hosts: [a.example], paths: ['/a/*x']", "hosts: [a.example], paths: ['/a/*y']",
		  false },
		{ "hosts: [a.example], paths: ['/a%2fb']", "hosts: [a.example], paths: ['/a%2Fb']",
		  true },
		{ "hosts: [a.example], paths: ['/A']", "hosts: [a.example], paths: ['/a']", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct policy_grant two[2] = { { .name = NULL } };
		struct ward_err e = { 0 };

		for (size_t k = 0; k < 2; k++) {
			const char *fields = k ? cases[i].b : cases[i].a;
			auto_buf text = { 0 };

			buf_printf(&text, "{name: n%zu, source: 'env:K%zu%s', %s}", k, k,
				   strstr(fields, "sigv4") ? ",L,M" : "", fields);
			parse(buf_text(&text), &two[k]);
		}
		assert_int_equal(grants_overlap(&two[0], &two[1]), cases[i].overlap);
		assert_int_equal(grants_overlap(&two[1], &two[0]), cases[i].overlap);
		assert_int_equal(grants_check(two, 2, &e), cases[i].overlap ? -EINVAL : 0);
		assert_true(!cases[i].overlap || (strstr(e.what, "credentials.grants[1]") &&
						  strstr(e.why, "n0 and n1 overlap") && *e.remedy));
		policy_grant_clear(&two[0]);
		policy_grant_clear(&two[1]);
	}
	assert_true(grant_paths_meet("*", "*"));
	assert_true(grant_paths_meet("/a**b", "/a*c*b"));
	assert_false(grant_paths_meet("/a", "/a/"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad),      cmocka_unit_test(test_ways),
		cmocka_unit_test(test_words),    cmocka_unit_test(test_matching),
		cmocka_unit_test(test_overlaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
