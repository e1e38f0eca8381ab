/*
 * The control plane: E2B's REST API, as far as tables and this file have it. In: requests with a
 * key. Out: sandboxes. Whose key it is decides what can be seen: a sandbox of another owner does
 * not exist, in every answer and in its time as well. What is not there is answered 404 or 400 with
 * E2B's body.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/io.h"
#include "daemon/control_access.h"
#include "daemon/pool.h"
#include "daemon/snapshot.h"

#define TIMEOUT_V1_S 15
#define TIMEOUT_V2_S 300
#define REFRESH_S 60

/* -- who asks */

struct sandbox *control_find_mine(struct conn *c)
{
	struct sandbox *s = sandbox_find_of(c->front, c->owner, c->sandbox);
	struct access_what what;

	if (s && s->state != SANDBOX_ENDING) {
		what = access_of_sandbox(s);
		if (access_may(c, route_right(c->verb), &what))
			return s;
	}
	conn_refuse(c, 404, "sandbox \"%s\" was not found", c->sandbox);
	return NULL;
}

/* What only looks, ends or stops goes on where nothing can be written down. */
static bool needs_audit(enum access_right right)
{
	return right != RIGHT_READ && right != RIGHT_END && right != RIGHT_STOP &&
	       right != RIGHT_AUDIT && right != RIGHT_SERVER;
}

static void begin_call(struct conn *c, unsigned status)
{
	const struct access_what nothing = { 0 };

	if (c->verb == ROUTE_NONE)
		conn_refuse(c, status, "ward serve has no %.*s %.*s", (int)c->http.req.method.n,
			    c->http.req.method.s,
			    (int)(c->http.req.path.n < 200 ? c->http.req.path.n : 200),
			    c->http.req.path.s);
	else if (!access_require(c, route_right(c->verb), &nothing))
		;
	else if (needs_audit(route_right(c->verb)) && !audit_works(c->front))
		conn_refuse(c, 503, "the server cannot write its audit log; is the disk full?");
	else
		c->state = CONN_COLLECT;
}

void control_begin(struct conn *c)
{
	unsigned status;

	c->verb = route_find(c->http.req.method, c->http.req.path, c->sandbox, sizeof(c->sandbox),
			     &status);
	c->asked = true;
	c->denied = ACCESS_ALLOWED;
	if (c->verb != ROUTE_NONE && route_right(c->verb) == RIGHT_OPEN) {
		c->state = CONN_WAIT;
		control_run(c);
		return;
	}
	if (!access_identify(c))
		return;
	begin_call(c, status);
	if (c->state != CONN_COLLECT)
		return;
	if (c->http.framing.state == BODY_NONE) {
		c->state = CONN_WAIT;
		control_run(c);
	}
}

/* -- create */

/* What the machine has left; 0: unknown. */
static uint64_t memory_left(void)
{
	auto_buf text = { 0 };
	const char *at;
	unsigned long long kib = 0;

	if (io_read_file(AT_FDCWD, "/proc/meminfo", 65536, &text) < 0)
		return 0;
	at = strstr(buf_text(&text), "MemAvailable:");
	return at && sscanf(at, "MemAvailable: %llu", &kib) == 1 ? kib * 1024 : 0;
}

bool control_has_memory(const struct front *f)
{
	uint64_t left = memory_left();

	return !left || left >= f->least_memory;
}

/* The owner's share, apart from what the server has room for. */
static bool is_within_quota(struct front *f, const char *owner, unsigned *ret_status,
			    char ret_why[128])
{
	if (sandbox_count_of(f, owner, false) < f->quota &&
	    sandbox_count_of(f, owner, true) < f->quota)
		return true;
	*ret_status = 429;
	snprintf(ret_why, 128, "you have %u sandboxes already, which is your quota", f->quota);
	f->counters.refused++;
	return false;
}

bool control_admit(struct front *f, const char *owner, unsigned *ret_status, char ret_why[128])
{
	if (!is_within_quota(f, owner, ret_status, ret_why))
		return false;
	*ret_status = 503;
	if (f->sandbox_count >= f->most && !pool_give_way(f)) {
		snprintf(ret_why, 128, "the server has %u sandboxes already, and takes no more",
			 f->most);
	} else if (2 * (f->sandbox_count + 1) + 2 * SPARE_FDS > f->descriptors) {
		snprintf(ret_why, 128, "the server may have only %u descriptors, too few for more",
			 f->descriptors);
	} else if (!control_has_memory(f)) {
		snprintf(ret_why, 128, "the server has too little memory left for a new sandbox");
	} else if (f->jobs_used > JOBS_MAX / 2) {
		snprintf(ret_why, 128, "too many sandboxes are being started");
	} else {
		return true;
	}
	f->counters.refused++;
	return false;
}

/* What a request calls a template may be a snapshot of the client's, which comes first. What was
 * taken away from the sandbox that it was made of does not come back. */
static bool use_snapshot(struct conn *c, struct sandbox *s, struct create *q)
{
	const struct snapshot *n = snapshot_find(c->front, c->owner, q->template);
	struct buf both = { 0 };

	if (!n || !access_sees_snapshot(c, n))
		return route_read_template(q->template, s->template);
	memcpy(s->template, n->template, sizeof(s->template));
	memcpy(s->snapshot, n->id, sizeof(s->snapshot));
	q->no_network |= n->no_network;
	buf_add(&both, buf_text(&n->config), n->config.len);
	buf_add(&both, buf_text(&q->config), q->config.len);
	buf_free(&q->config);
	q->config = both;
	return !both.failed && both.len <= CONFIG_MAX;
}

/* Its template and labels are those that the credential is for. */
static bool may_create(struct conn *c, const struct sandbox *s, const struct create *q)
{
	const struct access_what what = { .owner = c->owner,
					  .sandbox = "",
					  .labels = q->metadata.len ? q->metadata.data : NULL,
					  .template = s->template,
					  .engine = templates_engine(c->front, s->template) };

	return access_require(c, RIGHT_CREATE, &what);
}

static void answer_sandbox(struct conn *c, unsigned status, const struct sandbox *s)
{
	auto_buf body = { 0 };
	struct json j = { .out = &body };

	show_sandbox(c, s, NULL, &j);
	conn_answer(c, status, "application/json", &body, NULL);
}

static void created(struct conn *c, int result, const char *text)
{
	struct sandbox *s = sandbox_find(c->front, c->sandbox);

	if (result == -ENOENT)
		conn_refuse(c, 404, "%s", text);
	else if (result < 0 || !s)
		conn_refuse(c, 500, "the sandbox was not started: %s", text);
	else
		answer_sandbox(c, 201, s);
}

/* Makes it the client's. */
static void fill(struct conn *c, struct sandbox *s, struct create *q)
{
	int64_t usual_s = c->verb == ROUTE_create_v2 ? TIMEOUT_V2_S : TIMEOUT_V1_S;

	memcpy(s->owner, c->owner, sizeof(s->owner));
	s->started_ms = front_now_ms();
	s->end_ms = s->started_ms + 1000 * (q->timeout_s > 0 ? q->timeout_s : usual_s);
	s->auto_pause = q->auto_pause;
	s->auto_resume = q->auto_resume;
	s->private_traffic = q->private_traffic;
	s->pause_files = q->pause_files;
	s->mask_host = q->mask_host.len ? buf_take(&q->mask_host) : NULL;
	s->no_network = q->no_network;
	s->internet = q->internet;
	s->metadata = q->metadata.len ? buf_take(&q->metadata) : NULL;
	s->config = q->config;
	q->config = (struct buf){ 0 };
	memcpy(c->sandbox, s->id, sizeof(s->id));
}

static void start_new(struct conn *c, const struct sandbox *wanted, struct create *q)
{
	struct front *f = c->front;
	char id[SANDBOX_ID + 1], why[128];
	struct sandbox *s;
	unsigned status;

	if (!control_admit(f, c->owner, &status, why)) {
		conn_refuse(c, status, "%s", why);
		return;
	}
	s = sandbox_make_id(f, id) ? sandbox_new(f) : NULL;
	if (!s) {
		conn_refuse(c, 500, "out of memory");
		return;
	}
	memcpy(s->id, id, sizeof(id));
	memcpy(s->template, wanted->template, sizeof(s->template));
	memcpy(s->snapshot, wanted->snapshot, sizeof(s->snapshot));
	fill(c, s, q);
	sandbox_tokens(f, s);
	if (registry_put(f, s) < 0 || sandbox_start(f, s) < 0) {
		sandbox_remove(f, s, "it was not started");
		conn_refuse(c, 503, "the server is busy, or cannot write its registry");
	} else {
		sandbox_wait(s, c, created);
	}
}

/* It is there already: it only has to become the client's, in the registry first. */
static void hand_over(struct conn *c, struct sandbox *s, struct create *q)
{
	fill(c, s, q);
	if (registry_put(c->front, s) < 0) {
		sandbox_end(c->front, s, "the registry cannot be written");
		conn_refuse(c, 503, "the registry cannot be written");
		return;
	}
	link_configure(s->link);
	sandbox_handed_over(c->front, s);
	answer_sandbox(c, 201, s);
}

static void create(struct conn *c)
{
	struct front *f = c->front;
	struct sandbox wanted = { 0 }, *s = NULL;
	struct create q = { 0 };
	char why[128];
	unsigned status;

	if (!control_read_create((const uint8_t *)buf_text(&c->body), c->body.len, &q)) {
		conn_refuse(c, q.status, "%s", q.wrong);
	} else if (!is_within_quota(f, c->owner, &status, why)) {
		conn_refuse(c, status, "%s", why);
	} else if (!use_snapshot(c, &wanted, &q)) {
		conn_refuse(c, 400, "envVars, with those of the snapshot, are larger than 24 KiB");
	} else if (may_create(c, &wanted, &q)) {
		if (!*wanted.snapshot)
			s = pool_take(f, c->owner, wanted.template, q.no_network);
		if (s)
			hand_over(c, s, &q);
		else
			start_new(c, &wanted, &q);
	}
	control_free_create(&q);
}

/* -- one sandbox */

static void info(struct conn *c)
{
	struct sandbox *s = control_find_mine(c);
	auto_buf body = { 0 };
	struct json j = { .out = &body };

	if (!s)
		return;
	show_detail(c, s, false, &j);
	conn_answer(c, 200, "application/json", &body, NULL);
}

static void do_kill(struct conn *c)
{
	struct sandbox *s = control_find_mine(c);

	if (!s)
		return;
	c->front->counters.killed++;
	sandbox_end(c->front, s, "a client asked for it");
	conn_answer(c, 204, NULL, NULL, NULL);
}

static bool read_small(struct conn *c, struct small_request *q)
{
	if (control_read_small((const uint8_t *)buf_text(&c->body), c->body.len, q))
		return true;
	conn_refuse(c, 400, "the body is not JSON of the form that this call has");
	return false;
}

static void set_timeout(struct conn *c, bool only_longer, int64_t usual_s)
{
	struct small_request q;
	struct sandbox *s = control_find_mine(c);
	int64_t end;

	if (!s || !read_small(c, &q))
		return;
	if (q.timeout_s < 0 && usual_s < 0) {
		conn_refuse(c, 400, "timeout is missing");
		return;
	}
	end = front_now_ms() + 1000 * (q.timeout_s < 0 ? usual_s : q.timeout_s);
	if (!only_longer || end > s->end_ms)
		s->end_ms = end;
	if (registry_put(c->front, s) < 0)
		conn_refuse(c, 503, "the registry cannot be written");
	else
		conn_answer(c, 204, NULL, NULL, NULL);
}

static void connected(struct conn *c, int result, const char *text)
{
	struct sandbox *s = sandbox_find(c->front, c->sandbox);
	int64_t end = front_now_ms() + c->wanted_timeout_ms;

	if (!s || s->state == SANDBOX_ENDING) {
		conn_refuse(c, 404, "sandbox \"%s\" was not found", c->sandbox);
		return;
	}
	if (result < 0 || s->state != SANDBOX_RUNNING) {
		conn_refuse(c, 500, "the sandbox was not resumed: %s", text);
		return;
	}
	if (c->wanted_timeout_ms && (c->resumed || end > s->end_ms)) {
		s->end_ms = end;
		(void)!registry_put(c->front, s);
	}
	answer_sandbox(c, c->resumed ? 201 : 200, s);
}

static void connect_to(struct conn *c, bool legacy)
{
	struct small_request q;
	struct sandbox *s = control_find_mine(c);

	if (!s || !read_small(c, &q))
		return;
	c->wanted_timeout_ms = 1000 * (q.timeout_s > 0 ? q.timeout_s
				       : legacy        ? TIMEOUT_V1_S
						       : TIMEOUT_V2_S);
	c->resumed = s->state == SANDBOX_PAUSED;
	if (legacy && !c->resumed)
		conn_refuse(c, 409, "sandbox \"%s\" is running already", c->sandbox);
	else if (!c->resumed && !s->busy)
		connected(c, 0, "");
	else if (!s->busy && sandbox_resume(c->front, s, q.memory == 0) < 0)
		conn_refuse(c, 503, "the server is busy");
	else
		sandbox_wait(s, c, connected);
}

static void paused(struct conn *c, int result, const char *text)
{
	struct sandbox *s = sandbox_find(c->front, c->sandbox);

	if (result < 0 || !s || s->state != SANDBOX_PAUSED)
		conn_refuse(c, 500, "the sandbox was not paused: %s", text);
	else
		conn_answer(c, 204, NULL, NULL, NULL);
}

static void pause_it(struct conn *c)
{
	struct small_request q;
	struct sandbox *s = control_find_mine(c);

	if (!s || !read_small(c, &q))
		return;
	if (s->state == SANDBOX_PAUSED)
		conn_refuse(c, 409, "sandbox \"%s\" is paused already", c->sandbox);
	else if (sandbox_pause(c->front, s, q.memory == 0) < 0)
		conn_refuse(c, 503, "the server is busy with this sandbox");
	else
		sandbox_wait(s, c, paused);
}

static void network_cut(struct conn *c, int result, const char *text)
{
	if (result < 0)
		conn_refuse(c, 500, "the sandbox's network was not taken away: %s", text);
	else
		conn_answer(c, 204, NULL, NULL, NULL);
}

/* A change can only narrow: what was taken away does not come back while the sandbox lives. */
static void change_network(struct conn *c)
{
	struct sandbox *s = control_find_mine(c);
	struct create q = { 0 };
	bool fine;

	if (!s)
		return;
	fine = control_read_network((const uint8_t *)buf_text(&c->body), c->body.len, &q);
	if (fine) {
		s->internet = q.internet;
		s->no_network |= q.no_network && !s->networked;
	}
	if (!fine)
		conn_refuse(c, q.status, "%s", q.wrong);
	else if (!q.no_network && s->no_network && s->networked)
		conn_refuse(c, 409,
			    "the network of this sandbox was taken away, and does not come "
			    "back");
	else if (q.no_network && !s->no_network && sandbox_cut(c->front, s) < 0)
		conn_refuse(c, 503, "the server is busy with this sandbox");
	else if (q.no_network && !s->no_network)
		sandbox_wait(s, c, network_cut);
	else if (registry_put(c->front, s) < 0)
		conn_refuse(c, 503, "the registry cannot be written");
	else
		conn_answer(c, 204, NULL, NULL, NULL);
	control_free_create(&q);
}

static void healthz(struct conn *c)
{
	auto_buf body = { 0 };

	buf_puts(&body, "{\"status\":\"ok\"}");
	conn_answer(c, 200, "application/json", &body, NULL);
}

static void connect_now(struct conn *c)
{
	connect_to(c, false);
}

static void resume_now(struct conn *c)
{
	connect_to(c, true);
}

static void change_timeout(struct conn *c)
{
	set_timeout(c, false, -1);
}

static void refresh(struct conn *c)
{
	set_timeout(c, true, REFRESH_S);
}

static void (*const handlers[ROUTES])(struct conn *c) = {
	[ROUTE_create_v1] = create,
	[ROUTE_create_v2] = create,
	[ROUTE_list_v1] = control_list,
	[ROUTE_list_v2] = control_list,
	[ROUTE_info] = info,
	[ROUTE_kill] = do_kill,
	[ROUTE_connect_v1] = connect_now,
	[ROUTE_connect_v2] = connect_now,
	[ROUTE_resume] = resume_now,
	[ROUTE_pause] = pause_it,
	[ROUTE_timeout] = change_timeout,
	[ROUTE_refreshes] = refresh,
	[ROUTE_metrics] = control_metrics,
	[ROUTE_network] = change_network,
	[ROUTE_logs_v1] = control_logs,
	[ROUTE_logs_v2] = control_logs,
	[ROUTE_snapshot] = control_snapshot,
	[ROUTE_snapshots] = control_snapshots,
	[ROUTE_drop_snapshot] = control_drop_snapshot,
	[ROUTE_fork] = control_fork,
	[ROUTE_template_alias] = control_template_alias,
	[ROUTE_templates] = control_templates,
	[ROUTE_events] = control_events,
	[ROUTE_approvals] = control_approvals,
	[ROUTE_approve] = control_approve,
	[ROUTE_stop] = control_stop,
	[ROUTE_openapi] = control_openapi,
	[ROUTE_token_create] = control_token_create,
	[ROUTE_tokens] = control_tokens,
	[ROUTE_token_revoke] = control_token_revoke,
	[ROUTE_audit] = control_audit,
	[ROUTE_healthz] = healthz,
	[ROUTE_server_metrics] = control_server_metrics,
};

void control_run(struct conn *c)
{
	if (handlers[c->verb])
		handlers[c->verb](c);
	else
		conn_refuse(c, 501, "not implemented");
}
