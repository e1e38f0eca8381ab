/*
 * One connection, from accept to its end. In: a socket of the sandbox's namespace, and the bytes of
 * whatever program made it. Out: a decision, and if it is a yes, bytes both ways. The order:
 *
 *   accept -> which name (the synthetic address, or what a proxy's client says) -> decide -> where
 *   the rule asks, a person (flow_ask.c) -> the gate looks at the first
 *   bytes -> dial -> bytes, through the gate until it goes blind.
 *
 * In mode tcp, and behind CONNECT and SOCKS, dial comes first: the server may speak first, and a
 * proxy's client waits for its answer. Nothing of the client's reaches the server before the gate
 * has released it, either way. What is refused is reset and reported. flow_life.c has its beginning
 * and end, flow_proxy.c the heads, flow_gate.c the looking.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "gateway/flow.h"
#include "gateway/inspect_main.h"
#include "rules/socks.h"

#define SLICES 8 /* steps of one flow before the next one has its turn */

/* The kernel has no room for its socket among those that are watched. */
static void refuse_for_room(struct front *f, struct flow *w)
{
	if (w->inward) {
		flow_close(f, w, true);
		return;
	}
	verdict_refuse(&w->verdict, REASON_FULL);
	flow_refuse_by_verdict(f, w, ENOSPC);
}

/* -- dial */

static void open_flow(struct front *f, struct flow *w)
{
	uint8_t reply[SOCKS_REPLY_MAX];

	w->state = FLOW_OPEN;
	f->totals.connections++;
	front_flow_report_flow(f, w, FLOW_REPORT_OPENED);
	if (w->want.how == WANT_SOCKS)
		flow_tell(w, reply, socks_reply(SOCKS_OK, reply));
	else if (w->tunnel)
		flow_tell(w, http1_proxy_reply(200), strlen(http1_proxy_reply(200)));
	if (w->gate && !w->lanes[UP].kept_len)
		flow_time_out(f, w, FLOW_WAIT_HEAD); /* it has not greeted yet */
	else
		flow_untime(f, w);
	/* a proxy's client may have sent more with its request */
	if (w->held_len && w->gate) {
		flow_pass_gate(f, w);
	} else if (w->held_len) {
		if (!pump_send(f, w, UP, w->held, w->held_len))
			flow_close(f, w, true);
		flow_free_held(f, w);
	}
	flow_mark_ready(f, w);
}

void flow_dialled(struct front *f, const struct dial_answer *said, int fd)
{
	struct flow *w = (said->id & 0xffff) < f->flow_max ? f->flows[said->id & 0xffff] : NULL;
	auto_fd server = fd;

	if (!w || w->id != said->id || w->state != FLOW_DIAL)
		return; /* its client has gone away */
	if ((server < 0 || said->error) && w->inward) {
		flow_close(f, w, true); /* no process listens inside */
		return;
	}
	if (server < 0 || said->error) {
		w->verdict = said->verdict;
		w->verdict.allow = false;
		flow_refuse_by_verdict(f, w, said->error);
		return;
	}
	w->verdict.ip = said->verdict.ip;
	w->fds[SERVER] = take_fd(&server);
	w->can_write[SERVER] = true; /* whether there is something to read is an event */
	if (!flow_watch(f, w, SERVER, w->inspect ? WATCH_ALL : WATCH_READ)) {
		own_close_fd(&w->fds[SERVER]);
		w->fds[SERVER] = -1; /* it was never open */
		refuse_for_room(f, w);
		return;
	}
	room_fit_sockets(f, w);
	w->prompt = false;
	if (w->inspect) {
		pump_hurry(w);
		f->inspect->dialled(f, w);
	} else {
		open_flow(f, w);
	}
}

/* -- deciding */

/* The want is known. What was held so far are the first bytes for the server. */
void flow_decide(struct front *f, struct flow *w)
{
	w->approved = false;
	decide_name(f->rules, &w->want, &w->verdict);
	if (w->verdict.ask)
		flow_wait_for_answer(f, w);
	else
		flow_go_on(f, w);
}

void flow_go_on(struct front *f, struct flow *w)
{
	if (!w->verdict.allow || !flow_admit(f, w)) {
		flow_refuse_by_verdict(f, w, EACCES);
		return;
	}
	if (f->inspect && (w->verdict.mode == RULE_INSPECT || w->verdict.mode == RULE_PLAIN)) {
		if (flow_watch(f, w, CLIENT, WATCH_ALL))
			f->inspect->begin(f, w);
		else
			refuse_for_room(f, w);
		return;
	}
	if (w->verdict.mode != RULE_TCP) {
		w->gate = malloc(sizeof(*w->gate));
		if (!w->gate || !flow_watch(f, w, CLIENT, WATCH_READ)) {
			refuse_for_room(f, w);
			return;
		}
		sniff_init(w->gate, (enum rule_mode)w->verdict.mode, &w->want.host, w->want.port);
	}
	if (w->gate && !w->tunnel && w->want.how != WANT_SOCKS) {
		w->state = FLOW_GATE;
		if (w->held_len)
			flow_pass_gate(f, w);
		flow_mark_ready(f, w);
	} else {
		flow_ask_dial(f, w);
	}
}

/* Where the connection was meant to go: its own address. */
static bool destination(int fd, struct ip *ret_ip, uint16_t *ret_port)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} here = { 0 };
	socklen_t n = sizeof(here);

	if (getsockname(fd, &here.any, &n) < 0)
		return false;
	if (here.any.sa_family == AF_INET) {
		*ret_ip = ip_from_4((const uint8_t *)&here.v4.sin_addr);
		*ret_port = ntohs(here.v4.sin_port);
		return true;
	}
	*ret_ip = ip_from_16(here.v6.sin6_addr.s6_addr);
	*ret_port = ntohs(here.v6.sin6_port);
	return here.any.sa_family == AF_INET6;
}

/* No room for one more: reported, and refused at once. */
static void turn_away(struct front *f, int fd, enum net_socket kind)
{
	struct want want = { .how = WANT_CONNECT };
	struct verdict v;
	struct ip ip;
	uint16_t port;

	if ((kind == NET_TPROXY4 || kind == NET_TPROXY6) && destination(fd, &ip, &port))
		want_destination(&want, f->names, &ip, port);
	decide_name(f->rules, &want, &v);
	verdict_refuse(&v, REASON_FULL);
	if (kind != NET_PUBLISHED)
		front_denied(f, &want, &v, IPPROTO_TCP);
	flow_reset_socket(fd);
	close(fd);
}

void flow_accepted(struct front *f, int fd, enum net_socket kind, uint16_t inside)
{
	struct flow *w = flow_new(f, fd, kind == NET_DNS_TCP ? FLOW_NAMES : FLOW_HEAD);
	struct ip ip;
	uint16_t port;

	if (!w) {
		turn_away(f, fd, kind);
		return;
	}
	w->want.how = kind == NET_SOCKS     ? WANT_SOCKS
		      : kind == NET_CONNECT ? WANT_CONNECT
					    : WANT_TRANSPARENT;
	if (kind != NET_TPROXY4 && kind != NET_TPROXY6 && kind != NET_PUBLISHED) {
		if (flow_watch(f, w, CLIENT, WATCH_ALL))
			flow_mark_ready(f, w);
		else
			refuse_for_room(f, w);
		return;
	}
	if (kind == NET_PUBLISHED) {
		w->inward = true;
		w->want.port = inside;
		flow_ask_dial(f, w);
		return;
	}
	if (!destination(fd, &ip, &port)) {
		flow_close(f, w, true);
		return;
	}
	want_destination(&w->want, f->names, &ip, port);
	flow_decide(f, w);
}

/* -- moving */

static bool run_open(struct front *f, struct flow *w)
{
	bool moved = w->gate ? flow_run_gate_up(f, w) : pump_blind(f, w, UP);

	if (w->state == FLOW_OPEN)
		moved |= w->gate ? flow_run_gate_down(f, w) : pump_blind(f, w, DOWN);
	if (w->state == FLOW_OPEN && w->lanes[UP].shut && w->lanes[DOWN].shut)
		flow_close(f, w, false);
	else if (w->state == FLOW_OPEN && w->lanes[UP].shut && w->gone[CLIENT])
		/* no program is left to read what the server may still send */
		flow_close(f, w, true);
	else if (w->state == FLOW_OPEN &&
		 !flow_watch(f, w, CLIENT,
			     WATCH_READ)) /* not before: what was there would wake us once more */
		flow_close(f, w, true);
	/* a client that is gone looks like one that only has nothing more to send */
	else if (w->state == FLOW_OPEN && w->lanes[UP].shut != w->lanes[DOWN].shut &&
		 (moved || w->timed != FLOW_WAIT_HALF))
		flow_time_out(f, w, FLOW_WAIT_HALF);
	return moved;
}

/* Whether the client has given up while nothing of it is read. */
static bool is_abandoned(const struct flow *w)
{
	char byte;
	ssize_t n = recv(w->fds[CLIENT], &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n < 0 && errno != EAGAIN && errno != EINTR;
}

void flow_run(struct front *f, struct flow *w)
{
	bool moved = true;

	for (int i = 0; i < SLICES && moved && w->state != FLOW_DEAD; i++) {
		switch ((enum flow_state)w->state) {
		case FLOW_HEAD:
			flow_run_head(f, w);
			moved = false;
			break;
		case FLOW_NAMES:
			moved = front_name_stream(f, w);
			break;
		case FLOW_GATE:
			moved = flow_run_gate_up(f, w);
			break;
		case FLOW_INSPECT:
			moved = f->inspect->run(f, w);
			break;
		case FLOW_ASK:
			flow_run_waiting(f, w);
			moved = false;
			break;
		case FLOW_DIAL:
			if (!w->server && is_abandoned(w))
				flow_close(f, w, true);
			moved = false;
			break;
		case FLOW_OPEN:
			moved = run_open(f, w);
			break;
		case FLOW_DEAD:
			break;
		}
	}
	if (moved)
		flow_mark_ready(f, w);
}
