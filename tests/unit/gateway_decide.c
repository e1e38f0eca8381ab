/* The decision: by name, then by address; reasons and remedies. */
#include "gateway_help.h"

#define EVERYTHING "{mode: restricted, egress_allowlist: ['*', {host: inner.corp, ports: [5432], private: true}, "                  \
		   "'169.254.169.254:80', '10.1.2.3:443', '192.0.2.0/24:443', {host: 172.16.0.0/12, private: true}, '10.0.0.0/8'], " \
		   "host_services: ['pg=127.0.0.1:5432', 'lan=192.168.7.1:80']}"

static const char *reason_of(const struct verdict *v)
{
	return verdict_reason_name((enum verdict_reason)v->reason);
}

static void test_by_name(void **state)
{
	static const struct {
		const char *host;
		uint16_t port;
		const char *reason;
	} rows[] = {
		{ "api.example.com", 443, "allowed" },	  { "api.example.com", 80, "port" },
		{ "api.example.com", 0, "allowed" },	  { "evil.test", 443, "not_listed" },
		{ "evil.test", 0, "not_listed" },	  { "1.2.3.4", 443, "literal" },
		{ "2001:db8::1", 443, "literal" },	  { "169.254.169.254", 80, "literal" },
		{ "127.0.0.1", 5432, "literal" },	  { "pg", 5432, "allowed" },
		{ "pg", 5433, "not_listed" },		  { "192.0.2.9", 443, "allowed" },
		{ "192.0.2.9", 80, "port" },
	};
	auto_rules r = rules_of("{mode: restricted, egress_allowlist: ['api.example.com', '192.0.2.9'], host_services: ['pg=127.0.0.1:5432']}");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct verdict v = decide_on(r, rows[i].host, rows[i].port);

		if (strcmp(reason_of(&v), rows[i].reason) != 0 || v.allow != (v.reason == REASON_ALLOWED))
			fail_msg("%s:%u: %s", rows[i].host, rows[i].port, reason_of(&v));
		assert_int_equal(v.generation, 1);
	}
}

static void test_no_network(void **state)
{
	auto_rules r = rules_of("{mode: none, egress_allowlist: ['*']}");
	struct verdict v = decide_on(r, "a.example", 443);

	(void)state;
	assert_string_equal(reason_of(&v), "no_network");
}

static void test_open(void **state)
{
	auto_rules r = rules_of("{mode: open}");
	struct verdict v = decide_on(r, "anything.test", 22), after;

	(void)state;
	assert_true(v.allow);
	assert_int_equal(v.rule, -1);
	assert_int_equal(v.mode, RULE_TCP);
	v = decide_on(r, "1.2.3.4", 9999);
	assert_true(v.allow);
	decide_address(&v, &v.ip, NULL, &after);
	assert_true(after.allow);
	v = decide_on(r, "10.0.0.1", 80);
	decide_address(&v, &v.ip, NULL, &after);
	assert_string_equal(reason_of(&after), "private");
	v = decide_on(r, "169.254.169.254", 80);
	decide_address(&v, &v.ip, NULL, &after);
	assert_string_equal(reason_of(&after), "metadata");
	v = decide_on(r, "127.0.0.1", 80);
	decide_address(&v, &v.ip, NULL, &after);
	assert_string_equal(reason_of(&after), "loopback");
}

/* The address that a name resolved to, or the literal itself. */
static const struct {
	const char *host;
	uint16_t port;
	const char *address, *reason;
} by_address[] = {
	/* names: public only */
	{ "a.example", 443, "203.0.113.5", "allowed" },
	{ "a.example", 443, "2001:db8::5", "allowed" },
	{ "a.example", 443, "127.0.0.1", "loopback" },
	{ "a.example", 443, "::1", "loopback" },
	{ "a.example", 443, "0.0.0.0", "loopback" },
	{ "a.example", 443, "::ffff:127.0.0.1", "loopback" },
	{ "a.example", 443, "10.0.0.1", "private" },
	{ "a.example", 443, "100.64.0.1", "private" },
	{ "a.example", 443, "fd12::1", "private" },
	{ "a.example", 443, "169.254.169.254", "metadata" },
	{ "a.example", 443, "100.100.100.200", "metadata" },
	{ "a.example", 443, "fd00:ec2::254", "metadata" },
	{ "a.example", 443, "fe80::1", "metadata" },
	{ "a.example", 443, "224.0.0.1", "multicast" },
	{ "a.example", 443, "198.18.0.1", "reserved" },
	{ "a.example", 443, "64:ff9b::7f00:1", "translated" },
	{ "a.example", 443, "2002:7f00:1::", "translated" },
	{ "a.example", 443, "203.0.113.99", "own_address" },
	/* private: true */
	{ "inner.corp", 5432, "10.0.0.1", "allowed" },
	{ "inner.corp", 5432, "203.0.113.5", "allowed" },
	{ "inner.corp", 5432, "127.0.0.1", "loopback" },
	{ "inner.corp", 5432, "169.254.169.254", "metadata" },
	{ "inner.corp", 5432, "10.9.9.9", "own_address" },
	{ "inner.corp", 5432, "64:ff9b::a00:1", "translated" },
	/* addresses that stand alone in a rule */
	{ "169.254.169.254", 80, "169.254.169.254", "allowed" },
	{ "10.1.2.3", 443, "10.1.2.3", "allowed" },
	/* blocks */
	{ "192.0.2.1", 443, "192.0.2.1", "allowed" },
	{ "172.16.9.9", 443, "172.16.9.9", "allowed" },
	{ "10.1.2.4", 443, "10.1.2.4", "private" },
	/* a literal goes where it says */
	{ "192.0.2.1", 443, "203.0.113.5", "reserved" },
	/* services */
	{ "pg", 5432, "127.0.0.1", "allowed" },
	{ "lan", 80, "192.168.7.1", "allowed" },
	{ "pg", 5432, "127.0.0.2", "reserved" },
	{ "pg", 5432, "203.0.113.5", "reserved" },
};

static void test_by_address(void **state)
{
	struct ip items[] = { ip_of("203.0.113.99"), ip_of("10.9.9.9"), ip_of("192.168.7.1") };
	struct addr_own own = { items, ARRAY_LEN(items) };
	auto_rules r = rules_of(EVERYTHING);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(by_address); i++) {
		struct verdict v = decide_on(r, by_address[i].host, by_address[i].port), after;
		struct ip ip = ip_of(by_address[i].address);

		if (!v.allow)
			fail_msg("%s:%u: %s", by_address[i].host, by_address[i].port, reason_of(&v));
		decide_address(&v, &ip, &own, &after);
		if (strcmp(reason_of(&after), by_address[i].reason) != 0 || after.allow != (after.reason == REASON_ALLOWED))
			fail_msg("%s -> %s: %s", by_address[i].host, by_address[i].address, reason_of(&after));
		assert_true(ip_equal(&after.ip, &ip));
	}
}

static void test_denied_stays_denied(void **state)
{
	auto_rules r = rules_of("{mode: restricted}");
	struct verdict v = decide_on(r, "a.example", 443), after;
	struct ip ip = ip_of("203.0.113.5");

	(void)state;
	decide_address(&v, &ip, NULL, &after);
	assert_false(after.allow);
	v = (struct verdict){ .allow = true };
	decide_address(&v, &(struct ip){ 0 }, NULL, &after);
	assert_false(after.allow);
}

static void check_remedy(const struct rules *r, const char *host, uint16_t port, const char *address, const char *line)
{
	struct verdict v = decide_on(r, host, port), after;
	struct host h = host_of(host);
	auto_buf out = { 0 };
	struct want w;

	want_host(&w, WANT_TRANSPARENT, &h, port);
	if (address) {
		struct ip ip = ip_of(address);

		decide_address(&v, &ip, NULL, &after);
		v = after;
	}
	verdict_remedy(&w, &v, &out);
	assert_string_equal(buf_text(&out), line);
}

/* Every remedy that is a rule is one: it compiles, and then the same is allowed. */
static void test_remedies(void **state)
{
	auto_rules r = rules_of("{mode: restricted, egress_allowlist: ['a.example']}");
	struct host h = host_of("a.example");
	struct verdict v = decide_on(r, "a.example", 443);
	auto_buf out = { 0 };
	struct want w;

	(void)state;
	check_remedy(r, "evil.test", 22, NULL, "network.egress_allowlist: [\"evil.test:22\"]");
	check_remedy(r, "2001:db8::1", 443, NULL, "network.egress_allowlist: [\"[2001:db8::1]:443\"]");
	check_remedy(r, "a.example", 443, "10.0.0.1",
		     "network.egress_allowlist: [{host: \"a.example\", ports: [443], private: true}]");
	check_remedy(r, "a.example", 443, "127.0.0.1", "network.host_services: [\"NAME=127.0.0.1:443\"]");
	check_remedy(r, "a.example", 443, "169.254.169.254", "network.egress_allowlist: [\"169.254.169.254:443\"]");
	check_remedy(r, "a.example", 443, "224.0.0.1", "");
	check_remedy(r, "a.example", 443, "203.0.113.1", "");
	want_host(&w, WANT_TRANSPARENT, &h, 443);
	verdict_refuse(&v, REASON_NO_SNI);
	verdict_remedy(&w, &v, &out);
	assert_string_equal(buf_text(&out), "network.egress_allowlist: [{host: \"a.example\", ports: [443], mode: tcp}]");
}

static void test_reasons(void **state)
{
	(void)state;
	for (unsigned i = 0; i < VERDICT_REASONS; i++) {
		assert_true(*verdict_reason_text((enum verdict_reason)i));
		assert_true(*verdict_reason_name((enum verdict_reason)i));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_name),	       cmocka_unit_test(test_no_network), cmocka_unit_test(test_open),
		cmocka_unit_test(test_by_address),     cmocka_unit_test(test_denied_stays_denied),
		cmocka_unit_test(test_remedies),       cmocka_unit_test(test_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
