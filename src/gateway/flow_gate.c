/*
 * Flows whose bytes are looked at. In: what the client and the server say. Out: the same bytes once
 * the gate (sniff.h) has released them, or a refusal. Nothing of the client's reaches the server
 * before. When the gate has seen enough the flow goes blind, and pump.c moves the rest. Runs in
 * front.
 */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "gateway/flow.h"

static bool grow_held(struct front *f, struct flow *w, uint32_t max)
{
	uint32_t cap = w->held_cap ? w->held_cap * 2 : 4096;
	uint8_t *grown;

	if (cap > max)
		cap = max;
	if (!room_grow(f, w->held_cap, cap))
		return false;
	grown = realloc(w->held, cap);
	if (!grown) {
		room_give_back(f, cap);
		w->held_cap = 0;
		return false;
	}
	w->held = grown;
	w->held_cap = cap;
	return true;
}

/* Reads what the client says behind what is held. False: nothing new, or the flow is over. */
bool flow_hold(struct front *f, struct flow *w, uint32_t max)
{
	ssize_t n;

	if (w->held_len >= max)
		return false;
	if (w->held_cap - w->held_len < 2048 && w->held_cap < max) {
		if (!grow_held(f, w, max)) {
			verdict_refuse(&w->verdict, REASON_FULL);
			front_denied(f, &w->want, &w->verdict, IPPROTO_TCP);
			flow_close(f, w, true);
			return false;
		}
	}
	n = pump_read(f, w, CLIENT, w->held + w->held_len, w->held_cap - w->held_len);
	if (n > 0)
		w->held_len += (uint32_t)n;
	else if (n == -1)
		w->lanes[UP].ended = true;
	else if (n == -2)
		flow_close(f, w, true);
	return n > 0;
}

void flow_drop_held(struct flow *w, size_t n)
{
	w->held_len -= (uint32_t)n;
	if (w->held_len)
		memmove(w->held, w->held + n, w->held_len);
}

void flow_free_held(struct front *f, struct flow *w)
{
	room_give_back(f, w->held_cap);
	free(take_ptr(w->held));
	w->held_len = w->held_cap = 0;
}

static void go_blind(struct front *f, struct flow *w)
{
	free(take_ptr(w->gate));
	flow_free_held(f, w);
}

static void refuse(struct front *f, struct flow *w, enum verdict_reason reason)
{
	const char *reply = w->gate && w->verdict.mode == RULE_HTTP ? sniff_reply(w->gate) : "";

	verdict_refuse(&w->verdict, reason);
	front_denied(f, &w->want, &w->verdict, IPPROTO_TCP);
	if (*reply && w->state != FLOW_DEAD && !w->lanes[DOWN].kept_len) {
		(void)!send(w->fds[CLIENT], reply, strlen(reply), MSG_NOSIGNAL | MSG_DONTWAIT);
		shutdown(w->fds[CLIENT], SHUT_WR);
	}
	flow_close(f, w, !*reply);
}

/* What is held, through the gate. */
void flow_pass_gate(struct front *f, struct flow *w)
{
	size_t release = 0;
	enum sniff_say say = sniff_client(w->gate, w->held, w->held_len, &release);

	if (say == SNIFF_REFUSE) {
		enum verdict_reason reason = (enum verdict_reason)w->gate->reason;

		if (!flow_turn(f, w, reason))
			refuse(f, w, reason);
		return;
	}
	if (say == SNIFF_BLIND)
		release = w->held_len;
	if (release && !pump_send(f, w, UP, w->held, release)) {
		flow_close(f, w, true);
		return;
	}
	flow_drop_held(w, release);
	if (say == SNIFF_BLIND)
		go_blind(f, w);
	if (!w->held_len)
		flow_free_held(f, w);
	if (release && w->state == FLOW_GATE)
		flow_ask_dial(f, w);
	else if (release)
		flow_untime(f, w);
}

/* The client's half, looked at. */
bool flow_run_gate_up(struct front *f, struct flow *w)
{
	struct lane *l = &w->lanes[UP];

	if (pump_kept(f, w, UP))
		return true;
	if (w->state == FLOW_DEAD || l->kept_len)
		return false;
	if (flow_hold(f, w, SNIFF_HELD_MAX)) {
		flow_pass_gate(f, w);
		return true;
	}
	if (w->state == FLOW_DEAD || !l->ended || l->shut)
		return false;
	if (w->held_len || w->fds[SERVER] < 0) { /* it was never whole */
		flow_close(f, w, true);
		return false;
	}
	shutdown(w->fds[SERVER], SHUT_WR);
	l->shut = true;
	return true;
}

/* The server's half: the gate must see it to know what the client may say next. */
bool flow_run_gate_down(struct front *f, struct flow *w)
{
	struct lane *l = &w->lanes[DOWN];
	enum sniff_say say;
	ssize_t n;

	if (pump_kept(f, w, DOWN))
		return true;
	if (w->state == FLOW_DEAD || l->kept_len)
		return false;
	if (l->ended) {
		if (!l->shut)
			shutdown(w->fds[CLIENT], SHUT_WR);
		l->shut = true;
		return false;
	}
	n = pump_read(f, w, SERVER, f->scratch, room_for_reading(f));
	if (n == -1)
		l->ended = true;
	if (n == -2)
		flow_close(f, w, true);
	if (n <= 0)
		return n == -1;
	say = sniff_server(w->gate, f->scratch, (size_t)n);
	if (say == SNIFF_REFUSE) {
		refuse(f, w, (enum verdict_reason)w->gate->reason);
		return false;
	}
	if (!pump_send(f, w, DOWN, f->scratch, (size_t)n)) {
		flow_close(f, w, true);
		return false;
	}
	if (say == SNIFF_AGAIN && w->held_len)
		flow_pass_gate(f, w);
	if (say == SNIFF_BLIND && w->gate) {
		if (w->held_len && !pump_send(f, w, UP, w->held, w->held_len)) {
			flow_close(f, w, true);
			return false;
		}
		go_blind(f, w);
	}
	return true;
}
