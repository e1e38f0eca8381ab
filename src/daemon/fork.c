/*
 * Forks (snapshot.h). In: a running sandbox, and how many are wanted. Out: that many new ones with
 * its files, variables and metadata, and with no more network than it has; each begins or fails by
 * itself, and the answer says so. Its programs do not run in them.
 */
#include <errno.h>
#include <string.h>

#include "daemon/snapshot.h"

#define TIMEOUT_S 15 /* as at E2B, where a request says nothing */

struct fork_one {
	char id[SANDBOX_ID + 1];
	unsigned status; /* 0: it has started, or starts */
	char why[256];
};

struct fork {
	struct fork *next;
	struct snapshot *snapshot;
	struct conn *conn; /* NULL: it has gone */
	int64_t timeout_s;
	unsigned count, left;
	struct fork_one ones[FORKS_MOST];
};

void fork_forget(struct front *f, const struct conn *c)
{
	for (struct fork *k = f->forks; k; k = k->next)
		if (k->conn == c)
			k->conn = NULL;
	for (struct snapshot *n = f->snapshots; n; n = n->next)
		if (n->conn == c)
			n->conn = NULL;
}

static void answer(struct front *f, const struct fork *k)
{
	auto_buf body = { 0 };
	struct json j = { .out = &body };

	json_begin_array(&j, NULL);
	for (unsigned i = 0; i < k->count; i++) {
		const struct fork_one *one = &k->ones[i];
		const struct sandbox *s = one->status ? NULL : sandbox_find(f, one->id);

		json_begin_object(&j, NULL);
		if (s) {
			show_sandbox(k->conn, s, "sandbox", &j);
		} else {
			json_begin_object(&j, "error");
			json_uint(&j, "code", one->status ? one->status : 500);
			json_string(&j, "message",
				    one->status ? one->why : "the sandbox has ended already");
			json_end_object(&j);
		}
		json_end_object(&j);
	}
	json_end_array(&j);
	conn_answer(k->conn, 201, "application/json", &body, NULL);
}

static void forget(struct front *f, struct fork *k)
{
	for (struct fork **at = &f->forks; *at; at = &(*at)->next)
		if (*at == k) {
			*at = k->next;
			break;
		}
	free(k);
}

/* All have begun or failed. */
static void finish(struct front *f, struct fork *k)
{
	struct snapshot *n = k->snapshot;

	if (k->conn)
		answer(f, k);
	forget(f, k);
	snapshot_drop(f, n);
}

static void fail(struct fork_one *one, unsigned status, const char *why)
{
	one->status = status;
	snprintf(one->why, sizeof(one->why), "%s", why);
}

void fork_started(struct front *f, struct fork *k, const struct sandbox *s, int result,
		  const char *text)
{
	for (unsigned i = 0; i < k->count; i++)
		if (result < 0 && strcmp(k->ones[i].id, s->id) == 0)
			fail(&k->ones[i], result == -ENOSPC ? 507 : 500, text);
	if (--k->left == 0)
		finish(f, k);
}

static bool copy_text(const char *from, char **ret)
{
	*ret = from ? strdup(from) : NULL;
	return !from || *ret;
}

/* A sandbox like the other one, but for its id and what follows from it. */
static struct sandbox *make_like(struct front *f, const struct sandbox *o, int64_t timeout_s)
{
	char id[SANDBOX_ID + 1];
	struct sandbox *s = sandbox_make_id(f, id) ? sandbox_new(f) : NULL;
	bool fine;

	if (!s)
		return NULL;
	memcpy(s->id, id, sizeof(id));
	memcpy(s->owner, o->owner, sizeof(s->owner));
	memcpy(s->template, o->template, sizeof(s->template));
	s->auto_pause = o->auto_pause;
	s->auto_resume = o->auto_resume;
	s->pause_files = o->pause_files;
	s->private_traffic = o->private_traffic;
	s->no_network = o->no_network;
	s->internet = o->internet;
	s->started_ms = front_now_ms();
	s->end_ms = s->started_ms + 1000 * timeout_s;
	fine = copy_text(o->mask_host, &s->mask_host);
	fine &= copy_text(o->metadata, &s->metadata);
	buf_add(&s->config, buf_text(&o->config), o->config.len);
	sandbox_tokens(f, s);
	if (fine && !s->config.failed && registry_put(f, s) == 0)
		return s;
	sandbox_remove(f, s, "it was not started");
	return NULL;
}

static void start_one(struct front *f, struct fork *k, const struct sandbox *o,
		      struct fork_one *one)
{
	char why[128];
	unsigned status;
	struct sandbox *s;

	if (!control_admit(f, o->owner, &status, why)) {
		fail(one, status, why);
		return;
	}
	s = make_like(f, o, k->timeout_s);
	if (!s) {
		fail(one, 503, "the server is busy, or cannot write its registry");
		return;
	}
	memcpy(s->snapshot, k->snapshot->id, sizeof(s->snapshot));
	memcpy(one->id, s->id, sizeof(one->id));
	if (sandbox_start(f, s) < 0) {
		sandbox_remove(f, s, "it was not started");
		fail(one, 503, "the server is busy");
		return;
	}
	s->fork = k;
	k->left++;
}

static void saved(struct front *f, struct snapshot *n, int result, const char *text)
{
	const struct sandbox *o = sandbox_find(f, n->source);
	struct fork *k = n->fork;

	if (result < 0) {
		if (k->conn)
			conn_refuse(k->conn, snapshot_status(result), "it was not forked: %s",
				    text);
		forget(f, k);
		return;
	}
	k->left = 1; /* that is this function */
	for (unsigned i = 0; i < k->count; i++)
		if (o && o->state != SANDBOX_ENDING)
			start_one(f, k, o, &k->ones[i]);
		else
			fail(&k->ones[i], 404, "the sandbox that was forked has ended");
	f->counters.forks += k->left - 1;
	if (--k->left == 0)
		finish(f, k);
}

void fork_begin(struct conn *c, struct sandbox *s, unsigned count, int64_t timeout_s)
{
	struct front *f = c->front;
	struct fork *k = calloc(1, sizeof(*k));
	const char *why = "out of memory";
	unsigned status = 500;

	if (k)
		k->snapshot = snapshot_make(f, s, "", NULL, saved, &status, &why);
	if (!k || !k->snapshot) {
		free(k);
		conn_refuse(c, status, "%s", why);
		return;
	}
	k->snapshot->fork = k;
	k->conn = c;
	k->count = count;
	k->timeout_s = timeout_s < 0 ? TIMEOUT_S : timeout_s;
	k->next = f->forks;
	f->forks = k;
	c->state = CONN_WAIT;
	snapshot_tick(f);
	conn_flush(c);
}
