/*
 * What a sandbox and each of its rules have spent on requests: their pace, and what language models
 * cost. Amounts are millionths of the currency of network.prices. A request's cost is known when it
 * is over, and others run beside it: so the most that it may cost is held back first, and settled
 * at its end. A rule keeps its counts when the rules change, because it keeps its index. Pure but
 * for its own counters; in front.
 */
#ifndef WARD_RULES_BUDGET_H
#define WARD_RULES_BUDGET_H

#include "rules/egress_rules.h"

struct purse {
	uint64_t requests; /* that passed */
	uint64_t spent, held;
	bool warned;
	struct pace pace;
};

struct budget {
	struct purse whole;
	struct purse *rules; /* by index */
	uint32_t n;
};

/* Makes room for the rules; also after each change. -ENOMEM. */
must_check int budget_fit(struct budget *b, const struct rules *r);
void budget_free(struct budget *b);

/* Whether one more request may pass now; counts it. *ret_wait_ms: else after that. rule: an index,
 * -1: none. */
must_check bool budget_pace(struct budget *b, const struct rules *r, int32_t rule, uint64_t now_ms,
			    uint64_t *ret_wait_ms);

/* The same for the rule alone, of a request that the whole has counted. */
must_check bool budget_pace_rule(struct budget *b, const struct rules *r, int32_t rule,
				 uint64_t now_ms, uint64_t *ret_wait_ms);

enum budget_say {
	BUDGET_FINE,
	BUDGET_BUSY, /* what other requests hold is missing: some of it comes back */
	BUDGET_SPENT /* it is more than is left */
};

/* Holds that much back. */
must_check enum budget_say budget_hold(struct budget *b, const struct rules *r, int32_t rule,
				       uint64_t amount);
/* What was held is given back, what it has cost is spent. Returns whose warning this was: 0 none, 1
 * the whole's, 2 the rule's, 3 both. */
unsigned budget_settle(struct budget *b, const struct rules *r, int32_t rule, uint64_t held,
		       uint64_t cost);
/* What can still be held: the smaller of both; RULE_NONE: there is no limit. */
uint64_t budget_left(const struct budget *b, const struct rules *r, int32_t rule);
/* The percentage that is spent of the tighter limit; 0: no limit. */
unsigned budget_percent(const struct budget *b, const struct rules *r, int32_t rule);

#endif
