/*
 * Requests that wait for a person. In: a request that a rule allows after a yes, answers of the
 * supervisor. Out: the request goes on as any other, or is refused. It waits behind its head, or
 * behind its body where the rule reads that, as it will be sent: nothing of it is made anew behind
 * the answer, which names the digest of these bytes. While it waits nothing more of its connection
 * is read (of HTTP/2: no more than its window), so it costs what was held before, and at most
 * WAITING_MAX wait. How long is the supervisor's matter; a program that hangs up has given up. Runs
 * in front.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/sha256.h"
#include "inspect/h2.h"
#include "inspect/inspect.h"
#include "inspect/meter.h"

#define WAITING_MAX 4096
#define GONE_MAX 1024

struct request_ask {
	struct request_ask *next, *prev;
	struct exchange *ex;
	struct h2_stream *stream; /* NULL: HTTP/1 */
	bool said, answered;
	uint8_t reason; /* enum verdict_reason */
	struct gate_request request;
};

/* -- what is shown */

static void cut_middle(char out[GATE_CUT], const char *bytes, size_t n)
{
	size_t head = 40, tail = 24, at = 0;
	char hash[SHA256_HEX];

	if (n < GATE_CUT) {
		memcpy(out, bytes, n);
		at = n;
	} else {
		sha256_hex(bytes, n, hash);
		memcpy(out, bytes, head);
		memcpy(out + head, "...", 3);
		memcpy(out + head + 3, bytes + n - tail, tail);
		at = head + 3 + tail;
		at += (size_t)snprintf(out + at, GATE_CUT - at, " (%zu bytes, sha256 %.12s)",
				       n & 0xffffffff, hash);
	}
	out[at] = '\0';
	for (size_t i = 0; i < at; i++)
		if (out[i] < ' ' || out[i] > '~')
			out[i] = '?';
}

static void put_body(char out[GATE_CUT], const struct request_parts *p)
{
	auto_buf text = { 0 };

	if (!p->look && p->unread)
		snprintf(out, GATE_CUT, "not read by the rule: whatever the program sends");
	if (!p->look)
		return;
	body_inspect_show(p->look, &text);
	if (text.failed)
		snprintf(out, GATE_CUT, "?");
	else
		cut_middle(out, buf_text(&text), text.len);
}

/* What a yes for more than once covers: nothing where it cannot be told from others. */
static void put_like(uint8_t out[32], const struct request_parts *p)
{
	const char *asked = p->look ? body_inspect_verdict(p->look)->asked.text : "";
	size_t n = strlen(asked);
	struct sha256 sum;

	if (n >= 3 && strcmp(asked + n - 3, "...") == 0)
		return;
	sha256_begin(&sum);
	sha256_add(&sum, p->target.s, p->target.n);
	sha256_add(&sum, "\n", 1);
	sha256_add(&sum, asked, n);
	sha256_end(&sum, out);
}

static void describe(const struct exchange *ex, const struct request_parts *p, uint64_t serial,
		     struct gate_request *ret)
{
	const char *query = memchr(p->target.s, '?', p->target.n);
	struct sha256 sum = p->sum;

	ret->kind = GATE_REQUEST_ASK;
	ret->rule = ex->flow->verdict.rule;
	ret->serial = serial;
	ret->want = ex->flow->want;
	if (p->unread && !p->look) /* no other has this body */
		sha256_add(&sum, &serial, sizeof(serial));
	sha256_end(&sum, ret->exact);
	put_like(ret->like, p);
	snprintf(ret->what, sizeof(ret->what), "%s", p->what);
	if (p->look)
		snprintf(ret->more, sizeof(ret->more), "%s",
			 body_inspect_verdict(p->look)->asked.more);
	if (query)
		cut_middle(ret->query, query + 1, p->target.n - (size_t)(query + 1 - p->target.s));
	put_body(ret->body, p);
}

/* -- the list */

static bool send_to_supervisor(const struct front *f, const struct gate_request *request)
{
	return send(f->control_fd, request, sizeof(*request), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static void say(struct front *f, struct request_ask *a)
{
	a->said = send_to_supervisor(f, &a->request);
	f->unasked |= !a->said; /* there is no room for now */
}

struct request_ask *request_ask_new(struct front *f, struct exchange *ex, struct h2_stream *s,
				    const struct request_parts *p)
{
	struct inspector *i = inspector_of(f);
	struct request_ask *a = f->waiting < WAITING_MAX ? calloc(1, sizeof(*a)) : NULL;

	if (!a)
		return NULL;
	a->ex = ex;
	a->stream = s;
	describe(ex, p, ++i->ask_serial, &a->request);
	a->next = i->asks;
	if (i->asks)
		i->asks->prev = a;
	i->asks = a;
	f->waiting++;
	say(f, a);
	return a;
}

void request_ask_end(struct front *f, struct request_ask *a)
{
	struct inspector *i = inspector_of(f);

	if (!a)
		return;
	*(a->prev ? &a->prev->next : &i->asks) = a->next;
	if (a->next)
		a->next->prev = a->prev;
	f->waiting--;
	a->request.kind = GATE_REQUEST_UNASK;
	if (a->said && !a->answered && !send_to_supervisor(f, &a->request)) {
		/* later; where there is no room for that either, it ends at its deadline */
		if (!i->unasks)
			i->unasks = calloc(GONE_MAX, sizeof(*i->unasks));
		if (i->unasks && i->unask_count < GONE_MAX)
			i->unasks[i->unask_count++] = a->request;
		f->unasked |= i->unask_count > 0;
	}
	free(a);
}

enum verdict_reason request_ask_answer(const struct front *f, const struct request_ask *a)
{
	int32_t rule = a->request.rule;

	if (a->reason == REASON_ALLOWED &&
	    ((uint32_t)rule >= f->rules->n_items || f->rules->items[rule].dead))
		return REASON_CHANGED;
	return (enum verdict_reason)a->reason;
}

int32_t request_ask_rule(const struct request_ask *a)
{
	return a->request.rule;
}

/* -- what front.c and flow_ask.c call */

void requests_answered(struct front *f, const struct gate_order *order)
{
	struct request_ask *a = inspector_of(f)->asks;

	while (a) {
		struct request_ask *next = a->next;

		if (a->said && !a->answered && a->request.serial <= order->serial &&
		    a->request.want.port == order->port &&
		    host_equal(&a->request.want.host, &order->host) &&
		    memcmp(a->request.exact, order->exact, sizeof(order->exact)) == 0) {
			a->answered = true;
			a->reason = order->reason < VERDICT_REASONS ? order->reason
								    : REASON_ANSWERED_NO;
			flow_mark_ready(f, a->ex->flow);
			if (a->stream) /* frees it, and no other */
				h2_answered(a->ex->h2, a->stream);
		}
		a = next;
	}
}

void requests_ask_later(struct front *f)
{
	struct inspector *i = inspector_of(f);

	while (i->unask_count) {
		if (!send_to_supervisor(f, &i->unasks[i->unask_count - 1])) {
			f->unasked = true;
			return;
		}
		i->unask_count--;
	}
	for (struct request_ask *a = i->asks; a && !f->unasked; a = a->next)
		if (!a->said)
			say(f, a);
}

/* -- HTTP/1 */

bool exchange_asks(const struct front *f, int32_t rule)
{
	return rule >= 0 && (uint32_t)rule < f->rules->n_items && f->rules->items[rule].ask;
}

/* All of it that is known is in ex->up. False: the exchange is over. */
static bool begin_ask(struct front *f, struct exchange *ex)
{
	struct request_parts p = { .what = ex->what,
				   .target = { ex->head.data, ex->head.len },
				   .look = ex->look,
				   .unread = ex->up_body.state != BODY_NONE };
	const char *end = memmem(p.target.s, p.target.n, " HTTP/1.1\r\n", 11);

	p.target.n = end ? (size_t)(end - p.target.s) : p.target.n;
	sha256_begin(&p.sum);
	sha256_add(&p.sum, ex->up.data + ex->up.at, queue_size(&ex->up));
	/* it may wait for long: in the pool a server that goes away does no harm */
	if (ex->server && ex->server->state == SERVER_OPEN)
		server_put(f, ex, true);
	ex->ask = request_ask_new(f, ex, NULL, &p);
	if (!ex->ask) {
		exchange_refuse(f, ex, REASON_ASKED_FULL);
		return true;
	}
	ex->state = EXCHANGE_ASK;
	flow_untime(f, ex->flow);
	return true;
}

bool exchange_pass(struct front *f, struct exchange *ex)
{
	if (ex->head.failed || ex->up.failed || ex->down.failed) {
		exchange_break(f, ex);
		return false;
	}
	if (!ex->approved && exchange_asks(f, ex->flow->verdict.rule))
		return begin_ask(f, ex);
	exchange_end_body(ex);
	ex->state = EXCHANGE_RELAY;
	flow_untime(f, ex->flow);
	if (!ex->server &&
	    !server_get(f, ex, ex->flow->verdict.mode == RULE_INSPECT, TLS_ALPN_HTTP1)) {
		exchange_break(f, ex);
		return false;
	}
	flow_mark_ready(f, ex->flow);
	return true;
}

bool exchange_run_ask(struct front *f, struct exchange *ex)
{
	struct flow *w = ex->flow;
	enum verdict_reason reason;
	size_t n;
	enum tls_say say = queue_flush(&ex->down, &ex->wire, &n);

	if (w->gone[CLIENT] || w->has_ended[CLIENT] ||
	    (say != TLS_DONE && say != TLS_READ && say != TLS_WRITE)) {
		exchange_break(f, ex);
		return false;
	}
	if (!ex->ask->answered)
		return false;
	reason = request_ask_answer(f, ex->ask);
	request_ask_end(f, take_ptr(ex->ask));
	if (reason == REASON_ALLOWED)
		reason = meter_judge(f, ex, ex->meter, ex->up_body.state == BODY_NONE);
	if (reason == REASON_ALLOWED) {
		ex->approved = true;
		return exchange_pass(f, ex);
	}
	if (ex->look) { /* as any other that its body refuses */
		body_inspect_deny(ex->look, reason);
		ex->body_inspect_say = BODY_INSPECT_REFUSE;
		ex->state = EXCHANGE_LOOK;
		flow_time_out(f, w, FLOW_WAIT_HEAD);
		return true;
	}
	exchange_refuse(f, ex, reason);
	return true;
}
