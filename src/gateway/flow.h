/* Shared by the files of a flow: flow.c (its way), flow_life.c (its beginning and end),
 * flow_proxy.c, flow_gate.c. */
#ifndef WARD_GATEWAY_FLOW_H
#define WARD_GATEWAY_FLOW_H

#include "gateway/front.h"

/* Which flow's, and which side's: what comes for a flow that is gone is known by its id. */
static inline uint64_t flow_event(const struct flow *w, enum side s)
{
	return w->id | (uint64_t)(s == SERVER) << 63;
}

/* flow_life.c */
/* A flow over the client's socket (-1: it has none), which it takes; NULL: the socket is still the
 * caller's. */
struct flow *flow_new(struct front *f, int fd, enum flow_state state);
void flow_untime(struct front *f, struct flow *w);
void flow_time_out(struct front *f, struct flow *w, enum flow_wait what);
/* From here on it wakes us up, for what or more. False: it cannot. */
must_check bool flow_watch(struct front *f, struct flow *w, enum side s, enum flow_watch what);
/* The program says nothing more. Whether it still listens is not reported: asks now and then. When
 * no process is there any more, that is an event. */
void flow_probe(int fd);
/* Closing it will be seen as an error by the other side. */
void flow_reset_socket(int fd);

/* flow.c: the want is known; what was held so far are the first bytes for the server. */
void flow_decide(struct front *f, struct flow *w);
/* It is decided about, and perhaps answered: on its way, or refused. */
void flow_go_on(struct front *f, struct flow *w);

/* flow_ask.c: holds it until a person has answered. */
void flow_wait_for_answer(struct front *f, struct flow *w);
/* It does not wait any more: says so to the supervisor. */
void flow_stop_waiting(struct front *f, struct flow *w);
/* Its client is looked at while it waits. */
void flow_run_waiting(struct front *f, struct flow *w);
/* The same under other rules. */
void flow_decide_waiting(struct front *f, struct flow *w);

/* front_to_dial.c: dial is asked for its server at the end of this turn. */
void flow_ask_dial(struct front *f, struct flow *w);

/* flow_proxy.c */
void flow_run_head(struct front *f, struct flow *w);
/* A client that asks its HTTP proxy for one host after another over one connection: what is held is
 * such a request for another host than the last, whose answers have all come. True: the flow is on
 * its way there; false: it is not of that kind. */
must_check bool flow_turn(struct front *f, struct flow *w, enum verdict_reason reason);
void flow_tell(struct flow *w, const void *bytes, size_t n);
/* A proxy's client gets an answer, others a reset. */
void flow_refuse_by_verdict(struct front *f, struct flow *w, int error);

/* flow_gate.c */
/* Reads what the client says behind what is held. False: nothing new, or the flow is over. */
must_check bool flow_hold(struct front *f, struct flow *w, uint32_t max);
void flow_drop_held(struct flow *w, size_t n);
void flow_free_held(struct front *f, struct flow *w);
/* What is held, through the gate. */
void flow_pass_gate(struct front *f, struct flow *w);
must_check bool flow_run_gate_up(struct front *f, struct flow *w);
must_check bool flow_run_gate_down(struct front *f, struct flow *w);

/* Whether what goes that way is looked through for the values of canaries here. */
static inline bool flow_seeks_canaries(const struct front *f, const struct flow *w,
				       enum direction d)
{
	return f->canaries && d == UP && !w->inward && w->verdict.mode == RULE_TCP;
}

#endif
