/*
 * Connections and requests that wait for a person. In: what front says about them, and answers.
 * Out: questions for the run's queue, orders for dial and front. Front parses what comes from
 * inside and may be taken over, so what it asks for is read again, and decided about with the
 * supervisor's own rules; a yes goes to dial first, over a socket that front does not have, and to
 * front when dial has it. A request is held by front alone, as all rules about requests are kept
 * there; its answer names the digest of what is sent. Runs in the supervisor; nothing here waits.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/io.h"
#include "egress/egress_internal.h"

void egress_on_asked(struct egress *g, egress_asked asked, void *context)
{
	g->asked_now = asked;
	g->asked_context = context;
}

/* The same host, read again. */
static bool read_want(const struct want *from, struct want *ret)
{
	struct host host = { .kind = HOST_ADDRESS, .ip = from->host.ip };
	size_t n = strnlen(from->host.name, sizeof(from->host.name));

	if (from->host.kind == HOST_NAME &&
	    (n == sizeof(from->host.name) || host_read(from->host.name, n, &host) != HOST_FINE ||
	     host.kind != HOST_NAME))
		return false;
	if (from->host.kind == HOST_ADDRESS && host.ip.family != 4 && host.ip.family != 6)
		return false;
	if ((from->host.kind != HOST_NAME && from->host.kind != HOST_ADDRESS) || !from->port)
		return false;
	want_host(ret, WANT_TRANSPARENT, &host, from->port);
	return true;
}

void egress_on_ask(struct egress *g, const struct gate_event *event)
{
	struct verdict v;
	struct want w;
	char host[HOST_TEXT];

	if (!g->asked_now || !read_want(&event->want, &w))
		return;
	decide_name(g->rules, &w, &v);
	/* else the rules have changed meanwhile, and front decides again when it has them */
	if (event->kind == GATE_UNASK || v.ask) {
		int r = g->asked_now(g->asked_context, event->kind == GATE_ASK, &w, &v,
				     event->generation);

		if (event->kind == GATE_ASK && r < 0)
			egress_refuse(g, host_text(&w.host, host), w.port, event->generation,
				      r == -EACCES ? REASON_NEVER : REASON_ASKED_FULL);
	}
}

static void tell_front(struct egress *g, const struct host *host, uint16_t port, uint64_t serial,
		       unsigned reason)
{
	const struct gate_order order = { .word = GATE_ANSWER,
					  .host = *host,
					  .port = port,
					  .serial = serial,
					  .reason = (uint8_t)reason };

	/* what was answered must not wait for ever */
	if (g->fd >= 0 && send(g->fd, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		egress_cut(g);
}

void egress_refuse(struct egress *g, const char *host, uint16_t port, uint64_t serial,
		   unsigned reason)
{
	struct host h;

	if (host_read(host, strlen(host), &h) == HOST_FINE)
		tell_front(g, &h, port, serial, reason);
}

int egress_allow_once(struct egress *g, const char *host, uint16_t port, uint64_t serial,
		      uint32_t count, struct ward_err *e)
{
	struct dial_order order = { .word = DIAL_GRANT, .port = port, .count = count };
	struct egress_grant *place = g->grants;

	if (egress_state(g) != EGRESS_RUNNING || g->orders_fd < 0)
		return ward_fail(
			e, ENOTCONN,
			"the gateway of this sandbox has exited, so nothing more leaves it");
	while (place < g->grants + EGRESS_GRANTS_MAX && place->tag)
		place++;
	if (place == g->grants + EGRESS_GRANTS_MAX) {
		ward_fail(e, EAGAIN, "too many answers are on their way to the gateway");
		return ward_remedy(e, "answer again");
	}
	if (host_read(host, strlen(host), &order.host) != HOST_FINE)
		return ward_fail(e, EINVAL, "%s: not a host", host);
	order.tag = ++g->last_tag;
	if (send(g->orders_fd, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return ward_fail_errno(e, "the gateway does not take the answer");
	*place = (struct egress_grant){ order.tag, serial, order.host, port };
	return 0;
}

void egress_on_granted(struct egress *g, uint64_t tag)
{
	for (size_t i = 0; i < EGRESS_GRANTS_MAX; i++)
		if (tag && g->grants[i].tag == tag) {
			struct egress_grant given = g->grants[i];

			g->grants[i].tag = 0;
			tell_front(g, &given.host, given.port, given.serial, REASON_ALLOWED);
		}
}

/* -- requests */

void egress_on_requested(struct egress *g, egress_requested requested, void *context)
{
	g->requested = requested;
	g->requested_context = context;
}

int egress_answer_request(struct egress *g, const char *host, uint16_t port,
			  const uint8_t exact[32], uint64_t serial, unsigned reason,
			  struct ward_err *e)
{
	struct gate_order order = { .word = GATE_ANSWER_REQUEST,
				    .port = port,
				    .serial = serial,
				    .reason = (uint8_t)reason };

	memcpy(order.exact, exact, sizeof(order.exact));
	if (host_read(host, strlen(host), &order.host) != HOST_FINE)
		return ward_fail(e, EINVAL, "%s: not a host", host);
	if (g->fd < 0)
		return ward_fail(e, ENOTCONN, "the gateway of this sandbox has exited");
	if (send(g->fd, &order, sizeof(order), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
		/* what was answered must not wait for ever */
		ward_fail_errno(e, "the gateway does not take the answer");
		egress_cut(g);
		return -e->code;
	}
	return 0;
}

/* What comes from front is ended, and printable. */
static void clean(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (char *c = text; *c; c++)
		*c = (char)(*c < ' ' || *c > '~' ? '?' : *c);
}

/* Whether the rule that is said to ask is one of this host that does. */
static bool is_asking(const struct rules *r, const struct want *w, int32_t rule,
		      struct verdict *ret)
{
	decide_name(r, w, ret);
	if (!ret->allow || ret->mode < RULE_INSPECT)
		return false;
	for (int32_t i = ret->rule; i >= 0; i = rules_sibling(r, i, w->port))
		if (i == rule && r->items[i].ask) {
			ret->rule = rule;
			return true;
		}
	return false;
}

void egress_on_request(struct egress *g, const struct gate_request *from)
{
	struct gate_request said = *from;
	struct ward_err e = { 0 };
	struct verdict v;
	struct want w;
	char host[HOST_TEXT];
	int r = -EPERM;

	if (!g->requested || !read_want(&said.want, &w))
		return;
	clean(said.what, sizeof(said.what));
	clean(said.more, sizeof(said.more));
	clean(said.query, sizeof(said.query));
	clean(said.body, sizeof(said.body));
	if (is_asking(g->rules, &w, said.rule, &v) || said.kind == GATE_REQUEST_UNASK)
		r = g->requested(g->requested_context, said.kind == GATE_REQUEST_ASK, &w, &v,
				 &said);
	if (said.kind == GATE_REQUEST_ASK && r < 0)
		(void)!egress_answer_request(g, host_text(&w.host, host), w.port, said.exact,
					     said.serial,
					     r == -EACCES  ? REASON_NEVER
					     : r == -EPERM ? REASON_CHANGED
							   : REASON_ASKED_FULL,
					     &e);
}
