/*
 * Responses of servers to requests that passed. In: the server's bytes, plain. Out: the response
 * for the program, its head written anew and its body framed by us, as it comes. A server that goes
 * away before it has answered is asked again over another connection where that cannot do the same
 * thing twice; one that goes away in the middle breaks the program's connection, so that no process
 * takes half for the whole. Runs in front.
 */
#include <stdio.h>
#include <string.h>

#include "inspect/inspect.h"
#include "inspect/meter.h"
#include "tape/replay.h"

void exchange_server_gone(struct front *f, struct exchange *ex, enum tls_say how)
{
	bool used = ex->server && ex->server->used;
	enum verdict_reason lost = (enum verdict_reason)ex->lost;

	if (!ex->answered && (how == TLS_END || how == TLS_CUT || how == TLS_FAILED) && used &&
	    !ex->sent && !ex->up_bytes) {
		server_put(f, ex, false);
		if (!exchange_again(f, ex))
			exchange_break(f, ex);
		else
			flow_mark_ready(f, ex->flow); /* one of the pool says nothing by itself */
		return;
	}
	server_put(f, ex, false);
	if (ex->answered) {
		exchange_break(f, ex);
		return;
	}
	if (!*ex->why && !lost)
		snprintf(ex->why, sizeof(ex->why),
			 "the server closed the connection without an answer");
	exchange_refuse(f, ex, lost ? lost : REASON_UNREACHABLE);
}

/* -- the end of a response */

void exchange_tell(struct front *f, struct exchange *ex)
{
	if (ex->status || ex->unreported)
		front_flow_report_http(f, ex->flow, ex->flow->verdict.rule, ex->what, ex->status,
				       ex->up_bytes, ex->down_bytes);
	ex->status = 0;
	ex->unreported = false;
}

static void finish(struct front *f, struct exchange *ex)
{
	bool whole = ex->up_body.state == BODY_NONE && !queue_size(&ex->up);

	exchange_tell(f, ex);
	if (!whole)
		ex->close = true; /* the server did not want the rest of the request */
	server_put(f, ex,
		   whole && ex->server && !ex->server->flow->lanes[DOWN].ended &&
			   !queue_size(&ex->answer));
	record_end(&ex->record, NULL, true);
	ex->up_body = ex->down_body = (struct http_body){ 0 };
	queue_free(&ex->up);
	exchange_next(f, ex);
}

/* The body is complete, without trailers. */
static void end_body(struct exchange *ex)
{
	record_end(&ex->record, NULL, true);
	if (ex->down_chunked)
		queue_add(&ex->down, "0\r\n\r\n", 5);
	ex->done = true;
}

void exchange_not_recorded(struct exchange *ex, const struct http_fields *f)
{
	struct http_text why = http_field_get(f, REPLAY_WHY);

	snprintf(ex->why, sizeof(ex->why), "%.*s",
		 (int)(why.n < sizeof(ex->why) ? why.n : sizeof(ex->why) - 1), why.s);
	ex->lost = REASON_NOT_RECORDED;
}

/* -- heads */

static bool is_bodiless(const struct exchange *ex, const struct http_response *r)
{
	return ex->is_head || r->status == 204 || r->status == 304;
}

/* How the body comes, and how it goes on. */
static void frame(struct exchange *ex, const struct http_response *r)
{
	ex->down_chunked = false;
	if (is_bodiless(ex, r)) {
		body_length(&ex->down_body, 0);
	} else if (r->chunked) {
		body_chunked(&ex->down_body);
		ex->down_chunked = !ex->old;
	} else if (r->has_length) {
		body_length(&ex->down_body, r->length);
	} else {
		body_until_close(&ex->down_body);
		ex->down_chunked = !ex->old;
	}
}

/* False: what it costs cannot be paid. */
static bool count_answer(struct front *f, struct exchange *ex, struct http_response *r)
{
	const char *note = meter_note(f, ex->meter);

	if (!meter_answer(f, ex, ex->meter, r->status, http_field_get(&r->fields, "content-type"),
			  http_field_get(&r->fields, "content-encoding"))) {
		ex->cut = true;
		return false;
	}
	if (note && r->fields.count < HTTP_FIELDS_MAX)
		r->fields.items[r->fields.count++] =
			(struct http_field){ { "X-Ward-Budget", 13 }, { note, strlen(note) } };
	return true;
}

static bool begin_answer(struct front *f, struct exchange *ex, struct http_response *r)
{
	auto_buf head = { 0 };

	if (f->config.tape == GATE_TAPE_REPLAY && http_field_get(&r->fields, REPLAY_WHY).s) {
		exchange_not_recorded(ex, &r->fields);
		return false;
	}
	if ((r->status == 101 && !ex->websocket) ||
	    (r->status >= 200 && ex->meter && !count_answer(f, ex, r)))
		return false;
	if (r->status >= 200 || r->status == 101) {
		ex->answered = true;
		ex->status = r->status;
	}
	if (r->status >= 200) {
		record_answer(ex->record, r->status, &r->fields);
		frame(ex, r);
		if (r->close || ex->down_body.state == BODY_CLOSE)
			ex->server->flow->lanes[DOWN].ended = true; /* not again */
	}
	if (r->status >= 200 || !ex->old)
		http_response_write(r, ex->down_chunked, ex->close && r->status >= 200, &head);
	queue_add(&ex->down, head.data, head.len);
	if (r->status == 101) {
		exchange_tell(f, ex);
		ex->state = EXCHANGE_TUNNEL;
		flow_untime(f, ex->flow);
	} else if (r->status >= 200 && ex->down_body.state == BODY_NONE) {
		ex->done = true;
	}
	return !head.failed;
}

/* -- bodies */

static void add_data(struct front *f, struct exchange *ex, const uint8_t *bytes, size_t n)
{
	char line[24];

	if (ex->down_chunked)
		queue_add(&ex->down, line, (size_t)snprintf(line, sizeof(line), "%zx\r\n", n));
	queue_add(&ex->down, bytes, n);
	if (ex->down_chunked)
		queue_add(&ex->down, "\r\n", 2);
	record_data(ex->record, bytes, n);
	ex->down_bytes += n;
	if (!ex->cut && !meter_data(f, ex->meter, bytes, n))
		ex->cut = true;
}

/* Trailers in the reading: from their first byte on, whole lines. */
static void keep_trailer(struct exchange *ex, uint8_t before, uint8_t byte)
{
	if (before == BODY_TRAILER_LINE || (before == BODY_TRAILER && byte != '\r' && byte != '\n'))
		queue_add(&ex->answer, &byte, 1);
}

static void put_trailers(struct exchange *ex)
{
	bool some = ex->down_chunked && queue_size(&ex->answer);
	struct http_fields *f = some ? calloc(1, sizeof(*f)) : NULL;

	if (f && http_trailers_read((const uint8_t *)ex->answer.data + ex->answer.at,
				    queue_size(&ex->answer), f)) {
		record_end(&ex->record, f, true);
		queue_add(&ex->down, "0\r\n", 3);
		for (unsigned i = 0; i < f->count; i++) {
			queue_add(&ex->down, f->items[i].name.s, f->items[i].name.n);
			queue_add(&ex->down, ": ", 2);
			queue_add(&ex->down, f->items[i].value.s, f->items[i].value.n);
			queue_add(&ex->down, "\r\n", 2);
		}
		queue_add(&ex->down, "\r\n", 2);
		ex->done = true;
	} else {
		end_body(ex);
	}
	free(f);
	queue_free(&ex->answer);
}

/* Takes what belongs to the body; returns how much. */
static size_t take_body(struct front *f, struct exchange *ex, const uint8_t *bytes, size_t n)
{
	struct http_body *b = &ex->down_body;
	size_t used = 0;

	while (used < n && b->state != BODY_NONE && b->state != BODY_BAD) {
		bool data =
			b->state == BODY_LENGTH || b->state == BODY_DATA || b->state == BODY_CLOSE;
		size_t left =
			b->state == BODY_CLOSE || n - used < b->left ? n - used : (size_t)b->left;
		uint8_t before = b->state;

		if (data)
			add_data(f, ex, bytes + used, left);
		else
			keep_trailer(ex, before, bytes[used]);
		used += body_take(b, bytes + used, data ? left : 1, false);
	}
	if (b->state == BODY_NONE)
		put_trailers(ex);
	return used;
}

/* -- the server's bytes */

/* Heads, until the final one is there; then the body. False: it cannot be understood. */
static bool understand(struct front *f, struct exchange *ex, const uint8_t *bytes, size_t n)
{
	struct http_response *r = &inspector_of(f)->response;

	if (!ex->answered) {
		int k;

		queue_add(&ex->answer, bytes, n);
		while (!ex->answered && queue_size(&ex->answer)) {
			k = http_response_read((const uint8_t *)ex->answer.data + ex->answer.at,
					       queue_size(&ex->answer), r);
			if (k <= 0)
				return k == 0;
			if (!begin_answer(f, ex, r))
				return false;
			ex->answer.at += r->len;
		}
		if (ex->state == EXCHANGE_TUNNEL) {
			queue_add(&ex->down, ex->answer.data + ex->answer.at,
				  queue_size(&ex->answer));
			queue_free(&ex->answer);
			return true;
		}
		if (!ex->done && queue_size(&ex->answer)) {
			struct queue rest = ex->answer;
			size_t used;

			ex->answer = (struct queue){ 0 };
			used = take_body(f, ex, (const uint8_t *)rest.data + rest.at,
					 queue_size(&rest));
			rest.at += used;
			if (queue_size(&rest))
				/* more than was asked for: not again */
				ex->server->flow->lanes[DOWN].ended = true;
			queue_free(&rest);
		}
		return ex->down_body.state != BODY_BAD;
	}
	if (take_body(f, ex, bytes, n) < n)
		ex->server->flow->lanes[DOWN].ended = true;
	return ex->down_body.state != BODY_BAD;
}

/* The budget is spent in the middle of an answer: a program that reads events gets an error event,
 * any other sees the connection break. */
static void cut_short(struct front *f, struct exchange *ex)
{
	auto_buf words = { 0 }, body = { 0 };

	if (!ex->down_chunked || ex->done || !meter_cut_off(f, ex, ex->meter, &words)) {
		exchange_refuse(f, ex, REASON_SPENT);
		return;
	}
	(void)exchange_say_refused(f, ex, REASON_SPENT, &body, NULL);
	ex->why[0] = '\0';
	add_data(f, ex, (const uint8_t *)words.data, words.len);
	ex->down_body = (struct http_body){ 0 };
	ex->server->flow->lanes[DOWN].ended = true; /* not again */
	end_body(ex);
}

static bool read_server(struct front *f, struct exchange *ex)
{
	size_t n;
	enum tls_say say = exchange_read(f, ex, DOWN, f->scratch, sizeof(f->scratch), &n);

	if (say == TLS_READ || say == TLS_WRITE)
		return false;
	if (say == TLS_DONE) {
		if (!understand(f, ex, f->scratch, n)) {
			exchange_refuse(f, ex,
					ex->cut    ? REASON_SPENT
					: ex->lost ? (enum verdict_reason)ex->lost
						   : REASON_UPSTREAM_HTTP);
			return false;
		}
		if (ex->answered && ex->down_bytes > ex->response_limit) {
			exchange_refuse(f, ex, REASON_RESPONSE_SIZE);
			return false;
		}
		if (ex->cut && !ex->done)
			cut_short(f, ex);
		return true;
	}
	/* a reset, and TLS that ends without saying so, may have cut it: then it is not complete */
	if (ex->answered && ex->down_body.state == BODY_CLOSE && say == TLS_END) {
		ex->server->flow->lanes[DOWN].ended = true;
		end_body(ex);
		if (!ex->down_chunked)
			ex->close = true;
		return true;
	}
	exchange_server_gone(f, ex, say);
	return false;
}

bool exchange_run_down(struct front *f, struct exchange *ex)
{
	struct flow *w = ex->flow; /* outlives ex in this round */
	enum tls_say say;
	size_t n;

	if (ex->server->state != SERVER_OPEN)
		return false;
	say = queue_flush(&ex->down, &ex->wire, &n);
	if (say != TLS_DONE && say != TLS_READ && say != TLS_WRITE) {
		exchange_break(f, ex);
		return false;
	}
	if (say != TLS_DONE)
		return n > 0;
	if (ex->done) {
		finish(f, ex);
		return true;
	}
	if (!read_server(f, ex))
		return n > 0 || (w->state == FLOW_INSPECT && ex->state != EXCHANGE_RELAY);
	if (ex->down.failed || ex->answer.failed) {
		exchange_break(f, ex);
		return false;
	}
	return true;
}
