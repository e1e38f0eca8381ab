/*
 * Requests of HTTP/2 whose body or a person decides: as exchange_body.c and exchange_ask.c do for
 * HTTP/1. In: a stream whose head is allowed if its body is, or if a person says yes; the body.
 * Out: the request, forwarded with all that was held; or a refusal. The window gets back what is
 * held, so that a body may be larger than it; front's purse bounds them all. While a person is
 * asked, the window gets back nothing. Runs in front.
 */
#include "inspect/h2.h"
#include "inspect/meter.h"

#define SWALLOW_BYTES (64 * 1024 * 1024)

void h2_end_look(struct h2 *h, struct h2_stream *s)
{
	request_ask_end(h->f, take_ptr(s->ask));
	body_inspect_free(take_ptr(s->look));
	h2_head_free(take_ptr(s->asked));
	buf_free(&s->path);
	room_give_back(h->f, s->look_room);
	s->look_room = 0;
}

void h2_begin_look(struct h2 *h, struct h2_stream *s, const struct http_verdict *v,
		   const struct http_request *r)
{
	buf_add(&s->path, v->path.s, v->path.n);
	s->look = body_inspect_new(v, r);
	s->body_inspect_say = BODY_INSPECT_MORE;
	s->asked = take_ptr(s->head);
	if (!s->look || s->path.failed) {
		h2_refuse(h, s, REASON_FULL);
		return;
	}
	if (s->up_ended)
		h2_body(h, s, NULL, 0, true);
}

static void refuse(struct h2 *h, struct h2_stream *s, enum verdict_reason reason,
		   const struct asked *asked)
{
	exchange_explain(h->ex->why, sizeof(h->ex->why), reason, asked);
	memcpy(h->ex->more, asked->more, sizeof(h->ex->more));
	h2_refuse(h, s, reason);
	h->ex->why[0] = '\0';
}

/* To the server with it, as it came. */
static void forward(struct h2 *h, struct h2_stream *s)
{
	struct http_request *r = &inspector_of(h->f)->request;
	enum verdict_reason reason;
	char what[EXCHANGE_WHAT];

	memcpy(what, s->what, sizeof(what)); /* reading the head again describes it again */
	s->head = take_ptr(s->asked);
	reason = h2_read_request(h, s, r);
	(void)exchange_drop_expect(r); /* it was answered when the head came */
	if (reason != REASON_ALLOWED || h->over ||
	    !h2_forward(h, s, r, (struct http_text){ s->path.data, s->path.len })) {
		memcpy(s->what, what, sizeof(what));
		h2_refuse(h, s, REASON_UNREACHABLE);
	} else {
		memcpy(s->what, what, sizeof(what));
		/* the room goes when the stream does: what was held is still here */
		body_inspect_free(take_ptr(s->look));
	}
	h2_head_free(take_ptr(s->head));
}

/* "POST /v1/files?query", with the path as it is sent. */
static bool read_target(struct h2 *h, struct h2_stream *s, struct buf *out)
{
	struct http_request *r = &inspector_of(h->f)->request;
	char what[EXCHANGE_WHAT];
	bool fine;

	memcpy(what, s->what, sizeof(what));
	s->head = s->asked; /* lent */
	fine = h2_read_request(h, s, r) == REASON_ALLOWED;
	s->head = NULL;
	memcpy(s->what, what, sizeof(what));
	buf_add(out, r->method.s, r->method.n);
	buf_puts(out, " ");
	buf_add(out, s->path.data, s->path.len);
	if (r->query.s) {
		buf_puts(out, "?");
		buf_add(out, r->query.s, r->query.n);
	}
	return fine && !out->failed && !s->path.failed;
}

/* What is sent with a yes: the head as it is held, the path in its normal form, what is there of
 * the body. */
static bool begin_ask(struct h2 *h, struct h2_stream *s)
{
	const struct queue *data = &s->data[UP];
	struct request_parts p = { .what = s->what, .look = s->look, .unread = !s->up_ended };
	auto_buf target = { 0 };

	if (!read_target(h, s, &target))
		return false;
	p.target = (struct http_text){ target.data, target.len };
	sha256_begin(&p.sum);
	sha256_add(&p.sum, target.data, target.len);
	sha256_add(&p.sum, s->asked->at, s->asked->count * sizeof(s->asked->at[0]));
	sha256_add(&p.sum, s->asked->text.data, s->asked->text.len);
	if (queue_size(data))
		sha256_add(&p.sum, data->data + data->at, queue_size(data));
	s->ask = request_ask_new(h->f, h->ex, s, &p);
	return s->ask;
}

void h2_pass(struct h2 *h, struct h2_stream *s)
{
	if (!exchange_asks(h->f, h->ex->flow->verdict.rule))
		forward(h, s);
	else if (!begin_ask(h, s))
		h2_refuse(h, s, REASON_ASKED_FULL);
}

void h2_answered(struct h2 *h, struct h2_stream *s)
{
	enum verdict_reason reason = request_ask_answer(h->f, s->ask);
	size_t left = queue_size(&s->data[UP]);

	h->ex->flow->verdict.rule = request_ask_rule(s->ask);
	request_ask_end(h->f, take_ptr(s->ask));
	if (reason == REASON_ALLOWED) {
		forward(h, s);
		return;
	}
	if (!s->look) {
		h2_refuse(h, s, reason);
		return;
	}
	/* as any other that its body refuses: the rest of it may come */
	nghttp2_session_consume(h->down, s->down_id, left > s->taken ? left - s->taken : 0);
	s->taken = left;
	body_inspect_deny(s->look, reason);
	s->body_inspect_say = BODY_INSPECT_REFUSE;
	h2_body(h, s, NULL, 0, s->up_ended);
}

static void go_on(struct h2 *h, struct h2_stream *s)
{
	const struct body_inspect_verdict *v = body_inspect_verdict(s->look);
	enum verdict_reason reason;

	h->ex->flow->verdict.rule = v->rule;
	s->limits[UP] = v->request_limit;
	s->limits[DOWN] = v->response_limit;
	if (!exchange_pace_look(h->f, h->ex, s->look)) {
		h2_refuse(h, s, REASON_REQUEST_RATE);
		return;
	}
	if (s->bytes[UP] > s->limits[UP]) {
		h2_refuse(h, s, REASON_REQUEST_SIZE);
		return;
	}
	reason = meter_judge(h->f, h->ex, s->meter, s->up_ended);
	if (reason != REASON_ALLOWED) {
		h2_refuse(h, s, reason);
		return;
	}
	h2_pass(h, s);
}

void h2_body(struct h2 *h, struct h2_stream *s, const uint8_t *bytes, size_t n, bool end)
{
	const struct body_inspect_verdict *v = body_inspect_verdict(s->look);
	struct asked asked;

	if (s->ask) { /* it waits: no more than the window comes */
		queue_add(&s->data[UP], bytes, n);
		meter_body(s->meter, bytes, n);
		record_sent(s->record, bytes, n);
		h->broken |= s->data[UP].failed;
		return;
	}
	if (s->body_inspect_say == BODY_INSPECT_MORE)
		s->body_inspect_say =
			(uint8_t)body_inspect_take(s->look, h->f->rules, bytes, n, end);
	nghttp2_session_consume(h->down, s->down_id, n);
	if (s->body_inspect_say != BODY_INSPECT_REFUSE) {
		queue_add(&s->data[UP], bytes, n);
		meter_body(s->meter, bytes, n);
		record_sent(s->record, bytes, n);
		s->taken += n;
		h->broken |= s->data[UP].failed;
	}
	if (s->body_inspect_say == BODY_INSPECT_MORE) {
		if (!exchange_hold(h->f, &s->look_room,
				   queue_size(&s->data[UP]) + body_inspect_size(s->look)))
			h2_refuse(h, s, REASON_FULL);
		return;
	}
	if (s->body_inspect_say == BODY_INSPECT_REFUSE && body_inspect_is_push(s->look) && !end &&
	    s->bytes[UP] < SWALLOW_BYTES) {
		h2_drop(h, s);
		return;
	}
	exchange_note_asked(s->what, &v->asked);
	if (s->body_inspect_say == BODY_INSPECT_PASS) {
		go_on(h, s);
		return;
	}
	h->ex->flow->verdict.rule = v->rule;
	asked = v->asked; /* what it lies in goes with the refusal */
	refuse(h, s, v->reason, &asked);
}
