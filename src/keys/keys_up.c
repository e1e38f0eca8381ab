/*
 * Requests of HTTP/1.1 in ward-keys. In: what front says. Out: the request for the server, as
 * keys_ask.c decides. Heads are put together in locked memory each time that some of one can be
 * sent.
 */
#include "keys/keys_conn.h"

#include <string.h>
#include <strings.h>

#include "base/io.h"

/* -- the head */

/* False: it was answered. */
static bool go_on(struct conn *c, bool fine)
{
	if (!fine && c->down_begun)
		conn_kill(c);
	else if (!fine)
		conn_refuse(c, c->ask.status, c->ask.why);
	return fine;
}

/* A whole head is there. */
static void begin_request(struct keys *k, struct conn *c)
{
	const uint8_t *bytes = (const uint8_t *)c->in.bytes.data + c->in.at;
	const struct http_head *h = &c->ask.head;

	c->up_data.len = c->head_sent = 0;
	c->asked = true;
	c->down_begun = c->down_done = false;
	c->up_chunked = h->chunked;
	if (h->chunked)
		body_chunked(&c->up_body);
	else
		body_length(&c->up_body, h->has_length ? h->length : 0);
	c->up_ended = c->up_body.state == BODY_NONE;
	if (!go_on(c, ask_begin(k, &c->ask, &c->host, c->port, bytes, !c->up_ended)))
		return;
	queue_drop(&c->in, h->len);
	c->up = ask_wants_all(&c->ask, !c->up_ended) ? UP_COLLECT : UP_SEND;
}

static bool take_head(struct keys *k, struct conn *c)
{
	enum http_wrong wrong = HTTP_FINE;
	int r;

	if (!queue_len(&c->in))
		return false;
	ask_clear(k, &c->ask);
	r = http1_head((const uint8_t *)c->in.bytes.data + c->in.at, queue_len(&c->in), &c->scanned,
		       &c->ask.head, &wrong);
	if (r == 0 && !c->client_ended)
		return false;
	c->scanned = 0;
	if (r > 0)
		begin_request(k, c);
	else
		conn_refuse(c, 400, "not an HTTP request");
	return true;
}

/* -- sending */

/* False: a person is asked; or it was answered. */
static bool may_have_secret(struct keys *k, struct conn *c)
{
	enum person_say say =
		ask_person(k, &c->ask, c->port, c->up_data.data, c->up_data.len, c->up_ended);

	if (say == PERSON_WAITS && c->client_ended)
		conn_kill(c);
	if (say == PERSON_NO)
		(void)go_on(c, false);
	return say == PERSON_FINE;
}

/* Puts the head together, sends what goes, forgets it. */
static bool send_head(struct keys *k, struct conn *c)
{
	enum tls_say say = TLS_FAILED;
	size_t n, sent = 0;

	if (!c->open)
		return false;
	if (!c->head_sent && !may_have_secret(k, c))
		return c->finishing || c->dead;
	if (!go_on(c, ask_compose(k, &c->ask, c->head_sent > 0, &n)))
		return true;
	if (n > c->head_sent)
		say = tls_up_write(c->tls, k->compose + c->head_sent, n - c->head_sent, &sent);
	explicit_bzero(k->compose, n);
	c->server_write = say == TLS_WRITE;
	if (say == TLS_READ || say == TLS_WRITE)
		return false;
	if (say != TLS_DONE) {
		conn_refuse(c, 502, "the server ended the connection");
		return true;
	}
	if (!c->head_sent)
		ask_used(k, &c->ask);
	c->head_sent += sent;
	if (c->head_sent == n)
		c->up = UP_BODY;
	return true;
}

/* Body bytes for the server, framed as the head says. */
static void pass_data(struct conn *c, size_t n)
{
	if (n && c->up_chunked)
		buf_printf(&c->out.bytes, "%zx\r\n", n);
	buf_add(&c->out.bytes, c->up_data.data, n);
	if (n && c->up_chunked)
		buf_puts(&c->out.bytes, "\r\n");
	memmove(c->up_data.data, c->up_data.data + n, c->up_data.len - n);
	c->up_data.len -= n;
}

/* Takes what there is of the body into up_data. False: nothing, or it is broken. */
static bool take_body(struct keys *k, struct conn *c)
{
	size_t before = c->up_data.len, used;

	if (c->up_ended || !queue_len(&c->in)) {
		if (!c->up_ended && c->client_ended)
			/* it will never be complete, and the server must not take it for that */
			conn_kill(c);
		return false;
	}
	used = body_data(&c->up_body, (const uint8_t *)c->in.bytes.data + c->in.at,
			 queue_len(&c->in), true, &c->up_data);
	queue_drop(&c->in, used);
	c->up_ended = c->up_body.state == BODY_NONE;
	if (c->up_body.state == BODY_BAD) {
		conn_kill(c);
		return false;
	}
	return go_on(c, ask_take(k, &c->ask, &c->up_data, before));
}

static bool move_body(struct keys *k, struct conn *c)
{
	bool some, ended = c->up_ended;
	size_t clean = 0;

	if (queue_len(&c->out) >= CONN_PENDING_MAX)
		return false;
	some = take_body(k, c);
	if (c->dead || c->finishing)
		return true;
	if (some || ended) {
		if (!go_on(c, ask_look(k, &c->ask, &c->up_data, c->up_ended, true, &clean)))
			return true;
		pass_data(c, clean);
	}
	if (!c->up_ended)
		return some;
	if (c->up_chunked)
		buf_puts(&c->out.bytes, "0\r\n\r\n");
	ask_end(k, &c->ask);
	c->up = UP_DONE;
	return true;
}

/* The whole body: for its hash, or because it is small, and then nothing leaves before all of it
 * was looked through. */
static bool collect_body(struct keys *k, struct conn *c)
{
	bool some = take_body(k, c);
	size_t clean;

	if (c->dead || c->finishing)
		return true;
	if (!go_on(c, ask_hold(k, &c->ask, c->up_data.len)))
		return true;
	if (!c->up_ended)
		return some;
	if (!go_on(c, ask_look(k, &c->ask, &c->up_data, true, false, &clean)))
		return true;
	if (ask_signs_body(&c->ask))
		sigv4_hash_body(&c->ask.sign, (const uint8_t *)c->up_data.data, c->up_data.len);
	c->up = UP_SEND;
	return true;
}

bool up_step(struct keys *k, struct conn *c)
{
	if (c->dead || c->finishing)
		return false;
	switch (c->up) {
	case UP_HEAD:
		return take_head(k, c);
	case UP_COLLECT:
		return collect_body(k, c);
	case UP_SEND:
		if (!send_head(k, c))
			return false;
		/* what has no body is done with its head: a quick answer must not find it
		 * unfinished, or the connection is not used again */
		if (c->up == UP_BODY)
			(void)move_body(k, c);
		return true;
	case UP_BODY:
		return move_body(k, c);
	case UP_DONE:
		if (!c->down_done)
			return false;
		c->up = UP_HEAD; /* the next one */
		c->asked = false;
		return true;
	case UP_TUNNEL:
		if (!queue_len(&c->in) || queue_len(&c->out) >= CONN_PENDING_MAX)
			return false;
		if (!talk_pass(k, c, WS_UP, (const uint8_t *)c->in.bytes.data + c->in.at,
			       queue_len(&c->in)))
			conn_kill(c);
		queue_drop(&c->in, queue_len(&c->in));
		return true;
	}
	return false;
}
