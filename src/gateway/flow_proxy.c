/*
 * Flows that say themselves where they want to go: clients of the proxies inside (HTTP CONNECT or a
 * request with a whole URL, SOCKS5). In: their bytes, until the head is whole. Out: a want that is
 * decided about as any, and the answer in the client's protocol, yes or no. Runs in front.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "gateway/flow.h"
#include "rules/socks.h"

/* -- answers to a proxy's client */

static unsigned proxy_status(const struct verdict *v)
{
	static const struct {
		uint8_t reason;
		unsigned status;
	} rows[] = { { REASON_UNRESOLVED, 502 }, { REASON_UNREACHABLE, 502 },
		     { REASON_UPSTREAM, 502 },   { REASON_LIMIT_CONNECTIONS, 429 },
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

void flow_tell(struct flow *w, const void *bytes, size_t n)
{
	/* the first bytes: there is room */
	(void)!send(w->fds[CLIENT], bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void tell_refused(struct flow *w, int error)
{
	uint8_t reply[SOCKS_REPLY_MAX];
	const char *text;

	if (w->want.how == WANT_SOCKS) {
		flow_tell(w, reply, socks_reply(socks_status(&w->verdict, error), reply));
	} else if (w->want.how == WANT_CONNECT) {
		text = http1_proxy_reply(proxy_status(&w->verdict));
		flow_tell(w, text, strlen(text));
	}
}

/* A proxy's client gets an answer, others a reset. */
void flow_refuse_by_verdict(struct front *f, struct flow *w, int error)
{
	bool proxied = w->want.how != WANT_TRANSPARENT;

	front_denied(f, &w->want, &w->verdict, IPPROTO_TCP);
	tell_refused(w, error);
	if (proxied)
		shutdown(w->fds[CLIENT], SHUT_WR);
	flow_close(f, w, !proxied);
}

/* -- heads */

static void bad_head(struct front *f, struct flow *w)
{
	w->want.host = (struct host){ 0 };
	verdict_refuse(&w->verdict, REASON_PROXY_BAD);
	flow_refuse_by_verdict(f, w, EINVAL);
}

/* What a proxy's client wants; a client that has looked a name up itself asks for its synthetic
 * address. */
static void want_proxied(struct front *f, struct flow *w, enum want_how how,
			 const struct host *host, uint16_t port)
{
	struct host copy = *host;

	if (copy.kind == HOST_ADDRESS)
		want_destination(&w->want, f->names, &copy.ip, port);
	else
		want_host(&w->want, how, &copy, port);
	w->want.how = (uint8_t)how;
}

static void read_socks(struct front *f, struct flow *w)
{
	uint8_t reply[SOCKS_REPLY_MAX];
	enum socks_code code = SOCKS_FAILED;
	int n;

	if (!w->greeted) {
		n = socks_greeting(w->held, w->held_len, reply);
		if (n > 0)
			flow_tell(w, reply, 2);
		if (n < 0 || (n > 0 && reply[1] == 0xff))
			bad_head(f, w);
		if (n <= 0 || w->state == FLOW_DEAD)
			return;
		flow_drop_held(w, (size_t)n);
		w->greeted = 1;
	}
	n = socks_request(w->held, w->held_len, &w->want.host, &w->want.port, &code);
	if (n < 0) {
		verdict_refuse(&w->verdict, REASON_PROXY_BAD);
		front_denied(f, &w->want, &w->verdict, IPPROTO_TCP);
		flow_tell(w, reply, socks_reply(code, reply));
		flow_close(f, w, false);
	} else if (n > 0) {
		flow_drop_held(w, (size_t)n);
		want_proxied(f, w, WANT_SOCKS, &w->want.host, w->want.port);
		flow_decide(f, w);
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
			flow_drop_held(w, head.len);
		want_proxied(f, w, WANT_CONNECT, &head.host, head.port);
		flow_decide(f, w);
	}
}

bool flow_turn(struct front *f, struct flow *w, enum verdict_reason reason)
{
	if (w->want.how != WANT_CONNECT || w->tunnel || w->state != FLOW_OPEN ||
	    w->lanes[UP].ended || w->lanes[DOWN].ended ||
	    (reason != REASON_WRONG_HOST && reason != REASON_HTTP_TUNNEL) ||
	    w->lanes[UP].kept_len || w->lanes[DOWN].kept_len || w->gate->mode != RULE_HTTP ||
	    !http_sniff_is_quiet(&w->gate->http))
		return false;
	flow_leave(f, w);
	epoll_ctl(f->epoll_fd, EPOLL_CTL_DEL, w->fds[SERVER], NULL);
	own_close_fd(&w->fds[SERVER]);
	w->fds[SERVER] = -1;
	w->watched[SERVER] = WATCH_NOT;
	w->has_ended[SERVER] = false;
	w->lanes[UP].moved = w->lanes[DOWN].moved = 0; /* have been counted for the last */
	free(take_ptr(w->gate));
	w->scanned = 0;
	w->state = FLOW_HEAD;
	flow_time_out(f, w, FLOW_WAIT_HEAD);
	read_proxy(f, w);
	return true;
}

void flow_run_head(struct front *f, struct flow *w)
{
	uint32_t max = w->want.how == WANT_SOCKS ? 1024 : HTTP1_HEAD_MAX + 4096;

	while (w->state == FLOW_HEAD && flow_hold(f, w, max)) {
		if (w->want.how == WANT_SOCKS)
			read_socks(f, w);
		else
			read_proxy(f, w);
	}
	if (w->state == FLOW_HEAD && (w->lanes[UP].ended || w->held_len >= max))
		flow_close(f, w, true);
}
