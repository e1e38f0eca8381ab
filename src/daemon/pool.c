/*
 * Pools (pool.h). In: the server's options, the clock, creates of clients. Out: sandboxes that are
 * started under their template's policy and wait, with ward-envd connected, until one is handed to
 * a create. Such a sandbox has an id and tokens that were never shown, no owner, no variables
 * and no files but those of its start; nothing of a client enters it before it is its client's.
 *
 * A pool's sandboxes are of the policy as it is now: its file is looked at whenever one is taken,
 * and the keeper is asked from time to time for all that the policy is made of; what is of an older
 * one is ended. They are not in the registry: the next server does not know them and ends them.
 * When a pool runs low, an owner who had more than their share of it lately is left to a start of
 * their own. Run by the front.
 */
#include "daemon/pool.h"

#include <errno.h>
#include <string.h>

#include "base/io.h"

#define STARTS_MAX 3   /* at one time; the keeper's other threads are left to clients */
#define LOOK_MS 3000   /* between two looks at what a policy is made of */
#define RETRY_MS 5000  /* after a start that failed */
#define SHARE_MS 60000 /* for so long a claim counts */

struct pool *pool_find(struct front *f, const char *template)
{
	for (size_t i = 0; i < f->pool_count; i++)
		if (strcmp(f->pools[i].template, template) == 0)
			return &f->pools[i];
	return NULL;
}

static bool waits(const struct sandbox *s, const struct pool *p)
{
	return s->pool == p && s->state == SANDBOX_POOLED && !s->busy && s->link;
}

static unsigned count(const struct front *f, const struct pool *p, bool waiting)
{
	unsigned n = 0;

	for (const struct sandbox *s = f->sandboxes; s; s = s->next)
		n += waiting ? waits(s, p) : s->pool == p && s->state != SANDBOX_ENDING;
	return n;
}

/* -- the policy */

/* What else is not there is of one form: all zeros. */
static void look_at(const struct pool *p, struct stat *ret)
{
	struct stat now;

	memset(ret, 0, sizeof(*ret));
	if (!*p->policy || stat(p->policy, &now) < 0)
		return;
	ret->st_dev = now.st_dev;
	ret->st_ino = now.st_ino;
	ret->st_size = now.st_size;
	ret->st_mtim = now.st_mtim;
	ret->st_ctim = now.st_ctim;
}

static void drain(struct front *f, struct pool *p)
{
	p->epoch++;
	p->retry_ms = 0;
	for (struct sandbox *s = f->sandboxes, *next; s; s = next) {
		next = s->next;
		if (s->pool != p || s->state != SANDBOX_POOLED)
			continue;
		p->drained++;
		sandbox_end(f, s, "the policy of its template has changed");
	}
}

static bool is_current(struct front *f, struct pool *p)
{
	struct stat now;

	look_at(p, &now);
	if (memcmp(&now, &p->seen, sizeof(now)) == 0)
		return true;
	p->seen = now;
	p->look_ms = 0;
	drain(f, p);
	return false;
}

static void looked(struct front *f, struct job *j, int result, const char *text, int fds[2])
{
	struct pool *p = pool_find(f, j->q.template);
	char version[65];

	(void)fds;
	if (!p)
		return;
	p->looking = false;
	snprintf(version, sizeof(version), "%.64s", result < 0 ? "none" : text);
	if (*p->version && strcmp(version, p->version) != 0)
		drain(f, p);
	memcpy(p->version, version, sizeof(version));
}

static void look(struct front *f, struct pool *p, uint64_t now)
{
	struct sandbox about = { 0 };

	if (now < p->look_ms || p->looking)
		return;
	memcpy(about.template, p->template, sizeof(about.template));
	p->looking = jobs_ask(f, KEEPER_VERSION, &about, looked);
	p->look_ms = now + LOOK_MS;
}

/* -- sharing */

static uint64_t hash(const char *owner)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *owner; owner++)
		h = (h ^ (uint8_t)*owner) * 0x100000001b3;
	return h;
}

static void claim(struct pool *p, uint64_t owner, uint64_t now)
{
	p->claims[p->next_claim++ % POOL_CLAIMS] = (struct pool_claim){ now, owner };
}

/* While more than half of the pool is there, or no other owner wants of it, any owner gets one. */
static bool has_share(const struct front *f, const struct pool *p, uint64_t owner, uint64_t now)
{
	unsigned mine = 0, all = 0;

	for (size_t i = 0; i < POOL_CLAIMS; i++) {
		bool counts = p->claims[i].when_ms && now - p->claims[i].when_ms < SHARE_MS;

		all += counts;
		mine += counts && p->claims[i].owner == owner;
	}
	return all == mine || 2 * mine <= all || 2 * count(f, p, true) > p->size;
}

/* -- taking */

static struct sandbox *take(struct front *f, struct pool *p, bool no_network)
{
	struct sandbox *s = f->sandboxes, *oldest = NULL;

	for (; s; s = s->next) /* the list has the newest first */
		if (waits(s, p) && s->epoch == p->epoch && !(no_network && s->networked))
			oldest = s;
	return oldest;
}

struct sandbox *pool_take(struct front *f, const char *owner, const char *template, bool no_network)
{
	struct pool *p = pool_find(f, template);
	uint64_t now = io_now_ms(), who = hash(owner);
	struct sandbox *s = NULL;
	bool may;

	if (!p || !p->size)
		return NULL;
	may = has_share(f, p, who, now);
	claim(p, who, now);
	if (is_current(f, p) && may)
		s = take(f, p, no_network);
	p->held_back += !may;
	if (!s) {
		p->misses++;
		return NULL;
	}
	p->hits++;
	s->pool = NULL;
	s->state = SANDBOX_RUNNING;
	return s;
}

/* -- filling */

void pool_started(struct front *f, struct sandbox *s, int result, const char *why)
{
	struct pool *p = s->pool;

	if (result < 0) {
		p->failed++;
		p->retry_ms = io_now_ms() + RETRY_MS;
		front_log_text("pool_not_filled", "why", why);
		sandbox_remove(f, s, "it was not started");
		return;
	}
	if (s->state == SANDBOX_ENDING) /* the server ends */
		return;
	p->filled++;
	s->state = SANDBOX_POOLED;
	if (s->epoch != p->epoch || !s->link) {
		p->drained++;
		sandbox_end(f, s, "the policy of its template has changed");
	}
}

static bool start(struct front *f, struct pool *p)
{
	struct sandbox *s = sandbox_new(f);

	if (!s)
		return false;
	s->pool = p;
	s->epoch = p->epoch;
	s->internet = -1;
	memcpy(s->template, p->template, sizeof(s->template));
	if (sandbox_make_id(f, s->id)) {
		sandbox_tokens(f, s);
		s->started_ms = front_now_ms();
		if (sandbox_start(f, s) == 0)
			return true;
	}
	sandbox_remove(f, s, "it was not started");
	return false;
}

static unsigned starting(const struct front *f)
{
	unsigned n = 0;

	for (const struct sandbox *s = f->sandboxes; s; s = s->next)
		n += s->pool && s->state == SANDBOX_STARTING;
	return n;
}

static void fill(struct front *f, struct pool *p, uint64_t now)
{
	unsigned have = count(f, p, false), under_way = starting(f);

	if (now < p->retry_ms || have >= p->size || under_way >= STARTS_MAX ||
	    f->sandbox_count >= f->most || !control_has_memory(f) || f->jobs_used > JOBS_MAX / 4)
		return;
	if (!is_current(f, p)) /* nothing is there that could be of an older one */
		have = count(f, p, false);
	for (; have < p->size && under_way < STARTS_MAX && f->sandbox_count < f->most; have++)
		if (!start(f, p))
			break;
		else
			under_way++;
}

/* A sandbox that waits and whose ward-envd has gone is of no use. */
static void end_broken(struct front *f, const struct pool *p)
{
	for (struct sandbox *s = f->sandboxes, *next; s; s = next) {
		next = s->next;
		if (s->pool == p && s->state == SANDBOX_POOLED && !s->link)
			sandbox_end(f, s, "its connection has ended");
	}
}

void pool_tick(struct front *f)
{
	uint64_t now = io_now_ms();

	for (size_t i = 0; i < f->pool_count && !f->stopping; i++) {
		struct pool *p = &f->pools[i];

		if (!p->size)
			continue;
		look(f, p, now);
		end_broken(f, p);
		fill(f, p, now);
	}
}

bool pool_give_way(struct front *f)
{
	for (struct sandbox *s = f->sandboxes; s; s = s->next)
		if (s->pool && s->state == SANDBOX_POOLED) {
			sandbox_end(f, s, "a client needs its place");
			return true;
		}
	return false;
}

void pool_end_all(struct front *f)
{
	for (struct sandbox *s = f->sandboxes, *next; s; s = next) {
		next = s->next;
		if (s->pool && s->state != SANDBOX_ENDING)
			sandbox_end(f, s, "the server ends");
	}
}

/* -- what others are shown */

void pool_settings(struct front *f, const char *template, struct buf *out)
{
	const struct pool *p = pool_find(f, template);

	if (p)
		buf_add(out, buf_text(&p->ready), p->ready.len);
}

static void gauge(const struct front *f, struct buf *out)
{
	buf_puts(out, "# HELP ward_pool_sandboxes Sandboxes that wait for a client.\n"
		      "# TYPE ward_pool_sandboxes gauge\n");
	for (size_t i = 0; i < f->pool_count; i++)
		buf_printf(out, "ward_pool_sandboxes{template=\"%s\"} %u\n", f->pools[i].template,
			   count(f, &f->pools[i], true));
}

void pool_metrics(const struct front *f, struct buf *out)
{
	if (!f->pool_count)
		return;
	gauge(f, out);
	buf_puts(out, "# HELP ward_pool_events_total What happened to pools: creates that were "
		      "served, that were not, and of those the ones held back for other owners; "
		      "sandboxes started, not started, and ended for a change of policy.\n"
		      "# TYPE ward_pool_events_total counter\n");
	for (size_t i = 0; i < f->pool_count; i++) {
		const struct pool *p = &f->pools[i];
		const struct {
			const char *name;
			uint64_t value;
		} rows[] = { { "hit", p->hits },       { "miss", p->misses },
			     { "held", p->held_back }, { "filled", p->filled },
			     { "failed", p->failed },  { "drained", p->drained } };

		for (size_t k = 0; k < ARRAY_LEN(rows); k++)
			buf_printf(out,
				   "ward_pool_events_total{template=\"%s\",event=\"%s\"} %llu\n",
				   p->template, rows[k].name, (unsigned long long)rows[k].value);
	}
}
