/*
 * Streams of HTTP/2 (h2.h): one request and its response each. In: heads, bodies and trailers of
 * both sides. Out: the same on the other side, if a rule allows the request; else an answer of our
 * own. Fields are copied, as many as fit into one head. Runs in front.
 */
#include <stdio.h>
#include <string.h>

#include "inspect/body_scan.h"
#include "inspect/h2.h"
#include "inspect/meter.h"
#include "tape/replay.h"

/* -- heads */

struct h2_stream *h2_stream_new(struct h2 *h, int32_t down_id)
{
	struct h2_stream *s = calloc(1, sizeof(*s));

	if (!s || nghttp2_session_set_stream_user_data(h->down, down_id, s) != 0) {
		free(s);
		return NULL;
	}
	s->down_id = down_id;
	s->limits[UP] = s->limits[DOWN] = RULE_NONE;
	s->next = h->streams;
	if (h->streams)
		h->streams->prev = s;
	h->streams = s;
	return s;
}

void h2_head_free(struct h2_head *head)
{
	if (head)
		buf_free(&head->text);
	free(head);
}

/* h->up may be gone already: s->gone is what tell() found. */
static enum meter_way way_of(const struct h2_stream *s)
{
	if (!s->gone || s->declined)
		return METER_UNSENT;
	return s->down_ended && !s->cut ? METER_WHOLE : METER_CUT;
}

void h2_stream_free(struct h2 *h, struct h2_stream *s)
{
	*(s->prev ? &s->prev->next : &h->streams) = s->next;
	if (s->next)
		s->next->prev = s->prev;
	meter_end(h->f, s->meter, way_of(s));
	h2_head_free(s->head);
	record_end(&s->record, NULL, false);
	body_scan_end(take_ptr(s->scan));
	h2_end_look(h, s);
	for (int d = 0; d < DIRECTIONS; d++) {
		h2_head_free(s->trailers[d]);
		queue_free(&s->data[d]);
	}
	free(s);
}

bool h2_head_add(struct h2_stream *s, const uint8_t *name, size_t name_n, const uint8_t *value,
		 size_t value_n)
{
	struct h2_head *head = s->head;

	if (head->count == HTTP_FIELDS_MAX ||
	    head->text.len + name_n + value_n + 32 > H2_FIELDS_BYTES)
		return false;
	head->at[head->count].name = (uint32_t)head->text.len;
	head->at[head->count].name_len = (uint32_t)name_n;
	buf_add(&head->text, name, name_n);
	head->at[head->count].value = (uint32_t)head->text.len;
	head->at[head->count].value_len = (uint32_t)value_n;
	buf_add(&head->text, value, value_n);
	head->count++;
	return !head->text.failed;
}

static struct http_field field_of(const struct h2_head *head, unsigned i)
{
	return (struct http_field){ { head->text.data + head->at[i].name, head->at[i].name_len },
				    { head->text.data + head->at[i].value,
				      head->at[i].value_len } };
}

/* As a list, without those that begin with ":"; good until the next. */
static const struct http_fields *fields_of(struct h2 *h, const struct h2_head *head)
{
	struct http_fields *f = &inspector_of(h->f)->response.fields;

	f->count = 0;
	for (unsigned i = 0; i < head->count; i++)
		if (head->text.data[head->at[i].name] != ':')
			f->items[f->count++] = field_of(head, i);
	return f;
}

static struct http_text pseudo(const struct h2_head *head, const char *name)
{
	for (unsigned i = 0; i < head->count; i++) {
		struct http_field f = field_of(head, i);

		if (http_text_is(f.name, name))
			return f.value;
	}
	return (struct http_text){ 0 };
}

static nghttp2_nv nv(struct http_text name, struct http_text value)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name.s, (uint8_t *)(uintptr_t)value.s, name.n,
			     value.n, NGHTTP2_NV_FLAG_NONE };
}

static struct http_text text(const char *s)
{
	return (struct http_text){ s, strlen(s) };
}

/* -- bodies */

/* What nghttp2 asks for when it may send: of the queue, then the end or the trailers. */
static ssize_t give(nghttp2_session *session, int32_t id, uint8_t *to, size_t n, uint32_t *flags,
		    nghttp2_data_source *source, void *user)
{
	struct h2 *h = user;
	/* not source->ptr: the stream may be gone */
	struct h2_stream *s = nghttp2_session_get_stream_user_data(session, id);
	enum direction d = session == h->up ? UP : DOWN;
	struct queue *q = s ? &s->data[d] : NULL;
	size_t some;

	(void)source;
	if (!s)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	some = queue_size(q) < n ? queue_size(q) : n;
	if (some)
		memcpy(to, q->data + q->at, some);
	q->at += some;
	if (!queue_size(q))
		queue_free(q);
	if (some && !(d == DOWN && s->own)) { /* its sender may send as much again */
		size_t had = d == DOWN ? 0 : some < s->taken ? some : s->taken;

		s->taken -= had;
		nghttp2_session_consume(d == UP ? h->down : h->up, d == UP ? s->down_id : s->up_id,
					some - had);
	}
	if (!queue_size(q) && (d == UP ? s->up_ended : s->down_ended)) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (s->trailers[d]) {
			nghttp2_nv fields[HTTP_FIELDS_MAX];
			size_t count = 0;

			for (unsigned i = 0; i < s->trailers[d]->count; i++) {
				struct http_field f = field_of(s->trailers[d], i);

				fields[count++] = nv(f.name, f.value);
			}
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			if (nghttp2_submit_trailer(session, id, fields, count) != 0)
				return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
		}
		return (ssize_t)some;
	}
	return some ? (ssize_t)some : NGHTTP2_ERR_DEFERRED;
}

static void resume(struct h2 *h, struct h2_stream *s, enum direction d)
{
	if (d == DOWN)
		nghttp2_session_resume_data(h->down, s->down_id);
	else if (s->up_open)
		nghttp2_session_resume_data(h->up, s->up_id);
}

/* The budget is spent in the middle of an answer. */
static void cut_short(struct h2 *h, struct h2_stream *s)
{
	auto_buf words = { 0 }, body = { 0 };

	snprintf(h->ex->what, sizeof(h->ex->what), "%s", s->what);
	if (!meter_cut_off(h->f, h->ex, s->meter, &words)) {
		h2_refuse(h, s, REASON_SPENT);
		return;
	}
	(void)exchange_say_refused(h->f, h->ex, REASON_SPENT, &body, NULL);
	h->ex->why[0] = '\0';
	queue_add(&s->data[DOWN], words.data, words.len);
	s->refused = s->cut = s->down_ended = true;
	if (s->up_open)
		nghttp2_submit_rst_stream(h->up, NGHTTP2_FLAG_NONE, s->up_id, NGHTTP2_CANCEL);
}

/* What is to be paid for; false: it was refused. */
static bool count(struct h2 *h, struct h2_stream *s, const uint8_t *bytes, size_t n, bool complete)
{
	enum verdict_reason reason;

	if (!s->meter)
		return true;
	meter_body(s->meter, bytes, n);
	reason = meter_judge(h->f, h->ex, s->meter, complete);
	if (reason != REASON_ALLOWED)
		h2_refuse(h, s, reason);
	return reason == REASON_ALLOWED;
}

static bool pass_data(struct h2 *h, struct h2_stream *s, enum direction d, const uint8_t *bytes,
		      size_t n)
{
	if (d == UP && s->look) {
		h2_body(h, s, bytes, n, false);
		return true;
	}
	if (d == UP && !count(h, s, bytes, n, false)) {
		nghttp2_session_consume(h->down, s->down_id, n);
		return true;
	}
	queue_add(&s->data[d], bytes, n);
	if (d == DOWN && !meter_data(h->f, s->meter, bytes, n))
		cut_short(h, s);
	if (d == UP)
		record_sent(s->record, bytes, n);
	else
		record_data(s->record, bytes, n);
	h->broken |= s->data[d].failed;
	resume(h, s, d);
	return true;
}

/* A body that is looked through for secrets; false: it was refused. */
static bool scan(struct h2 *h, struct h2_stream *s, const uint8_t *bytes, size_t n, bool end)
{
	size_t held = body_scan_held(s->scan);
	auto_buf out = { 0 };
	enum verdict_reason reason = body_scan_take(h->f, h->ex, s->scan, bytes, n, end, &out);

	if (reason != REASON_ALLOWED) {
		nghttp2_session_consume(h->down, s->down_id, held + n);
		body_scan_end(take_ptr(s->scan));
		h2_refuse(h, s, reason);
		return false;
	}
	return !out.len || pass_data(h, s, UP, (const uint8_t *)out.data, out.len);
}

/* False: they were refused. */
static bool scan_trailers(struct h2 *h, struct h2_stream *s)
{
	enum verdict_reason reason = body_scan_trailers(h->f, h->ex, fields_of(h, s->head));

	if (reason == REASON_ALLOWED)
		return true;
	body_scan_end(take_ptr(s->scan));
	h2_refuse(h, s, reason);
	return false;
}

bool h2_data(struct h2 *h, struct h2_stream *s, enum direction d, const uint8_t *bytes, size_t n)
{
	s->bytes[d] += n;
	if (s->bytes[d] > s->limits[d])
		return false;
	if (d == DOWN || !s->scan)
		return pass_data(h, s, d, bytes, n);
	(void)scan(h, s, bytes, n, false);
	return true;
}

void h2_ended(struct h2 *h, struct h2_stream *s, enum direction d)
{
	if (d == UP && s->scan && !s->refused && !s->own && !scan(h, s, NULL, 0, true))
		return;
	if (d == UP && !s->refused && !s->own && !count(h, s, NULL, 0, true))
		return;
	if (d == UP && s->head && s->head->count && !s->refused && !s->own && !scan_trailers(h, s))
		return;
	*(d == UP ? &s->up_ended : &s->down_ended) = true;
	if (s->head && s->head->count && !(d == DOWN && !s->answered))
		s->trailers[d] = take_ptr(s->head);
	if (s->record && d == UP)
		record_sent_all(s->record);
	else if (s->record)
		record_end(&s->record, s->trailers[DOWN] ? fields_of(h, s->trailers[DOWN]) : NULL,
			   true);
	if (d == UP && s->look)
		h2_body(h, s, NULL, 0, true);
	else
		resume(h, s, d);
}

void h2_drop(struct h2 *h, struct h2_stream *s)
{
	size_t left = queue_size(&s->data[UP]);

	nghttp2_session_consume_connection(h->down, body_scan_held(s->scan));
	body_scan_end(take_ptr(s->scan));
	nghttp2_session_consume_connection(h->down, left > s->taken ? left - s->taken : 0);
	s->taken = 0;
	queue_free(&s->data[UP]);
}

/* -- refusing */

void h2_refuse(struct h2 *h, struct h2_stream *s, enum verdict_reason reason)
{
	struct exchange *ex = h->ex;
	auto_buf body = { 0 };
	char status[8], length[16], retry[16];
	const char *type;
	nghttp2_data_provider body_of = { { .ptr = s }, give };
	unsigned code;

	s->refused = s->cut = true;
	snprintf(ex->what, sizeof(ex->what), "%s", s->what);
	ex->git = s->git;
	ex->look = s->look; /* lent */
	code = exchange_say_refused(h->f, ex, reason, &body, &type);
	ex->look = NULL;
	ex->why[0] = '\0';
	snprintf(retry, sizeof(retry), "%u", ex->retry_s);
	if (s->up_open)
		nghttp2_submit_rst_stream(h->up, NGHTTP2_FLAG_NONE, s->up_id, NGHTTP2_CANCEL);
	h2_drop(h, s);
	h2_end_look(h, s);
	if (s->answered || body.failed) {
		nghttp2_submit_rst_stream(h->down, NGHTTP2_FLAG_NONE, s->down_id, NGHTTP2_CANCEL);
		return;
	}
	s->own = s->answered = s->down_ended = true;
	snprintf(status, sizeof(status), "%u", code);
	snprintf(length, sizeof(length), "%zu", body.len);
	const nghttp2_nv fields[] = { nv(text(":status"), text(status)),
				      nv(text("content-type"), text(type)),
				      nv(text("x-ward"), text("refused")),
				      nv(text("content-length"), text(length)),
				      nv(text("retry-after"), text(retry)) };
	const size_t count = ARRAY_LEN(fields) - (ex->retry_s ? 0 : 1);

	ex->retry_s = 0;
	queue_add(&s->data[DOWN], body.data, body.len);
	if (s->data[DOWN].failed ||
	    nghttp2_submit_response(h->down, s->down_id, fields, count, &body_of) != 0)
		nghttp2_submit_rst_stream(h->down, NGHTTP2_FLAG_NONE, s->down_id,
					  NGHTTP2_INTERNAL_ERROR);
}

/* -- requests */

/* The head as a request, for the rules. */
enum verdict_reason h2_read_request(struct h2 *h, struct h2_stream *s, struct http_request *r)
{
	const struct want *want = &h->ex->flow->want;
	struct http_text path = pseudo(s->head, ":path"), authority = pseudo(s->head, ":authority"),
			 length;
	struct host host;
	uint16_t port = 0;
	const char *query;

	memset(r, 0, offsetof(struct http_request, fields) + sizeof(r->fields.count));
	r->method = pseudo(s->head, ":method");
	query = path.n ? memchr(path.s, '?', path.n) : NULL;
	r->path = (struct http_text){ path.s, query ? (size_t)(query - path.s) : path.n };
	if (query)
		r->query = (struct http_text){ query + 1, path.n - r->path.n - 1 };
	r->body = !s->up_ended;
	for (unsigned i = 0; i < s->head->count; i++)
		if (s->head->text.data[s->head->at[i].name] != ':')
			r->fields.items[r->fields.count++] = field_of(s->head, i);
	exchange_describe(s->what, sizeof(s->what), r, r->path);
	length = http_field_get(&r->fields, "content-length");
	if (length.s) { /* nghttp2 has checked it */
		r->has_length = true;
		for (size_t i = 0; i < length.n && i < 18; i++)
			r->length = r->length * 10 + (uint64_t)(length.s[i] - '0');
	}
	if (!r->method.n || r->method.n > HTTP_METHOD_MAX || !path.n ||
	    (path.s[0] != '/' && path.n != 1) || memchr(path.s, '#', path.n) ||
	    http_text_is(r->method, "CONNECT") ||
	    !http_text_is(pseudo(s->head, ":scheme"), "https"))
		return REASON_HTTP_BAD;
	if (!authority.s)
		authority = http_field_get(&r->fields, "host");
	if (!authority.s || host_read_port(authority.s, authority.n, &host, &port) != HOST_FINE ||
	    !host_equal(&host, &want->host) || (port && port != want->port))
		return REASON_WRONG_HOST;
	authority = http_field_get(&r->fields, "host");
	if (authority.s && (host_read_port(authority.s, authority.n, &host, &port) != HOST_FINE ||
			    !host_equal(&host, &want->host)))
		return REASON_WRONG_HOST;
	return REASON_ALLOWED;
}

bool h2_forward(struct h2 *h, struct h2_stream *s, const struct http_request *r,
		struct http_text path)
{
	const struct want *want = &h->ex->flow->want;
	nghttp2_data_provider body_of = { { .ptr = s }, give };
	nghttp2_nv fields[HTTP_FIELDS_MAX + 4];
	char authority[HOST_TEXT + 8];
	auto_buf target = { 0 };
	size_t count = 4;
	bool body;

	snprintf(authority, sizeof(authority), want->port == 443 ? "%s" : "%s:%u", want->host.name,
		 want->port);
	buf_add(&target, path.s, path.n);
	if (r->query.s) {
		buf_puts(&target, "?");
		buf_add(&target, r->query.s, r->query.n);
	}
	if (target.failed)
		return false;
	fields[0] = nv(text(":method"), r->method);
	fields[1] = nv(text(":scheme"), text("https"));
	fields[2] = nv(text(":authority"), text(authority));
	fields[3] = nv(text(":path"), (struct http_text){ target.data, target.len });
	for (unsigned i = 0; i < r->fields.count; i++)
		if (!http_text_is(r->fields.items[i].name, "host"))
			fields[count++] = nv(r->fields.items[i].name, r->fields.items[i].value);
	/* a body that was looked into has ended, and is here */
	body = !s->up_ended || queue_size(&s->data[UP]) || s->trailers[UP];
	s->up_id = nghttp2_submit_request(h->up, NULL, fields, count, body ? &body_of : NULL, s);
	s->rule = h->ex->flow->verdict.rule;
	s->up_open = s->up_id > 0;
	return s->up_open;
}

void h2_request(struct h2 *h, struct h2_stream *s)
{
	struct inspector *i = inspector_of(h->f);
	struct http_verdict v = { .path = { 0 } };
	enum verdict_reason reason = h2_read_request(h, s, &i->request);

	h->ex->git = false;
	if (reason == REASON_ALLOWED)
		reason = exchange_judge(h->f, h->ex, &i->request, &v);
	if (reason == REASON_ALLOWED && v.rule >= 0 && h->f->rules->items[v.rule].waf)
		/* such rules speak HTTP/1: it came while this connection was open */
		reason = REASON_CHANGED;
	if (reason == REASON_ALLOWED)
		reason = body_scan_begin(h->f, h->ex, &i->request, v.path, &s->scan);
	if (reason == REASON_ALLOWED || v.reason == (uint8_t)reason)
		exchange_describe(s->what, sizeof(s->what), &i->request,
				  v.path.s ? v.path : i->request.path);
	exchange_note_asked(s->what, &v.asked);
	s->git = h->ex->git;
	if (reason == REASON_ALLOWED)
		reason = meter_request(h->f, h->ex, &i->request, &v, &s->meter);
	if (reason == REASON_ALLOWED && s->up_ended)
		reason = meter_judge(h->f, h->ex, s->meter, true);
	if (reason != REASON_ALLOWED) {
		h2_refuse(h, s, reason);
		h->ex->why[0] = '\0';
		return;
	}
	s->limits[UP] = v.request_limit;
	s->limits[DOWN] = v.response_limit;
	if (exchange_must_continue(h->f, h->ex, &i->request, &v)) {
		const nghttp2_nv status = nv(text(":status"), text("100"));

		(void)nghttp2_submit_headers(h->down, NGHTTP2_FLAG_NONE, s->down_id, NULL, &status,
					     1, NULL);
	}
	if (!record_begin(h->f, &h->ex->flow->want, true, 2, &i->request, v.path, &s->record)) {
		h2_refuse(h, s, REASON_RECORDING);
	} else if (v.n_looks) {
		if (s->up_ended)
			record_sent_all(s->record);
		h2_begin_look(h, s, &v, &i->request);
		return;
	} else if (!h->over && v.ask) {
		buf_add(&s->path, v.path.s, v.path.n);
		s->asked = take_ptr(s->head);
		h2_pass(h, s);
		return;
	} else if (h->over || !h2_forward(h, s, &i->request, v.path)) {
		h2_refuse(h, s, REASON_UNREACHABLE);
	}
	if (s->up_ended)
		record_sent_all(s->record);
	h2_head_free(take_ptr(s->head));
}

/* -- responses */

void h2_response(struct h2 *h, struct h2_stream *s, bool ends)
{
	nghttp2_data_provider body_of = { { .ptr = s }, give };
	nghttp2_nv fields[HTTP_FIELDS_MAX + 1];
	struct http_text status = pseudo(s->head, ":status");
	const char *note = meter_note(h->f, s->meter);
	const struct http_fields *plain =
		s->record || h->f->config.tape == GATE_TAPE_REPLAY ? fields_of(h, s->head) : NULL;
	size_t count = 0;
	int r;

	if (plain && h->f->config.tape == GATE_TAPE_REPLAY && http_field_get(plain, REPLAY_WHY).s) {
		exchange_not_recorded(h->ex, plain);
		h2_refuse(h, s, REASON_NOT_RECORDED);
		h->ex->why[0] = '\0';
		h->ex->lost = 0;
		h2_head_free(take_ptr(s->head));
		return;
	}
	if (s->meter && status.n == 3 && status.s[0] != '1' &&
	    !meter_answer(h->f, h->ex, s->meter, (unsigned)(status.s[0] - '0') * 100,
			  pseudo(s->head, "content-type"), pseudo(s->head, "content-encoding"))) {
		h2_refuse(h, s, REASON_SPENT);
		h2_head_free(take_ptr(s->head));
		return;
	}

	for (unsigned i = 0; i < s->head->count; i++) {
		struct http_field f = field_of(s->head, i);

		fields[count++] = nv(f.name, f.value);
	}
	if (note)
		fields[count++] = nv(text("x-ward-budget"), text(note));
	if (status.n == 3 && status.s[0] == '1') {
		r = nghttp2_submit_headers(h->down, NGHTTP2_FLAG_NONE, s->down_id, NULL, fields,
					   count, NULL);
	} else {
		s->answered = true;
		s->status = status.n == 3
				    ? (uint16_t)((status.s[0] - '0') * 100 +
						 (status.s[1] - '0') * 10 + (status.s[2] - '0'))
				    : 0;
		if (plain)
			record_answer(s->record, s->status, plain);
		r = nghttp2_submit_response(h->down, s->down_id, fields, count,
					    ends ? NULL : &body_of);
	}
	if (r != 0)
		nghttp2_submit_rst_stream(h->down, NGHTTP2_FLAG_NONE, s->down_id,
					  NGHTTP2_INTERNAL_ERROR);
	h2_head_free(take_ptr(s->head));
}
