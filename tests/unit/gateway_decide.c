/* The decision: by name, then by address; reasons and remedies. */
#include "gateway_help.h"

#include "rules/http_path.h"
#include "rules/remedy.h"

#define EVERYTHING                                                                                 \
	"{mode: restricted, egress_allowlist: ['*', {host: inner.corp, ports: [5432], private: "   \
	"true}, "                                                                                  \
	"'169.254.169.254:80', '10.1.2.3:443', '192.0.2.0/24:443', {host: 172.16.0.0/12, "         \
	"private: true}, '10.0.0.0/8'], "                                                          \
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
		{ "api.example.com", 443, "allowed" }, { "api.example.com", 80, "port" },
		{ "api.example.com", 0, "allowed" },   { "evil.test", 443, "not_listed" },
		{ "evil.test", 0, "not_listed" },      { "1.2.3.4", 443, "literal" },
		{ "2001:db8::1", 443, "literal" },     { "169.254.169.254", 80, "literal" },
		{ "127.0.0.1", 5432, "literal" },      { "pg", 5432, "allowed" },
		{ "pg", 5433, "not_listed" },          { "192.0.2.9", 443, "allowed" },
		{ "192.0.2.9", 80, "port" },
	};
	auto_rules r = rules_of("{mode: restricted, egress_allowlist: ['api.example.com', "
				"'192.0.2.9'], host_services: ['pg=127.0.0.1:5432']}");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct verdict v = decide_on(r, rows[i].host, rows[i].port);

		if (strcmp(reason_of(&v), rows[i].reason) != 0 ||
		    v.allow != (v.reason == REASON_ALLOWED))
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
	struct address_own own = { items, ARRAY_LEN(items) };
	auto_rules r = rules_of(EVERYTHING);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(by_address); i++) {
		struct verdict v = decide_on(r, by_address[i].host, by_address[i].port), after;
		struct ip ip = ip_of(by_address[i].address);

		if (!v.allow)
			fail_msg("%s:%u: %s", by_address[i].host, by_address[i].port,
				 reason_of(&v));
		decide_address(&v, &ip, &own, &after);
		if (strcmp(reason_of(&after), by_address[i].reason) != 0 ||
		    after.allow != (after.reason == REASON_ALLOWED))
			fail_msg("%s -> %s: %s", by_address[i].host, by_address[i].address,
				 reason_of(&after));
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

static void check_remedy(const struct rules *r, const char *host, uint16_t port,
			 const char *address, const char *line)
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
	remedy_write(r, &w, &v, "", "", &out);
	assert_string_equal(buf_text(&out), line);
}

/* Of connections. */
static void test_remedies(void **state)
{
	auto_rules r =
		rules_of("{mode: restricted, egress_allowlist: ['a.example', '*.wild.example', "
			 "{host: b.example, ports: [443], methods: [GET], send_limit: 5}, "
			 "{host: '*.deep.example', paths: [/x], private: true}]}");

	(void)state;
	check_remedy(r, "evil.test", 22, NULL, "network.egress_allowlist: [\"evil.test:22\"]");
	check_remedy(r, "ff02::1", 443, NULL, "no rule can allow such an address");
	check_remedy(r, "2600:9000::1", 443, NULL,
		     "network.egress_allowlist: [\"[2600:9000::1]:443\"]");
	check_remedy(r, "10.1.2.3", 5432, NULL, "network.egress_allowlist: [\"10.1.2.3:5432\"]");
	check_remedy(r, "169.254.169.254", 80, NULL,
		     "this address hands out the machine's credentials, so ward suggests no rule "
		     "for it");
	check_remedy(r, "a.example", 8443, NULL, "network.egress_allowlist: [\"a.example:8443\"]");
	/* what is asked of a host is asked of it on another port, too */
	check_remedy(r, "b.example", 8443, NULL,
		     "network.egress_allowlist: [{host: \"b.example\", ports: [8443], mode: "
		     "inspect, methods: [\"GET\"], send_limit: 5}]");
	check_remedy(r, "x.deep.example", 8443, NULL,
		     "network.egress_allowlist: [{host: \"x.deep.example\", ports: [8443], mode: "
		     "inspect, paths: [\"/x\"], private: true}]");
	/* a second rule for the same name and port would not count */
	check_remedy(r, "a.example", 443, "10.0.0.1",
		     "if the sandbox may reach the private network there: set private: true in the "
		     "rule for a.example:443 in network.egress_allowlist");
	check_remedy(r, "x.wild.example", 443, "10.0.0.1",
		     "network.egress_allowlist: [{host: \"x.wild.example\", ports: [443], private: "
		     "true}]");
	check_remedy(r, "a.example", 443, "127.0.0.1",
		     "give the host service a name without dots: "
		     "SERVICE=127.0.0.1:443 in network.host_services");
	check_remedy(r, "a.example", 443, "169.254.169.254",
		     "only a rule that names this address allows it; it may hand out the machine's "
		     "credentials, so ward suggests none");
	check_remedy(r, "a.example", 443, "224.0.0.1", "");
	check_remedy(r, "a.example", 443, "203.0.113.1", "");
}

/* Asks for a remedy for a request that this rule refused. */
static void check_request(const char *rule, enum verdict_reason reason, const char *host,
			  const char *request, const char *more, const char *line)
{
	char text[1024];
	auto_buf out = { 0 };
	struct host h = host_of(host);
	struct verdict v;
	struct want w;

	snprintf(text, sizeof(text), "{mode: restricted, egress_allowlist: [%s]}", rule);
	auto_rules r = rules_of(text);

	want_host(&w, WANT_TRANSPARENT, &h, 443);
	decide_name(r, &w, &v);
	assert_true(v.allow);
	verdict_refuse(&v, reason);
	remedy_write(r, &w, &v, request, more, &out);
	assert_string_equal(buf_text(&out), line);
}

#define LINE "network.egress_allowlist: [{host: \"a.example\", ports: [443], "
#define GIT "{host: a.example, git: [fetch], repositories: [/team/*]}"
#define PUSH "{host: a.example, git: [push], repositories: [/team/*], refs: ['refs/heads/agent/*']}"
#define DECIDES(part) part " of the rule for a.example:443 in network.egress_allowlist decides it"

static void test_request_remedies(void **state)
{
	static const char rule[] =
		"{host: a.example, methods: [GET], paths: ['/v1/*'], headers: ['x-team: red'], "
		"query: [page], request_limit: 1Ki, private: true}";

	(void)state;
	/* the very method and path, and everything else that the rule asks for */
	check_request(rule, REASON_METHOD, "a.example", "POST /v1/files", "",
		      LINE "methods: [POST], paths: [\"/v1/files\"], query: [\"page\"], headers: "
			   "[\"x-team:red\"], request_limit: 1024, private: true}]");
	check_request(rule, REASON_PATH, "a.example", "GET /v2/./a//b", "",
		      LINE "methods: [GET], paths: [\"/v2/a/b\"], query: [\"page\"], headers: "
			   "[\"x-team:red\"], request_limit: 1024, private: true}]");
	check_request("{host: a.example, mode: inspect, websocket: true, waf: block}",
		      REASON_METHOD, "a.example", "PUT /x", "",
		      LINE "methods: [PUT], paths: [\"/x\"], waf: block}]");
	check_request("{host: a.example, methods: [GET]}", REASON_WEBSOCKET, "a.example", "GET /ws",
		      "", LINE "methods: [GET], paths: [\"/ws\"], websocket: true}]");
	/* a rule for the name itself takes the place of one for *.suffix: that is repeated */
	check_request("{host: '*.example', methods: [GET], request_rate: 7}, {host: '*.example', "
		      "methods: [PUT], paths: [/p]}",
		      REASON_METHOD, "a.example", "POST /x", "",
		      LINE
		      "mode: inspect, methods: [\"GET\"], request_rate: 7}, {host: \"a.example\", "
		      "ports: [443], mode: inspect, methods: [\"PUT\"], paths: [\"/p\"]}, "
		      "{host: \"a.example\", ports: [443], methods: [POST], paths: [\"/x\"], "
		      "request_rate: 7}]");
	/* what an agent names is taken by its letters */
	check_request(rule, REASON_PATH, "a.example", "GET /repos/*", "",
		      LINE "methods: [GET], paths: [\"/repos/\\\\*\"], query: [\"page\"], headers: "
			   "[\"x-team:red\"], request_limit: 1024, private: true}]");
	check_request(rule, REASON_PATH, "a.example", "GET /a%2Fb", "", DECIDES("paths"));
	check_request(rule, REASON_PATH, "a.example", "GET /long...", "", DECIDES("paths"));
	check_request(rule, REASON_METHOD, "a.example", "delete /x", "", DECIDES("methods"));
	check_request(rule, REASON_METHOD, "a.example", "NO /x", "",
		      LINE "methods: [\"NO\"], paths: [\"/x\"], query: [\"page\"], headers: "
			   "[\"x-team:red\"], request_limit: 1024, private: true}]");
	check_request(rule, REASON_QUERY, "a.example", "GET /v1/a", "", DECIDES("query"));
	check_request(rule, REASON_WAF, "a.example", "GET /v1/a", "", DECIDES("waf"));
	check_request(rule, REASON_WRONG_HOST, "a.example", "GET /v1/a", "",
		      "the rule inspects requests, and no inspect rule can allow this");
	check_request(rule, REASON_PINNED, "a.example", "", "",
		      "make the program trust the sandbox's CA (see SSL_CERT_FILE); a rule with "
		      "mode: splice would inspect none of its requests");
	check_request(
		"a.example", REASON_NO_SNI, "a.example", "", "",
		"if everything sent to a.example:443 may pass uninspected: set mode: tcp in its "
		"rule in network.egress_allowlist");
	check_request("'*.example'", REASON_NO_SNI, "a.example", "", "", LINE "mode: tcp}]");
	check_request("'*.example'", REASON_ECH, "a.example", "", "", LINE "mode: inspect}]");
	check_request("a.example", REASON_ECH, "a.example", "", "",
		      "turn ECH off in the program, or set mode: inspect in the rule for "
		      "a.example:443 in network.egress_allowlist");
}

static void test_body_remedies(void **state)
{
	static const char graph[] = "{host: a.example, paths: [/g], graphql: ['query:viewer']}",
			  rpc[] = "{host: a.example, json_rpc: [initialize]}";

	(void)state;
	check_request(graph, REASON_GRAPHQL, "a.example", "POST /g graphql=mutation:addStar", "",
		      LINE "methods: [POST], paths: [\"/g\"], graphql: [\"mutation:addStar\"]}]");
	check_request(graph, REASON_GRAPHQL, "a.example", "POST /g graphql=mutation:addStar",
		      "mixed=1",
		      LINE "methods: [POST], paths: [\"/g\"], graphql: [\"query:viewer\", "
			   "\"mutation:addStar\"]}]");
	check_request(rpc, REASON_RPC, "a.example", "POST /m json_rpc=tools/call:*", "",
		      LINE "methods: [POST], paths: [\"/m\"], json_rpc: [\"tools/call:\\\\*\"]}]");
	check_request(rpc, REASON_RPC, "a.example", "POST /m json_rpc=a?b", "",
		      DECIDES("json_rpc"));
	check_request(rpc, REASON_RPC, "a.example", "POST /m", "", DECIDES("json_rpc"));
	check_request(GIT, REASON_GIT, "a.example",
		      "GET /other/p.git/info/refs repositories=/other/p", "use=fetch",
		      LINE "git: [\"fetch\"], repositories: [\"/other/p\"]}]");
	check_request(
		GIT, REASON_GIT, "a.example", "GET /other/p.git/info/refs repositories=/other/p",
		"use=push",
		"add a rule for the branch that may be pushed: {host: \"a.example\", ports: "
		"[443], git: [push], repositories: [\"/other/p\"], refs: [\"refs/heads/...\"]}");
	check_request(
		GIT, REASON_GIT, "a.example", "GET /team/p/info/refs git=push", "",
		"add a rule for the branch that may be pushed: {host: \"a.example\", ports: "
		"[443], git: [push], repositories: [\"/team/p\"], refs: [\"refs/heads/...\"]}");
	check_request(
		PUSH, REASON_GIT, "a.example",
		"POST /team/p.git/git-receive-pack refs=refs/heads/main",
		"use=push ref=refs/heads/main",
		LINE "git: [\"push\"], repositories: [\"/team/p\"], refs: [\"refs/heads/main\"]}]");
	check_request(
		PUSH, REASON_GIT, "a.example", "POST /team/p.git/git-receive-pack git=delete",
		"use=delete ref=refs/heads/agent/x",
		LINE
		"git: [\"delete\"], repositories: [\"/team/p\"], refs: [\"refs/heads/agent/x\"]}]");
	check_request(PUSH, REASON_GIT_FORCE, "a.example",
		      "POST /team/p.git/git-receive-pack git=force",
		      "use=push+force ref=refs/heads/agent/*",
		      LINE "git: [\"push\", \"force\"], repositories: [\"/team/p\"], refs: "
			   "[\"refs/heads/agent/\\\\*\"]}]");
	check_request(
		PUSH, REASON_GIT_FORCE, "a.example", "POST /team/p.git/git-receive-pack git=force",
		"use=push+force",
		"add a rule for the branch that may be pushed: {host: \"a.example\", ports: "
		"[443], git: [push], repositories: [\"/team/p\"], refs: [\"refs/heads/...\"]}");
}

/* An entry that is made of a text matches that text and no other. */
static void test_literals(void **state)
{
	static const struct {
		const char *text, *other;
	} rows[] = {
		{ "/a/*", "/a/b" }, { "**", "*" }, { "/x*y", "/xzy" }, { "/plain", "/plainer" }
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_buf out = { 0 };
		char pattern[64];
		size_t n = 0;

		assert_true(remedy_literal(&out, rows[i].text, strlen(rows[i].text)));
		for (const char *c = buf_text(&out) + 1; *c != '"'; c++)
			if (!(c[0] == '\\' && c[1] == '\\'))
				pattern[n++] = *c;
		assert_true(http_glob(pattern, n, rows[i].text, strlen(rows[i].text)));
		assert_false(http_glob(pattern, n, rows[i].other, strlen(rows[i].other)));
	}
	for (size_t i = 0; i < 5; i++) {
		static const char *const not_one[] = { "", "a b", "a?", "a\\b", "cut..." };
		auto_buf out = { 0 };

		assert_false(remedy_literal(&out, not_one[i], strlen(not_one[i])));
		assert_int_equal(out.len, 0);
	}
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
		cmocka_unit_test(test_by_name),
		cmocka_unit_test(test_no_network),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_by_address),
		cmocka_unit_test(test_denied_stays_denied),
		cmocka_unit_test(test_remedies),
		cmocka_unit_test(test_request_remedies),
		cmocka_unit_test(test_body_remedies),
		cmocka_unit_test(test_literals),
		cmocka_unit_test(test_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
