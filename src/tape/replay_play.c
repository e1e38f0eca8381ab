/*
 * Which exchange of a recording answers a request, and its pieces in order. In: requests of front,
 * the recording. Out: heads, pieces of bodies as they came, trailers. An exchange answers once;
 * requests of the same method, URL and body get theirs in the order of the recording. Runs in
 * replay.
 */
#include "tape/replay.h"

#include <string.h>

#define NAMED_MAX 4 /* exchanges that a refusal names */

void play_ask(struct played_request *r, const struct seat *s, struct http_text method,
	      struct http_text path, struct http_text query)
{
	*r = (struct played_request){ 0 };
	sha256_begin(&r->sent);
	tape_key(method, s->host.name, s->port, path, query, r->key);
	snprintf(r->what, sizeof(r->what), "%.*s %.*s", (int)(method.n < 20 ? method.n : 20),
		 method.s, (int)(path.n < 60 ? path.n : 60), path.s);
}

void play_sent(struct played_request *r, const void *bytes, size_t n)
{
	sha256_add(&r->sent, bytes, n);
	r->sent_bytes += n;
}

bool play_find(struct seat *s, struct played_request *r, bool whole, struct play *ret)
{
	struct tape_body body = { .bytes = r->sent_bytes };
	uint32_t others;

	if (whole)
		sha256_end(&r->sent, body.digest);
	*ret = (struct play){ .entry = tape_find(s->tape, r->key, whole ? &body : NULL, &others) };
	if (ret->entry < 0)
		return false;
	s->tape->entries[ret->entry].used = true;
	ret->at = s->tape->entries[ret->entry].head_at;
	return true;
}

static bool is_of(const struct seat *s, const struct tape_ask *ask)
{
	return ask->port == s->port && ask->host.n == s->host.len &&
	       memcmp(ask->host.s, s->host.name, s->host.len) == 0;
}

void play_why_not(const struct seat *s, const struct played_request *r, char why[REPLAY_WHY_MAX])
{
	const struct tape *t = s->tape;
	static const struct tape_body nobody = { 0 };
	uint32_t same, named = 0;
	size_t at;

	(void)!tape_find(t, r->key, &nobody, &same);
	if (same) {
		snprintf(why, REPLAY_WHY_MAX,
			 "%s is in the recording %u times, but not with this body, or not this "
			 "often",
			 r->what, same);
		return;
	}
	at = (size_t)snprintf(why, REPLAY_WHY_MAX,
			      "%s is not in the recording, which has of this host", r->what);
	for (uint32_t i = 0; i < t->count && named < NAMED_MAX && at < REPLAY_WHY_MAX; i++) {
		struct tape_frame f = tape_frame_at(t, t->entries[i].ask_at);
		struct tape_ask ask = { 0 };

		if (!tape_ask_read(t->bytes + t->entries[i].ask_at + sizeof(f), f.bytes, &ask) ||
		    !is_of(s, &ask))
			continue;
		at += (size_t)snprintf(why + at, REPLAY_WHY_MAX - at, "%s %.*s %.*s",
				       named ? "," : "",
				       (int)(ask.method.n < 10 ? ask.method.n : 10), ask.method.s,
				       (int)(ask.path.n < 40 ? ask.path.n : 40), ask.path.s);
		named++;
	}
	if (!named && at < REPLAY_WHY_MAX)
		snprintf(why + at, REPLAY_WHY_MAX - at, " nothing");
	for (char *c = why; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

bool play_head(const struct seat *s, const struct play *p, uint16_t *ret_status,
	       struct http_fields *ret)
{
	return tape_head_read(s->tape->bytes + p->at + sizeof(struct tape_frame),
			      tape_frame_at(s->tape, p->at).bytes, ret_status, ret);
}

void play_step(const struct seat *s, struct play *p)
{
	while (!p->left && !p->over) {
		struct tape_frame f;
		enum tape_end how = TAPE_BROKEN;

		p->at = tape_after(s->tape, p->at, (uint32_t)p->entry + 1);
		if (!p->at) {
			p->over = true;
			return;
		}
		f = tape_frame_at(s->tape, p->at);
		if (f.kind == TAPE_DATA) {
			p->data = s->tape->bytes + p->at + sizeof(f);
			p->left = f.bytes;
		} else if (f.kind == TAPE_END) {
			p->over = true;
			p->trailers = calloc(1, sizeof(*p->trailers));
			p->whole = p->trailers &&
				   tape_end_read(s->tape->bytes + p->at + sizeof(f), f.bytes, &how,
						 p->trailers) &&
				   how == TAPE_WHOLE;
		}
	}
}

void play_clear(struct play *p)
{
	free(p->trailers);
	*p = (struct play){ .entry = -1 };
}
