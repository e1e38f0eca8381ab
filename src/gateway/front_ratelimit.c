/*
 * Shaping of flows. In: connections about to be dialled, bytes about to be read. Out: whether they
 * may, by the limits of the policy (ratelimit.h). What is about time waits: the flow sleeps, its
 * sender is slowed down by not being read, and all sleepers are woken when the first of them is
 * due. What is spent for good ends the flow with its reason. Bytes are taken from the limit before
 * they are read, by every reader of a flow (pump.c, exchange_read()): no more than the limit is
 * ever in hand, however many flows read at one time and however long one holds what it has read.
 * Runs in front.
 */
#include <netinet/in.h>

#include "base/io.h"
#include "gateway/front.h"

bool flow_admit(struct front *f, struct flow *w)
{
	enum verdict_reason reason;

	if (ratelimit_fit(&f->shape, f->rules) < 0)
		return false;
	reason = ratelimit_open(&f->shape, f->rules, w->verdict.rule, w->want.port,
				io_now_ms() * 1000);
	if (reason != REASON_ALLOWED) {
		verdict_refuse(&w->verdict, reason);
		return false;
	}
	w->admitted = true;
	w->rule = w->verdict.rule;
	w->limited = ratelimit_limits_bytes(f->rules, w->rule, w->want.port);
	w->lanes[UP].taken = w->lanes[DOWN].taken = 0;
	if (flow_take_all(f, w, UP, w->held_len)) /* what a proxy's client has sent already */
		return true;
	verdict_refuse(&w->verdict, REASON_LIMIT_SENT);
	return false;
}

void flow_leave(struct front *f, struct flow *w)
{
	if (w->admitted)
		ratelimit_close(&f->shape, w->rule);
	w->admitted = false;
}

void flow_sleep(struct front *f, struct flow *w, uint64_t wait_us)
{
	uint64_t at = io_now_ms() + wait_us / 1000 + 1;

	if (!f->wake_at_ms || at < f->wake_at_ms)
		f->wake_at_ms = at;
	if (w->asleep)
		return;
	w->asleep = true;
	w->asleep_next = f->asleep;
	f->asleep = w;
}

void flow_wake(struct front *f)
{
	struct flow *w = f->asleep;

	f->asleep = NULL;
	f->wake_at_ms = 0;
	while (w) {
		struct flow *next = w->asleep_next;

		w->asleep = false;
		flow_mark_ready(f, w);
		w = next;
	}
}

static enum ratelimit_way way_of(enum direction d)
{
	return d == UP ? RATELIMIT_SEND : RATELIMIT_RECEIVE;
}

size_t flow_take(struct front *f, struct flow *w, enum direction d, size_t want, bool *ret_spent)
{
	uint64_t now_us = w->limited ? io_now_ms() * 1000 : 0, wait_us = 0;
	size_t may = want;

	*ret_spent = false;
	if (w->admitted)
		may = (size_t)ratelimit_take(&f->shape, f->rules, w->rule, w->want.port, way_of(d),
					     want, now_us, &wait_us);
	w->lanes[d].taken += may;
	if (may)
		return may;
	if (wait_us)
		flow_sleep(f, w, wait_us);
	else
		*ret_spent = true;
	return 0;
}

bool flow_take_all(struct front *f, struct flow *w, enum direction d, uint64_t bytes)
{
	if (w->admitted &&
	    !ratelimit_take_all(&f->shape, f->rules, w->rule, w->want.port, way_of(d), bytes))
		return false;
	w->lanes[d].taken += bytes;
	return true;
}

void flow_give_back(struct front *f, struct flow *w, enum direction d, size_t n)
{
	if (w->admitted)
		ratelimit_give_back(&f->shape, f->rules, w->rule, way_of(d), n);
	w->lanes[d].taken -= n;
}

void flow_refuse_spent(struct front *f, struct flow *w, enum direction d)
{
	verdict_refuse(&w->verdict, d == UP ? REASON_LIMIT_SENT : REASON_LIMIT_RECEIVED);
	front_denied(f, &w->want, &w->verdict, IPPROTO_TCP);
	flow_close(f, w, true);
}
