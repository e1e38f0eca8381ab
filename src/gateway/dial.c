/*
 * dial: the process that connects. In: typed requests of front, DNS answers, the host's table of
 * names. Out: connected sockets, handed to front. It never sees a byte of what flows, and front
 * cannot connect: an attacker who takes over front still reaches only what the rules allow, for
 * dial has its own copy of them and decides again.
 *
 * A request is for a name (looked up here and now) or for an address; dial_begin.c begins with it,
 * dial_try.c connects, dial_to_front.c answers. What a name resolves to later, or differently, does
 * not matter: an address is checked right before the connection to it. Bounded: DIAL_MAX requests
 * at a time, each for DIAL_MS.
 *
 * Where the policy has an upstream proxy, everything but the host's services goes through it: names
 * are its to resolve, literal addresses are checked here, and its own address is the operator's
 * choice.
 *
 * Rules change at the supervisor's word, which comes over a socket of its own: what was begun and
 * is no longer allowed is given up.
 *
 * Rights: socket, connect, send and receive; no file, no exec (tables/procs.def).
 */
#include "gateway/dial.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/io.h"
#include "base/trim_memory.h"
#include "gateway/config.h"
#include "gateway/proc.h"

/* -- the supervisor */

/* What is under way is decided about again. */
static void decide_again(struct dial *d, struct attempt *a)
{
	struct want want;
	struct verdict v;

	want_host(&want, WANT_CONNECT, &a->target, a->verdict.port);
	decide_name(d->rules, &want, &v);
	v.allow |= v.ask && a->approved;
	if (v.allow && v.service == a->verdict.service && v.reach == a->verdict.reach &&
	    v.private >= a->verdict.private)
		return;
	a->refused = v;
	verdict_refuse(&a->refused, REASON_CHANGED);
	a->was_refused = a->revoked = true;
	a->error = 0;
	/* else its number is still in a question to the resolver, and must not become another's */
	if (a->count)
		dial_give_up(d, a);
}

static void take_rules(struct dial *d, int fd)
{
	struct dial_word said = { .kind = DIAL_TAKEN };
	struct rules *old = d->rules, *new = NULL;
	struct ward_err e = { 0 };

	if (config_read(fd, &new, NULL, &e) < 0 || new->generation <= old->generation) {
		rules_free(new);
		d->gone = true;
		return;
	}
	d->rules = new;
	rules_free(old);
	for (size_t i = 0, left = d->busy; i < DIAL_MAX && left; i++) {
		if (!d->attempts[i].used)
			continue;
		left--;
		if (!d->attempts[i].inward)
			decide_again(d, &d->attempts[i]);
	}
	said.generation = new->generation;
	/* by the old rules: front is to have them before it gets the new ones */
	dial_answer_all(d);
	if (send(GATE_FD_ORDERS, &said, sizeof(said), MSG_NOSIGNAL) < 0)
		d->gone = true;
}

static void take_files(struct dial *d, uint32_t files, int *fds, size_t count)
{
	size_t next = 0;

	if (files & 1U << DIAL_HOSTS && next < count)
		lookup_hosts(d->lookup, take_fd(&fds[next++]));
	if (files & 1U << DIAL_RESOLVER && next < count)
		lookup_settings(d->lookup, fds[next]);
	dial_files_are_known(d);
}

static void on_orders(struct dial *d)
{
	struct dial_order order = { 0 };
	size_t count = 0;
	int fds[DIAL_FILE_COUNT];
	ssize_t n =
		io_recv_fds(GATE_FD_ORDERS, &order, sizeof(order), fds, DIAL_FILE_COUNT, &count);

	if (n == (ssize_t)sizeof(order) && order.word == DIAL_RULES && count == 1)
		take_rules(d, fds[0]);
	else if (n == (ssize_t)sizeof(order) && order.word == DIAL_FILES)
		take_files(d, order.files, fds, count);
	else if (n == (ssize_t)sizeof(order) && order.word == DIAL_GRANT && !count)
		dial_grant_add(d, &order);
	else
		d->gone = true; /* the supervisor is */
	for (size_t i = 0; i < count; i++)
		own_close_fd(&fds[i]);
}

static void on_time(struct dial *d)
{
	uint64_t now = io_now_ms();

	lookup_tick(d->lookup);
	if (d->files_until_ms && now >= d->files_until_ms)
		dial_files_are_known(d); /* as far as they are */
	for (size_t i = 0, left = d->busy; i < DIAL_MAX && left; i++) {
		struct attempt *a = &d->attempts[i];

		if (!a->used)
			continue;
		left--;
		if (now >= a->end_at_ms) {
			a->error = ETIMEDOUT;
			dial_give_up(d, a);
		} else if (a->next_at_ms && now >= a->next_at_ms) {
			dial_try_next(d, a);
		}
	}
}

static int wait_ms(struct dial *d)
{
	uint64_t now = io_now_ms(), first = now + 60000;

	if (!d->busy)
		return -1;
	if (d->files_until_ms && d->files_until_ms < first)
		first = d->files_until_ms;
	for (size_t i = 0, left = d->busy; i < DIAL_MAX && left; i++) {
		const struct attempt *a = &d->attempts[i];

		if (!a->used)
			continue;
		left--;
		first = a->end_at_ms < first ? a->end_at_ms : first;
		first = a->next_at_ms && a->next_at_ms < first ? a->next_at_ms : first;
	}
	return lookup_wait_ms(d->lookup, first > now ? (int)(first - now) : 0);
}

static void serve(struct dial *d)
{
	struct epoll_event events[64];

	while (!d->gone) {
		int n = epoll_wait(d->epoll_fd, events, ARRAY_LEN(events), wait_ms(d));

		for (int i = 0; i < n; i++) {
			uint32_t tag = (uint32_t)(events[i].data.u64 >> 32),
				 number = (uint32_t)events[i].data.u64;

			if (tag == TAG_FRONT)
				continue;
			if (tag == TAG_ORDERS)
				on_orders(d);
			else if (tag == TAG_LOOKUP)
				lookup_ready(d->lookup, (int)number, events[i].events);
			else
				dial_on_try(d, number);
		}
		on_time(d);
		dial_on_front(d); /* last: there may be room again */
		dial_answer_all(d);
	}
}

int dial_main(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET,
				     .data.u64 = (uint64_t)TAG_FRONT << 32 };
	struct epoll_event orders = { .events = EPOLLIN, .data.u64 = (uint64_t)TAG_ORDERS << 32 };
	struct dial *d = calloc(1, sizeof(*d));
	struct ward_err e = { 0 };

	if (!d)
		return 125;
	d->front_fd = GATE_FD_CONTROL;
	d->files_at_ms = io_now_ms();
	published_init(&d->inward);
	d->routes_fd = dial_routes();
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (config_read(GATE_FD_CONFIG, &d->rules, NULL, &e) < 0 ||
	    config_read_proxy(&d->proxy, &e) < 0)
		return 125;
	if (d->epoll_fd < 0 || epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, d->front_fd, &event) < 0 ||
	    epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, GATE_FD_ORDERS, &orders) < 0 ||
	    lookup_new(d->epoll_fd, TAG_LOOKUP,
		       fcntl(GATE_FD_HOSTS, F_GETFD) < 0 ? -1 : GATE_FD_HOSTS, dial_found, d,
		       &d->lookup, &e) < 0 ||
	    confine_enter(PROC_DIAL, NULL, &e) < 0)
		return 125;
	trim_memory_now();
	serve(d);
	return 0;
}
