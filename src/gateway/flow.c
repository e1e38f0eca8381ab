/*
 * One connection, from accept to its end. In: a socket of the sandbox's namespace, and the bytes of whatever program made
 * it. Out: a decision, and if it is a yes, bytes both ways. The order:
 *
 *   accept -> which name (the synthetic address, or what a proxy's client says) -> decide -> the gate looks at the first
 *   bytes -> dial -> bytes, through the gate until it goes blind.
 *
 * In mode tcp, and behind CONNECT and SOCKS, dial comes first: the server may speak first, and a proxy's client waits for
 * its answer. Nothing of the client's reaches the server before the gate has released it, either way. What is refused is
 * reset and told. Whoever says nothing for HEAD_MS is gone, and so is a flow of which one half has ended when the other is
 * silent for HALF_MS; one that waits for nothing but data costs its struct alone.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/io.h"
#include "gateway/front.h"
#include "gateway/socks.h"

#define HEAD_MS 15000
#define HALF_MS 300000	/* one side has ended, and nothing comes from the other */
#define SLICES 8		/* steps of one flow before the next one has its turn */

/* -- lists */

void flow_mark_ready(struct front *f, struct flow *w)
{
	if (w->ready || w->state == FLOW_DEAD)
		return;
	w->ready = true;
	w->ready_next = NULL;
	if (f->ready.last)
		f->ready.last->ready_next = w;
	else
		f->ready.first = w;
	f->ready.last = w;
}

static const unsigned wait_ms[FLOW_WAITS] = { [FLOW_WAIT_HEAD] = HEAD_MS, [FLOW_WAIT_HALF] = HALF_MS };

static void untime(struct front *f, struct flow *w)
{
	struct flow_list *list = &f->timed[w->timed];

	if (w->timed == FLOW_WAIT_NONE)
		return;
	*(w->timed_prev ? &w->timed_prev->timed_next : &list->first) = w->timed_next;
	*(w->timed_next ? &w->timed_next->timed_prev : &list->last) = w->timed_prev;
	w->timed = FLOW_WAIT_NONE;
}

static void time_out(struct front *f, struct flow *w, enum flow_wait what)
{
	struct flow_list *list = &f->timed[what];

	untime(f, w);
	w->end_at_ms = io_now_ms() + wait_ms[what];
	w->timed = (uint8_t)what;
	w->timed_next = NULL;
	w->timed_prev = list->last;
	*(list->last ? &list->last->timed_next : &list->first) = w;
	list->last = w;
}

uint64_t flow_next_end(const struct front *f)
{
	uint64_t first = 0;

	for (int i = FLOW_WAIT_HEAD; i < FLOW_WAITS; i++)
		if (f->timed[i].first && (!first || f->timed[i].first->end_at_ms < first))
			first = f->timed[i].first->end_at_ms;
	return first;
}

/* -- begin and end */

static struct flow *new_flow(struct front *f, int fd, enum flow_state state)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };
	struct flow *w;
	uint32_t number;

	if (f->flow_count >= f->flow_max)
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	event.data.ptr = w;
	if (epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		free(w);
		return NULL;
	}
	number = f->next_free ? f->free_numbers[--f->next_free] : f->flow_count;
	f->flows[number] = w;
	f->flow_count++;
	w->id = number | (uint32_t)++f->serial << 16;
	w->fds[CLIENT] = fd;
	w->fds[SERVER] = -1;
	w->can_read[CLIENT] = w->can_write[CLIENT] = true;
	w->state = (uint8_t)state;
	time_out(f, w, FLOW_WAIT_HEAD);
	return w;
}

static void reset_socket(int fd)
{
	struct linger now = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

void flow_close(struct front *f, struct flow *w, bool reset)
{
	uint32_t number = w->id & 0xffff;

	if (w->state == FLOW_DEAD)
		return;
	untime(f, w);
	flow_leave(f, w);
	if (w->fds[SERVER] >= 0)	/* dial may still have it open for a moment, and closing would not end the events */
		epoll_ctl(f->epoll_fd, EPOLL_CTL_DEL, w->fds[SERVER], NULL);
	for (int s = 0; s < SIDES; s++) {
		if (w->fds[s] >= 0 && reset)
			reset_socket(w->fds[s]);
		own_close_fd(&w->fds[s]);
		w->fds[s] = -1;
	}
	for (int d = 0; d < DIRECTIONS; d++) {
		pump_release(f, &w->lanes[d]);
		free(take_ptr(w->lanes[d].kept));
	}
	free(take_ptr(w->held));
	free(take_ptr(w->gate));
	w->state = FLOW_DEAD;
	f->flows[number] = NULL;
	f->free_numbers[f->next_free++] = number;
	f->flow_count--;
	w->dead_next = f->dead;	/* events of this round may still name it */
	f->dead = w;
}

void flow_free_dead(struct front *f)
{
	struct flow *kept = NULL;

	while (f->dead) {
		struct flow *w = f->dead;

		f->dead = w->dead_next;
		if (w->ready || w->asked || w->asleep) {	/* still in a list: next time */
			w->dead_next = kept;
			kept = w;
		} else {
			free(w);
		}
	}
	f->dead = kept;
}

static void refuse(struct front *f, struct flow *w, enum verdict_reason reason)
{
	const char *reply = w->gate && w->verdict.mode == RULE_HTTP ? gate_reply(w->gate) : "";

	verdict_refuse(&w->verdict, reason);
	front_denied(f, &w->want, &w->verdict, IPPROTO_TCP);
	if (*reply && w->state != FLOW_DEAD && !w->lanes[DOWN].kept_len) {
		(void)!send(w->fds[CLIENT], reply, strlen(reply), MSG_NOSIGNAL | MSG_DONTWAIT);
		shutdown(w->fds[CLIENT], SHUT_WR);
	}
	flow_close(f, w, !*reply);
}

/* -- what a proxy's client is told */

static unsigned proxy_status(const struct verdict *v)
{
	static const struct {
		uint8_t reason;
		unsigned status;
	} rows[] = { { REASON_UNRESOLVED, 502 }, { REASON_UNREACHABLE, 502 }, { REASON_UPSTREAM, 502 }, { REASON_LIMIT_CONNECTIONS, 429 },
		     { REASON_LIMIT_RATE, 429 }, { REASON_PROXY_BAD, 400 } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].reason == v->reason)
			return rows[i].status;
	return 403;
}

static enum socks_code socks_status(const struct verdict *v, int error)
{
	if (v->reason == REASON_UNRESOLVED)
		return SOCKS_HOST_UNREACHABLE;
	if (v->reason == REASON_UNREACHABLE)
		return error == ECONNREFUSED ? SOCKS_REFUSED : SOCKS_HOST_UNREACHABLE;
	return SOCKS_NOT_ALLOWED;
}

static void tell(struct flow *w, const void *bytes, size_t n)
{
	(void)!send(w->fds[CLIENT], bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);	/* the first bytes: there is room */
}

static void tell_refused(struct flow *w, int error)
{
	uint8_t reply[SOCKS_REPLY_MAX];
	const char *text;

	if (w->want.how == WANT_SOCKS) {
		tell(w, reply, socks_reply(socks_status(&w->verdict, error), reply));
	} else if (w->want.how == WANT_CONNECT) {
		text = http1_proxy_reply(proxy_status(&w->verdict));
		tell(w, text, strlen(text));
	}
}

/* A proxy's client gets an answer, others a reset. */
static void refuse_by_verdict(struct front *f, struct flow *w, int error)
{
	bool proxied = w->want.how != WANT_TRANSPARENT;

	front_denied(f, &w->want, &w->verdict, IPPROTO_TCP);
	tell_refused(w, error);
	if (proxied)
		shutdown(w->fds[CLIENT], SHUT_WR);
	flow_close(f, w, !proxied);
}

/* -- dial */

static void ask_dial(struct front *f, struct flow *w)
{
	w->state = FLOW_DIAL;
	untime(f, w);	/* dial gives up by itself */
	w->asked = true;
	w->ask_next = NULL;
	*(f->ask.last ? &f->ask.last->ask_next : &f->ask.first) = w;
	f->ask.last = w;
	flow_ask(f);
}

void flow_ask(struct front *f)
{
	while (f->ask.first) {
		struct flow *w = f->ask.first;
		struct dial_request request = { .id = w->id, .inward = w->inward ? INWARD_PORT : INWARD_NOT, .want = w->want };

		if (w->state == FLOW_DIAL && send(f->dial_fd, &request, sizeof(request), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
			if (errno != EAGAIN)
				f->finish = true;	/* dial is gone: there is no way out any more */
			return;
		}
		f->ask.first = w->ask_next;
		if (!f->ask.first)
			f->ask.last = NULL;
		w->asked = false;
	}
}

static void pass_gate(struct front *f, struct flow *w);

static void open_flow(struct front *f, struct flow *w)
{
	uint8_t reply[SOCKS_REPLY_MAX];

	w->state = FLOW_OPEN;
	f->totals.connections++;
	if (w->want.how == WANT_SOCKS)
		tell(w, reply, socks_reply(SOCKS_OK, reply));
	else if (w->tunnel)
		tell(w, http1_proxy_reply(200), strlen(http1_proxy_reply(200)));
	if (w->gate && !w->lanes[UP].kept_len)
		time_out(f, w, FLOW_WAIT_HEAD);	/* it has not greeted yet */
	else
		untime(f, w);
	/* a proxy's client may have sent more with its request */
	if (w->held_len && w->gate) {
		pass_gate(f, w);
	} else if (w->held_len) {
		if (!pump_send(f, w, UP, w->held, w->held_len))
			flow_close(f, w, true);
		free(take_ptr(w->held));
		w->held_len = w->held_cap = 0;
	}
	flow_mark_ready(f, w);
}

void flow_dialled(struct front *f, const struct dial_answer *said, int fd)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };
	struct flow *w = (said->id & 0xffff) < f->flow_max ? f->flows[said->id & 0xffff] : NULL;
	auto_fd server = fd;

	if (!w || w->id != said->id || w->state != FLOW_DIAL)
		return;		/* its client has gone away */
	if ((server < 0 || said->error) && w->inward) {
		flow_close(f, w, true);	/* nobody listens inside */
		return;
	}
	if (server < 0 || said->error) {
		w->verdict = said->verdict;
		w->verdict.allow = false;
		refuse_by_verdict(f, w, said->error);
		return;
	}
	/* told apart from the client's by its lowest bit */
	event.data.u64 = (uint64_t)(uintptr_t)w | 1;
	if (epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, server, &event) < 0) {
		flow_close(f, w, true);
		return;
	}
	w->verdict.ip = said->verdict.ip;
	w->fds[SERVER] = take_fd(&server);
	w->can_read[SERVER] = w->can_write[SERVER] = true;
	open_flow(f, w);
}

/* -- deciding */

/* The want is known. What was held so far are the first bytes for the server. */
static void decide(struct front *f, struct flow *w)
{
	decide_name(f->rules, &w->want, &w->verdict);
	if (!w->verdict.allow || !flow_admit(f, w)) {
		refuse_by_verdict(f, w, EACCES);
		return;
	}
	if (w->verdict.mode != RULE_TCP) {
		w->gate = malloc(sizeof(*w->gate));
		if (!w->gate) {
			flow_close(f, w, true);
			return;
		}
		gate_init(w->gate, (enum rule_mode)w->verdict.mode, &w->want.host, w->want.port);
	}
	if (w->gate && !w->tunnel && w->want.how != WANT_SOCKS) {
		w->state = FLOW_GATE;
		if (w->held_len)
			pass_gate(f, w);
		flow_mark_ready(f, w);
	} else {
		ask_dial(f, w);
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

void flow_accepted(struct front *f, int fd, enum net_socket kind)
{
	struct flow *w = new_flow(f, fd, kind == NET_DNS_TCP ? FLOW_NAMES : FLOW_HEAD);
	struct ip ip;
	uint16_t port;

	if (!w) {
		reset_socket(fd);
		close(fd);
		return;
	}
	w->want.how = kind == NET_SOCKS ? WANT_SOCKS : kind == NET_CONNECT ? WANT_CONNECT : WANT_TRANSPARENT;
	if (kind != NET_BROUGHT4 && kind != NET_BROUGHT6 && kind != NET_PUBLISHED) {
		flow_mark_ready(f, w);
		return;
	}
	if (!destination(fd, &ip, &port)) {
		flow_close(f, w, true);
		return;
	}
	if (kind == NET_PUBLISHED) {
		w->inward = true;
		w->want.port = port;
		ask_dial(f, w);
		return;
	}
	want_destination(&w->want, f->names, &ip, port);
	decide(f, w);
}

/* -- heads */

/* Reads what the client says behind what is held. False: nothing new, or the flow is over. */
static bool hold(struct front *f, struct flow *w, uint32_t max)
{
	ssize_t n;

	if (w->held_len >= max)
		return false;
	if (w->held_cap - w->held_len < 2048 && w->held_cap < max) {
		uint32_t cap = w->held_cap ? w->held_cap * 2 : 4096;
		uint8_t *grown = realloc(w->held, cap < max ? cap : max);

		if (!grown) {
			flow_close(f, w, true);
			return false;
		}
		w->held = grown;
		w->held_cap = cap < max ? cap : max;
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

static void drop_held(struct flow *w, size_t n)
{
	w->held_len -= (uint32_t)n;
	if (w->held_len)
		memmove(w->held, w->held + n, w->held_len);
}

static void bad_head(struct front *f, struct flow *w)
{
	w->want.host = (struct host){ 0 };
	verdict_refuse(&w->verdict, REASON_PROXY_BAD);
	refuse_by_verdict(f, w, EINVAL);
}

static void read_socks(struct front *f, struct flow *w)
{
	uint8_t reply[SOCKS_REPLY_MAX];
	enum socks_code code = SOCKS_FAILED;
	int n;

	if (!w->greeted) {
		n = socks_greeting(w->held, w->held_len, reply);
		if (n > 0)
			tell(w, reply, 2);
		if (n < 0 || (n > 0 && reply[1] == 0xff))
			bad_head(f, w);
		if (n <= 0 || w->state == FLOW_DEAD)
			return;
		drop_held(w, (size_t)n);
		w->greeted = 1;
	}
	n = socks_request(w->held, w->held_len, &w->want.host, &w->want.port, &code);
	if (n < 0) {
		verdict_refuse(&w->verdict, REASON_PROXY_BAD);
		front_denied(f, &w->want, &w->verdict, IPPROTO_TCP);
		tell(w, reply, socks_reply(code, reply));
		flow_close(f, w, false);
	} else if (n > 0) {
		struct host host = w->want.host;

		drop_held(w, (size_t)n);
		want_host(&w->want, WANT_SOCKS, &host, w->want.port);
		decide(f, w);
	}
}

static void read_proxy(struct front *f, struct flow *w)
{
	enum http_wrong wrong = HTTP_FINE;
	struct http_proxy head;
	int n = http1_proxy_head(w->held, w->held_len, &w->scanned, &head, &wrong);

	if (n < 0) {
		bad_head(f, w);
	} else if (n > 0) {
		w->tunnel = head.tunnel;
		if (head.tunnel)
			drop_held(w, head.len);
		want_host(&w->want, WANT_CONNECT, &head.host, head.port);
		decide(f, w);
	}
}

static void run_head(struct front *f, struct flow *w)
{
	uint32_t max = w->want.how == WANT_SOCKS ? 1024 : HTTP1_HEAD_MAX + 4096;

	while (w->state == FLOW_HEAD && hold(f, w, max)) {
		if (w->want.how == WANT_SOCKS)
			read_socks(f, w);
		else
			read_proxy(f, w);
	}
	if (w->state == FLOW_HEAD && (w->lanes[UP].ended || w->held_len >= max))
		flow_close(f, w, true);
}

/* -- the gate */

static void go_blind(struct flow *w)
{
	free(take_ptr(w->gate));
	free(take_ptr(w->held));
	w->held_len = w->held_cap = 0;
}

/* What is held, through the gate. */
static void pass_gate(struct front *f, struct flow *w)
{
	size_t release = 0;
	enum gate_say say = gate_client(w->gate, w->held, w->held_len, &release);

	if (say == GATE_REFUSE) {
		refuse(f, w, (enum verdict_reason)w->gate->reason);
		return;
	}
	if (say == GATE_BLIND)
		release = w->held_len;
	if (release && !pump_send(f, w, UP, w->held, release)) {
		flow_close(f, w, true);
		return;
	}
	drop_held(w, release);
	if (say == GATE_BLIND)
		go_blind(w);
	if (!w->held_len) {
		free(take_ptr(w->held));
		w->held_cap = 0;
	}
	if (release && w->state == FLOW_GATE)
		ask_dial(f, w);
	else if (release)
		untime(f, w);
}

/* The client's half, looked at. */
static bool run_gate_up(struct front *f, struct flow *w)
{
	struct lane *l = &w->lanes[UP];

	if (pump_kept(f, w, UP))
		return true;
	if (w->state == FLOW_DEAD || l->kept_len)
		return false;
	if (hold(f, w, GATE_HELD_MAX)) {
		pass_gate(f, w);
		return true;
	}
	if (w->state == FLOW_DEAD || !l->ended || l->shut)
		return false;
	if (w->held_len || w->fds[SERVER] < 0) {	/* it was never whole */
		flow_close(f, w, true);
		return false;
	}
	shutdown(w->fds[SERVER], SHUT_WR);
	l->shut = true;
	return true;
}

/* The server's half: the gate must see it to know what the client may say next. */
static bool run_gate_down(struct front *f, struct flow *w)
{
	struct lane *l = &w->lanes[DOWN];
	enum gate_say say;
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
	n = pump_read(f, w, SERVER, f->scratch, sizeof(f->scratch));
	if (n == -1)
		l->ended = true;
	if (n == -2)
		flow_close(f, w, true);
	if (n <= 0)
		return n == -1;
	say = gate_server(w->gate, f->scratch, (size_t)n);
	if (say == GATE_REFUSE) {
		refuse(f, w, (enum verdict_reason)w->gate->reason);
		return false;
	}
	if (!pump_send(f, w, DOWN, f->scratch, (size_t)n)) {
		flow_close(f, w, true);
		return false;
	}
	if (say == GATE_AGAIN && w->held_len)
		pass_gate(f, w);
	if (say == GATE_BLIND && w->gate) {
		if (w->held_len && !pump_send(f, w, UP, w->held, w->held_len)) {
			flow_close(f, w, true);
			return false;
		}
		go_blind(w);
	}
	return true;
}

static bool run_open(struct front *f, struct flow *w)
{
	bool moved = w->gate ? run_gate_up(f, w) : pump_blind(f, w, UP);

	if (w->state == FLOW_OPEN)
		moved |= w->gate ? run_gate_down(f, w) : pump_blind(f, w, DOWN);
	if (w->state == FLOW_OPEN && w->lanes[UP].shut && w->lanes[DOWN].shut)
		flow_close(f, w, false);
	/* who has gone for good looks like who only has nothing more to say */
	else if (w->state == FLOW_OPEN && w->lanes[UP].shut != w->lanes[DOWN].shut && (moved || w->timed != FLOW_WAIT_HALF))
		time_out(f, w, FLOW_WAIT_HALF);
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
			run_head(f, w);
			moved = false;
			break;
		case FLOW_NAMES:
			moved = front_name_stream(f, w);
			break;
		case FLOW_GATE:
			moved = run_gate_up(f, w);
			break;
		case FLOW_DIAL:
			if (is_abandoned(w))
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

void flow_expire(struct front *f, uint64_t now)
{
	for (int i = FLOW_WAIT_HEAD; i < FLOW_WAITS; i++)
		while (f->timed[i].first && f->timed[i].first->end_at_ms <= now)
			flow_close(f, f->timed[i].first, true);
}
