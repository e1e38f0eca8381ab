/*
 * One connection of a program whose requests are looked into. In: its bytes, and those of servers.
 * Out: the same messages, written anew; or an answer of our own that says what was refused, why,
 * and which line would allow it. The states:
 *
 *   GREET -> HEAD -> RELAY -> HEAD ...       one request after the other
 *            HEAD -> WAF -> RELAY            where the rule has a firewall: exchange_waf.c
 *            HEAD -> LOOK -> RELAY           where the body decides: exchange_body.c
 *            HEAD, WAF, LOOK -> ASK -> RELAY where a person does: exchange_ask.c
 *                    RELAY -> TUNNEL         a websocket, where the rule has that
 *   GREET -> H2                              HTTP/2 from here on: h2.c
 *            HEAD -> REPLY -> HEAD refused; DRAIN where the rest of the request is of no interest
 *
 * Each direction holds at most what one read gave: nothing more is read before it is written. Runs
 * in front.
 */
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/json.h"
#include "inspect/body_scan.h"
#include "inspect/h2.h"
#include "inspect/inspect.h"
#include "inspect/meter.h"
#include "rules/remedy.h"
#include "rules/socks.h"

#define DRAIN_BYTES (4 * 1024 * 1024)

/* -- limits */

static void count(struct front *f, struct exchange *ex, enum direction d, size_t n)
{
	ex->flow->lanes[d].moved += n;
	*(d == UP ? &f->totals.bytes_out : &f->totals.bytes_in) += n;
}

enum tls_say exchange_read(struct front *f, struct exchange *ex, enum direction d, void *bytes,
			   size_t n, size_t *ret_n)
{
	struct wire *from = d == UP ? &ex->wire : &ex->server->wire;
	struct flow *w = ex->flow;
	enum tls_say say;
	bool spent;
	size_t may = flow_take(f, w, d, n, &spent);

	*ret_n = 0;
	if (!may && !spent)
		return TLS_READ; /* it sleeps */
	if (!may) {              /* what may still come is the end; a byte more is refused */
		say = wire_peek(from);
		if (say != TLS_DONE)
			return say;
		flow_refuse_spent(f, w, d);
		return TLS_READ;
	}
	say = wire_read(from, bytes, may, ret_n);
	flow_give_back(f, w, d, may - *ret_n);
	if (d == DOWN)
		count(f, ex, DOWN, *ret_n);
	return say;
}

enum tls_say exchange_flush(struct front *f, struct exchange *ex, size_t *ret_n)
{
	const struct lane *l = &ex->flow->lanes[UP];
	uint64_t due = l->moved + queue_size(&ex->up);
	enum tls_say say;

	*ret_n = 0;
	if (due > l->taken && !flow_take_all(f, ex->flow, UP, due - l->taken)) {
		flow_refuse_spent(f, ex->flow, UP);
		return TLS_READ;
	}
	say = queue_flush(&ex->up, &ex->server->wire, ret_n);
	count(f, ex, UP, *ret_n);
	return say;
}

/* -- the beginning */

static void answer_proxy(struct flow *w)
{
	uint8_t reply[SOCKS_REPLY_MAX];

	if (w->want.how == WANT_SOCKS)
		flow_tell(w, reply, socks_reply(SOCKS_OK, reply));
	else if (w->tunnel)
		flow_tell(w, http1_proxy_reply(200), strlen(http1_proxy_reply(200)));
}

void exchange_begin(struct front *f, struct flow *w)
{
	struct inspector *i = inspector_of(f);
	struct exchange *ex = calloc(1, sizeof(*ex));

	if (!ex) {
		flow_close(f, w, true);
		return;
	}
	w->inspect = ex;
	w->state = FLOW_INSPECT;
	ex->flow = w;
	ex->wire.fd = w->fds[CLIENT];
	f->totals.connections++;
	front_flow_report_flow(f, w, FLOW_REPORT_OPENED);
	answer_proxy(w);
	if (w->verdict.mode == RULE_INSPECT) {
		ex->wire.down = tls_down_new(
			i->tls, i->ca, ex->wire.fd, &w->want.host, w->held, w->held_len,
			rules_waf(f->rules, w->verdict.rule, w->want.port)
				? TLS_ALPN_HTTP1
				: server_known(i, &w->want.host, w->want.port));
		if (!ex->wire.down) {
			flow_close(f, w, true);
			return;
		}
	} else {
		ex->state = EXCHANGE_HEAD;
		queue_add(&ex->in, w->held, w->held_len);
	}
	flow_free_held(f, w);
	flow_mark_ready(f, w);
}

/* What TLS with the program came to, where it came to nothing. */
static void refuse_greeting(struct front *f, struct exchange *ex)
{
	static const uint8_t reasons[] = {
		[TLS_HELLO_NOT_TLS] = REASON_NOT_TLS,      [TLS_HELLO_OLD] = REASON_TLS_OLD,
		[TLS_HELLO_LARGE] = REASON_TLS_LARGE,      [TLS_HELLO_NO_NAME] = REASON_NO_SNI,
		[TLS_HELLO_OTHER_NAME] = REASON_WRONG_SNI, [TLS_HELLO_HIDDEN] = REASON_ECH
	};
	enum tls_hello_wrong wrong = tls_down_wrong(ex->wire.down);
	struct flow *w = ex->flow;

	if (wrong != TLS_HELLO_FINE || tls_down_is_distrusted(ex->wire.down)) {
		verdict_refuse(&w->verdict, wrong != TLS_HELLO_FINE
						    ? (enum verdict_reason)reasons[wrong]
						    : REASON_PINNED);
		front_denied(f, &w->want, &w->verdict, IPPROTO_TCP);
	}
	flow_close(f, w, wrong != TLS_HELLO_FINE);
}

static void begin_h2(struct front *f, struct exchange *ex)
{
	ex->h2 = h2_new(f, ex);
	ex->state = EXCHANGE_H2;
	flow_untime(f, ex->flow);
	if (!ex->h2 || (!ex->server && !server_get(f, ex, true, TLS_ALPN_HTTP2)))
		flow_close(f, ex->flow, true);
}

static bool greet(struct front *f, struct exchange *ex)
{
	struct flow *w = ex->flow;
	enum tls_say say;

	if (ex->server || ex->lost) { /* the server was asked what it speaks */
		if (ex->server && ex->server->state != SERVER_OPEN) {
			if (w->has_ended[CLIENT]) /* it did not wait for the server */
				flow_close(f, w, true);
			return false;
		}
		tls_down_answer(ex->wire.down,
				ex->server ? (enum tls_alpn)ex->server->alpn : TLS_ALPN_HTTP1);
	}
	say = tls_down_handshake(ex->wire.down);
	if (say == TLS_ASK) {
		if (!server_get(f, ex, true, TLS_ALPN_BOTH)) {
			flow_close(f, w, true);
			return false;
		}
		/* one of the pool: nothing will tell of it */
		return ex->server->state == SERVER_OPEN;
	}
	if (say == TLS_READ || say == TLS_WRITE)
		return false;
	if (say != TLS_DONE) {
		refuse_greeting(f, ex);
		return false;
	}
	ex->state = EXCHANGE_HEAD;
	ex->lost = 0;
	flow_time_out(f, w, FLOW_WAIT_HEAD);
	if (tls_down_alpn(ex->wire.down) == TLS_ALPN_HTTP2)
		begin_h2(f, ex);
	return true;
}

/* -- refusing */

static const struct {
	uint8_t reason;
	uint16_t status;
	const char *phrase;
} answers[] = {
	{ REASON_HTTP_BAD, 400, "Bad Request" },
	{ REASON_NOT_HTTP, 400, "Bad Request" },
	{ REASON_PATH_BAD, 400, "Bad Request" },
	{ REASON_HTTP_LARGE, 431, "Request Header Fields Too Large" },
	{ REASON_WRONG_HOST, 421, "Misdirected Request" },
	{ REASON_REQUEST_SIZE, 413, "Content Too Large" },
	{ REASON_REQUEST_RATE, 429, "Too Many Requests" },
	{ REASON_SPEND_BUSY, 429, "Too Many Requests" },
	{ REASON_SPENT, 402, "Payment Required" },
	{ REASON_WAF_SIZE, 413, "Content Too Large" },
	{ REASON_WAF_GONE, 503, "Service Unavailable" },
	{ REASON_LOOK_SIZE, 413, "Content Too Large" },
	{ REASON_ENCODING, 415, "Unsupported Media Type" },
	{ REASON_FULL, 503, "Service Unavailable" },
	{ REASON_UNREACHABLE, 502, "Bad Gateway" },
	{ REASON_UNRESOLVED, 502, "Bad Gateway" },
	{ REASON_UPSTREAM, 502, "Bad Gateway" },
	{ REASON_UPSTREAM_TLS, 502, "Bad Gateway" },
	{ REASON_UPSTREAM_HTTP, 502, "Bad Gateway" },
	{ REASON_NOT_RECORDED, 502, "Bad Gateway" },
	{ REASON_RECORDING, 507, "Insufficient Storage" },
	{ REASON_ALLOWED, 403, "Forbidden" }, /* the rest */
};

/* What git shows to the person who called it. */
static void write_text(const struct exchange *ex, enum verdict_reason reason, const char *remedy,
		       struct buf *out)
{
	buf_printf(out, "ward: %s: refused: %s", ex->what,
		   *ex->why ? ex->why : verdict_reason_text(reason));
	if (*remedy)
		buf_printf(out, "\nward: %s%s",
			   strncmp(remedy, "network.", 8) == 0 ? "this policy line would allow it: "
							       : "",
			   remedy);
}

/* How a refusal is said. */
struct refusal {
	unsigned status;
	const char *phrase, *type;
};

/* To git, in its own protocol where it has sent a push: else it would show nothing but a number.
 * False: it is not git. */
static bool write_git(const struct exchange *ex, enum verdict_reason reason, const char *remedy,
		      struct buf *out, struct refusal *ret)
{
	auto_buf text = { 0 };

	if (!ex->git)
		return false;
	write_text(ex, reason, remedy, &text);
	if (ex->look && body_inspect_is_push(ex->look) &&
	    body_inspect_verdict(ex->look)->reason == reason &&
	    body_inspect_report(ex->look, buf_text(&text), out)) {
		*ret = (struct refusal){ 200, "OK", "application/x-git-receive-pack-result" };
		return true;
	}
	ret->type = "text/plain; charset=utf-8";
	buf_printf(out, "%s\n", buf_text(&text));
	out->failed |= text.failed;
	return true;
}

/* The body of a refusal. */
static void write_body(struct front *f, const struct exchange *ex, enum verdict_reason reason,
		       struct buf *out, struct refusal *ret)
{
	const struct flow *w = ex->flow;
	auto_buf rule = { 0 }, remedy = { 0 };
	struct json j = { .out = out };
	size_t i = 0;

	rules_text(f->rules, w->verdict.rule, &rule);
	if (remedy_is_open(f->rules, &w->verdict))
		remedy_write(f->rules, &w->want, &w->verdict, ex->what, ex->more, &remedy);
	out->failed |= rule.failed || remedy.failed;
	while (answers[i].reason != reason && answers[i].reason != REASON_ALLOWED)
		i++;
	*ret = (struct refusal){ answers[i].status, answers[i].phrase, "application/json" };
	if (meter_is_about(ex, reason)) {
		meter_say(ex, reason, buf_text(&rule), buf_text(&remedy), out);
		return;
	}
	if (write_git(ex, reason, buf_text(&remedy), out, ret))
		return;
	json_begin_object(&j, NULL);
	json_string(&j, "error", "refused by ward");
	json_string(&j, "request", ex->what);
	json_string(&j, "reason", verdict_reason_name(reason));
	json_string(&j, "message", *ex->why ? ex->why : verdict_reason_text(reason));
	json_string(&j, "rule", buf_text(&rule));
	if (remedy.len)
		json_string(&j, "remedy", buf_text(&remedy));
	json_end_object(&j);
	buf_puts(out, "\n");
}

/* Reports it, and writes the answer for the program. */
static struct refusal say_refused(struct front *f, struct exchange *ex, enum verdict_reason reason,
				  struct buf *body)
{
	struct flow *w = ex->flow;
	struct verdict before = w->verdict;
	struct refusal said;

	verdict_refuse(&w->verdict, reason);
	/* reported already */
	if (reason != REASON_UPSTREAM_TLS && reason != REASON_UNREACHABLE &&
	    reason != REASON_UNRESOLVED)
		front_refused(f, &w->want, &w->verdict, ex->what, ex->more);
	write_body(f, ex, reason, body, &said);
	w->verdict = before;
	return said;
}

unsigned exchange_say_refused(struct front *f, struct exchange *ex, enum verdict_reason reason,
			      struct buf *body, const char **ret_type)
{
	struct refusal said = say_refused(f, ex, reason, body);

	if (ret_type)
		*ret_type = said.type;
	return said.status;
}

void exchange_refuse(struct front *f, struct exchange *ex, enum verdict_reason reason)
{
	auto_buf body = { 0 }, head = { 0 };
	struct refusal said = say_refused(f, ex, reason, &body);

	meter_end(f, take_ptr(ex->meter), (enum meter_way)exchange_way(ex));
	exchange_end_waf(ex);
	body_scan_end(take_ptr(ex->scan));

	if (ex->answered) { /* the response has begun: all that is left is to break it off */
		exchange_break(f, ex);
		return;
	}
	/* what may follow a request that was not understood is not understood either */
	if (reason == REASON_HTTP_BAD || reason == REASON_NOT_HTTP || reason == REASON_HTTP_LARGE ||
	    ex->up_body.state != BODY_NONE)
		ex->close = true;
	buf_printf(&head,
		   "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nX-Ward: refused\r\nContent-Length: "
		   "%zu\r\n%s",
		   said.status, said.phrase, said.type, body.len,
		   ex->close ? "Connection: close\r\n" : "");
	if (ex->retry_s)
		buf_printf(&head, "Retry-After: %u\r\n", ex->retry_s);
	buf_puts(&head, "\r\n");
	exchange_end_look(f, ex);
	server_put(f, ex, ex->server && ex->held);
	queue_free(&ex->up);
	queue_add(&ex->down, head.data, head.len);
	if (!ex->is_head)
		queue_add(&ex->down, body.data, body.len);
	if (head.failed || body.failed || ex->down.failed) {
		exchange_break(f, ex);
		return;
	}
	ex->why[0] = '\0';
	ex->retry_s = 0;
	ex->lost = 0;
	ex->state = EXCHANGE_REPLY;
	flow_time_out(f, ex->flow, FLOW_WAIT_HEAD);
	flow_mark_ready(f, ex->flow);
}

unsigned exchange_way(const struct exchange *ex)
{
	if (ex->done && !ex->cut)
		return METER_WHOLE;
	return ex->gone ? METER_CUT : METER_UNSENT;
}

void exchange_break(struct front *f, struct exchange *ex)
{
	server_put(f, ex, false);
	flow_close(f, ex->flow, true);
}

/* -- behind a message */

static void begin_drain(struct front *f, struct exchange *ex)
{
	wire_end(&ex->wire);
	ex->state = EXCHANGE_DRAIN;
	ex->up_bytes = 0;
	flow_time_out(f, ex->flow, FLOW_WAIT_HEAD);
}

void exchange_next(struct front *f, struct exchange *ex)
{
	exchange_tell(f, ex); /* one that was never answered */
	meter_end(f, take_ptr(ex->meter), (enum meter_way)exchange_way(ex));
	record_end(&ex->record, NULL, false);
	buf_free(&ex->head);
	queue_free(&ex->answer);
	exchange_end_look(f, ex);
	if (ex->close || ex->ended) {
		server_put(f, ex, false);
		begin_drain(f, ex);
		return;
	}
	ex->state = EXCHANGE_HEAD;
	ex->scanned = 0;
	ex->lost = 0;
	flow_time_out(f, ex->flow, FLOW_WAIT_HALF);
}

static bool run_reply(struct front *f, struct exchange *ex)
{
	size_t n;
	enum tls_say say = queue_flush(&ex->down, &ex->wire, &n);

	if (say == TLS_DONE)
		exchange_next(f, ex);
	else if (say != TLS_READ && say != TLS_WRITE)
		flow_close(f, ex->flow, true);
	return say == TLS_DONE;
}

/* A reset would take our answer away from a program that still speaks. */
static bool run_drain(struct front *f, struct exchange *ex)
{
	size_t n;
	enum tls_say say = wire_read(&ex->wire, f->scratch, sizeof(f->scratch), &n);

	ex->up_bytes += n;
	if (say == TLS_READ || say == TLS_WRITE)
		return false;
	if (say == TLS_DONE && ex->up_bytes < DRAIN_BYTES)
		return true;
	flow_close(f, ex->flow, false);
	return false;
}

/* -- a websocket */

/* One direction: what was read is written before more is read. */
static bool tunnel(struct front *f, struct exchange *ex, enum direction d)
{
	struct queue *q = d == UP ? &ex->up : &ex->down;
	struct wire *to = d == UP ? &ex->server->wire : &ex->wire;
	struct flow *w = ex->flow; /* outlives ex in this round */
	struct lane *l = &w->lanes[d];
	enum tls_say say;
	size_t n;

	say = d == UP ? exchange_flush(f, ex, &n) : queue_flush(q, to, &n);
	if (w->state != FLOW_INSPECT)
		return false;
	if (say != TLS_DONE || l->ended) {
		if (say != TLS_DONE && say != TLS_READ && say != TLS_WRITE)
			exchange_break(f, ex);
		return n > 0;
	}
	say = exchange_read(f, ex, d, f->scratch, sizeof(f->scratch), &n);
	if (say == TLS_READ || say == TLS_WRITE)
		return false;
	if (say != TLS_DONE) {
		l->ended = true;
		wire_end(to);
		return true;
	}
	queue_add(q, f->scratch, n);
	if (q->failed)
		exchange_break(f, ex);
	return true;
}

static bool run_tunnel(struct front *f, struct exchange *ex)
{
	struct flow *w = ex->flow;
	bool moved;

	if (!ex->server) {
		flow_close(f, w, true);
		return false;
	}
	moved = tunnel(f, ex, UP);
	if (w->state == FLOW_INSPECT)
		moved |= tunnel(f, ex, DOWN);
	/* a websocket has no half-close: a side that has closed receives nothing more */
	if (w->state == FLOW_INSPECT &&
	    (w->gone[CLIENT] || (w->lanes[UP].ended && !queue_size(&ex->up)) ||
	     (w->lanes[DOWN].ended && !queue_size(&ex->down)))) {
		flow_close(f, w, false);
		return false;
	}
	return moved && w->state == FLOW_INSPECT;
}

/* -- the loop */

/* The program is gone: its end has come, and in TLS a side that has closed receives nothing more.
 */
static bool is_hung_up(const struct exchange *ex)
{
	return ex->flow->gone[CLIENT] || (ex->flow->has_ended[CLIENT] && ex->wire.down);
}

/* All of the request has gone to the server: a program that hangs up behind its request has still
 * made it. */
static bool is_delivered(const struct exchange *ex)
{
	return ex->up_body.state == BODY_NONE && !queue_size(&ex->up) && ex->gone;
}

/* Its server is still being connected to: nothing of the request has gone. */
static bool is_connecting(const struct exchange *ex)
{
	return ex->server && ex->server->state != SERVER_OPEN;
}

static bool run_relay(struct front *f, struct exchange *ex)
{
	struct flow *w = ex->flow;
	bool moved;

	if (!ex->server) {
		exchange_server_gone(f, ex, TLS_FAILED);
		return w->state == FLOW_INSPECT;
	}
	moved = exchange_run_up(f, ex);
	if (w->state == FLOW_INSPECT &&
	    ((is_hung_up(ex) && is_delivered(ex)) || (w->gone[CLIENT] && is_connecting(ex)))) {
		exchange_break(f, ex);
		return false;
	}
	if (w->state == FLOW_INSPECT && ex->state == EXCHANGE_RELAY && ex->server)
		moved |= exchange_run_down(f, ex);
	/* in the clear it may only have nothing more to say: as long as an answer comes, it gets
	 * it. A server that is slow to connect is waited for no longer than for an answer. */
	if (w->state == FLOW_INSPECT && ex->state == EXCHANGE_RELAY && w->has_ended[CLIENT] &&
	    (moved || w->timed == FLOW_WAIT_NONE))
		flow_time_out(f, w,
			      is_delivered(ex) || is_connecting(ex) ? FLOW_WAIT_GONE
								    : FLOW_WAIT_HALF);
	return moved;
}

bool exchange_run(struct front *f, struct flow *w)
{
	struct exchange *ex = w->inspect;

	switch ((enum exchange_state)ex->state) {
	case EXCHANGE_GREET:
		return greet(f, ex);
	case EXCHANGE_HEAD:
		return exchange_run_head(f, ex);
	case EXCHANGE_WAF:
		return exchange_run_waf(f, ex);
	case EXCHANGE_LOOK:
		return exchange_run_look(f, ex);
	case EXCHANGE_ASK:
		return exchange_run_ask(f, ex);
	case EXCHANGE_RELAY:
		return run_relay(f, ex);
	case EXCHANGE_TUNNEL:
		return run_tunnel(f, ex);
	case EXCHANGE_REPLY:
		return run_reply(f, ex);
	case EXCHANGE_DRAIN:
		return run_drain(f, ex);
	case EXCHANGE_H2:
		return h2_run(ex->h2);
	}
	return false;
}

void exchange_closed(struct front *f, struct flow *w)
{
	struct exchange *ex = w->inspect;

	exchange_tell(f, ex); /* its answer broke off, or never came */
	h2_free(ex->h2);
	meter_end(f, take_ptr(ex->meter), (enum meter_way)exchange_way(ex));
	record_end(&ex->record, NULL, false);
	exchange_end_waf(ex);
	request_ask_end(f, take_ptr(ex->ask));
	body_scan_end(take_ptr(ex->scan));
	exchange_end_look(f, ex);
	server_put(f, ex, ex->state == EXCHANGE_HEAD || ex->state == EXCHANGE_GREET);
	wire_free(&ex->wire);
	queue_free(&ex->in);
	queue_free(&ex->up);
	queue_free(&ex->down);
	queue_free(&ex->answer);
	buf_free(&ex->head);
	free(ex);
	w->inspect = NULL;
}
