/*
 * Shaping. In: the limits of the rules, a clock, what is about to move. Out: how much of it may.
 * Connections and bytes in all are plain counts; connections a second and bandwidth are token
 * buckets that hold at most one second's worth of connections, and an eighth of a second's worth of
 * bytes but at least 16 KiB. A connection or a byte counts for its rule and for the whole; the
 * tighter of both decides, and nothing is counted unless both agree. What is granted is counted by
 * the call that grants it. Pure but for its own counters; run by the gateway's parsing process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rules/ratelimit.h"

#define MILLION UINT64_C(1000000)
#define BURST_MIN (16 * 1024)

int ratelimit_fit(struct ratelimit *s, const struct rules *r)
{
	struct ratelimit_meter *more;

	if (r->n_items <= s->n)
		return 0;
	more = realloc(s->rules, r->n_items * sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + s->n, 0, (r->n_items - s->n) * sizeof(*more));
	s->rules = more;
	s->n = r->n_items;
	return 0;
}

void ratelimit_free(struct ratelimit *s)
{
	free(s->rules);
	memset(s, 0, sizeof(*s));
}

/* A meter with its limits: of the whole, and of the rule if there is one. */
struct pair {
	struct ratelimit_meter *meter;
	/* the tightest of the rules that have their connections in common */
	struct rule_limits limits;
	uint64_t connections, bytes[2]; /* of all of them */
};

static void keep_least(uint64_t *a, uint64_t b)
{
	*a = b < *a ? b : *a;
}

static void tighten(struct rule_limits *l, const struct rule_limits *by)
{
	keep_least(&l->connections, by->connections);
	keep_least(&l->connection_rate, by->connection_rate);
	keep_least(&l->receive_bytes, by->receive_bytes);
	keep_least(&l->send_bytes, by->send_bytes);
	keep_least(&l->bandwidth, by->bandwidth);
}

static void add(uint64_t *sum, uint64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = UINT64_MAX - 1;
}

static struct pair pair_of(struct ratelimit_meter *m, const struct rule_limits *l)
{
	return (struct pair){ m, *l, m->connections, { m->bytes[0], m->bytes[1] } };
}

static bool is_shared(const struct rule *rule)
{
	return rule->moded && (rule->mode == RULE_INSPECT || rule->mode == RULE_PLAIN);
}

static unsigned pairs_of(struct ratelimit *s, const struct rules *r, int32_t rule, uint16_t port,
			 struct pair ret[2])
{
	int32_t i = rule;

	ret[0] = pair_of(&s->whole, &r->limits);
	if (rule < 0 || (uint32_t)rule >= s->n || (uint32_t)rule >= r->n_items)
		return 1;
	ret[1] = pair_of(&s->rules[rule], &r->items[rule].limits);
	while (is_shared(&r->items[rule]) && (i = rules_sibling(r, i, port)) >= 0 &&
	       (uint32_t)i < s->n) {
		tighten(&ret[1].limits, &r->items[i].limits);
		add(&ret[1].connections, s->rules[i].connections);
		add(&ret[1].bytes[0], s->rules[i].bytes[0]);
		add(&ret[1].bytes[1], s->rules[i].bytes[1]);
	}
	return 2;
}

/* What fits into a bucket, in millionths; a rate too large to count is no limit. */
static uint64_t bucket_of(uint64_t amount)
{
	return amount > UINT64_MAX / (2 * MILLION) ? UINT64_MAX / 2 : amount * MILLION;
}

/* Fills a bucket for the time that has passed; full at the first time. A clock that goes back fills
 * nothing. */
static void fill(uint64_t *tokens, uint64_t *time_us, uint64_t rate, uint64_t bucket,
		 uint64_t now_us)
{
	uint64_t more;

	if (*time_us && now_us <= *time_us)
		return;
	if (!*time_us || *tokens >= bucket ||
	    __builtin_mul_overflow(now_us - *time_us, rate, &more) || more > bucket - *tokens)
		*tokens = bucket;
	else
		*tokens += more;
	*time_us = now_us ? now_us : 1;
}

static enum verdict_reason may_open(struct pair p, uint64_t now_us)
{
	if (p.connections >= p.limits.connections)
		return REASON_LIMIT_CONNECTIONS;
	if (p.bytes[RATELIMIT_RECEIVE] >= p.limits.receive_bytes)
		return REASON_LIMIT_RECEIVED;
	if (p.bytes[RATELIMIT_SEND] >= p.limits.send_bytes)
		return REASON_LIMIT_SENT;
	if (p.limits.connection_rate == RULE_NONE)
		return REASON_ALLOWED;
	fill(&p.meter->rate_tokens, &p.meter->rate_time_us, p.limits.connection_rate,
	     bucket_of(p.limits.connection_rate), now_us);
	return p.meter->rate_tokens >= MILLION ? REASON_ALLOWED : REASON_LIMIT_RATE;
}

enum verdict_reason ratelimit_open(struct ratelimit *s, const struct rules *r, int32_t rule,
				   uint16_t port, uint64_t now_us)
{
	struct pair pairs[2];
	unsigned n = pairs_of(s, r, rule, port, pairs);

	for (unsigned i = 0; i < n; i++) {
		enum verdict_reason reason = may_open(pairs[i], now_us);

		if (reason != REASON_ALLOWED)
			return reason;
	}
	for (unsigned i = 0; i < n; i++) {
		pairs[i].meter->connections++;
		pairs[i].meter->opened++;
		if (pairs[i].limits.connection_rate != RULE_NONE)
			pairs[i].meter->rate_tokens -= MILLION;
	}
	return REASON_ALLOWED;
}

void ratelimit_close(struct ratelimit *s, int32_t rule)
{
	if (s->whole.connections)
		s->whole.connections--;
	if (rule >= 0 && (uint32_t)rule < s->n && s->rules[rule].connections)
		s->rules[rule].connections--;
}

void ratelimit_move(struct ratelimit *s, int32_t from, int32_t to)
{
	if (from >= 0 && (uint32_t)from < s->n && s->rules[from].connections)
		s->rules[from].connections--;
	if (to >= 0 && (uint32_t)to < s->n)
		s->rules[to].connections++;
}

void ratelimit_denied(struct ratelimit *s, int32_t rule)
{
	s->whole.denied++;
	if (rule >= 0 && (uint32_t)rule < s->n)
		s->rules[rule].denied++;
}

static uint64_t limit_of(const struct rule_limits *l, enum ratelimit_way way)
{
	return way == RATELIMIT_SEND ? l->send_bytes : l->receive_bytes;
}

/* How many of want bytes one meter lets move; raises *wait when it is a matter of time. */
static uint64_t may_move(struct pair p, enum ratelimit_way way, uint64_t want, uint64_t now_us,
			 uint64_t *wait_us)
{
	uint64_t limit = limit_of(&p.limits, way), spent = p.bytes[way], band = p.limits.bandwidth,
		 burst, due;

	if (limit != RULE_NONE && spent >= limit)
		return 0;
	if (limit != RULE_NONE && limit - spent < want)
		want = limit - spent;
	if (band == RULE_NONE)
		return want;
	burst = band / 8 > BURST_MIN ? band / 8 : BURST_MIN;
	fill(&p.meter->band_tokens, &p.meter->band_time_us, band, bucket_of(burst), now_us);
	if (p.meter->band_tokens >= MILLION)
		return want < p.meter->band_tokens / MILLION ? want
							     : p.meter->band_tokens / MILLION;
	/* until a quarter of the bucket is there: not a wake-up for each byte */
	due = (bucket_of(burst) / 4 - p.meter->band_tokens) / band + 1;
	*wait_us = due > *wait_us ? due : *wait_us;
	return 0;
}

static void count(const struct pair *pairs, unsigned n, enum ratelimit_way way, uint64_t bytes)
{
	for (unsigned i = 0; i < n; i++) {
		struct ratelimit_meter *m = pairs[i].meter;
		uint64_t cost = bucket_of(bytes);

		if (__builtin_add_overflow(m->bytes[way], bytes, &m->bytes[way]))
			m->bytes[way] = UINT64_MAX - 1;
		if (pairs[i].limits.bandwidth != RULE_NONE)
			m->band_tokens = cost < m->band_tokens ? m->band_tokens - cost : 0;
	}
}

uint64_t ratelimit_take(struct ratelimit *s, const struct rules *r, int32_t rule, uint16_t port,
			enum ratelimit_way way, uint64_t want, uint64_t now_us,
			uint64_t *ret_wait_us)
{
	struct pair pairs[2];
	unsigned n = pairs_of(s, r, rule, port, pairs);
	uint64_t may = want, wait = 0;

	for (unsigned i = 0; i < n; i++) {
		uint64_t limit = limit_of(&pairs[i].limits, way), this_may;

		if (limit != RULE_NONE && pairs[i].bytes[way] >= limit) {
			*ret_wait_us = 0;
			return 0;
		}
		this_may = may_move(pairs[i], way, want, now_us, &wait);
		may = this_may < may ? this_may : may;
	}
	*ret_wait_us = may ? 0 : wait;
	count(pairs, n, way, may);
	return may;
}

bool ratelimit_take_all(struct ratelimit *s, const struct rules *r, int32_t rule, uint16_t port,
			enum ratelimit_way way, uint64_t bytes)
{
	struct pair pairs[2];
	unsigned n = pairs_of(s, r, rule, port, pairs);

	for (unsigned i = 0; i < n; i++) {
		uint64_t limit = limit_of(&pairs[i].limits, way), spent = pairs[i].bytes[way];

		if (limit != RULE_NONE && (spent > limit || bytes > limit - spent))
			return false;
	}
	count(pairs, n, way, bytes);
	return true;
}

void ratelimit_give_back(struct ratelimit *s, const struct rules *r, int32_t rule,
			 enum ratelimit_way way, uint64_t bytes)
{
	struct pair pairs[2];
	unsigned n = pairs_of(s, r, rule, 0, pairs);

	for (unsigned i = 0; i < n; i++) {
		struct ratelimit_meter *m = pairs[i].meter;

		m->bytes[way] -= bytes < m->bytes[way] ? bytes : m->bytes[way];
		if (m->band_time_us && /* there is a bandwidth */
		    __builtin_add_overflow(m->band_tokens, bucket_of(bytes), &m->band_tokens))
			m->band_tokens = UINT64_MAX / 2;
	}
}

static bool has_byte_limit(const struct rule_limits *l)
{
	return l->receive_bytes != RULE_NONE || l->send_bytes != RULE_NONE ||
	       l->bandwidth != RULE_NONE;
}

bool ratelimit_limits_bytes(const struct rules *r, int32_t rule, uint16_t port)
{
	bool limited = has_byte_limit(&r->limits);

	for (int32_t i = rule; i >= 0 && (uint32_t)i < r->n_items && !limited;
	     i = is_shared(&r->items[i]) ? rules_sibling(r, i, port) : -1)
		limited = has_byte_limit(&r->items[i].limits);
	return limited;
}
