/*
 * Requests of HTTP/2 whose body decides: exchange_body.c for streams. In: a stream whose head is
 * allowed if its body is, the body. Out: the request, forwarded with all that was held; or a
 * refusal. The window gets back what is held, so that a body may be larger than it; front's purse
 * bounds them all. Runs in front.
 */
#include "inspect/h2.h"
#include "inspect/meter.h"

#define SWALLOW_BYTES (64 * 1024 * 1024)

void h2_end_look(struct h2 *h, struct h2_stream *s)
{
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

static void go_on(struct h2 *h, struct h2_stream *s)
{
	struct http_request *r = &inspector_of(h->f)->request;
	const struct body_inspect_verdict *v = body_inspect_verdict(s->look);
	enum verdict_reason reason;
	char what[EXCHANGE_WHAT];

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

void h2_body(struct h2 *h, struct h2_stream *s, const uint8_t *bytes, size_t n, bool end)
{
	const struct body_inspect_verdict *v = body_inspect_verdict(s->look);
	struct asked asked;

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
