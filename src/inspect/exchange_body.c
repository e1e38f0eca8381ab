/*
 * Requests of HTTP/1 whose body decides. In: a head that is allowed if its body is, the program's
 * bytes. Out: a request that goes on as any other, with all that was held; or a refusal, and the
 * server has heard nothing. A push that is refused is read to its end first (as far as that is not
 * too far): git reads no answer before. Runs in front.
 */
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "inspect/inspect.h"

#define SWALLOW_BYTES (64 * 1024 * 1024)

void exchange_note_asked(char what[EXCHANGE_WHAT], const struct asked *asked)
{
	size_t n = strlen(what), most = EXCHANGE_WHAT - sizeof(asked->text) - 2;
	size_t k = strlen(asked->text);

	if (!k || (n > k && what[n - k - 1] == ' ' && strcmp(what + n - k, asked->text) == 0))
		return; /* nothing, or it stands there already */
	if (n > most) {
		n = most;
		memcpy(what + n - strlen(EXCHANGE_CUT), EXCHANGE_CUT, strlen(EXCHANGE_CUT));
	}
	snprintf(what + n, EXCHANGE_WHAT - n, " %s", asked->text);
}

void exchange_explain(char *why, size_t size, enum verdict_reason reason, const struct asked *asked)
{
	if (asked->wrong)
		snprintf(why, size, "%s: %s", verdict_reason_text(reason), asked->wrong);
}

bool exchange_pace_look(struct front *f, struct exchange *ex, const struct body_inspect *l)
{
	int32_t rule = body_inspect_verdict(l)->rule;
	uint64_t wait_ms = 0;

	if (rule == body_inspect_first_rule(l))
		return true;
	if (budget_fit(&f->budget, f->rules) == 0 &&
	    budget_pace_rule(&f->budget, f->rules, rule, io_now_ms(), &wait_ms))
		return true;
	ex->retry_s = (uint32_t)((wait_ms + 999) / 1000);
	return false;
}

bool exchange_hold(struct front *f, uint32_t *room, size_t bytes)
{
	if (bytes <= *room)
		return true;
	if (!room_grow(f, *room, (uint32_t)bytes))
		return false;
	*room = (uint32_t)bytes;
	return true;
}

void exchange_end_look(struct front *f, struct exchange *ex)
{
	body_inspect_free(take_ptr(ex->look));
	room_give_back(f, ex->look_room);
	ex->look_room = 0;
	ex->body_inspect_say = BODY_INSPECT_MORE;
}

void exchange_end_body(struct exchange *ex)
{
	body_inspect_free(take_ptr(ex->look));
}

void exchange_begin_look(struct front *f, struct exchange *ex, const struct http_verdict *v,
			 const struct http_request *r)
{
	ex->look = body_inspect_new(v, r);
	ex->body_inspect_say = BODY_INSPECT_MORE;
	ex->state = EXCHANGE_LOOK;
	queue_add(&ex->up, ex->head.data, ex->head.len);
	flow_time_out(f, ex->flow, FLOW_WAIT_HEAD);
	if (!ex->look || ex->head.failed || ex->up.failed || ex->down.failed)
		exchange_break(f, ex);
}

/* It passes: what was held goes, and the rest follows. */
static bool go_on(struct front *f, struct exchange *ex)
{
	const struct body_inspect_verdict *v = body_inspect_verdict(ex->look);
	struct flow *w = ex->flow;
	bool paced = exchange_pace_look(f, ex, ex->look);

	w->verdict.rule = v->rule;
	ex->request_limit = v->request_limit;
	ex->response_limit = v->response_limit;
	if (!paced || ex->up_bytes > ex->request_limit) {
		exchange_refuse(f, ex, paced ? REASON_REQUEST_SIZE : REASON_REQUEST_RATE);
		return false;
	}
	return exchange_pass(f, ex) && ex->state == EXCHANGE_RELAY;
}

bool exchange_bodyed(struct front *f, struct exchange *ex)
{
	bool end = ex->up_body.state == BODY_NONE;
	const struct body_inspect_verdict *v;

	if (end && ex->body_inspect_say == BODY_INSPECT_MORE)
		ex->body_inspect_say =
			(uint8_t)body_inspect_take(ex->look, f->rules, NULL, 0, true);
	if (ex->body_inspect_say == BODY_INSPECT_MORE) {
		flow_time_out(f, ex->flow, FLOW_WAIT_HEAD);
		if (exchange_hold(f, &ex->look_room,
				  queue_size(&ex->up) + body_inspect_size(ex->look)))
			return true;
		exchange_refuse(f, ex, REASON_FULL);
		return false;
	}
	v = body_inspect_verdict(ex->look);
	if (ex->body_inspect_say == BODY_INSPECT_REFUSE && body_inspect_is_push(ex->look) && !end &&
	    ex->up_bytes < SWALLOW_BYTES) {
		queue_free(&ex->up);
		flow_time_out(f, ex->flow, FLOW_WAIT_HEAD);
		return true;
	}
	exchange_note_asked(ex->what, &v->asked);
	if (ex->body_inspect_say == BODY_INSPECT_PASS)
		return go_on(f, ex);
	ex->flow->verdict.rule = v->rule;
	exchange_explain(ex->why, sizeof(ex->why), v->reason, &v->asked);
	memcpy(ex->more, v->asked.more, sizeof(ex->more));
	exchange_refuse(f, ex, v->reason);
	return false;
}

bool exchange_run_look(struct front *f, struct exchange *ex)
{
	struct flow *w = ex->flow; /* outlives ex in this round */
	enum tls_say say;
	size_t n;
	bool moved;

	say = queue_flush(&ex->down, &ex->wire, &n);
	if (say != TLS_DONE && say != TLS_READ && say != TLS_WRITE) {
		exchange_break(f, ex);
		return false;
	}
	moved = ex->up_body.state == BODY_NONE ? exchange_bodyed(f, ex) : exchange_read_body(f, ex);
	if (w->state == FLOW_INSPECT && (ex->up.failed || ex->in.failed)) {
		exchange_break(f, ex);
		return false;
	}
	return moved;
}
