/*
 * The beginning of an attempt. In: a request of front, which is believed no further than it can be
 * checked. Out: addresses to try, or a refusal. dial decides about every request again, with rules
 * of its own. A name is looked up here and now; through an upstream proxy names are its to resolve.
 * Runs in dial.
 */
#include "gateway/dial.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/io.h"

#define DIAL_MS 30000
/* after that the supervisor is asked whether the host's files have changed */
#define FILES_MS 1000
#define FILES_WAIT_MS 200 /* and its answer waited for at most so long */

void dial_found(void *context, uint32_t id, const struct ip *ips, size_t count)
{
	struct dial *d = context;
	struct attempt *a = &d->attempts[id % DIAL_MAX];

	if (!a->used || a->question != id || a->count)
		return;
	if (!count || a->revoked) {
		dial_give_up(d, a);
		return;
	}
	memcpy(a->ips, ips, count * sizeof(*ips));
	a->count = count;
	dial_try_next(d, a);
}

/* What front sent is believed only if it is what reading it again would make. */
static bool is_sound(const struct want *w)
{
	struct host again;

	return (w->host.kind == HOST_NAME && w->host.len <= HOSTNAME_MAX &&
		!w->host.name[w->host.len] &&
		host_read(w->host.name, w->host.len, &again) == HOST_FINE &&
		host_equal(&again, &w->host)) ||
	       (w->host.kind == HOST_ADDRESS && (w->host.ip.family == 4 || w->host.ip.family == 6));
}

static void look_up_now(struct dial *d, struct attempt *a)
{
	a->looking = false;
	lookup_find(d->lookup, a->by_proxy ? &d->proxy.host : &a->target, a->question);
}

/* The host's table of names and its resolver may be others now: the supervisor looks, for we have
 * no files. */
static void look_up(struct dial *d, struct attempt *a)
{
	const struct dial_word word = { .kind = DIAL_LOOK };
	uint64_t now = io_now_ms();

	if (!d->files_until_ms && now - d->files_at_ms >= FILES_MS &&
	    send(GATE_FD_ORDERS, &word, sizeof(word), MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		d->files_until_ms = now + FILES_WAIT_MS;
	a->looking = d->files_until_ms > 0;
	if (!a->looking)
		look_up_now(d, a);
}

void dial_files_are_known(struct dial *d)
{
	d->files_at_ms = io_now_ms();
	d->files_until_ms = 0;
	for (size_t i = 0; i < DIAL_MAX; i++)
		if (d->attempts[i].used && d->attempts[i].looking)
			look_up_now(d, &d->attempts[i]);
}

/* Through the proxy: a literal address is checked as any, a name is left to it. */
static void begin_by_proxy(struct dial *d, struct attempt *a)
{
	struct address_own own = { .items = &a->verdict.ip,
				   .len = a->verdict.reach != REACH_NAME &&
					  dial_is_own(d, &a->verdict.ip) };

	if (a->verdict.reach != REACH_NAME) {
		decide_address(&a->verdict, &a->verdict.ip, &own, &a->refused);
		a->was_refused = !a->refused.allow;
	}
	if (a->was_refused) {
		dial_give_up(d, a);
		return;
	}
	a->by_proxy = true;
	if (d->proxy.host.kind == HOST_NAME)
		look_up(d, a);
	else
		dial_found(d, a->question, &d->proxy.host.ip, 1);
}

/* Into the sandbox: to the program that listens there, on either loopback. */
static void begin_inward(struct dial *d, struct attempt *a, uint16_t port)
{
	bool done = false;

	for (int v6 = 0; v6 < 2 && a->fds[0] < 0; v6++) {
		int fd = published_connect(&d->inward, v6, port, &done);

		if (fd >= 0)
			a->fds[0] = fd;
		else if (!a->error)
			a->error = -fd;
	}
	a->count = 1;
	if (a->fds[0] >= 0 && done)
		dial_connected(d, a, 0);
	else if (a->fds[0] < 0 || dial_watch(d, a, 0, EPOLLOUT) < 0)
		dial_give_up(d, a);
}

void dial_begin(struct dial *d, const struct dial_request *request)
{
	struct attempt *a = d->attempts;

	while (a->used)
		a++; /* there is room: see dial_on_front() */
	*a = (struct attempt){ .used = true,
			       .question = d->questions++ * DIAL_MAX + (uint32_t)(a - d->attempts),
			       .id = request->id,
			       .end_at_ms = io_now_ms() + DIAL_MS };
	for (int i = 0; i < TRIES; i++)
		a->fds[i] = -1;
	d->busy++;
	a->inward = request->inward;
	if (request->inward) {
		begin_inward(d, a, request->want.port);
		return;
	}
	if (is_sound(&request->want)) {
		a->target = request->want.host;
		decide_name(d->rules, &request->want, &a->verdict);
		if (a->verdict.ask && dial_grant_use(d, &request->want.host, request->want.port)) {
			a->approved = a->verdict.allow = true;
			a->verdict.ask = false;
			a->verdict.reason = REASON_ALLOWED;
		}
	}
	if (!a->verdict.allow) {
		a->refused = a->verdict;
		a->was_refused = true;
		dial_give_up(d, a);
	} else if (d->proxy.port && a->verdict.reach != REACH_SERVICE) {
		begin_by_proxy(d, a);
	} else if (a->verdict.reach == REACH_NAME) {
		look_up(d, a);
	} else {
		dial_found(d, a->question, &a->verdict.ip, 1);
	}
}
