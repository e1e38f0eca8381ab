/*
 * Answers in ward-keys. In: what a server says over TLS. Out: the same for front, with every secret
 * that it sends back overwritten, in the head and in the body, whatever the pieces that it comes
 * in: a chunked body is taken apart and framed anew. A body in a coding that was not asked for
 * cannot be looked through and is not passed on.
 */
#include "keys/keys_conn.h"

#include <string.h>
#include <strings.h>

#include "base/io.h"
#include "keys/answer_head.h"

/* The value of a line of that name, name with its colon; NULL: it is another line. */
static const char *value_of(const char *line, size_t *n, const char *name)
{
	size_t len = strlen(name);

	if (*n <= len || strncasecmp(line, name, len) != 0)
		return NULL;
	line += len;
	*n -= len;
	while (*n && (line[*n - 1] == '\r' || line[*n - 1] == ' '))
		--*n;
	while (*n && *line == ' ')
		line++, --*n;
	return line;
}

static bool is_event_stream(const struct buf *head)
{
	const char *at = head->data, *end = head->data + head->len, *value = NULL;
	size_t n = 0;

	while (at < end && !value) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));

		n = (size_t)((line_end ? line_end : end) - at);
		value = value_of(at, &n, "content-type:");
		at = line_end ? line_end + 1 : end;
	}
	return value && eventstream_is_type(value, n);
}

/* chunked: the server frames its body by closing. Towards front it goes in chunks: if the server
 * cuts it off, the last chunk is missing. */
static void clean_head(struct keys *k, struct conn *c, bool chunked)
{
	const char *line;
	size_t first;

	c->down_found = (struct scan_for){ .secrets = true, .replace = true };
	scan_head(k->scan, (uint8_t *)c->down_head.data, c->down_head.len, &c->down_found);
	line = c->down_head.len ? memchr(c->down_head.data, '\n', c->down_head.len) : NULL;
	first = line ? (size_t)(line + 1 - c->down_head.data) : 0;
	buf_add(&c->back.bytes, c->down_head.data, first);
	if (first && c->ask.leaked)
		buf_puts(&c->back.bytes, KEYS_LEAK_LINE);
	if (first && chunked)
		buf_puts(&c->back.bytes, "Transfer-Encoding: chunked\r\n");
	buf_add(&c->back.bytes, c->down_head.data + first, c->down_head.len - first);
	c->down_head.len = 0;
}

/* Of what was asked for, only what the program asked for goes on. False: it was answered
 * otherwise. */
static bool cut_part(struct conn *c)
{
	enum part_say say = part_answer(&c->down_head, &c->ask.part, &c->down_window);

	if (say != PART_FINE)
		conn_refuse(c, say == PART_BEYOND ? 416 : 502,
			    say == PART_BEYOND
				    ? "there is no such part"
				    : "the server answered with a different part than requested");
	return say == PART_FINE;
}

/* A whole head is in down_head. */
static void begin_answer(struct keys *k, struct conn *c)
{
	const struct http_answer *a = &c->answer;
	bool none = c->ask.head.head || a->status == 204 || a->status == 304, closes;

	if (!c->asked || a->bad || (a->coded && !a->chunked)) {
		conn_refuse(c, 502, "the server's response cannot be parsed");
		return;
	}
	if (a->status < 200 && a->status != 101) { /* another one follows */
		clean_head(k, c, false);
		answer_init(&c->answer);
		return;
	}
	if (answer_hides(&c->down_head, true) && !none) {
		conn_refuse(c, 502,
			    "the server compressed its response without being asked, or sent a "
			    "multipart response, so it cannot be scanned for the secret");
		return;
	}
	if (a->status == 101 &&
	    (!c->ask.head.websocket || answer_has(&c->down_head, "sec-websocket-extensions"))) {
		conn_refuse(c, 502,
			    "the server switched protocols or added a websocket extension without "
			    "being asked");
		return;
	}
	c->down_window = (struct part_window){ .on = false };
	if (a->status == 206 && c->ask.part.kind != PART_NONE && !cut_part(c))
		return;
	c->down_chunked = a->chunked && !none;
	if (a->status == 101) {
		c->up = UP_TUNNEL;
		c->talk[WS_UP].frames = (struct ws){ .masked = true };
		c->talk[WS_DOWN].frames = (struct ws){ .masked = false };
	}
	c->down_known = 0;
	c->hold = (struct hold){ 0 };
	c->down_events = a->status != 101 && is_event_stream(&c->down_head);
	c->events = (struct eventstream){ .bad = false };
	if (none)
		body_length(&c->down_body, 0);
	else if (a->chunked)
		body_chunked(&c->down_body);
	else if (a->has_length && a->status != 101)
		body_length(&c->down_body, a->length);
	else
		body_until_close(&c->down_body);
	closes = c->down_body.state == BODY_CLOSE && a->status != 101;
	c->down_chunked |= closes;
	clean_head(k, c, closes);
	c->down_begun = true;
}

/* Where the last message of an event stream ends in down_data; 0: nowhere, or it is none. */
static size_t frame_end(struct conn *c)
{
	size_t before = c->down_known, end = 0;

	if (c->down_data.len > before && c->down_events)
		end = eventstream_take(&c->events, (const uint8_t *)c->down_data.data + before,
				       c->down_data.len - before);
	return end ? before + end : 0;
}

/* Bytes of the body go to front. */
static void emit(struct conn *c, const struct buf *data, size_t at, size_t n)
{
	size_t from, some = part_pass(&c->down_window, n, &from);

	if (some && c->down_chunked)
		buf_printf(&c->back.bytes, "%zx\r\n", some);
	if (some)
		buf_add(&c->back.bytes, data->data + at + from, some);
	if (some && c->down_chunked)
		buf_puts(&c->back.bytes, "\r\n");
}

/* What was held back goes, too. */
static void pass_data(struct keys *k, struct conn *c, bool final)
{
	size_t clean = ask_scan(k, &c->down_data, frame_end(c), final, &c->down_found),
	       sent = hold_pass(&c->hold, clean, c->down_data.len, io_now_ms());

	emit(c, &c->down_data, sent, clean - sent);
	if (c->down_data.len)
		memmove(c->down_data.data, c->down_data.data + clean, c->down_data.len - clean);
	c->down_data.len -= clean;
	c->down_known = c->down_data.len;
	k->waiting |= c->down_data.len > c->hold.ahead;
}

/* -- what waits */

size_t hold_pass(struct hold *h, size_t clean, size_t len, uint64_t now)
{
	size_t sent = h->ahead < clean ? h->ahead : clean;

	h->ahead -= sent;
	h->old -= h->old < clean ? h->old : clean;
	/* the oldest that waits is one of those that have come since */
	if (h->old <= h->ahead) {
		h->old = len - clean;
		h->old_ms = now;
	}
	return sent;
}

bool hold_is_due(const struct hold *h, size_t len, uint64_t now)
{
	return len > h->ahead &&
	       (now >= h->came_ms + CONN_SILENCE_MS || now >= h->old_ms + CONN_OLD_MS);
}

void hold_again(struct hold *h, uint64_t now)
{
	h->came_ms = h->old_ms = now;
}

void hold_show(struct hold *h, const struct keys *k, const struct buf *held, struct scan_for *f,
	       struct buf *ret)
{
	size_t n = held->len - h->ahead,
	       begun = scan_begun(k->scan, (const uint8_t *)held->data, held->len, f);

	buf_add(ret, held->data + h->ahead, n);
	begun = begun < n ? begun : n;
	if (begun && ret->len >= begun)
		memset(ret->data + ret->len - begun, 'x', begun);
	h->ahead = held->len;
}

bool down_release(struct keys *k, struct conn *c, uint64_t now)
{
	auto_buf shown = { 0 };

	if (c->down_data.len == c->hold.ahead)
		return false;
	if ((c->up != UP_DONE && c->up != UP_TUNNEL) || queue_len(&c->out) || queue_len(&c->back))
		hold_again(&c->hold, now);
	if (!hold_is_due(&c->hold, c->down_data.len, now))
		return true;
	conn_ready(k, c); /* does it say something after all? */
	if (c->dead || c->finishing || !c->down_begun || c->down_data.len == c->hold.ahead)
		return false;
	if (!hold_is_due(&c->hold, c->down_data.len, now) || c->dry_ms < now || queue_len(&c->back))
		return true;
	hold_show(&c->hold, k, &c->down_data, &c->down_found, &shown);
	emit(c, &shown, 0, shown.len);
	if (shown.failed)
		conn_kill(c);
	conn_ready(k, c);
	return false;
}

static void end_answer(struct keys *k, struct conn *c)
{
	pass_data(k, c, true);
	if (c->down_chunked)
		buf_puts(&c->back.bytes, "0\r\n\r\n");
	if (c->down_found.count)
		store_found(k, KEYS_EVENT_SCRUB, &c->down_found, c->host.name, "the answer");
	answer_init(&c->answer);
	c->down_begun = false;
	c->down_done = true;
	/* an answer before the request was complete: it is unknown where the next one would begin
	 */
	if (c->up != UP_DONE && c->up != UP_TUNNEL)
		c->finishing = true;
}

/* Takes bytes of the server's; false: it is over. */
static void take(struct keys *k, struct conn *c, const uint8_t *bytes, size_t n)
{
	while (n && !c->dead && !c->finishing) {
		size_t used;

		if (!c->down_begun) {
			used = answer_take(&c->answer, bytes, n);
			buf_add(&c->down_head, bytes, used);
			if (c->answer.state == ANSWER_DONE || c->answer.bad)
				begin_answer(k, c);
		} else if (c->up == UP_TUNNEL) {
			used = n;
			if (!talk_pass(k, c, WS_DOWN, bytes, n))
				conn_kill(c);
		} else {
			used = body_data(&c->down_body, bytes, n, false, &c->down_data);
			c->hold.came_ms = io_now_ms();
			if (c->down_body.state == BODY_BAD)
				conn_kill(c);
			if (!c->dead && c->down_body.state != BODY_NONE)
				pass_data(k, c, false);
		}
		if (!c->dead && !c->finishing && c->down_begun && c->down_body.state == BODY_NONE)
			end_answer(k, c);
		bytes += used;
		n -= used;
		if (!used && n && (c->down_done || !c->asked)) {
			conn_kill(c); /* more than was asked for */
			return;
		}
	}
}

/* The server has ended: what has no length is complete now, if it said so. */
static void on_end(struct keys *k, struct conn *c, bool said)
{
	c->server_ended = true;
	if (c->down_begun && c->down_body.state == BODY_CLOSE && (said || c->up == UP_TUNNEL)) {
		pass_data(k, c, true);
		end_answer(k, c);
		c->finishing = true;
	} else if (c->down_begun) {
		conn_kill(c); /* cut off: front must see that */
	} else if (c->asked && !c->down_done) {
		conn_refuse(c, 502, "the server ended the connection without an answer");
	}
}

bool down_step(struct keys *k, struct conn *c)
{
	uint8_t bytes[CONN_PIECE];
	enum tls_say say;
	size_t n = 0;

	if (!c->open || c->dead || c->finishing || c->server_ended ||
	    queue_len(&c->back) >= CONN_PENDING_MAX)
		return false;
	if (!k->scan) { /* nothing passes that cannot be looked through */
		conn_kill(c);
		return false;
	}
	say = tls_up_read(c->tls, bytes, sizeof(bytes), &n);
	if (say == TLS_READ || say == TLS_WRITE) {
		c->server_write |= say == TLS_WRITE;
		c->dry_ms = io_now_ms();
		return false;
	}
	if (say == TLS_DONE)
		take(k, c, bytes, n);
	else
		on_end(k, c, say == TLS_END);
	explicit_bzero(bytes, n); /* it may have sent the secret back */
	return true;
}
