/* Budgets: what is held, settled, refused; paces; and that no sum overflows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "rules/budget.h"

static struct rules *compile(const char *network)
{
	struct policy p = { 0 };
	struct policy_errors errors = { 0 };
	struct rules *r = NULL;
	struct ward_err e = { 0 };

	assert_int_equal(policy_defaults(&p, &e), 0);
	if (policy_read(&p, "test.yaml", (const uint8_t *)network, strlen(network), POLICY_FILE,
			&errors) < 0)
		fail_msg("%s", errors.lines.items[0]);
	if (rules_compile(&p, 1, &r, &e) < 0)
		r = NULL;
	policy_clear(&p);
	strv_free(&errors.lines);
	return r;
}

static const char both[] = "network:\n  mode: restricted\n  spend_limit: 1.00\n  prices: [{model: "
			   "'a*', input: 1, output: 2}]\n"
			   "  egress_allowlist: [{host: one.test, llm: true}, {host: two.test, "
			   "spend_limit: 0.5}, {host: three.test, request_rate: 2}]\n";

static void test_hold_and_settle(void **state)
{
	auto_rules r = compile(both);
	struct budget b = { 0 };

	(void)state;
	assert_non_null(r);
	assert_int_equal(budget_fit(&b, r), 0);
	assert_int_equal(budget_hold(&b, r, 0, 600000), BUDGET_FINE);
	/* only because of the first */
	assert_int_equal(budget_hold(&b, r, 0, 600000), BUDGET_BUSY);
	/* more than the rule ever had */
	assert_int_equal(budget_hold(&b, r, 1, 600000), BUDGET_SPENT);
	assert_int_equal(budget_hold(&b, r, 1, 400000), BUDGET_FINE);
	assert_int_equal(budget_settle(&b, r, 1, 400000, 100000), 0);
	assert_int_equal(budget_settle(&b, r, 0, 600000, 700000), 1); /* 80 % of the whole */
	assert_int_equal(budget_left(&b, r, 0), 200000);
	assert_int_equal(budget_percent(&b, r, 0), 80);
	/* 80 % of the rule; the whole's was said */
	assert_int_equal(budget_settle(&b, r, 1, 0, 300000), 2);
	assert_int_equal(budget_hold(&b, r, 0, 1), BUDGET_SPENT);
	assert_int_equal(budget_hold(&b, r, 0, 0), BUDGET_SPENT);
	assert_int_equal(b.whole.held, 0);
	(void)budget_settle(&b, r, 0, 0, UINT64_MAX);
	(void)budget_settle(&b, r, 0, 0, UINT64_MAX);
	assert_true(b.whole.spent == UINT64_MAX - 1);
	assert_int_equal(budget_percent(&b, r, 0), 100);
	assert_int_equal(budget_left(&b, r, 0), 0);
	budget_free(&b);
}

static void test_pace(void **state)
{
	auto_rules r = compile(both);
	struct budget b = { 0 };
	uint64_t wait;

	(void)state;
	assert_int_equal(budget_fit(&b, r), 0);
	assert_true(budget_pace(&b, r, 2, 1000, &wait));
	assert_true(budget_pace(&b, r, 2, 1000, &wait));
	assert_false(budget_pace(&b, r, 2, 1000, &wait));
	assert_int_equal(wait, 30000);
	assert_true(budget_pace(&b, r, 0, 1000, &wait));
	assert_int_equal(b.whole.requests, 3); /* what is refused is not counted */
	assert_false(budget_pace_rule(&b, r, 2, 1000, &wait));
	assert_true(budget_pace_rule(&b, r, 2, 31000, &wait));
	assert_true(budget_pace_rule(&b, r, -1, 31000, &wait));
	assert_int_equal(b.whole.requests, 3);
	assert_int_equal(b.rules[2].requests, 3);
	budget_free(&b);
}

static void test_refused(void **state)
{
	(void)state;
	assert_null(compile("network:\n  mode: restricted\n  egress_allowlist: [{host: one.test, "
			    "llm: true}]\n"));
	assert_null(compile("network:\n  mode: restricted\n  spend_limit: 1\n  prices: [{model: a, "
			    "input: 1, output: 2}]\n  egress_allowlist: [one.test]\n"));
	assert_null(compile(
		"network:\n  mode: restricted\n  prices: [{model: 'a*b', input: 1, output: 2}]\n"));
}

static void test_carried(void **state)
{
	auto_rules r = compile(both);
	auto_rules back = NULL;
	struct rules *none = NULL;
	auto_buf bytes = { 0 };

	(void)state;
	assert_int_equal(rules_encode(r, &bytes), 0);
	assert_int_equal(rules_decode((const uint8_t *)bytes.data, bytes.len, &back), 0);
	assert_int_equal(back->n_prices, 1);
	assert_string_equal(back->prices[0].model, "a*");
	assert_int_equal(back->prices[0].cache_write, 2000000);
	assert_int_equal(back->prices[0].max_output, 32768);
	assert_int_equal(back->limits.spend, 1000000);
	assert_int_equal(back->spend_warning, 80);
	assert_true(back->items[0].llm && back->items[1].llm && !back->items[2].llm);
	for (size_t cut = 1; cut < 200; cut++)
		assert_int_not_equal(
			rules_decode((const uint8_t *)bytes.data, bytes.len - cut, &none), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_hold_and_settle),
					    cmocka_unit_test(test_pace),
					    cmocka_unit_test(test_refused),
					    cmocka_unit_test(test_carried) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
