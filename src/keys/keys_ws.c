/*
 * Websockets in ward-keys. In: what a program or a server says behind the 101. Out: the same
 * messages for the other side. They are taken out of their frames, without masks, so that both ways
 * are looked through as bodies are: what a program says is stopped where a secret or a placeholder
 * is in it (the connection is cut, there is no answer that could say why), and a secret that a
 * server says is overwritten. A message of up to 64 KiB goes when all of it was looked through, as
 * one frame; a larger one in several.
 */
#include "keys/keys_conn.h"

#include <string.h>

static struct scan_for looks_for(const struct keys *k, enum ws_way way)
{
	return way == WS_UP ? ask_looks_for(k)
			    : (struct scan_for){ .secrets = true, .replace = true };
}

/* Whether what was found may pass; counts it. */
static bool may_pass(struct keys *k, struct conn *c, enum ws_way way, const struct scan_for *f)
{
	if (way == WS_UP)
		return ask_message(k, &c->ask, f);
	if (f->count && !c->down_found.count)
		c->down_found.first = f->first;
	c->down_found.count += f->count;
	return true;
}

/* What is held of the message goes on: all of it, or what cannot be the beginning of a text. */
static bool pass_message(struct keys *k, struct conn *c, enum ws_way way, bool last)
{
	struct talk *t = &c->talk[way];
	struct scan_for f = looks_for(k, way);
	uint8_t *bytes = (uint8_t *)t->held.data;
	size_t n = t->held.len, clean = n ? scan_run(k->scan, bytes, n, last, &f) : 0;

	if (!may_pass(k, c, way, &f))
		return false;
	ws_give(&t->frames, bytes, clean, last, way == WS_UP ? &c->out.bytes : &c->back.bytes);
	if (n) {
		memmove(bytes, bytes + clean, n - clean);
		explicit_bzero(bytes + n - clean, clean);
	}
	t->held.len = n - clean;
	if (last)
		buf_free(&t->held);
	return true;
}

static bool pass_control(struct keys *k, struct conn *c, enum ws_way way)
{
	struct talk *t = &c->talk[way];
	struct scan_for f = looks_for(k, way);

	if (t->frames.control_len)
		(void)scan_run(k->scan, t->frames.control, t->frames.control_len, true, &f);
	if (!may_pass(k, c, way, &f))
		return false;
	ws_give_control(&t->frames, way == WS_UP ? &c->out.bytes : &c->back.bytes);
	return true;
}

bool talk_pass(struct keys *k, struct conn *c, enum ws_way way, const uint8_t *bytes, size_t n)
{
	struct talk *t = &c->talk[way];
	bool fine = k->scan;

	while (n && fine) {
		size_t used;
		enum ws_say say = ws_take(&t->frames, bytes, n, &t->held, &used);

		bytes += used;
		n -= used;
		if (say == WS_MESSAGE)
			fine = pass_message(k, c, way, true);
		else if (say == WS_CONTROL)
			fine = pass_control(k, c, way);
		else if (say == WS_BAD)
			fine = false;
		else if (t->held.len > TALK_WHOLE_MAX)
			fine = pass_message(k, c, way, false);
	}
	return fine;
}
