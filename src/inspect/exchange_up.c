/*
 * Requests of a program whose connection is looked into. In: its bytes, plain. Out: a head that was
 * decided about and written anew, and a body whose framing is ours. A head is held until it is
 * whole. A body in chunks is held, too, until it is whole, large, or the program pauses: so a
 * request that turns out to be malformed has reached the server with nothing. Runs in front.
 */
#include <stdio.h>
#include <string.h>

#include "inspect/body_scan.h"
#include "inspect/inspect.h"
#include "inspect/meter.h"
#include "policy/policy_rule.h"

#define HOLD_BYTES (16 * 1024)

/* -- heads */

static const uint8_t wrong_reasons[] = {
	[HTTP_FINE] = REASON_ALLOWED,          [HTTP_NOT] = REASON_NOT_HTTP,
	[HTTP_BAD] = REASON_HTTP_BAD,          [HTTP_LARGE] = REASON_HTTP_LARGE,
	[HTTP_OTHER_HOST] = REASON_WRONG_HOST, [HTTP_TUNNEL] = REASON_HTTP_TUNNEL,
};

void exchange_describe(char *out, size_t size, const struct http_request *r, struct http_text path)
{
	size_t at = 0, cut = strlen(EXCHANGE_CUT);
	const struct http_text parts[] = { r->method, { " ", 1 }, path };

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		for (size_t k = 0; k < parts[i].n && at + 1 < size; k++)
			out[at++] =
				(char)(parts[i].s[k] < ' ' || parts[i].s[k] > '~' ? '?'
										  : parts[i].s[k]);
	out[at] = '\0';
	if (at < r->method.n + 1 + path.n && at >= cut)
		memcpy(out + at - cut, EXCHANGE_CUT, cut);
}

static bool has_word(struct http_text list, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= list.n; i++)
		if (strncasecmp(list.s + i, word, n) == 0)
			return true;
	return false;
}

enum verdict_reason exchange_judge(struct front *f, struct exchange *ex,
				   const struct http_request *r, struct http_verdict *ret)
{
	struct flow *w = ex->flow;
	struct verdict now;

	/* the rules may have changed since the connection was made */
	decide_name(f->rules, &w->want, &now);
	if (!now.allow || now.mode != w->verdict.mode)
		return now.allow ? REASON_CHANGED : (enum verdict_reason)now.reason;
	http_decide(f->rules, now.rule, w->want.port, r, &inspector_of(f)->path, ret);
	w->verdict.rule = ret->rule;
	exchange_describe(ex->what, sizeof(ex->what), r, ret->path);
	exchange_note_asked(ex->what, &ret->asked);
	ex->git = body_inspect_is_git(r);
	memcpy(ex->more, ret->asked.more, sizeof(ex->more));
	if (ret->reason != REASON_ALLOWED)
		exchange_explain(ex->why, sizeof(ex->why), (enum verdict_reason)ret->reason,
				 &ret->asked);
	return (enum verdict_reason)ret->reason;
}

/* What may be forwarded, or the reason why not. */
static enum verdict_reason judge(struct front *f, struct exchange *ex, const struct http_head *head,
				 struct http_verdict *ret)
{
	struct inspector *i = inspector_of(f);
	struct flow *w = ex->flow;

	if (head->connect)
		return REASON_HTTP_TUNNEL;
	if (!http_request_read((const uint8_t *)ex->in.data + ex->in.at, head, &i->request))
		return REASON_HTTP_BAD;
	exchange_describe(ex->what, sizeof(ex->what), &i->request, i->request.path);
	if (!host_equal(&head->host, &w->want.host) || (head->port && head->port != w->want.port))
		return REASON_WRONG_HOST;
	return exchange_judge(f, ex, &i->request, ret);
}

bool exchange_drop_expect(struct http_request *r)
{
	unsigned kept = 0;
	bool found = false;

	for (unsigned i = 0; i < r->fields.count; i++) {
		if (http_text_is(r->fields.items[i].name, "expect"))
			found |= has_word(r->fields.items[i].value, "100-continue");
		else
			r->fields.items[kept++] = r->fields.items[i];
	}
	r->fields.count = kept;
	return found && r->body;
}

bool exchange_must_continue(const struct front *f, const struct exchange *ex,
			    struct http_request *r, const struct http_verdict *v)
{
	bool waf = v->rule >= 0 && f->rules->items[v->rule].waf != POLICY_WAF_OFF;

	return (v->n_looks || waf || body_scan_is_on(f) ||
		server_is_for_keys(f, &ex->flow->want.host)) &&
	       exchange_drop_expect(r);
}

/* What is kept of the request while it is under way. */
static void note(struct exchange *ex, const struct http_head *head, const struct http_request *r,
		 const struct http_verdict *v)
{
	ex->old = head->minor == 0;
	ex->is_head = head->head;
	ex->websocket = r->websocket;
	ex->close = ex->old || has_word(http_field_get(&r->fields, "connection"), "close");
	ex->sent = ex->gone = ex->answered = ex->done = ex->cut = false;
	ex->up_chunked = head->chunked;
	ex->held = true;
	ex->approved = !v->n_looks && !v->ask;
	ex->up_bytes = ex->down_bytes = 0;
	ex->request_limit = v->request_limit;
	ex->response_limit = v->response_limit;
	if (head->chunked)
		body_chunked(&ex->up_body);
	else
		body_length(&ex->up_body, head->length);
}

static void begin_request(struct front *f, struct exchange *ex, const struct http_head *head)
{
	struct inspector *i = inspector_of(f);
	struct flow *w = ex->flow;
	struct http_verdict v = { .path = { 0 } };
	enum verdict_reason reason;
	bool tls = w->verdict.mode == RULE_INSPECT;

	ex->is_head = head->head;
	record_end(&ex->record, NULL, false);
	body_scan_end(take_ptr(ex->scan));
	ex->scan_reason = REASON_ALLOWED;
	ex->git = false;
	reason = judge(f, ex, head, &v);
	if (reason == REASON_ALLOWED)
		reason = body_scan_begin(f, ex, &i->request, v.path, &ex->scan);
	if (reason == REASON_ALLOWED)
		reason = meter_request(f, ex, &i->request, &v, &ex->meter);
	if (reason == REASON_ALLOWED || i->request.method.s)
		note(ex, head, &i->request, &v);
	if (reason == REASON_ALLOWED &&
	    !record_begin(f, &w->want, tls, 1, &i->request, v.path, &ex->record))
		reason = REASON_RECORDING;
	if (reason == REASON_ALLOWED && !head->chunked && !head->length)
		record_sent_all(ex->record);
	if (reason == REASON_ALLOWED)
		reason = meter_judge(f, ex, ex->meter, ex->up_body.state == BODY_NONE);
	if (reason == REASON_ALLOWED && exchange_must_continue(f, ex, &i->request, &v) && !ex->old)
		queue_add(&ex->down, "HTTP/1.1 100 Continue\r\n\r\n", 25);
	if (reason == REASON_ALLOWED)
		http_request_write(&i->request, &w->want.host, w->want.port, tls ? 443 : 80, v.path,
				   &ex->head);
	ex->in.at += head->len;
	ex->scanned = 0;
	if (reason != REASON_ALLOWED) {
		exchange_refuse(f, ex, reason);
		return;
	}
	if (v.n_looks) {
		exchange_begin_look(f, ex, &v, &i->request);
		return;
	}
	if (has_word(http_field_get(&i->request.fields, "expect"), "100-continue"))
		ex->held = false; /* the program waits for the server's word */
	queue_add(&ex->up, ex->head.data, ex->head.len);
	if (!ex->head.failed && !ex->up.failed && exchange_begin_waf(f, ex, &i->request, &v))
		return;
	(void)!exchange_pass(f, ex);
}

bool exchange_again(struct front *f, struct exchange *ex)
{
	queue_free(&ex->up);
	queue_free(&ex->answer);
	queue_add(&ex->up, ex->head.data, ex->head.len);
	return !ex->up.failed &&
	       server_get(f, ex, ex->flow->verdict.mode == RULE_INSPECT, TLS_ALPN_HTTP1);
}

bool exchange_run_head(struct front *f, struct exchange *ex)
{
	struct http_head head;
	enum http_wrong wrong = HTTP_FINE;
	struct flow *w = ex->flow; /* outlives ex in this round */
	enum tls_say say;
	size_t n = 0;
	int r = 0;

	if (queue_size(&ex->in)) {
		r = http1_head((const uint8_t *)ex->in.data + ex->in.at, queue_size(&ex->in),
			       &ex->scanned, &head, &wrong);
		if (r && ex->flow->timed == FLOW_WAIT_HALF)
			flow_untime(f, ex->flow);
	}
	if (r > 0) {
		inspector_of(f)->request.method.s = NULL;
		begin_request(f, ex, &head);
		return true;
	}
	if (r < 0) {
		snprintf(ex->what, sizeof(ex->what), "request");
		ex->is_head = ex->answered = false;
		ex->close = ex->held = true;
		exchange_refuse(f, ex, (enum verdict_reason)wrong_reasons[wrong]);
		return true;
	}
	say = exchange_read(f, ex, UP, f->scratch, sizeof(f->scratch), &n);
	if (say == TLS_READ || say == TLS_WRITE)
		return false;
	if (say != TLS_DONE) {
		flow_close(f, w, false);
		return false;
	}
	queue_add(&ex->in, f->scratch, n);
	if (ex->flow->timed != FLOW_WAIT_HEAD)
		flow_time_out(f, ex->flow, FLOW_WAIT_HEAD);
	if (ex->in.failed)
		exchange_break(f, ex);
	return true;
}

/* -- bodies */

static void pass_data(struct front *f, struct exchange *ex, const uint8_t *bytes, size_t n)
{
	char line[24];

	if (!n)
		return;
	if (ex->look) {
		ex->body_inspect_say =
			(uint8_t)body_inspect_take(ex->look, f->rules, bytes, n, false);
		if (ex->body_inspect_say == BODY_INSPECT_REFUSE) /* it is not wanted */
			return;
	}
	if (ex->up_chunked)
		queue_add(&ex->up, line, (size_t)snprintf(line, sizeof(line), "%zx\r\n", n));
	queue_add(&ex->up, bytes, n);
	if (ex->up_chunked)
		queue_add(&ex->up, "\r\n", 2);
	meter_body(ex->meter, bytes, n);
	record_sent(ex->record, bytes, n);
	exchange_waf_body(ex, bytes, n);
}

static void add_data(struct front *f, struct exchange *ex, const uint8_t *bytes, size_t n, bool end)
{
	auto_buf out = { 0 };

	ex->up_bytes += n;
	if (!ex->scan) {
		pass_data(f, ex, bytes, n);
		return;
	}
	if (ex->scan_reason == REASON_ALLOWED)
		ex->scan_reason = (uint8_t)body_scan_take(f, ex, ex->scan, bytes, n, end, &out);
	pass_data(f, ex, (const uint8_t *)out.data, out.len);
}

/* Takes what belongs to the body; returns how much. */
static size_t take_body(struct front *f, struct exchange *ex, const uint8_t *bytes, size_t n)
{
	struct http_body *b = &ex->up_body;
	size_t used = 0;

	while (used < n && b->state != BODY_NONE && b->state != BODY_BAD) {
		bool data = b->state == BODY_LENGTH || b->state == BODY_DATA;
		size_t some = !data ? 1 : n - used < b->left ? n - used : (size_t)b->left;

		if (data)
			add_data(f, ex, bytes + used, some, false);
		used += body_take(b, bytes + used, some, true);
	}
	if (b->state == BODY_NONE && ex->scan)
		add_data(f, ex, NULL, 0, true);
	if (b->state == BODY_NONE && ex->up_chunked)
		queue_add(&ex->up, "0\r\n\r\n", 5);
	return used;
}

bool exchange_read_body(struct front *f, struct exchange *ex)
{
	struct flow *w = ex->flow; /* outlives ex in this round */
	bool before = queue_size(&ex->in) > 0;
	const uint8_t *bytes = before ? (const uint8_t *)ex->in.data + ex->in.at : f->scratch;
	enum tls_say say = TLS_DONE;
	enum verdict_reason reason;
	size_t n = queue_size(&ex->in), used;

	if (!before)
		say = exchange_read(f, ex, UP, f->scratch, sizeof(f->scratch), &n);
	if (w->state != FLOW_INSPECT)
		return false;
	if (say == TLS_READ || say == TLS_WRITE) {
		bool pauses = ex->held && ex->up_bytes && !ex->look;

		if (pauses)
			ex->held = false;
		return pauses;
	}
	if (say != TLS_DONE) { /* it was never complete */
		exchange_break(f, ex);
		return false;
	}
	used = take_body(f, ex, bytes, n);
	if (ex->up_body.state == BODY_NONE)
		record_sent_all(ex->record);
	if (before)
		ex->in.at += used;
	else
		queue_add(&ex->in, bytes + used, n - used);
	if (ex->up_body.state == BODY_BAD) {
		exchange_refuse(f, ex, REASON_HTTP_BAD);
		return false;
	}
	if (ex->up_bytes > ex->request_limit) {
		exchange_refuse(f, ex, REASON_REQUEST_SIZE);
		return false;
	}
	if (ex->scan_reason != REASON_ALLOWED) {
		exchange_refuse(f, ex, (enum verdict_reason)ex->scan_reason);
		return false;
	}
	if (ex->look && (!exchange_bodyed(f, ex) || ex->look))
		return w->state == FLOW_INSPECT && ex->look;
	reason = meter_judge(f, ex, ex->meter, ex->up_body.state == BODY_NONE);
	if (reason != REASON_ALLOWED)
		exchange_refuse(f, ex, reason);
	return reason == REASON_ALLOWED;
}

bool exchange_run_up(struct front *f, struct exchange *ex)
{
	struct flow *w = ex->flow; /* outlives ex in this round */
	bool moved = false;
	enum tls_say say;
	size_t n = 0;

	if (ex->up_body.state == BODY_NONE || (!ex->up_chunked && !ex->meter && !ex->scan) ||
	    queue_size(&ex->up) > HOLD_BYTES)
		ex->held = false;
	if (!ex->held && ex->server->state == SERVER_OPEN) {
		say = exchange_flush(f, ex, &n);
		if (w->state != FLOW_INSPECT)
			return false;
		moved = n > 0;
		ex->unreported |= n && !ex->answered;
		ex->sent |= n && ex->up_bytes;
		ex->gone |= n > 0;
		if (say != TLS_DONE && say != TLS_READ && say != TLS_WRITE && !ex->answered) {
			exchange_server_gone(f, ex, say);
			return true;
		}
	}
	if (ex->up_body.state == BODY_NONE || queue_size(&ex->up) > HOLD_BYTES)
		return moved;
	moved |= exchange_read_body(f, ex);
	if (w->state == FLOW_INSPECT && (ex->up.failed || ex->in.failed)) {
		exchange_break(f, ex);
		return false;
	}
	return moved;
}
