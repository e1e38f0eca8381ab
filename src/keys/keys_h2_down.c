/*
 * Answers of HTTP/2 in ward-keys (keys_h2.h). In: what the server says on a stream. Out: the same
 * for front, with every secret that it sends back overwritten, in head, body and trailers. A body
 * or messages in a coding that was not asked for cannot be looked through and are not passed on.
 */
#include <string.h>

#include "base/io.h"
#include "keys/answer_head.h"
#include "keys/keys_h2.h"

static void clean(struct keys_h2 *h, struct keys_stream *s, struct buf *lines)
{
	if (lines->len)
		scan_head(h->k->scan, (uint8_t *)lines->data, lines->len, &s->down_found);
}

/* A field of lines; *ret_n 0: there is none. */
static const char *field(const struct buf *lines, const char *name, size_t *ret_n)
{
	const char *at = lines->data;
	size_t n = strlen(name), left = lines->len;

	*ret_n = 0;
	for (const char *end = left ? at + left : at; at < end;) {
		const char *line_end = memmem(at, (size_t)(end - at), "\r\n", 2);

		if (!line_end)
			break;
		if ((size_t)(line_end - at) > n + 2 && memcmp(at, name, n) == 0 && at[n] == ':') {
			*ret_n = (size_t)(line_end - at) - n - 2;
			return at + n + 2;
		}
		at = line_end + 2;
	}
	return NULL;
}

static void pass_head(struct keys_h2 *h, struct keys_stream *s, bool ends)
{
	nghttp2_data_provider body_of = { { .ptr = s }, keys_h2_give };
	nghttp2_nv fields[KEYS_H2_FIELDS];
	char code[8];
	size_t count = 1;
	int r;

	snprintf(code, sizeof(code), "%03u", s->status);
	fields[0] = keys_h2_field(":status", code, 3, NGHTTP2_NV_FLAG_NONE);
	count += keys_h2_fields(s->lines.data, s->lines.len, fields + 1, HTTP1_HEADERS_MAX,
				NGHTTP2_NV_FLAG_NONE);
	if (s->status < 200) {
		r = nghttp2_submit_headers(h->down, NGHTTP2_FLAG_NONE, s->down_id, NULL, fields,
					   count, NULL);
	} else {
		if (s->ask.leaked)
			fields[count++] =
				keys_h2_field(KEYS_LEAK_FIELD, "yes", 3, NGHTTP2_NV_FLAG_NONE);
		s->answered = true;
		r = nghttp2_submit_response(h->down, s->down_id, fields, count,
					    ends ? NULL : &body_of);
	}
	if (r != 0)
		nghttp2_submit_rst_stream(h->down, NGHTTP2_FLAG_NONE, s->down_id,
					  NGHTTP2_INTERNAL_ERROR);
}

void keys_h2_answer(struct keys_h2 *h, struct keys_stream *s, bool ends)
{
	bool none = ends || s->ask.head.head || s->status == 204 || s->status == 304;
	const char *type;
	size_t n;

	s->down_found = (struct scan_for){ .secrets = true, .replace = true };
	if (!s->status) {
		keys_h2_refuse(h, s, 502, "the server's response cannot be parsed");
		return;
	}
	type = field(&s->lines, "content-type", &n);
	if (!none && s->status >= 200 && answer_hides(&s->lines, false)) {
		keys_h2_refuse(h, s, 502,
			       "the server compressed its response without being asked, or sent a "
			       "multipart response, so it cannot be scanned for the secret");
		return;
	}
	if (s->status == 206 && s->ask.part.kind != PART_NONE) {
		enum part_say say = part_answer(&s->lines, &s->ask.part, &s->down_window);

		if (say != PART_FINE) {
			keys_h2_refuse(h, s, say == PART_BEYOND ? 416 : 502,
				       say == PART_BEYOND ? "there is no such part"
							  : "the server answered with a different "
							    "part than requested");
			return;
		}
		type = field(&s->lines, "content-type", &n);
	}
	s->down_grpc = n && grpc_is_type(type, n);
	s->down_events = n && eventstream_is_type(type, n);
	clean(h, s, &s->lines);
	pass_head(h, s, ends);
	if (ends && s->status >= 200)
		keys_h2_came_all(h, s);
}

void keys_h2_came(struct keys_h2 *h, struct keys_stream *s, const uint8_t *bytes, size_t n)
{
	struct buf *held = &s->held[WAY_DOWN];
	size_t before = held->len, boundary;

	buf_add(held, bytes, n);
	s->owed[WAY_DOWN] += n;
	s->hold.came_ms = io_now_ms();
	if (held->failed) {
		h->broken = true;
		return;
	}
	boundary = s->down_grpc ? ask_boundary(h->k, &s->down_messages, held, before) : 0;
	if (s->down_events) {
		size_t end = eventstream_take(&s->events, bytes, n);

		boundary = end ? before + end : 0;
	}
	/* what came before may have ended in the middle of a secret */
	if (s->down_messages.bad) {
		keys_h2_refuse(h, s, 502, "the server's response claims to be gRPC but is not");
		return;
	}
	keys_h2_pass(h, s, WAY_DOWN, ask_scan(h->k, held, boundary, false, &s->down_found));
	h->k->waiting |= held->len > s->hold.ahead;
}

void keys_h2_came_all(struct keys_h2 *h, struct keys_stream *s)
{
	s->ended[WAY_DOWN] = true;
	if (s->has_head && s->lines.len && s->answered && !s->status) {
		clean(h, s, &s->lines);
		buf_add(&s->trailers[WAY_DOWN], s->lines.data, s->lines.len);
	}
	keys_h2_pass(h, s, WAY_DOWN, ask_scan(h->k, &s->held[WAY_DOWN], 0, true, &s->down_found));
	if (s->down_found.count)
		store_found(h->k, KEYS_EVENT_SCRUB, &s->down_found, h->c->host.name, "the answer");
}
