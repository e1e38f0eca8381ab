/*
 * The calls about snapshots: make, list, remove, and fork. In: requests with a key. Out: what the
 * client's own snapshots are; those of others do not exist. A snapshot is of files: programs do not
 * go on in a sandbox that is made of it, whatever "memory" says.
 */
#include <errno.h>
#include <string.h>

#include "daemon/control_access.h"
#include "daemon/snapshot.h"
#include "envd/query.h"

#define LIMIT_MAX 100

static void show(const struct snapshot *n, struct json *j)
{
	char name[TEMPLATE_MAX + 16];

	json_begin_object(j, NULL);
	json_string(j, "snapshotID", n->id);
	json_begin_array(j, "names");
	if (*n->name) {
		snprintf(name, sizeof(name), "%s:latest", n->name);
		json_string(j, NULL, name);
	}
	json_end_array(j);
	show_time(j, "createdAt", n->made_ms);
	json_string(j, "sandboxID", n->source);
	json_string(j, "templateID", n->template);
	json_uint(j, "sizeBytes", n->bytes);
	json_end_object(j);
}

/* The sandbox of the path, if a snapshot can be made of it; NULL: it was answered. */
static struct sandbox *find_running(struct conn *c, struct small_request *q)
{
	struct sandbox *s = control_find_mine(c);

	if (!s)
		return NULL;
	if (!control_read_small((const uint8_t *)buf_text(&c->body), c->body.len, q)) {
		conn_refuse(c, 400,
			    "the body is not JSON of the form that this call has; a name has "
			    "1 to %d characters of a-z, 0-9, - and _",
			    TEMPLATE_MAX);
		return NULL;
	}
	if (s->state != SANDBOX_RUNNING) {
		conn_refuse(c, 409, "sandbox \"%s\" is not running; resume it first", s->id);
		return NULL;
	}
	return s;
}

unsigned snapshot_status(int result)
{
	switch (-result) {
	case EDQUOT:
		return 429;
	case ENOSPC:
		return 507;
	case ESRCH:
		return 404;
	case EBUSY:
		return 409;
	default:
		return 500;
	}
}

static void made(struct front *f, struct snapshot *n, int result, const char *text)
{
	auto_buf body = { 0 };
	struct json j = { .out = &body };

	(void)f;
	if (!n->conn)
		return;
	if (result < 0) {
		conn_refuse(n->conn, snapshot_status(result), "the snapshot was not made: %s",
			    text);
	} else {
		show(n, &j);
		conn_answer(n->conn, 201, "application/json", &body, NULL);
	}
	n->conn = NULL;
}

void control_snapshot(struct conn *c)
{
	struct small_request q;
	struct sandbox *s = find_running(c, &q);
	const char *why;
	unsigned status;

	if (!s)
		return;
	if (route_is_built_in(q.name)) {
		conn_refuse(c, 400, "\"%s\" is a template; give the snapshot another name", q.name);
		return;
	}
	if (!snapshot_make(c->front, s, q.name, c, made, &status, &why)) {
		conn_refuse(c, status, "%s", why);
		return;
	}
	c->state = CONN_WAIT;
	snapshot_tick(c->front);
	conn_flush(c);
}

/* What a fork makes is new: the credential must be one for such sandboxes. */
static bool may_fork(struct conn *c, const struct sandbox *s)
{
	struct access_what what = access_of_sandbox(s);

	what.sandbox = "";
	return access_require(c, RIGHT_CREATE, &what);
}

void control_fork(struct conn *c)
{
	struct small_request q;
	struct sandbox *s = find_running(c, &q);

	if (!s)
		return;
	if (q.count == 0 || q.count > FORKS_MOST)
		conn_refuse(c, 400, "count: 1 to %d", FORKS_MOST);
	else if (q.timeout_s == 0)
		conn_refuse(c, 400, "timeout: 1 to 2592000 seconds");
	else if (may_fork(c, s))
		fork_begin(c, s, q.count < 0 ? 1 : (unsigned)q.count, q.timeout_s);
}

/* -- the list */

struct filter {
	struct buf sandbox, name, limit, token;
	unsigned most;
	long long behind_ms;
	char behind[SANDBOX_ID + 1];
};

static void filter_free(struct filter *w)
{
	buf_free(&w->sandbox);
	buf_free(&w->name);
	buf_free(&w->limit);
	buf_free(&w->token);
}

static bool filter_read(const struct conn *c, struct filter *w)
{
	const char *q = c->http.req.query.s;
	size_t n = c->http.req.query.n;
	int bad = 0;

	bad |= query_get(q, n, "sandboxID", &w->sandbox) < 0;
	bad |= query_get(q, n, "name", &w->name) < 0;
	bad |= query_get(q, n, "limit", &w->limit) < 0;
	bad |= query_get(q, n, "nextToken", &w->token) < 0;
	w->most = w->limit.len ? (unsigned)strtoul(w->limit.data, NULL, 10) : LIMIT_MAX;
	if (w->token.len &&
	    sscanf(w->token.data, "%lld-%20[a-z0-9]", &w->behind_ms, w->behind) != 2)
		bad = 1;
	return !bad && w->most >= 1 && w->most <= LIMIT_MAX;
}

/* The youngest one comes first. */
static int compare(int64_t a_ms, const char *a, int64_t b_ms, const char *b)
{
	return a_ms != b_ms ? (a_ms > b_ms ? -1 : 1) : strcmp(a, b);
}

static int by_age(const void *a, const void *b)
{
	const struct snapshot *one = *(struct snapshot *const *)a,
			      *other = *(struct snapshot *const *)b;

	return compare(one->made_ms, one->id, other->made_ms, other->id);
}

static bool is_wanted(struct conn *c, const struct snapshot *n, const struct filter *w)
{
	char name[TEMPLATE_MAX + 1];

	if (n->state != SNAPSHOT_READY || n->fork || !access_sees_snapshot(c, n))
		return false;
	if (w->sandbox.len && strcmp(w->sandbox.data, n->source) != 0)
		return false;
	if (w->name.len && (!route_read_template(w->name.data, name) ||
			    (strcmp(name, n->name) != 0 && strcmp(name, n->id) != 0)))
		return false;
	return !w->token.len || compare(n->made_ms, n->id, w->behind_ms, w->behind) > 0;
}

static void show_page(struct conn *c, struct snapshot **all, size_t n, const struct filter *w)
{
	size_t shown = n < w->most ? n : w->most;
	auto_buf body = { 0 };
	struct json j = { .out = &body };
	char more[128] = "";

	qsort(all, n, sizeof(all[0]), by_age);
	json_begin_array(&j, NULL);
	for (size_t i = 0; i < shown; i++)
		show(all[i], &j);
	json_end_array(&j);
	if (shown < n)
		snprintf(more, sizeof(more), "X-Next-Token: %lld-%s\r\n",
			 (long long)all[shown - 1]->made_ms, all[shown - 1]->id);
	conn_answer(c, 200, "application/json", &body, *more ? more : NULL);
}

void control_snapshots(struct conn *c)
{
	struct snapshot **all = calloc(SNAPSHOTS_OF_OWNER + 1, sizeof(struct snapshot *));
	struct filter w = { 0 };
	size_t n = 0;

	if (!all) {
		conn_refuse(c, 500, "out of memory");
	} else if (!filter_read(c, &w)) {
		conn_refuse(c, 400,
			    "the query cannot be understood: sandboxID, name, limit (1 to 100), "
			    "nextToken");
	} else {
		for (struct snapshot *o = c->front->snapshots; o; o = o->next)
			if (n < SNAPSHOTS_OF_OWNER && is_wanted(c, o, &w))
				all[n++] = o;
		show_page(c, all, n, &w);
	}
	filter_free(&w);
	free(all);
}

void control_drop_snapshot(struct conn *c)
{
	struct snapshot *n = snapshot_find(c->front, c->owner, c->sandbox);

	if (!n || !access_sees_snapshot(c, n)) {
		conn_refuse(c, 404, "snapshot \"%s\" was not found", c->sandbox);
		return;
	}
	snapshot_drop(c->front, n);
	conn_answer(c, 204, NULL, NULL, NULL);
}
