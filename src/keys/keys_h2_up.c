/*
 * Requests of HTTP/2 in ward-keys (keys_h2.h). In: streams of front's. Out: streams to the server,
 * as keys_ask.c decides: a request's head is made text of HTTP/1.1 for that, and fields again when
 * it is sent. What is put in lies in locked memory until it has become a frame, and is marked as
 * never to be indexed: it is in no table of either side.
 */
#include <string.h>

#include "keys/keys_h2.h"

static bool go_on(struct keys_h2 *h, struct keys_stream *s, bool fine)
{
	if (!fine)
		keys_h2_refuse(h, s, s->ask.status, s->ask.why);
	return fine;
}

/* All of it is there: it was looked through, and is sent. */
static void release(struct keys_h2 *h, struct keys_stream *s)
{
	size_t clean;

	if (!go_on(h, s, ask_look(h->k, &s->ask, &s->held[WAY_UP], true, false, &clean)))
		return;
	if (ask_signs_body(&s->ask))
		sigv4_hash_body(&s->ask.sign, (const uint8_t *)s->held[WAY_UP].data,
				s->held[WAY_UP].len);
	s->collecting = false;
	s->waiting = true;
	keys_h2_pass(h, s, WAY_UP, s->held[WAY_UP].len);
}

void keys_h2_request(struct keys_h2 *h, struct keys_stream *s, bool ends)
{
	enum http_wrong wrong;
	auto_buf head = { 0 };
	size_t scanned = 0;

	s->ended[WAY_UP] = ends;
	buf_printf(&head, "%s %s HTTP/1.1\r\nhost: %s\r\n", buf_text(&s->method),
		   buf_text(&s->path), buf_text(&s->authority));
	buf_add(&head, s->lines.data, s->lines.len);
	buf_puts(&head, "\r\n");
	buf_free(&s->method);
	buf_free(&s->path);
	buf_free(&s->authority);
	if (head.failed ||
	    http1_head((const uint8_t *)head.data, head.len, &scanned, &s->ask.head, &wrong) != 1 ||
	    s->ask.head.len != head.len || s->ask.head.chunked || s->ask.head.upgrade) {
		keys_h2_refuse(h, s, 400, "not a request that can be forwarded");
		return;
	}
	if (h->lost) {
		keys_h2_refuse(h, s, 502, "the server ended the connection");
		return;
	}
	if (!go_on(h, s,
		   ask_begin(h->k, &s->ask, &h->c->host, h->c->port, (const uint8_t *)head.data,
			     !ends)))
		return;
	s->collecting = ask_wants_all(&s->ask, !ends);
	s->waiting = !s->collecting;
	if (s->collecting && ends)
		release(h, s);
}

void keys_h2_sent(struct keys_h2 *h, struct keys_stream *s, const uint8_t *bytes, size_t n)
{
	struct buf *held = &s->held[WAY_UP];
	size_t before = held->len, clean;

	buf_add(held, bytes, n);
	s->owed[WAY_UP] += n;
	if (held->failed || !go_on(h, s, ask_take(h->k, &s->ask, held, before))) {
		h->broken |= held->failed;
		return;
	}
	if (!s->collecting) {
		if (go_on(h, s, ask_look(h->k, &s->ask, held, false, s->up_id > 0, &clean)))
			keys_h2_pass(h, s, WAY_UP, clean);
		return;
	}
	/* it may be larger than a window */
	nghttp2_session_consume(h->down, s->down_id, s->owed[WAY_UP]);
	s->owed[WAY_UP] = 0;
	(void)go_on(h, s, ask_hold(h->k, &s->ask, held->len));
}

void keys_h2_sent_all(struct keys_h2 *h, struct keys_stream *s)
{
	size_t clean;

	s->ended[WAY_UP] = true;
	if (s->has_head && s->lines.len) {
		if (!go_on(h, s, ask_trailers(h->k, &s->ask, &s->lines)))
			return;
		buf_add(&s->trailers[WAY_UP], s->lines.data, s->lines.len);
	}
	if (s->collecting) {
		release(h, s);
	} else if (go_on(h, s,
			 ask_look(h->k, &s->ask, &s->held[WAY_UP], true, s->up_id > 0, &clean))) {
		keys_h2_pass(h, s, WAY_UP, clean);
		ask_end(h->k, &s->ask);
	}
}

/* What the grants put in, out of the whole head in k->compose: the target where it has grown, and
 * lines in front of the empty one. False: there is no room in the safe. */
static bool keep_secrets(struct keys_h2 *h, struct keys_stream *s, size_t n)
{
	const struct buf *base = &s->ask.base;
	const char *all = (const char *)h->k->compose, *target = memchr(all, ' ', n),
		   *line_end = memmem(all, n, "\r\n", 2);
	const char *base_end = memmem(base->data, base->len, "\r\n", 2);
	size_t grown;

	if (!s->ask.grant_count || !target || !line_end || !base_end)
		return !s->ask.grant_count;
	grown = (size_t)(line_end - all) - (size_t)(base_end - base->data);
	s->secret_target = grown ? (size_t)(line_end - target) - 10 : 0;
	s->secret_lines = n - base->len - grown;
	s->secret = safe_take(&h->k->safe, s->secret_target + s->secret_lines);
	if (!s->secret)
		return false;
	memcpy(s->secret, target + 1, s->secret_target);
	memcpy(s->secret + s->secret_target, all + n - 2 - s->secret_lines, s->secret_lines);
	return true;
}

/* The head as fields; they lie in base and in the safe until it is sent. */
static size_t write_fields(struct keys_stream *s, const char *authority, nghttp2_nv *out)
{
	const uint8_t there = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE,
		      hide = there | NGHTTP2_NV_FLAG_NO_INDEX;
	struct buf *base = &s->ask.base;
	char *line_end = memmem(base->data, base->len, "\r\n", 2),
	     *target = memchr(base->data, ' ', base->len);
	size_t count = 4;

	if (!line_end || !target)
		return 0;
	out[0] = keys_h2_field(":method", base->data, (size_t)(target - base->data), there);
	out[1] = keys_h2_field(":scheme", "https", 5, there);
	out[2] = keys_h2_field(":authority", authority, strlen(authority), NGHTTP2_NV_FLAG_NONE);
	out[3] = s->secret_target
			 ? keys_h2_field(":path", (const char *)s->secret, s->secret_target, hide)
			 : keys_h2_field(":path", target + 1, (size_t)(line_end - target) - 10,
					 there);
	count += keys_h2_fields(line_end + 2, (size_t)(base->data + base->len - line_end) - 4,
				out + count, HTTP1_HEADERS_MAX, there);
	if (s->secret_lines)
		count += keys_h2_fields((char *)s->secret + s->secret_target, s->secret_lines,
					out + count, INJECT_MAX + 1, hide);
	return count;
}

void keys_h2_submit(struct keys_h2 *h, struct keys_stream *s)
{
	nghttp2_data_provider body_of = { { .ptr = s }, keys_h2_give };
	nghttp2_nv fields[KEYS_H2_FIELDS];
	char authority[HOST_TEXT + 8];
	const struct queue *data = &s->data[WAY_UP];
	enum person_say say;
	size_t n = 0, count;
	bool kept, body = !s->ended[WAY_UP] || queue_len(&s->data[WAY_UP]) || s->held[WAY_UP].len ||
			  s->trailers[WAY_UP].len;

	say = ask_person(h->k, &s->ask, h->c->port, data->bytes.data + data->at, queue_len(data),
			 s->ended[WAY_UP]);
	if (say == PERSON_WAITS)
		return;
	s->waiting = false;
	if (!go_on(h, s, say == PERSON_FINE) || !go_on(h, s, ask_compose(h->k, &s->ask, false, &n)))
		return;
	kept = keep_secrets(h, s, n);
	explicit_bzero(h->k->compose, n);
	if (!kept) {
		keys_h2_refuse(h, s, 503, "too many secrets are in flight; try again");
		return;
	}
	snprintf(authority, sizeof(authority), h->c->port == 443 ? "%s" : "%s:%u", h->c->host.name,
		 h->c->port);
	count = write_fields(s, authority, fields);
	s->up_id = count ? nghttp2_submit_request(h->up, NULL, fields, count,
						  body ? &body_of : NULL, s)
			 : -1;
	if (s->up_id <= 0) {
		s->up_id = 0;
		keys_h2_forget(h, s);
		keys_h2_refuse(h, s, 502, "the server takes no more requests");
		return;
	}
	s->up_open = true;
	h->open++;
	ask_used(h->k, &s->ask);
}

void keys_h2_forget(struct keys_h2 *h, struct keys_stream *s)
{
	safe_give(&h->k->safe, s->secret);
	s->secret = NULL;
	s->secret_target = s->secret_lines = 0;
	buf_free(&s->ask.base);
}
