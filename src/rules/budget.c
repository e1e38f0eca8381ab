/*
 * Budgets (budget.h). In: the limits of the rules, a clock, amounts. Out: whether a request may go,
 * and what is left. A request counts for its rule and for the whole; nothing is counted unless both
 * agree. Sums do not overflow: they stay at their largest, where every limit refuses. Pure; runs in
 * front.
 */
#include "rules/budget.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST (UINT64_MAX - 1) /* RULE_NONE is no amount */

static uint64_t sum(uint64_t a, uint64_t b)
{
	return __builtin_add_overflow(a, b, &a) || a > MOST ? MOST : a;
}

int budget_fit(struct budget *b, const struct rules *r)
{
	struct purse *more;

	if (r->n_items <= b->n)
		return 0;
	more = realloc(b->rules, r->n_items * sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + b->n, 0, (r->n_items - b->n) * sizeof(*more));
	b->rules = more;
	b->n = r->n_items;
	return 0;
}

void budget_free(struct budget *b)
{
	free(b->rules);
	memset(b, 0, sizeof(*b));
}

/* A purse with its limits: the whole's, and the rule's if there is one. */
struct pair {
	struct purse *purse;
	const struct rule_limits *limits;
};

static unsigned pairs_of(const struct budget *b, const struct rules *r, int32_t rule,
			 struct pair ret[2])
{
	unsigned n = 1;

	ret[0] = (struct pair){ (struct purse *)(uintptr_t)&b->whole, &r->limits };
	if (rule >= 0 && (uint32_t)rule < b->n && (uint32_t)rule < r->n_items)
		ret[n++] = (struct pair){ &b->rules[rule], &r->items[rule].limits };
	return n;
}

static bool take_paces(const struct pair *pairs, unsigned n, uint64_t now_ms, uint64_t *ret_wait_ms)
{
	struct pace paces[2];

	*ret_wait_ms = 0;
	for (unsigned i = 0; i < n; i++) {
		paces[i] = pairs[i].purse->pace;
		if (pairs[i].limits->request_rate != RULE_NONE &&
		    !pace_take(&paces[i], pairs[i].limits->request_rate, now_ms, ret_wait_ms))
			return false;
	}
	for (unsigned i = 0; i < n; i++) {
		pairs[i].purse->pace = paces[i];
		pairs[i].purse->requests++;
	}
	return true;
}

bool budget_pace(struct budget *b, const struct rules *r, int32_t rule, uint64_t now_ms,
		 uint64_t *ret_wait_ms)
{
	struct pair pairs[2];
	unsigned n = pairs_of(b, r, rule, pairs);

	return take_paces(pairs, n, now_ms, ret_wait_ms);
}

bool budget_pace_rule(struct budget *b, const struct rules *r, int32_t rule, uint64_t now_ms,
		      uint64_t *ret_wait_ms)
{
	struct pair pairs[2];

	return take_paces(pairs + 1, pairs_of(b, r, rule, pairs) - 1, now_ms, ret_wait_ms);
}

enum budget_say budget_hold(struct budget *b, const struct rules *r, int32_t rule, uint64_t amount)
{
	struct pair pairs[2];
	unsigned n = pairs_of(b, r, rule, pairs);
	enum budget_say say = BUDGET_FINE;

	for (unsigned i = 0; i < n; i++) {
		uint64_t limit = pairs[i].limits->spend,
			 without = sum(pairs[i].purse->spent, amount);

		/* what was reached is spent, also for what costs nothing */
		if (limit != RULE_NONE && (without > limit || pairs[i].purse->spent >= limit))
			return BUDGET_SPENT;
		if (limit != RULE_NONE && sum(without, pairs[i].purse->held) > limit)
			say = BUDGET_BUSY;
	}
	for (unsigned i = 0; i < n && say == BUDGET_FINE; i++)
		pairs[i].purse->held = sum(pairs[i].purse->held, amount);
	return say;
}

unsigned budget_settle(struct budget *b, const struct rules *r, int32_t rule, uint64_t held,
		       uint64_t cost)
{
	struct pair pairs[2];
	unsigned n = pairs_of(b, r, rule, pairs), warned = 0;

	for (unsigned i = 0; i < n; i++) {
		struct purse *p = pairs[i].purse;
		uint64_t limit = pairs[i].limits->spend;

		p->held -= held < p->held ? held : p->held;
		p->spent = sum(p->spent, cost);
		if (limit == RULE_NONE || !r->spend_warning || p->warned ||
		    (unsigned __int128)p->spent * 100 < (unsigned __int128)limit * r->spend_warning)
			continue;
		p->warned = true;
		warned |= 1u << i;
	}
	return warned;
}

uint64_t budget_left(const struct budget *b, const struct rules *r, int32_t rule)
{
	struct pair pairs[2];
	unsigned n = pairs_of(b, r, rule, pairs);
	uint64_t left = RULE_NONE;

	for (unsigned i = 0; i < n; i++) {
		uint64_t limit = pairs[i].limits->spend, used = pairs[i].purse->spent,
			 this_left = used < limit ? limit - used : 0;

		if (limit != RULE_NONE && this_left < left)
			left = this_left;
	}
	return left;
}

unsigned budget_percent(const struct budget *b, const struct rules *r, int32_t rule)
{
	struct pair pairs[2];
	unsigned n = pairs_of(b, r, rule, pairs), most = 0;

	for (unsigned i = 0; i < n; i++) {
		uint64_t limit = pairs[i].limits->spend;
		unsigned __int128 share =
			limit == RULE_NONE || !limit
				? 0
				: (unsigned __int128)pairs[i].purse->spent * 100 / limit;

		if (share > most)
			most = share > 100 ? 100 : (unsigned)share;
	}
	return most;
}
