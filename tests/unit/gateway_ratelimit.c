/* Shaping: connections, connections a second, bytes in all, bandwidth; of a rule and of the
 * whole. */
#include <inttypes.h>

#include "gateway_help.h"
#include "rules/ratelimit.h"

#define SECOND UINT64_C(1000000)

static void test_unlimited(void **state)
{
	auto_rules r = rules_of("{mode: restricted, egress_allowlist: [a.example]}");
	struct ratelimit s = { 0 };
	uint64_t wait;

	(void)state;
	assert_int_equal(ratelimit_fit(&s, r), 0);
	assert_false(ratelimit_limits_bytes(r, 0, 443));
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(ratelimit_open(&s, r, (int32_t)(i % 2) - 1, 443, 5),
				 REASON_ALLOWED);
	assert_int_equal(ratelimit_take(&s, r, 0, 443, RATELIMIT_SEND, 1 << 20, 0, &wait), 1 << 20);
	ratelimit_give_back(&s, r, 0, RATELIMIT_SEND, (1 << 20) - 77);
	assert_int_equal(s.rules[0].bytes[RATELIMIT_SEND], 77);
	assert_int_equal(s.whole.bytes[RATELIMIT_SEND], 77);
	assert_int_equal(s.whole.connections, 1000);
	assert_int_equal(s.rules[0].connections, 500);
	ratelimit_free(&s);
}

static void test_connections(void **state)
{
	auto_rules r = rules_of("{mode: restricted, connection_limit: 3, egress_allowlist: [{host: "
				"a.example, connection_limit: 2}, b.example]}");
	struct ratelimit s = { 0 };

	(void)state;
	assert_int_equal(ratelimit_fit(&s, r), 0);
	assert_int_equal(ratelimit_open(&s, r, 0, 443, 1), REASON_ALLOWED);
	assert_int_equal(ratelimit_open(&s, r, 0, 443, 1), REASON_ALLOWED);
	assert_int_equal(ratelimit_open(&s, r, 0, 443, 1), REASON_LIMIT_CONNECTIONS);
	assert_int_equal(s.whole.connections, 2); /* what was refused does not count */
	assert_int_equal(ratelimit_open(&s, r, 1, 443, 1), REASON_ALLOWED);
	assert_int_equal(ratelimit_open(&s, r, 1, 443, 1), REASON_LIMIT_CONNECTIONS);
	assert_int_equal(ratelimit_open(&s, r, -1, 443, 1), REASON_LIMIT_CONNECTIONS);
	ratelimit_close(&s, 0);
	assert_int_equal(ratelimit_open(&s, r, 0, 443, 1), REASON_ALLOWED);
	for (unsigned i = 0; i < 9; i++)
		ratelimit_close(&s, 0); /* more often than opened: not below none */
	assert_int_equal(s.whole.connections, 0);
	ratelimit_free(&s);
}

static void test_rate(void **state)
{
	auto_rules r = rules_of(
		"{mode: restricted, egress_allowlist: [{host: a.example, connection_rate: 10}]}");
	struct ratelimit s = { 0 };
	uint64_t now = 7 * SECOND;
	unsigned opened = 0;

	(void)state;
	assert_int_equal(ratelimit_fit(&s, r), 0);
	while (ratelimit_open(&s, r, 0, 443, now) == REASON_ALLOWED)
		opened++;
	assert_int_equal(opened, 10);
	assert_int_equal(ratelimit_open(&s, r, 0, 443, now), REASON_LIMIT_RATE);
	assert_int_equal(ratelimit_open(&s, r, 0, 443, now + SECOND / 10), REASON_ALLOWED);
	assert_int_equal(ratelimit_open(&s, r, 0, 443, now + SECOND / 10), REASON_LIMIT_RATE);
	for (opened = 0, now += 10 * SECOND; ratelimit_open(&s, r, 0, 443, now) == REASON_ALLOWED;)
		opened++;
	assert_int_equal(opened, 10); /* no more than a second's worth is saved up */
	/* a clock that goes back gives nothing */
	assert_int_equal(ratelimit_open(&s, r, 0, 443, now - SECOND), REASON_LIMIT_RATE);
	ratelimit_free(&s);
}

static void test_bytes(void **state)
{
	auto_rules r = rules_of("{mode: restricted, receive_limit: 150, egress_allowlist: [{host: "
				"a.example, send_limit: 100}, b.example]}");
	struct ratelimit s = { 0 };
	uint64_t wait;

	(void)state;
	assert_int_equal(ratelimit_fit(&s, r), 0);
	assert_true(ratelimit_limits_bytes(r, 1, 443));
	assert_int_equal(ratelimit_take(&s, r, 0, 443, RATELIMIT_SEND, 60, 1, &wait), 60);
	assert_int_equal(ratelimit_take(&s, r, 0, 443, RATELIMIT_SEND, 60, 1, &wait), 40);
	assert_int_equal(ratelimit_take(&s, r, 0, 443, RATELIMIT_SEND, 60, 1, &wait), 0);
	assert_int_equal(wait, 0); /* never again, unless some is given back */
	assert_false(ratelimit_take_all(&s, r, 0, 443, RATELIMIT_SEND, 1));
	assert_true(ratelimit_take_all(&s, r, 0, 443, RATELIMIT_SEND, 0));
	assert_int_equal(ratelimit_open(&s, r, 0, 443, 1), REASON_LIMIT_SENT);
	ratelimit_give_back(&s, r, 0, RATELIMIT_SEND, 30);
	assert_int_equal(s.whole.bytes[RATELIMIT_SEND], 70);
	assert_false(ratelimit_take_all(&s, r, 0, 443, RATELIMIT_SEND, 31));
	assert_int_equal(s.rules[0].bytes[RATELIMIT_SEND], 70); /* all or none */
	assert_true(ratelimit_take_all(&s, r, 0, 443, RATELIMIT_SEND, 30));
	assert_int_equal(ratelimit_take(&s, r, 0, 443, RATELIMIT_RECEIVE, 60, 1, &wait), 60);
	assert_int_equal(ratelimit_take(&s, r, 1, 443, RATELIMIT_SEND, 1000, 1, &wait), 1000);
	ratelimit_give_back(&s, r, 0, RATELIMIT_RECEIVE, 60);
	assert_true(ratelimit_take_all(&s, r, 1, 443, RATELIMIT_RECEIVE, 150));
	assert_int_equal(ratelimit_open(&s, r, 1, 443, 1), REASON_LIMIT_RECEIVED);
	assert_int_equal(ratelimit_take(&s, r, 0, 443, RATELIMIT_RECEIVE, 60, 1, &wait), 0);
	/* more than was taken: not below none */
	ratelimit_give_back(&s, r, 1, RATELIMIT_RECEIVE, UINT64_MAX);
	assert_int_equal(s.whole.bytes[RATELIMIT_RECEIVE], 0);
	ratelimit_free(&s);
}

/* Rules for one host and port that are looked into share their connections: the limits of each
 * hold, whichever is the first. */
static void test_shared(void **state)
{
	auto_rules r = rules_of("{mode: restricted, egress_allowlist: [{host: a.example, methods: "
				"[GET]}, {host: a.example, methods: [POST], "
				"send_limit: 100, connection_limit: 1}, {host: a.example, ports: "
				"[8443], mode: inspect}, {host: b.example, mode: inspect}]}");
	struct ratelimit s = { 0 };
	uint64_t wait;

	(void)state;
	assert_int_equal(ratelimit_fit(&s, r), 0);
	assert_true(ratelimit_limits_bytes(r, 0, 443));
	assert_false(ratelimit_limits_bytes(r, 2, 8443));
	assert_false(ratelimit_limits_bytes(r, 3, 443));
	assert_int_equal(ratelimit_open(&s, r, 0, 443, 1), REASON_ALLOWED);
	assert_int_equal(ratelimit_open(&s, r, 0, 443, 1), REASON_LIMIT_CONNECTIONS);
	assert_int_equal(ratelimit_take(&s, r, 0, 443, RATELIMIT_SEND, 70, 1, &wait), 70);
	assert_false(ratelimit_take_all(&s, r, 0, 443, RATELIMIT_SEND, 31));
	assert_int_equal(ratelimit_take(&s, r, 0, 443, RATELIMIT_SEND, 70, 1, &wait), 30);
	assert_int_equal(ratelimit_take(&s, r, 0, 443, RATELIMIT_SEND, 70, 1, &wait), 0);
	assert_int_equal(ratelimit_take(&s, r, 2, 8443, RATELIMIT_SEND, 700, 1, &wait), 700);
	assert_int_equal(ratelimit_take(&s, r, 3, 443, RATELIMIT_SEND, 700, 1, &wait), 700);
	ratelimit_free(&s);
}

/* Whoever waits as told gets the bandwidth, no more and hardly less. */
static void test_bandwidth(void **state)
{
	static const struct {
		const char *limit;
		uint64_t rate;
	} rows[] = { { "1Ki", 1024 },
		     { "100Ki", 102400 },
		     { "1Mi", 1 << 20 },
		     { "1Gi", 1 << 30 },
		     { "8000000T", 8000000000000000000 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[128];
		uint64_t start = 3 * SECOND, now = start, moved = 0, wait = 0,
			 end = start + 100 * SECOND;
		struct ratelimit s = { 0 };
		struct rules *r;
		unsigned turns = 0;

		snprintf(text, sizeof(text),
			 "{mode: restricted, bandwidth_limit: %s, egress_allowlist: [a.example]}",
			 rows[i].limit);
		r = rules_of(text);
		assert_int_equal(ratelimit_fit(&s, r), 0);
		while (now < end && turns++ < 100000) {
			uint64_t may = ratelimit_take(
				&s, r, 0, 443, turns % 2 ? RATELIMIT_SEND : RATELIMIT_RECEIVE,
				1 << 20, now, &wait);

			moved += may;
			assert_true(may || wait);
			now += may ? 0 : wait;
		}
		if (now >= end) {
			uint64_t fair = rows[i].rate * ((now - start) / SECOND + 1) +
					2 * (rows[i].rate / 8 + 16384);

			if (moved > fair || moved < rows[i].rate * 90)
				fail_msg("%s: %" PRIu64 " bytes in 100 s", rows[i].limit, moved);
		}
		rules_free(r);
		ratelimit_free(&s);
	}
}

static void test_change(void **state)
{
	struct rules *r = rules_of("{mode: restricted, egress_allowlist: [{host: a.example, "
				   "connection_limit: 1}]}"),
		     *next = NULL;
	struct ward_err e = { 0 };
	struct ratelimit s = { 0 };

	(void)state;
	assert_int_equal(ratelimit_fit(&s, r), 0);
	assert_int_equal(ratelimit_open(&s, r, 0, 443, 1), REASON_ALLOWED);
	assert_int_equal(rules_change(r, "b.example", false, &next, &e), 0);
	assert_int_equal(ratelimit_fit(&s, next), 0);
	assert_int_equal(ratelimit_open(&s, next, 1, 443, 1), REASON_ALLOWED);
	/* still counted */
	assert_int_equal(ratelimit_open(&s, next, 0, 443, 1), REASON_LIMIT_CONNECTIONS);
	rules_free(r);
	rules_free(next);
	ratelimit_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unlimited), cmocka_unit_test(test_connections),
		cmocka_unit_test(test_rate),      cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_shared),    cmocka_unit_test(test_bandwidth),
		cmocka_unit_test(test_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
