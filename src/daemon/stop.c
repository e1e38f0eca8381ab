/*
 * The emergency stop: POST /ward/v1/stop. In: all sandboxes that the client may stop, or those with
 * certain labels. Out: they are frozen first, all of them, so that none can act on the end of
 * another; then they are killed, and when they are gone the call is answered. A sandbox that does
 * not freeze in time is killed without it. Nothing here needs the disk or the audit log.
 */
#include <string.h>

#include "base/io.h"
#include "daemon/control_access.h"
#include "rules/json_in.h"

#define FREEZE_MS 2000 /* for all of them, before the first is killed */

enum stop_step { STOP_FREEZE, STOP_FREEZING, STOP_FROZEN, STOP_KILLED };

struct stop {
	struct stop *next;
	struct conn *conn; /* NULL: it has gone */
	unsigned count, left;
	uint64_t until_ms;
	bool killing;
};

/* {"all":true} or {"labels":{...}}: nothing is stopped by a body that says neither. */
static bool read_body(const struct conn *c, struct buf *ret_labels)
{
	struct json out = { .out = ret_labels };
	struct json_level l, inner;
	struct json_in j;
	const char *key;
	bool all = false, labels = false, fine;

	json_in_init(&j, (const uint8_t *)buf_text(&c->body), c->body.len);
	if (json_in_open(&j, '{', &l)) {
		while (json_in_next(&j, &l, &key)) {
			if (strcmp(key, "all") == 0 && json_in_peek(&j) == 't') {
				json_in_skip(&j);
				all = true;
			} else if (strcmp(key, "labels") == 0 && json_in_peek(&j) == '{' &&
				   json_in_open(&j, '{', &inner)) {
				json_begin_object(&out, NULL);
				while (json_in_next(&j, &inner, &key)) {
					auto_free char *name = strdup(key);
					auto_buf value = { 0 };

					json_in_string(&j, &value);
					json_string(&out, name ? name : "", buf_text(&value));
					labels = true;
				}
				json_end_object(&out);
			} else {
				j.bad = true;
			}
		}
	}
	fine = json_in_end(&j) && all != labels && !ret_labels->failed;
	json_in_free(&j);
	return fine;
}

static void answer(struct stop *st)
{
	auto_buf body = { 0 };

	buf_printf(&body, "{\"stopped\":%u}", st->count);
	if (st->conn)
		conn_answer(st->conn, 200, "application/json", &body, NULL);
	st->conn = NULL;
}

static void frozen(struct front *f, struct job *j, int result, const char *text, int fds[2])
{
	struct sandbox *s = sandbox_find(f, j->q.id);

	(void)text;
	(void)fds;
	if (!s)
		return;
	s->busy = false;
	s->stop_step = STOP_FROZEN; /* or not: it is killed in any case */
	if (result == 0)
		sandbox_happened(f, s, "sandbox_frozen", "");
	stop_tick(f);
}

static void freeze(struct front *f, struct sandbox *s)
{
	if (s->stop_step != STOP_FREEZE || s->busy)
		return;
	if (s->state == SANDBOX_PAUSED) {
		s->stop_step = STOP_FROZEN;
	} else if (jobs_ask(f, KEEPER_PAUSE, s, frozen)) {
		s->busy = true;
		s->stop_step = STOP_FREEZING;
	}
}

static void kill_frozen(struct front *f, const struct stop *st)
{
	struct sandbox *next;

	for (struct sandbox *s = f->sandboxes; s; s = next) {
		next = s->next;
		if (s->stop != st || s->stop_step == STOP_KILLED)
			continue;
		s->stop_step = STOP_KILLED;
		f->counters.killed++;
		sandbox_end(f, s, "stopped by a client");
	}
}

void stop_tick(struct front *f)
{
	uint64_t now = io_now_ms();

	for (struct stop *st = f->stops; st; st = st->next) {
		bool all = true;

		if (st->killing)
			continue;
		for (struct sandbox *s = f->sandboxes; s; s = s->next)
			if (s->stop == st) {
				freeze(f, s);
				all &= s->stop_step == STOP_FROZEN;
			}
		if (!all && now < st->until_ms)
			continue;
		st->killing = true;
		kill_frozen(f, st);
	}
}

void stop_ended(struct front *f, struct sandbox *s)
{
	struct stop *st = s->stop;

	s->stop = NULL;
	if (!st || --st->left)
		return;
	answer(st);
	for (struct stop **at = &f->stops; *at; at = &(*at)->next)
		if (*at == st) {
			*at = st->next;
			break;
		}
	free(st);
}

void stop_forget(struct front *f, const struct conn *c)
{
	for (struct stop *st = f->stops; st; st = st->next)
		if (st->conn == c)
			st->conn = NULL;
}

static unsigned choose(struct conn *c, struct stop *st, const struct buf *labels)
{
	unsigned n = 0;

	for (struct sandbox *s = c->front->sandboxes; s; s = s->next) {
		const struct access_what what = access_of_sandbox(s);

		if (s->stop || s->pool || s->state == SANDBOX_ENDING ||
		    !access_may(c, RIGHT_STOP, &what) ||
		    (labels->len && !access_labels_match(labels->data, s->metadata)))
			continue;
		s->stop = st;
		s->stop_step = STOP_FREEZE;
		n++;
	}
	c->denied = ACCESS_ALLOWED;
	return n;
}

void control_stop(struct conn *c)
{
	struct stop *st = calloc(1, sizeof(*st));
	auto_buf labels = { 0 };

	if (!st) {
		conn_refuse(c, 500, "out of memory");
		return;
	}
	if (!read_body(c, &labels)) {
		conn_refuse(c, 400, "{\"all\": true}, or {\"labels\": {NAME: TEXT}}");
		free(st);
		return;
	}
	st->conn = c;
	st->until_ms = io_now_ms() + FREEZE_MS;
	st->count = st->left = choose(c, st, &labels);
	if (!st->count) {
		answer(st);
		free(st);
		return;
	}
	st->next = c->front->stops;
	c->front->stops = st;
	c->state = CONN_WAIT;
	stop_tick(c->front);
	conn_flush(c);
}
