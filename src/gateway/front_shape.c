/*
 * Shaping of flows. In: connections about to be dialled, bytes about to be read. Out: whether they may, by the limits of the policy
 * (shape.h). What is about time waits: the flow sleeps, its sender is slowed down by not being read, and all sleepers are woken
 * when the first of them is due. What is spent for good ends the flow with its reason. Bytes count when they are read: no more
 * than the limit is ever in hand. Runs in front.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/io.h"
#include "gateway/front.h"

bool flow_admit(struct front *f, struct flow *w)
{
	enum verdict_reason reason;

	if (shape_fit(&f->shape, f->rules) < 0)
		return false;
	reason = shape_open(&f->shape, f->rules, w->verdict.rule, io_now_ms() * 1000);
	if (reason != REASON_ALLOWED) {
		verdict_refuse(&w->verdict, reason);
		return false;
	}
	w->admitted = true;
	w->rule = w->verdict.rule;
	w->limited = shape_limits_bytes(f->rules, w->rule);
	if (w->limited)	/* a request to the proxy that goes on as it is */
		shape_moved(&f->shape, f->rules, w->rule, SHAPE_SEND, w->held_len);
	return true;
}

void flow_leave(struct front *f, struct flow *w)
{
	if (w->admitted)
		shape_close(&f->shape, w->rule);
	if (w->admitted && !w->limited)
		shape_add_bytes(&f->shape, w->rule, w->lanes[DOWN].moved, w->lanes[UP].moved);
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

/* Whether bytes have come that are more than the limit: the end is not, and neither is silence. */
static bool has_more(struct flow *w, enum direction d)
{
	enum side s = d == UP ? CLIENT : SERVER;
	char byte;
	ssize_t n = recv(w->fds[s], &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		w->can_read[s] = false;
	return n > 0;
}

size_t flow_may(struct front *f, struct flow *w, enum direction d, size_t want)
{
	enum shape_way way = d == UP ? SHAPE_SEND : SHAPE_RECEIVE;
	uint64_t may, wait_us = 0;

	if (!w->limited)
		return want;
	may = shape_may(&f->shape, f->rules, w->rule, way, want, io_now_ms() * 1000, &wait_us);
	if (may)
		return (size_t)may;
	if (wait_us) {
		flow_sleep(f, w, wait_us);
		return 0;
	}
	if (!has_more(w, d))
		return w->can_read[d == UP ? CLIENT : SERVER];	/* the end may be read */
	verdict_refuse(&w->verdict, way == SHAPE_SEND ? REASON_LIMIT_SENT : REASON_LIMIT_RECEIVED);
	front_denied(f, &w->want, &w->verdict, IPPROTO_TCP);
	flow_close(f, w, true);
	return 0;
}

void flow_moved(struct front *f, struct flow *w, enum direction d, size_t n)
{
	if (w->limited)
		shape_moved(&f->shape, f->rules, w->rule, d == UP ? SHAPE_SEND : SHAPE_RECEIVE, n);
}
