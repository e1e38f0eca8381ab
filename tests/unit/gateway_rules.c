/* Rules: compiling, matching, precedence, changes, the serialised form. */
#include <errno.h>

#include "gateway_help.h"
#include "policy/policy_rule.h"

static void check(const struct rules *r, const char *host, uint16_t port, int rule)
{
	struct host h = host_of(host);
	struct rules_match m = rules_match(r, &h, port);

	if (m.rule != rule)
		fail_msg("%s:%u is decided by rule %d, not %d", host, port, m.rule, rule);
}

static void test_match(void **state)
{
	auto_rules r = rules_of(
		"{mode: restricted, egress_allowlist: ["
		"'api.example.com', '*.example.com', '*.deep.example.com:443', 'example.org:22', "
		"{host: '*.example.net', ports: [80, 443, 8080]}, 'Example.EDU.', "
		"'192.0.2.0/24:443', '192.0.2.7:443', "
		"'[2001:db8::1]:443', '2001:db8::/32']}");

	(void)state;
	check(r, "api.example.com", 443, 0);
	check(r, "API.Example.Com.", 443, 0);
	check(r, "www.example.com", 443, 1);
	check(r, "a.b.example.com", 443, 1);
	check(r, "a.deep.example.com", 443, 2);
	check(r, "deep.example.com", 443, 1);
	check(r, "example.com", 443, -1); /* *.suffix is not the suffix */
	check(r, "notexample.com", 443, -1);
	check(r, "api.example.com.evil.test", 443, -1);
	check(r, "xapi.example.com", 443, 1);
	check(r, "api.example.com", 80, -1);
	check(r, "example.org", 22, 3);
	check(r, "example.org", 443, -1);
	check(r, "x.example.net", 8080, 4);
	check(r, "x.example.net", 80, 4);
	check(r, "x.example.net", 81, -1);
	check(r, "example.edu", 443, 5);
	check(r, "192.0.2.7", 443, 7); /* the longest prefix */
	check(r, "192.0.2.8", 443, 6);
	check(r, "192.0.3.8", 443, -1);
	check(r, "2001:db8::1", 443, 8);
	check(r, "2001:db8::2", 443, 9);
	check(r, "2001:db9::2", 443, -1);
	check(r, "com", 443, -1);
	check(r, "example.org", 0, 3); /* a DNS question: any port */
	check(r, "other.test", 0, -1);
}

static void test_any(void **state)
{
	auto_rules r = rules_of(
		"{mode: restricted, egress_allowlist: ['*', 'a.example:443', '*.example:80']}");

	(void)state;
	check(r, "whatever.test", 443, 0);
	check(r, "a.example", 443, 1);
	check(r, "a.example", 80, 2);   /* a rule for another port hides nothing */
	check(r, "192.0.2.1", 443, -1); /* names only */
}

static void test_first_of_equals(void **state)
{
	auto_rules r = rules_of("{mode: restricted, egress_allowlist: [{host: a.example, mode: "
				"tcp}, 'a.example', 'a.example:22']}");
	struct host h = host_of("a.example");

	(void)state;
	check(r, "a.example", 443, 0);
	check(r, "a.example", 22, 2);
	assert_true(rules_match(r, &h, 23).other_port);
	assert_false(rules_match(r, &h, 22).other_port);
}

static void test_modes(void **state)
{
	auto_rules r = rules_of("{mode: restricted, egress_allowlist: [{host: a.example, ports: "
				"[22, 80, 443, 8443]}, "
				"{host: b.example, ports: [443, 80], mode: tcp}, {host: c.example, "
				"ports: [8443], mode: splice}, "
				"'192.0.2.1:443', {host: d.example, ports: 8080, mode: http}]}");

	(void)state;
	assert_int_equal(rules_mode(r, 0, 443), RULE_SPLICE);
	assert_int_equal(rules_mode(r, 0, 80), RULE_HTTP);
	assert_int_equal(rules_mode(r, 0, 22), RULE_TCP);
	assert_int_equal(rules_mode(r, 0, 8443), RULE_TCP);
	assert_int_equal(rules_mode(r, 1, 443), RULE_TCP);
	assert_int_equal(rules_mode(r, 2, 8443), RULE_SPLICE);
	assert_int_equal(rules_mode(r, 3, 443), RULE_TCP);
	assert_int_equal(rules_mode(r, 4, 8080), RULE_HTTP);
	assert_int_equal(rules_mode(r, -1, 443), RULE_TCP);
}

static void test_limits(void **state)
{
	auto_rules r = rules_of(
		"{mode: restricted, connection_limit: 9, bandwidth_limit: 1Mi, egress_allowlist: ["
		"{host: a.example, connection_limit: 4, connection_rate: 2, receive_limit: 1Gi, "
		"send_limit: 1Mi, bandwidth_limit: 64Ki}, b.example]}");

	(void)state;
	assert_int_equal(r->limits.connections, 9);
	assert_int_equal(r->limits.bandwidth, 1 << 20);
	assert_true(r->limits.send_bytes == RULE_NONE);
	assert_int_equal(r->items[0].limits.connections, 4);
	assert_int_equal(r->items[0].limits.connection_rate, 2);
	assert_int_equal(r->items[0].limits.receive_bytes, 1 << 30);
	assert_int_equal(r->items[0].limits.send_bytes, 1 << 20);
	assert_int_equal(r->items[0].limits.bandwidth, 64 << 10);
	assert_true(r->items[1].limits.connections == RULE_NONE);
}

static int compile_error(const char *network, struct ward_err *e)
{
	auto_buf text = { 0 };
	struct policy_errors errors = { 0 };
	struct policy p = { 0 };
	struct rules *r = NULL;
	int result;

	buf_printf(&text, "network: %s\n", network);
	assert_int_equal(policy_defaults(&p, e), 0);
	assert_int_equal(
		policy_read(&p, "test", (const uint8_t *)text.data, text.len, POLICY_FILE, &errors),
		0);
	result = rules_compile(&p, 1, &r, e);
	policy_clear(&p);
	rules_free(r);
	return result;
}

/* A gateway that runs can look into what it was started for. */
static void test_prepared(void **state)
{
	struct rules *first = rules_of("{mode: restricted, egress_allowlist: [plain.example, "
				       "{host: a.example, methods: [GET]}, "
				       "{host: '*.b.example', mode: inspect}]}");
	static const struct {
		const char *line;
		bool prepared;
	} rows[] = {
		{ "other.example", true },
		{ "{host: a.example, paths: [/x]}", true },
		{ "{host: x.a.example, mode: inspect}", true },
		{ "{host: xa.example, mode: inspect}", false },
		{ "{host: deep.b.example, mode: inspect}", true },
		{ "{host: example, mode: inspect}", false },
		{ "{host: '*', mode: inspect}", false },
		{ "{host: other.example, ports: [80], mode: http, methods: [GET]}", true },
		{ "{host: a.example, waf: detect}", false }, /* ward-waf was not started */
	};

	(void)state;
	assert_true(rules_look(first) && rules_inspect(first));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ward_err e = { 0 };
		struct rules *next = NULL;

		assert_int_equal(rules_change(first, rows[i].line, false, &next, &e), 0);
		if (rules_is_prepared(first, next, next->n_items - 1) != rows[i].prepared)
			fail_msg("%s", rows[i].line);
		rules_free(next);
	}
	rules_free(first);
	first = rules_of("{mode: restricted, egress_allowlist: [plain.example]}");
	assert_false(rules_look(first) || rules_inspect(first));
	rules_free(first);
}

static void test_refused(void **state)
{
	struct ward_err e = { 0 };

	(void)state;
	assert_int_equal(compile_error("{egress_allowlist: [{host: a.example, waf: block}]}", &e),
			 0);
	assert_int_equal(compile_error("{egress_allowlist: [{host: a.example, llm: true}]}", &e),
			 -EINVAL);
	assert_true(*e.remedy);
	assert_int_equal(compile_error("{unpriced: free, egress_allowlist: [{host: a.example, llm: "
				       "true, json_rpc: [ping]}]}",
				       &e),
			 -EINVAL);
	assert_int_equal(
		compile_error("{egress_allowlist: [{host: a.example, json_rpc: [ping]}]}", &e), 0);
	assert_int_equal(compile_error("{egress_allowlist: [{host: a.example, json_rpc: [ping], "
				       "websocket: true}]}",
				       &e),
			 -EINVAL);
	assert_int_equal(
		compile_error(
			"{egress_allowlist: [{host: a.example, git: [fetch], websocket: true}]}",
			&e),
		-EINVAL);
	assert_int_equal(compile_error("{egress_allowlist: [{host: a.example, graphql: [query], "
				       "websocket: false}]}",
				       &e),
			 0);
	assert_int_equal(
		compile_error("{egress_allowlist: [{host: 192.0.2.0/24, waf: block}]}", &e),
		-EINVAL);
	assert_non_null(strstr(e.what, "egress_allowlist[0]"));
	assert_int_equal(
		compile_error("{egress_allowlist: [{host: 192.0.2.1, methods: [GET]}]}", &e),
		-EINVAL);
	assert_int_equal(
		compile_error("{egress_allowlist: [{host: 192.0.2.1, mode: http, methods: [GET]}]}",
			      &e),
		0);
	assert_int_equal(
		compile_error("{egress_allowlist: [{host: a.example, mode: inspect}]}", &e), 0);
	assert_int_equal(compile_error("{host_services: ['a=db.corp:1']}", &e), -EINVAL);
	assert_int_equal(compile_error("{host_services: ['a=169.254.169.254:80']}", &e), -EINVAL);
	assert_int_equal(compile_error("{host_services: ['a=224.0.0.1:80']}", &e), -EINVAL);
	assert_int_equal(compile_error("{host_services: ['1=127.0.0.1:80']}", &e), -EINVAL);
	assert_int_equal(compile_error("{host_services: ['a=127.0.0.1:80', 'b=localhost:81']}", &e),
			 0);
}

static void test_services(void **state)
{
	auto_rules r = rules_of(
		"{mode: restricted, host_services: ['postgres=127.0.0.1:5432', 'db=localhost:1']}");
	struct host pg = host_of("Postgres."), db = host_of("db"),
		    other = host_of("postgres.evil.test");
	int32_t denied_by = 0;

	(void)state;
	assert_int_equal(rules_service(r, &pg, 5432, &denied_by), 0);
	assert_int_equal(rules_service(r, &pg, 0, &denied_by), 0);
	assert_int_equal(rules_service(r, &pg, 5433, &denied_by), -1);
	assert_int_equal(rules_service(r, &db, 1, &denied_by), 1);
	assert_int_equal(rules_service(r, &other, 5432, &denied_by), -1);
	assert_int_equal(denied_by, -1);
}

/* `ward net deny` wins over a service of the host: by its name, by a wildcard, by its address. */
static void test_services_denied(void **state)
{
	static const struct {
		const char *line;
		bool pg, db;
	} rows[] = { { "postgres", true, false },     { "postgres:5432", true, false },
		     { "postgres:22", false, false }, { "*", true, true },
		     { "127.0.0.1", true, true },     { "127.0.0.1:1", false, true },
		     { "127.0.0.0/8", true, true },   { "10.0.0.0/8", false, false } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_rules r =
			rules_of("{mode: restricted, egress_allowlist: [postgres:5432], "
				 "host_services: ['postgres=127.0.0.1:5432', 'db=127.0.0.1:1']}");
		struct ward_err e = { 0 };
		struct rules *next = NULL;
		struct verdict v;
		struct want w;

		assert_int_equal(rules_change(r, rows[i].line, true, &next, &e), 0);
		want_host(&w, WANT_TRANSPARENT, (struct host[]){ host_of("postgres") }, 5432);
		decide_name(next, &w, &v);
		assert_int_equal(v.allow, !rows[i].pg);
		assert_int_equal(v.reason, rows[i].pg ? REASON_DENIED : REASON_ALLOWED);
		want_host(&w, WANT_TRANSPARENT, (struct host[]){ host_of("db") }, 1);
		decide_name(next, &w, &v);
		assert_int_equal(v.allow, !rows[i].db);
		rules_free(next);
	}
}

static struct rules *change(struct rules *r, const char *line, bool deny)
{
	struct ward_err e = { 0 };
	struct rules *next = NULL;

	if (rules_change(r, line, deny, &next, &e) < 0)
		fail_msg("%s: %s", line, e.why);
	assert_int_equal(next->generation, r->generation + 1);
	rules_free(r);
	return next;
}

static void test_retire(void **state)
{
	struct rules
		*r = rules_of(
			"{mode: restricted, egress_allowlist: ['*.example.com', 'b.example']}"),
		*next = NULL;
	struct host gone = host_of("new.example");
	struct ward_err e = { 0 };

	(void)state;
	r = change(r, "new.example:22", false);
	assert_int_equal(rules_retire(r, (const uint32_t[]){ 2, 99 }, 2, &next, &e), 0);
	assert_int_equal(next->generation, r->generation + 1);
	assert_int_equal(rules_match(next, &gone, 22).rule, -1);
	check(next, "b.example", 443, 1);
	check(next, "a.example.com", 443, 0);
	rules_free(next);
	rules_free(r);
}

static void test_change(void **state)
{
	struct rules *r = rules_of(
		"{mode: restricted, egress_allowlist: ['*.example.com', 'a.example.com:22']}");
	struct host host = host_of("a.example.com");
	struct ward_err e = { 0 };
	struct rules *none = NULL;
	uint32_t n;

	(void)state;
	r = change(r, "new.example", false);
	check(r, "new.example", 443, 2);
	r = change(r, "a.example.com", true); /* every port, and over the wildcard */
	assert_true(rules_match(r, &host, 443).denied);
	assert_true(rules_match(r, &host, 22).denied);
	assert_true(rules_match(r, &host, 0).denied);
	check(r, "b.example.com", 443, 0);
	r = change(r, "a.example.com", false); /* taken back, and allowed by itself */
	check(r, "a.example.com", 443, 4);
	check(r, "a.example.com", 22, 1);
	r = change(r, "*.example.com:443", true);
	assert_true(rules_match(r, &host, 443).denied); /* deny wins over the more specific allow */
	check(r, "a.example.com", 22, 1);
	check(r, "a.example.com", 0, 4);
	r = change(r, "{host: new.example, mode: tcp}", false);
	assert_int_equal(
		rules_mode(r, rules_match(r, (struct host[]){ host_of("new.example") }, 443).rule,
			   443),
		RULE_TCP);
	n = r->n_items;
	for (unsigned i = 0; i < 20; i++) { /* to and fro needs no more room */
		r = change(r, "flip.example", i % 2);
		check(r, "flip.example", 443, (int)n + (int)(i % 2));
	}
	assert_int_equal(r->n_items, n + 2);
	r = change(r, "{host: order.example, ports: [443], mode: tcp}", false);
	r = change(r, "{host: order.example, ports: [80, 443], mode: splice}", false);
	/* the last word counts */
	r = change(r, "{host: order.example, ports: [443], mode: tcp}", false);
	assert_int_equal(
		rules_mode(r, rules_match(r, (struct host[]){ host_of("order.example") }, 443).rule,
			   443),
		RULE_TCP);
	assert_int_equal(rules_change(r, "http://x", false, &none, &e), -EINVAL);
	assert_int_equal(rules_change(r, "a.example, b.example", false, &none, &e), -EINVAL);
	assert_null(none);
	rules_free(r);
}

static void test_codec(void **state)
{
	auto_rules r = rules_of("{mode: open, connection_rate: 7, host_services: "
				"['pg=127.0.0.1:5432'], egress_allowlist: ['*', "
				"'*.example.com:8443', {host: a.example, ports: [443, 22, 80, 22], "
				"private: true, send_limit: 1Ki}, '10.0.0.0/8:1', '::/0']}");
	auto_rules back = NULL;
	auto_buf one = { 0 }, two = { 0 };

	(void)state;
	r->generation = 77;
	r->items[1].deny = true;
	assert_int_equal(rules_encode(r, &one), 0);
	assert_int_equal(rules_decode((const uint8_t *)one.data, one.len, &back), 0);
	assert_int_equal(rules_encode(back, &two), 0);
	assert_int_equal(one.len, two.len);
	assert_memory_equal(one.data, two.data, one.len);
	assert_int_equal(back->generation, 77);
	assert_int_equal(back->network, RULES_OPEN);
	check(back, "a.example", 22, 2);
	assert_true(back->items[2].private);
	assert_int_equal(back->items[2].n_ports, 3);
	assert_int_equal(
		rules_service(back, (struct host[]){ host_of("pg") }, 5432, (int32_t[]){ 0 }), 0);
	/* every cut, and every bit turned around, is refused or harmless */
	for (size_t n = 0; n < one.len; n++) {
		struct rules *bad = NULL;

		assert_int_equal(rules_decode((const uint8_t *)one.data, n, &bad), -EINVAL);
	}
	for (size_t bit = 0; bit < one.len * 8; bit++) {
		struct rules *bad = NULL;
		struct host h = host_of("x.example.com");

		one.data[bit / 8] = (char)(one.data[bit / 8] ^ (1 << bit % 8));
		if (rules_decode((const uint8_t *)one.data, one.len, &bad) == 0)
			(void)rules_match(bad, &h, 443);
		rules_free(bad);
		one.data[bit / 8] = (char)(one.data[bit / 8] ^ (1 << bit % 8));
	}
}

static void test_many(void **state)
{
	auto_buf text = { 0 };
	auto_rules r = NULL;
	char name[64];

	(void)state;
	buf_puts(&text, "{mode: restricted, egress_allowlist: [");
	for (unsigned i = 0; i < RULES_MAX; i++)
		buf_printf(&text, "%sh%u.example", i ? ", " : "", i);
	buf_puts(&text, "]}");
	r = rules_of(text.data);
	for (unsigned i = 0; i < RULES_MAX; i++) {
		snprintf(name, sizeof(name), "h%u.example", i);
		check(r, name, 443, (int)i);
	}
}

static void test_text(void **state)
{
	static const char *const texts[] = { "*:443", "*.example.com:80,443", "[2001:db8::]/32:443",
					     "192.0.2.1:22" };
	auto_rules r = rules_of("{egress_allowlist: ['*', {host: '*.example.com', ports: [443, "
				"80]}, '2001:db8::/32', '192.0.2.1:22']}");

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(texts); i++) {
		auto_buf out = { 0 };

		rules_text(r, (int32_t)i, &out);
		assert_string_equal(buf_text(&out), texts[i]);
	}
}

/* A rule in the form in which most are held, and the same with a space in it, which is read as any
 * other JSON is: one outcome. */
static void test_short_form_is_no_other_rule(unused_arg void **state)
{
	static const char *const rules[][2] = {
		{ "api.example.com", "443" },
		{ "a.b", "1" },
		{ "xn--bcher-kva.example", "65535" },
		{ "*.example.com", "443" },
		{ "*", "80" },
		{ "192.0.2.1", "22" },
		{ "10.0.0.0/8", "5432" },
		{ "2001:db8::1", "443" },
		{ "Example.COM.", "443" },
		{ "a..b", "443" },
		{ "-a.b", "443" },
		{ "1.2.3", "443" },
		{ "", "443" },
		{ "a.b", "0" },
		{ "a.b", "65536" },
		{ "a.b", "080" },
		{ "a.b", "" },
		{ "a.b", "1,2" },
		{ "a.b", "99999999999" },
		{ "a\\u002eb", "443" },
		{ "b\xc3\xbc.example", "443" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		struct policy_rule given = { 0 }, spaced = { 0 };
		struct ward_err e1 = { 0 }, e2 = { 0 };
		char line[256];
		int first, second;

		snprintf(line, sizeof(line), "{\"host\":\"%s\",\"ports\":[%s]}", rules[i][0],
			 rules[i][1]);
		first = policy_rule_read(line, &given, &e1);
		snprintf(line, sizeof(line), "{ \"host\":\"%s\",\"ports\":[%s]}", rules[i][0],
			 rules[i][1]);
		second = policy_rule_read(line, &spaced, &e2);
		assert_int_equal(first, second);
		assert_string_equal(e1.why, e2.why);
		if (first == 0)
			assert_memory_equal(&given, &spaced, offsetof(struct policy_rule, http));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_match),
		cmocka_unit_test(test_any),
		cmocka_unit_test(test_first_of_equals),
		cmocka_unit_test(test_modes),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_prepared),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_services),
		cmocka_unit_test(test_services_denied),
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_retire),
		cmocka_unit_test(test_codec),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_short_form_is_no_other_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
