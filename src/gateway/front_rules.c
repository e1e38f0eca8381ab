/*
 * Other rules while flows are open. In: a configuration of the supervisor's (the same form as at
 * the start). Out: every decision from here on is by the new rules, and every open flow was decided
 * about again: what they no longer allow, or look at more closely than it was looked at, is reset
 * and reported; the rest goes on and counts for the rule that allows it now. A configuration that
 * cannot be read ends the gateway: then there is no network. Runs in front.
 */
#include <netinet/in.h>
#include <sys/socket.h>

#include "gateway/config.h"
#include "gateway/flow.h"

static bool is_decided(const struct flow *w)
{
	return !w->inward && (w->state == FLOW_GATE || w->state == FLOW_DIAL ||
			      w->state == FLOW_OPEN || w->state == FLOW_INSPECT);
}

/* Whether the flow could have come about as it is under the new verdict. */
static bool covers(const struct verdict *now, const struct verdict *then)
{
	if (!now->allow || now->mode != then->mode || now->service != then->service)
		return false;
	if (now->reach == REACH_SERVICE)
		return ip_equal(&now->ip, &then->ip);
	if (now->private >= then->private && now->reach == then->reach)
		return true;
	return then->ip.family && address_classify(&then->ip) == ADDRESS_PUBLIC;
}

/* False: it is closed. */
static bool decide_again(struct front *f, struct flow *w)
{
	struct verdict v;

	decide_name(f->rules, &w->want, &v);
	v.allow |= v.ask && w->approved; /* the answer is still good */
	if (!covers(&v, &w->verdict)) {
		verdict_refuse(&v, REASON_CHANGED);
		front_denied(f, &w->want, &v, IPPROTO_TCP);
		flow_close(f, w, true);
		return false;
	}
	if (w->admitted)
		ratelimit_move(&f->shape, w->rule, v.rule);
	w->rule = v.rule;
	w->limited = w->admitted && ratelimit_limits_bytes(f->rules, v.rule, w->want.port);
	w->verdict.rule = v.rule;
	w->verdict.private = v.private;
	w->verdict.generation = v.generation;
	return true;
}

static uint32_t decide_all_again(struct front *f)
{
	uint32_t numbers = f->flow_count + f->next_free, closed = 0;

	for (uint32_t i = 0; i < numbers && i < f->flow_max; i++)
		if (f->flows[i] && is_decided(f->flows[i]))
			closed += !decide_again(f, f->flows[i]);
		else if (f->flows[i] && f->flows[i]->state == FLOW_ASK)
			flow_decide_waiting(f, f->flows[i]);
	return closed;
}

void front_take_rules(struct front *f, int fd)
{
	struct gate_event event = { .kind = GATE_TAKEN };
	struct rules *old = f->rules, *new = NULL;
	struct ward_err e = { 0 };
	auto_fd config = fd;

	if (config_read(config, &new, &f->config, &e) < 0 || new->generation <= old->generation ||
	    ratelimit_fit(&f->shape, new) < 0 || budget_fit(&f->budget, new) < 0) {
		rules_free(new);
		f->finish = true;
		return;
	}
	f->rules = new;
	event.count = decide_all_again(f);
	event.generation = new->generation;
	rules_free(old);
	flow_wake(f); /* what slept by the old limits */
	(void)!send(f->control_fd, &event, sizeof(event), MSG_NOSIGNAL);
}
