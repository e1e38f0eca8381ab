/*
 * Flows that wait for a person. In: a flow whose rule asks, answers of the supervisor. Out: the
 * flow goes on, or is refused. While it waits nothing is connected and nothing more of it is read;
 * it costs its struct and its socket. There are at most WAITING_MAX of them, so that a program that
 * asks for everything takes no room from what is allowed. How long one waits is the supervisor's
 * matter; a client that closes its side has given up. Runs in front.
 *
 * A yes is no right to connect: the supervisor itself has told dial before front.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "gateway/flow.h"
#include "gateway/inspect_main.h"

#define WAITING_MAX 4096

static bool say(struct front *f, const struct want *w, const struct verdict *v, uint64_t serial,
		enum gate_event_kind kind)
{
	struct gate_event event = { .kind = kind, .want = *w, .generation = serial };

	if (v)
		event.verdict = *v;

	return send(f->control_fd, &event, sizeof(event), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static void ask(struct front *f, struct flow *w)
{
	w->said = say(f, &w->want, &w->verdict, w->id >> 16, GATE_ASK);
	f->unasked |= !w->said; /* there is no room for now */
}

void flow_wait_for_answer(struct front *f, struct flow *w)
{
	if (f->waiting >= WAITING_MAX || !flow_watch(f, w, CLIENT, WATCH_READ)) {
		verdict_refuse(&w->verdict, REASON_ASKED_FULL);
		flow_refuse_by_verdict(f, w, EACCES);
		return;
	}
	flow_untime(f, w);
	w->state = FLOW_ASK;
	f->waiting++;
	ask(f, w);
}

void flow_ask_later(struct front *f)
{
	f->unasked = false;
	while (f->gone_count) {
		const struct flow_gone *g = &f->gone[f->gone_count - 1];
		struct want want;

		want_host(&want, WANT_TRANSPARENT, &g->host, g->port);
		if (!say(f, &want, NULL, g->serial, GATE_UNASK)) {
			f->unasked = true;
			return;
		}
		f->gone_count--;
	}
	for (uint32_t i = 0; i < f->flow_max && !f->unasked; i++)
		if (f->flows[i] && f->flows[i]->state == FLOW_ASK && !f->flows[i]->said)
			ask(f, f->flows[i]);
	if (f->inspect && !f->unasked)
		f->inspect->ask_later(f);
}

/* Tells the supervisor later. Where there is no room for that either, the question ends at its
 * deadline. */
static void keep_gone(struct front *f, const struct flow *w)
{
	if (!f->gone)
		f->gone = calloc(WAITING_MAX, sizeof(*f->gone));
	if (!f->gone || f->gone_count == WAITING_MAX)
		return;
	f->gone[f->gone_count++] = (struct flow_gone){ w->id >> 16, w->want.port, w->want.host };
	f->unasked = true;
}

void flow_stop_waiting(struct front *f, struct flow *w)
{
	f->waiting--;
	if (w->said && !say(f, &w->want, NULL, w->id >> 16, GATE_UNASK))
		keep_gone(f, w);
	w->said = false;
	w->state = FLOW_HEAD;
}

void flow_run_waiting(struct front *f, struct flow *w)
{
	char byte;
	ssize_t n = recv(w->fds[CLIENT], &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (w->has_ended[CLIENT] || w->gone[CLIENT] || n == 0 ||
	    (n < 0 && errno != EAGAIN && errno != EINTR))
		flow_close(f, w, true);
}

/* Which is final. */
static void take_answer(struct front *f, struct flow *w, enum verdict_reason reason)
{
	w->said = false; /* the supervisor knows */
	flow_stop_waiting(f, w);
	if (reason != REASON_ALLOWED) {
		w->verdict.ask = false;
		verdict_refuse(&w->verdict, reason);
		flow_refuse_by_verdict(f, w, EACCES);
		return;
	}
	w->verdict.allow = w->approved = true;
	w->verdict.ask = false;
	w->verdict.reason = REASON_ALLOWED;
	flow_time_out(f, w, FLOW_WAIT_HEAD);
	flow_go_on(f, w);
	flow_mark_ready(f, w);
}

void flow_answered(struct front *f, const struct gate_order *order)
{
	enum verdict_reason reason = order->reason < VERDICT_REASONS
					     ? (enum verdict_reason)order->reason
					     : REASON_ANSWERED_NO;

	for (uint32_t i = 0; i < f->flow_max; i++) {
		struct flow *w = f->flows[i];

		if (w && w->state == FLOW_ASK && w->said && w->id >> 16 <= order->serial &&
		    w->want.port == order->port && host_equal(&w->want.host, &order->host))
			take_answer(f, w, reason);
	}
}

void flow_decide_waiting(struct front *f, struct flow *w)
{
	struct verdict v;

	decide_name(f->rules, &w->want, &v);
	w->verdict = v;
	if (v.ask)
		return;
	flow_stop_waiting(f, w);
	flow_time_out(f, w, FLOW_WAIT_HEAD);
	flow_go_on(f, w);
	flow_mark_ready(f, w);
}
