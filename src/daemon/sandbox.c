/*
 * What the front knows of sandboxes. In: the registry, the keeper's answers, the clock. Out: what
 * is asked of the keeper. One request at a time is under way for a sandbox; who needs another one
 * waits for it. A sandbox is in the registry before it is started and until it has ended, so a
 * crash at any moment leaves either a row whose sandbox is looked for, or nothing; a sandbox of
 * this server without a row is ended.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/io.h"
#include "base/sha256.h"
#include "daemon/pool.h"
#include "daemon/snapshot.h"

#define LIST_EVERY_MS 15000
#define RETRY_MS 2000
#define ATTACHES_MAX 6 /* of the keeper's 8 threads */
#define OWNER_ATTACHES_MAX 2

static struct sandbox *find_any(struct front *f, const char *id)
{
	struct sandbox *s = f->sandboxes;

	while (s && strcmp(s->id, id) != 0)
		s = s->next;
	return s;
}

struct sandbox *sandbox_find(struct front *f, const char *id)
{
	struct sandbox *s = find_any(f, id);

	return s && !s->pool ? s : NULL;
}

struct sandbox *sandbox_find_of(struct front *f, const char *owner, const char *id)
{
	bool all = strcmp(owner, ALL_OWNERS) == 0;
	struct sandbox *found = NULL;

	/* to the end, in any case: how long it takes says nothing about those of others */
	for (struct sandbox *s = f->sandboxes; s; s = s->next) {
		bool same = route_equal(s->id, id), own = all | route_equal(s->owner, owner);
		bool out = !s->pool;

		found = same & own & out ? s : found;
	}
	return found;
}

struct sandbox *sandbox_new(struct front *f)
{
	struct sandbox *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->next = f->sandboxes;
	f->sandboxes = s;
	f->sandbox_count++;
	return s;
}

bool sandbox_make_id(const struct front *f, char ret[SANDBOX_ID + 1])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	uint8_t random[64];
	size_t n = TAG;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return false;
	memcpy(ret, f->tag, TAG);
	for (size_t i = 0; i < sizeof(random) && n < SANDBOX_ID; i++)
		if (random[i] < 252) /* 7 times 36: each letter as often */
			ret[n++] = letters[random[i] % 36];
	ret[n] = '\0';
	return n == SANDBOX_ID;
}

/* HMAC-SHA-256 of the id, so that no token has to be kept: with the server's secret it is made
 * again. */
void sandbox_derive(const struct front *f, const char *what, const char *id,
		    char ret[TOKEN_HEX + 1])
{
	uint8_t pad[64] = { 0 }, inner[SHA256_BYTES];
	struct sha256 s;

	for (size_t i = 0; i < sizeof(pad); i++)
		pad[i] = (uint8_t)((i < sizeof(f->secret) ? f->secret[i] : 0) ^ 0x36);
	sha256_begin(&s);
	sha256_add(&s, pad, sizeof(pad));
	sha256_add(&s, what, strlen(what) + 1);
	sha256_add(&s, id, strlen(id));
	sha256_end(&s, inner);
	for (size_t i = 0; i < sizeof(pad); i++)
		pad[i] ^= 0x36 ^ 0x5c;
	sha256_begin(&s);
	sha256_add(&s, pad, sizeof(pad));
	sha256_add(&s, inner, sizeof(inner));
	sha256_end_hex(&s, ret);
}

void sandbox_tokens(struct front *f, struct sandbox *s)
{
	sandbox_derive(f, "envd", s->id, s->token);
	sandbox_derive(f, "traffic", s->id, s->traffic_token);
}

unsigned sandbox_count_of(const struct front *f, const char *owner, bool ending)
{
	unsigned n = 0;

	for (const struct sandbox *s = f->sandboxes; s; s = s->next)
		n += (s->state == SANDBOX_ENDING) == ending && strcmp(s->owner, owner) == 0;
	return n;
}

static void add_line(const char *kind, const struct sandbox *s, const char *why)
{
	auto_buf fields = { 0 };

	buf_puts(&fields, ",\"sandbox\":");
	json_quote(&fields, s->id);
	buf_puts(&fields, ",\"owner\":");
	json_quote(&fields, s->owner);
	buf_puts(&fields, ",\"template\":");
	json_quote(&fields, s->template);
	if (*why) {
		buf_puts(&fields, ",\"why\":");
		json_quote(&fields, why);
	}
	front_log(kind, &fields);
}

void sandbox_happened(struct front *f, struct sandbox *s, const char *kind, const char *why)
{
	char note[320];

	snprintf(note, sizeof(note), "%s%s%s", kind, *why ? ": " : "", why);
	sandbox_note(s, strstr(kind, "_not_") != NULL, note);
	add_line(kind, s, why);
	events_push(f, kind, s, why);
}

/* -- waiting for what is under way */

void sandbox_wait(struct sandbox *s, struct conn *c,
		  void (*resume)(struct conn *c, int result, const char *text))
{
	c->state = CONN_WAIT;
	c->resume = resume;
	c->next_waiting = s->waiting;
	s->waiting = c;
	conn_flush(c);
}

static bool forget(struct conn **at, const struct conn *c)
{
	while (*at && *at != c)
		at = &(*at)->next_waiting;
	if (!*at)
		return false;
	*at = c->next_waiting;
	return true;
}

void sandbox_forget_waiting(struct front *f, struct conn *c)
{
	fork_forget(f, c);
	stop_forget(f, c);
	approvals_forget(f, c);
	for (struct sandbox *s = f->sandboxes; s; s = s->next)
		if (forget(&s->waiting, c) || forget(&s->measuring, c))
			return;
}

/* Calls all who wait; each may begin something else, and even remove the sandbox. */
void sandbox_answer_waiting(struct sandbox *s, int result, const char *text)
{
	struct conn *all = s->waiting, *in_order = NULL;

	s->waiting = NULL;
	while (all) {
		struct conn *next = all->next_waiting;

		all->next_waiting = in_order;
		in_order = all;
		all = next;
	}
	while (in_order) {
		struct conn *next = in_order->next_waiting;

		in_order->next_waiting = NULL;
		if (!in_order->gone)
			in_order->resume(in_order, result, text);
		in_order = next;
	}
}

void sandbox_remove(struct front *f, struct sandbox *s, const char *why)
{
	for (struct sandbox **at = &f->sandboxes; *at; at = &(*at)->next)
		if (*at == s) {
			*at = s->next;
			f->sandbox_count--;
			break;
		}
	if (s->fork)
		fork_started(f, s->fork, s, -ESRCH, why);
	registry_drop(f, s->id);
	link_end(s->link);
	sandbox_happened(f, s, "sandbox_gone", why);
	sandbox_answer_waiting(s, -ESRCH, "the sandbox is gone");
	stop_ended(f, s);
	while (s->measuring) {
		struct conn *c = s->measuring;

		s->measuring = c->next_waiting;
		conn_refuse(c, 404, "sandbox \"%s\" was not found", s->id);
	}
	free(s->metadata);
	free(s->mask_host);
	buf_free(&s->notes);
	buf_free(&s->config);
	free(s);
}

/* -- the keeper's answers */

static struct sandbox *answered(struct front *f, const struct job *j)
{
	struct sandbox *s = find_any(f, j->q.id);

	if (s)
		s->busy = false;
	return s;
}

static void took_link(struct front *f, struct sandbox *s, int fds[2])
{
	if (fds[0] >= 0 && fds[1] >= 0 && !s->link)
		(void)link_new(f, s, fds);
}

static void started(struct front *f, struct job *j, int result, const char *text, int fds[2])
{
	struct sandbox *s = answered(f, j);
	int network = 1, asks = 0;

	if (!s)
		return;
	if (s->pool && result < 0) {
		pool_started(f, s, result, text);
		return;
	}
	if (s->fork)
		fork_started(f, s->fork, s, result, text);
	s->fork = NULL;
	if (result < 0) {
		sandbox_happened(f, s, "sandbox_not_started", text);
		sandbox_answer_waiting(s, result, text);
		sandbox_remove(f, s, "it was not started");
		return;
	}
	f->counters.starts++;
	f->counters.start_us += (io_now_ms() - j->began_ms) * 1000;
	if (sscanf(text, "%u %u %d %15s %d", &s->memory_mib, &s->disk_mib, &network, s->engine,
		   &asks) == 5) {
		s->asks = asks != 0;
		s->networked = network != 0;
	}
	took_link(f, s, fds);
	if (s->pool) {
		pool_started(f, s, 0, "");
		return;
	}
	if (s->state == SANDBOX_STARTING)
		s->state = SANDBOX_RUNNING;
	f->counters.created++;
	(void)!registry_put(f, s);
	sandbox_happened(f, s, "sandbox_started", "");
	sandbox_answer_waiting(s, 0, "");
}

static void attached(struct front *f, struct job *j, int result, const char *text, int fds[2])
{
	struct sandbox *s = answered(f, j);

	if (!s)
		return;
	if (result < 0)
		sandbox_happened(f, s, "sandbox_not_reached", text);
	if (result == -ENOENT || result == -ESRCH) {
		f->counters.lost++;
		sandbox_end(f, s, "its box has ended");
		sandbox_answer_waiting(s, result, text);
		return;
	}
	took_link(f, s, fds);
	sandbox_answer_waiting(s, result, text);
}

static void ended(struct front *f, struct job *j, int result, const char *text, int fds[2])
{
	struct sandbox *s = answered(f, j);

	(void)fds;
	if (!s)
		return;
	if (result < 0) {
		sandbox_happened(f, s, "sandbox_not_ended", text);
		s->retry_ms = io_now_ms() + RETRY_MS;
		return;
	}
	sandbox_remove(f, s, "");
}

static void paused(struct front *f, struct job *j, int result, const char *text, int fds[2])
{
	struct sandbox *s = answered(f, j);

	(void)fds;
	if (!s)
		return;
	if (result == 0 && s->state == SANDBOX_RUNNING) {
		s->state = SANDBOX_PAUSED;
		f->counters.paused++;
		(void)!registry_put(f, s);
		/* requests under way are answered: the sandbox is gone */
		link_end(s->link);
	}
	sandbox_happened(f, s, result < 0 ? "sandbox_not_paused" : "sandbox_paused", text);
	s->retry_ms = io_now_ms() + RETRY_MS;
	sandbox_answer_waiting(s, result, text);
}

static void resumed(struct front *f, struct job *j, int result, const char *text, int fds[2])
{
	struct sandbox *s = answered(f, j);

	(void)fds;
	if (!s)
		return;
	if (result == 0 && s->state == SANDBOX_PAUSED) {
		s->state = SANDBOX_RUNNING;
		f->counters.resumed++;
		if (s->end_ms < front_now_ms() + 15000)
			s->end_ms = front_now_ms() + 300000;
		(void)!registry_put(f, s);
	}
	sandbox_happened(f, s, result < 0 ? "sandbox_not_resumed" : "sandbox_resumed", text);
	sandbox_answer_waiting(s, result, text);
}

/* -- what is asked of it */

static int ask_with(struct front *f, struct sandbox *s, enum keeper_op op, bool files_only,
		    job_done *done)
{
	if (s->busy)
		return -EBUSY;
	if (files_only ? !jobs_ask_files(f, op, s, done) : !jobs_ask(f, op, s, done))
		return -EAGAIN;
	s->busy = true;
	return 0;
}

static int ask(struct front *f, struct sandbox *s, enum keeper_op op, job_done *done)
{
	return ask_with(f, s, op, false, done);
}

int sandbox_start(struct front *f, struct sandbox *s)
{
	return ask(f, s, KEEPER_START, started);
}

void sandbox_handed_over(struct front *f, struct sandbox *s)
{
	f->counters.created++;
	sandbox_happened(f, s, "sandbox_started", "from a pool");
}

/* A hostile sandbox can make each attach wait: so few are under way, and the keeper's other threads
 * are left to all others. */
int sandbox_attach(struct front *f, struct sandbox *s)
{
	unsigned all = 0, own = 0;

	for (size_t i = 0; i < JOBS_MAX; i++) {
		const struct job *j = &f->jobs[i];
		const struct sandbox *o = NULL;

		if (j->used && j->q.op == KEEPER_ATTACH)
			o = sandbox_find(f, j->q.id);
		all += o != NULL;
		own += o && strcmp(o->owner, s->owner) == 0;
	}
	if (all >= ATTACHES_MAX || own >= OWNER_ATTACHES_MAX)
		return -EAGAIN;
	return ask(f, s, KEEPER_ATTACH, attached);
}

int sandbox_pause(struct front *f, struct sandbox *s, bool files_only)
{
	return ask_with(f, s, KEEPER_PAUSE, files_only, paused);
}

int sandbox_resume(struct front *f, struct sandbox *s, bool files_only)
{
	return ask_with(f, s, KEEPER_RESUME, files_only, resumed);
}

static void cut(struct front *f, struct job *j, int result, const char *text, int fds[2])
{
	struct sandbox *s = answered(f, j);

	(void)fds;
	if (!s)
		return;
	if (result == 0) {
		s->no_network = true;
		(void)!registry_put(f, s);
	}
	sandbox_happened(f, s, result < 0 ? "sandbox_not_cut" : "sandbox_cut", text);
	sandbox_answer_waiting(s, result, text);
}

int sandbox_cut(struct front *f, struct sandbox *s)
{
	return ask(f, s, KEEPER_CUT, cut);
}

void sandbox_end(struct front *f, struct sandbox *s, const char *why)
{
	if (s->state != SANDBOX_ENDING)
		sandbox_happened(f, s, "sandbox_ends", why);
	s->state = SANDBOX_ENDING;
	(void)!registry_put(f, s);
	link_end(s->link);
	if (ask(f, s, KEEPER_KILL, ended) < 0)
		s->retry_ms = io_now_ms() + RETRY_MS / 10;
}

/* -- the clock */

static void look_at(struct front *f, struct sandbox *s, int64_t now, uint64_t mono)
{
	if (s->busy || mono < s->retry_ms)
		return;
	if (s->pool && s->state != SANDBOX_ENDING)
		return; /* pool.c looks after it */
	if (s->state == SANDBOX_ENDING || s->state == SANDBOX_STARTING) {
		/* its end is still to do; or the server died while it was started */
		sandbox_end(f, s, s->state == SANDBOX_STARTING ? "its start was cut off" : "");
		return;
	}
	if (s->state != SANDBOX_RUNNING || now < s->end_ms)
		return;
	f->counters.expired++;
	s->retry_ms = mono + RETRY_MS;
	if (s->auto_pause)
		(void)!sandbox_pause(f, s, s->pause_files);
	else
		sandbox_end(f, s, "its time is over");
}

/* One line of the keeper's list: "ID STATE". */
static void take_listed(struct front *f, const char *line, size_t n)
{
	char id[SANDBOX_ID + 1] = "";
	bool running = n > SANDBOX_ID + 1 && memcmp(line + SANDBOX_ID + 1, "ended", 5) != 0;
	struct sandbox *s;

	if (n <= SANDBOX_ID || !route_is_id(line, SANDBOX_ID))
		return;
	memcpy(id, line, SANDBOX_ID);
	s = find_any(f, id);
	if (s) {
		s->missing = !running;
		return;
	}
	/* nobody's: a row was lost, or an end was cut off */
	s = sandbox_new(f);
	if (!s)
		return;
	memcpy(s->id, id, sizeof(id));
	snprintf(s->template, sizeof(s->template), "unknown");
	s->internet = -1;
	sandbox_end(f, s, "it is not in the registry");
}

static void listed(struct front *f, struct job *j, int result, const char *text, int fds[2])
{
	struct sandbox *next;

	(void)fds;
	if (result < 0) {
		front_log_text("list_failed", "why", text);
		return;
	}
	for (struct sandbox *s = f->sandboxes; s; s = s->next)
		s->missing = true;
	while (*text) {
		size_t n = strcspn(text, "\n");

		take_listed(f, text, n);
		text += n + (text[n] == '\n');
	}
	for (struct sandbox *s = f->sandboxes; s; s = next) {
		next = s->next;
		/* younger than the list: not to be judged by it */
		if (!s->missing || s->busy || s->state == SANDBOX_STARTING ||
		    (uint64_t)(front_now_ms() - s->started_ms) < io_now_ms() - j->began_ms + 1000)
			continue;
		if (s->state != SANDBOX_ENDING)
			f->counters.lost++;
		sandbox_end(f, s, "its box has ended");
	}
}

void sandbox_tick(struct front *f)
{
	int64_t now = front_now_ms();
	uint64_t mono = io_now_ms();
	struct sandbox *next;

	for (struct sandbox *s = f->sandboxes; s; s = next) {
		next = s->next;
		look_at(f, s, now, mono);
	}
	snapshot_tick(f);
	if (mono >= f->list_ms && jobs_ask(f, KEEPER_LIST, NULL, listed))
		f->list_ms = mono + LIST_EVERY_MS;
}
