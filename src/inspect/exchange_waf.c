/*
 * Requests under rules with waf. In: a request that the rules allow. Out: the same, when ward-waf
 * has looked at its head and its whole body; a refusal where it denies and the rule says block.
 * Until then nothing of it has gone to the server, and its body is held here, so it is bounded.
 * Whatever goes wrong (no answer, a body too large, ward-waf dead) refuses under block and passes
 * under detect, which promises to stop nothing. Connections of such a host speak HTTP/1. Runs in
 * front.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "inspect/inspect.h"
#include "policy/policy_rule.h"

#define OUT_MAX (8u * 1024 * 1024) /* bytes that may wait for ward-waf */

enum waf_state { WAF_READING, WAF_ASKED, WAF_ANSWERED };

struct waf_hold {
	uint8_t state; /* enum waf_state */
	bool block;
	struct waf_ask ask;
	struct buf text, body;
	struct waf_said said;
};

/* -- the link */

int waf_open(struct front *f, struct ward_err *e)
{
	struct waf_link *link = &inspector_of(f)->waf;
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET,
				     .data.u64 = EVENT_WAF };

	link->wire.fd = f->waf_fd;
	if (f->waf_fd >= 0 && (fcntl(f->waf_fd, F_SETFL, O_NONBLOCK) < 0 ||
			       epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, f->waf_fd, &event) < 0))
		return ward_fail_errno(e, "cannot talk to ward-waf");
	return 0;
}

/* It is gone: a flow that waits for an answer must see that. */
static void lose(struct front *f, struct waf_link *link)
{
	close(link->wire.fd);
	link->wire.fd = -1;
	queue_free(&link->out);
	for (uint32_t i = 0; i < f->flow_max; i++) {
		struct flow *w = f->flows[i];
		struct exchange *ex =
			w && w->state == FLOW_INSPECT && !w->server ? w->inspect : NULL;

		if (ex && ex->waf)
			flow_mark_ready(f, w);
	}
}

static void take_answer(struct front *f, const struct waf_said *said)
{
	struct flow *w = (said->id & 0xffff) < f->flow_max ? f->flows[said->id & 0xffff] : NULL;
	struct exchange *ex = w && w->id == said->id && w->state == FLOW_INSPECT && !w->server
				      ? w->inspect
				      : NULL;

	if (!ex || !ex->waf || ex->waf->state != WAF_ASKED)
		return; /* the program has not waited */
	ex->waf->said = *said;
	ex->waf->state = WAF_ANSWERED;
	flow_mark_ready(f, w);
}

void waf_read(struct front *f)
{
	struct waf_link *link = &inspector_of(f)->waf;
	enum tls_say say = TLS_DONE;
	size_t n;

	while (link->wire.fd >= 0 && say == TLS_DONE) {
		say = wire_read(&link->wire, (uint8_t *)&link->said + link->got,
				sizeof(link->said) - link->got, &n);
		link->got += n;
		if (link->got < sizeof(link->said))
			continue;
		link->got = 0;
		if (!waf_said_is_sound(&link->said))
			say = TLS_FAILED;
		else
			take_answer(f, &link->said);
	}
	if (link->wire.fd >= 0 && say == TLS_READ)
		say = queue_flush(&link->out, &link->wire, &n);
	if (link->wire.fd >= 0 && say != TLS_DONE && say != TLS_READ && say != TLS_WRITE)
		lose(f, link);
}

/* -- one request */

static void put(struct buf *out, struct http_text t)
{
	buf_add(out, t.s, t.n);
	buf_add(out, "", 1);
}

bool exchange_begin_waf(struct front *f, struct exchange *ex, const struct http_request *r,
			const struct http_verdict *v)
{
	const struct rule *rule = v->rule >= 0 ? &f->rules->items[v->rule] : NULL;
	struct waf_hold *h;

	if (!rule || rule->waf == POLICY_WAF_OFF)
		return false;
	h = calloc(1, sizeof(*h));
	if (!h) {
		exchange_break(f, ex);
		return true;
	}
	ex->waf = h;
	h->block = rule->waf == POLICY_WAF_BLOCK;
	put(&h->text, r->method);
	buf_add(&h->text, v->path.s, v->path.n);
	if (r->query.s) {
		buf_add(&h->text, "?", 1);
		buf_add(&h->text, r->query.s, r->query.n);
	}
	buf_add(&h->text, "", 1);
	for (unsigned i = 0; i < r->fields.count; i++) {
		put(&h->text, r->fields.items[i].name);
		put(&h->text, r->fields.items[i].value);
	}
	h->ask = (struct waf_ask){ .magic = WAF_MAGIC,
				   .fields = r->fields.count,
				   .text_bytes = (uint32_t)h->text.len,
				   .id = ex->flow->id };
	ex->state = EXCHANGE_WAF;
	flow_time_out(f, ex->flow, FLOW_WAIT_HEAD);
	return true;
}

void exchange_waf_body(struct exchange *ex, const uint8_t *bytes, size_t n)
{
	if (ex->waf && ex->waf->body.len <= WAF_BODY_MAX)
		buf_add(&ex->waf->body, bytes, n);
}

void exchange_end_waf(struct exchange *ex)
{
	struct waf_hold *h = take_ptr(ex->waf);

	if (!h)
		return;
	buf_free(&h->text);
	buf_free(&h->body);
	free(h);
}

/* False: it cannot be asked. */
static bool ask(struct front *f, struct waf_hold *h)
{
	struct waf_link *link = &inspector_of(f)->waf;

	h->ask.body_bytes = (uint32_t)h->body.len;
	if (link->wire.fd < 0 || h->text.failed || h->body.failed || !waf_ask_is_sound(&h->ask) ||
	    !waf_text_is_sound(&h->ask, (const uint8_t *)h->text.data) ||
	    queue_size(&link->out) + h->text.len + h->body.len > OUT_MAX)
		return false;
	queue_add(&link->out, &h->ask, sizeof(h->ask));
	queue_add(&link->out, h->text.data, h->text.len);
	queue_add(&link->out, h->body.data, h->body.len);
	if (link->out.failed) {
		lose(f, link);
		return false;
	}
	h->state = WAF_ASKED;
	waf_read(f); /* what can go, goes */
	return link->wire.fd >= 0;
}

/* To the server with it. */
static void pass(struct front *f, struct exchange *ex)
{
	exchange_end_waf(ex);
	(void)!exchange_pass(f, ex);
}

static void refuse(struct front *f, struct exchange *ex, enum verdict_reason reason)
{
	if (!ex->waf->block) {
		front_flow_report_waf(f, ex->flow, NULL, reason, false);
		pass(f, ex);
		return;
	}
	exchange_refuse(f, ex, reason);
}

static void finish(struct front *f, struct exchange *ex)
{
	const struct waf_hold *h = ex->waf;
	const struct waf_said *said = &h->said;

	for (unsigned i = 0; i < said->count; i++)
		front_flow_report_waf(f, ex->flow, &said->matches[i], REASON_WAF,
				      said->deny && h->block);
	if (said->deny && !said->count)
		front_flow_report_waf(f, ex->flow, NULL, REASON_WAF, h->block);
	if (!said->deny || !h->block) {
		pass(f, ex);
		return;
	}
	if (said->count)
		snprintf(ex->why, sizeof(ex->why), "%s (rule %u of the core rule set)",
			 said->matches[0].text, said->matches[0].rule);
	exchange_refuse(f, ex, REASON_WAF);
}

bool exchange_run_waf(struct front *f, struct exchange *ex)
{
	struct flow *w = ex->flow;
	struct waf_hold *h = ex->waf;
	size_t n;
	enum tls_say say = queue_flush(&ex->down, &ex->wire, &n);

	if (say != TLS_DONE && say != TLS_READ && say != TLS_WRITE) {
		exchange_break(f, ex);
		return false;
	}
	if (h->state == WAF_ANSWERED) {
		finish(f, ex);
		return true;
	}
	if (h->state == WAF_ASKED) {
		if (inspector_of(f)->waf.wire.fd < 0)
			refuse(f, ex, REASON_WAF_GONE);
		return w->state == FLOW_INSPECT && ex->state != EXCHANGE_WAF;
	}
	if (ex->up_bytes > WAF_BODY_MAX) {
		refuse(f, ex, REASON_WAF_SIZE);
		return true;
	}
	if (ex->up_body.state != BODY_NONE)
		return exchange_read_body(f, ex);
	if (!ask(f, h))
		refuse(f, ex, REASON_WAF_GONE);
	return true;
}
