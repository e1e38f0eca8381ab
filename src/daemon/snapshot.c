/*
 * What the front knows of snapshots (snapshot.h). In: wishes of clients, the keeper's answers. Out:
 * requests to the keeper, few at a time: a sandbox decides how long its part takes. A snapshot is
 * in the registry when all of it is on the disk; a file of the keeper's that has no row is removed,
 * so a crash at any moment leaves a whole snapshot or none.
 */
#include "daemon/snapshot.h"

#include <errno.h>
#include <string.h>

#include "base/io.h"

#define SAVES_MAX 3 /* of the keeper's 8 threads */
#define OWNER_SAVES_MAX 1
#define LIST_EVERY_MS 30000

struct snapshot *snapshot_find(const struct front *f, const char *owner, const char *text)
{
	struct snapshot *best = NULL;
	char name[TEMPLATE_MAX + 1];

	if (!route_read_template(text, name))
		return NULL;
	for (struct snapshot *n = f->snapshots; n; n = n->next) {
		if (n->state != SNAPSHOT_READY || n->fork ||
		    (strcmp(owner, ALL_OWNERS) != 0 && strcmp(n->owner, owner) != 0))
			continue;
		if (strcmp(n->id, name) == 0)
			return n;
		if (*n->name && strcmp(n->name, name) == 0 && (!best || n->made_ms > best->made_ms))
			best = n;
	}
	return best;
}

void snapshot_add(struct front *f, struct snapshot *n)
{
	struct snapshot **at = &f->snapshots;

	while (*at)
		at = &(*at)->next;
	*at = n;
}

static void log_snapshot(const char *kind, const struct snapshot *n, const char *why)
{
	auto_buf fields = { 0 };

	buf_puts(&fields, ",\"snapshot\":");
	json_quote(&fields, n->id);
	buf_puts(&fields, ",\"owner\":");
	json_quote(&fields, n->owner);
	buf_puts(&fields, ",\"sandbox\":");
	json_quote(&fields, n->source);
	buf_printf(&fields, ",\"bytes\":%llu", (unsigned long long)n->bytes);
	if (*why) {
		buf_puts(&fields, ",\"why\":");
		json_quote(&fields, why);
	}
	front_log(kind, &fields);
}

static void forget(struct front *f, struct snapshot *n)
{
	for (struct snapshot **at = &f->snapshots; *at; at = &(*at)->next)
		if (*at == n) {
			*at = n->next;
			break;
		}
	buf_free(&n->config);
	free(n);
}

static void dropped(struct front *f, struct job *j, int result, const char *text, int fds[2])
{
	(void)f;
	(void)j;
	(void)fds;
	if (result < 0)
		front_log_text("snapshot_not_removed", "why", text);
}

void snapshot_drop(struct front *f, struct snapshot *n)
{
	registry_drop_snapshot(f, n->id);
	if (n->state == SNAPSHOT_READY)
		log_snapshot("snapshot_removed", n, "");
	/* if the keeper has too much to do, the list finds it later */
	(void)!jobs_ask_snapshot(f, KEEPER_DROP, NULL, n, dropped);
	forget(f, n);
}

/* -- making one */

struct used {
	uint64_t bytes;
	unsigned all, own;
};

static struct used count_used(const struct front *f, const char *owner)
{
	struct used u = { 0 };

	for (const struct snapshot *n = f->snapshots; n; n = n->next) {
		u.all++;
		if (strcmp(n->owner, owner) != 0)
			continue;
		u.own++;
		u.bytes += n->bytes;
	}
	return u;
}

/* Its files are in memory, so its policy says how large they can be; 0: it does not. */
static uint64_t largest(const struct sandbox *s)
{
	uint64_t mib = s->memory_mib;

	if (!mib || (s->disk_mib && s->disk_mib < mib))
		mib = s->disk_mib;
	return mib ? (mib + mib / 8 + 16) << 20 : UINT64_MAX;
}

struct snapshot *snapshot_make(struct front *f, struct sandbox *s, const char *name, struct conn *c,
			       snapshot_done *done, unsigned *ret_status, const char **ret_why)
{
	struct used u = count_used(f, s->owner);
	uint64_t left = u.bytes < f->snapshot_quota ? f->snapshot_quota - u.bytes : 0;
	struct snapshot *n;

	*ret_status = 429;
	*ret_why = "your snapshots, and those under way, take all that --snapshot-quota gives; "
		   "delete one";
	if (!left || u.own >= SNAPSHOTS_OF_OWNER)
		return NULL;
	*ret_status = 503;
	*ret_why = "the server has too many snapshots";
	n = u.all < SNAPSHOTS_MOST ? calloc(1, sizeof(*n)) : NULL;
	if (!n || !sandbox_make_id(f, n->id)) {
		free(n);
		return NULL;
	}
	memcpy(n->owner, s->owner, sizeof(n->owner));
	memcpy(n->template, s->template, sizeof(n->template));
	memcpy(n->source, s->id, sizeof(n->source));
	snprintf(n->name, sizeof(n->name), "%s", name);
	buf_add(&n->config, buf_text(&s->config), s->config.len);
	n->no_network = s->no_network;
	n->bytes = largest(s) < left ? largest(s) : left;
	n->made_ms = front_now_ms();
	n->conn = c;
	n->done = done;
	snapshot_add(f, n);
	return n;
}

/* A name is of the last snapshot that was given it. */
static void take_name(struct front *f, const struct snapshot *n)
{
	for (struct snapshot *o = f->snapshots; o && *n->name; o = o->next)
		if (o != n && strcmp(o->owner, n->owner) == 0 && strcmp(o->name, n->name) == 0) {
			*o->name = '\0';
			(void)!registry_put_snapshot(f, o);
		}
}

static void finish(struct front *f, struct snapshot *n, int result, const char *text)
{
	if (result == 0) {
		n->state = SNAPSHOT_READY;
		n->listed_after = f->next_seq;
		n->bytes = strtoull(text, NULL, 10);
		if (!n->fork && registry_put_snapshot(f, n) < 0) {
			result = -EIO;
			text = "the registry cannot be written";
		}
	}
	log_snapshot(result < 0 ? "snapshot_not_made" : "snapshot_made", n, result < 0 ? text : "");
	f->counters.snapshots += result == 0;
	if (result == 0)
		take_name(f, n);
	n->done(f, n, result, text);
	if (result < 0)
		snapshot_drop(f, n);
}

static struct snapshot *find_id(const struct front *f, const char *id)
{
	struct snapshot *n = f->snapshots;

	while (n && strcmp(n->id, id) != 0)
		n = n->next;
	return n;
}

static void saved(struct front *f, struct job *j, int result, const char *text, int fds[2])
{
	struct sandbox *s = sandbox_find(f, j->q.id);
	struct snapshot *n = find_id(f, j->q.snapshot);

	(void)fds;
	if (s)
		s->busy = false;
	if (n)
		finish(f, n, result, text);
	if (s)
		sandbox_answer_waiting(s, 0, "");
}

/* Whether one more may be under way. */
static bool may_begin(const struct front *f, const char *owner)
{
	unsigned all = 0, own = 0;

	for (const struct snapshot *n = f->snapshots; n; n = n->next)
		if (n->state == SNAPSHOT_SAVING) {
			all++;
			own += strcmp(n->owner, owner) == 0;
		}
	return all < SAVES_MAX && own < OWNER_SAVES_MAX;
}

static void begin(struct front *f, struct snapshot *n)
{
	struct sandbox *s = sandbox_find(f, n->source);

	if (!s || s->state != SANDBOX_RUNNING) {
		finish(f, n, s && s->state == SANDBOX_PAUSED ? -EBUSY : -ESRCH,
		       "the sandbox does not run any more");
		return;
	}
	if (s->busy || !may_begin(f, n->owner) || !jobs_ask_snapshot(f, KEEPER_SAVE, s, n, saved))
		return;
	s->busy = true;
	n->state = SNAPSHOT_SAVING;
}

/* -- what the keeper has */

static void take_listed(struct front *f, const char *line, size_t n)
{
	struct snapshot unknown = { 0 }, *found;

	if (n != SANDBOX_ID)
		return;
	memcpy(unknown.id, line, n);
	found = find_id(f, unknown.id);
	if (found)
		found->missing = false;
	else
		(void)!jobs_ask_snapshot(f, KEEPER_DROP, NULL, &unknown, dropped);
}

static void listed(struct front *f, struct job *j, int result, const char *text, int fds[2])
{
	struct snapshot *next;

	(void)fds;
	if (result < 0) {
		front_log_text("list_failed", "why", text);
		return;
	}
	for (struct snapshot *n = f->snapshots; n; n = n->next)
		n->missing = n->listed_after < j->q.seq && n->state == SNAPSHOT_READY;
	while (*text) {
		size_t n = strcspn(text, "\n");

		take_listed(f, text, n);
		text += n + (text[n] == '\n');
	}
	for (struct snapshot *n = f->snapshots; n; n = next) {
		next = n->next;
		if (n->missing && !n->fork) {
			log_snapshot("snapshot_lost", n, "its file is not there");
			snapshot_drop(f, n);
		}
	}
}

void snapshot_tick(struct front *f)
{
	uint64_t now = io_now_ms();
	struct snapshot *next;

	for (struct snapshot *n = f->snapshots; n; n = next) {
		next = n->next;
		if (n->state == SNAPSHOT_QUEUED)
			begin(f, n);
	}
	if (now >= f->snapshot_list_ms && jobs_ask(f, KEEPER_SNAPSHOTS, NULL, listed))
		f->snapshot_list_ms = now + LIST_EVERY_MS;
}
