/*
 * Numbers: of one sandbox, for its owner, and of the server, for Prometheus. In: what ward measures
 * of a box, which the keeper passes on as ward's own JSON. Out: E2B's form of it, and a text.
 */
#include <string.h>

#include "daemon/pool.h"
#include "envd/query.h"

#define RANGE_SLACK_S 10 /* a client's clock, and seconds without their fractions */

static uint64_t number(const char *json, const char *key)
{
	char name[64];
	const char *at;

	snprintf(name, sizeof(name), "\"%s\":", key);
	at = strstr(json, name);
	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* Of all processors, since the last time or, at first, since the sandbox's start. */
static uint64_t cpu_percent(const struct front *f, struct sandbox *s, const char *text)
{
	uint64_t cpu = number(text, "cpu_ms"), uptime = number(text, "uptime_ms"), used, time;

	if (cpu < s->cpu_ms || uptime < s->uptime_ms)
		s->cpu_ms = s->uptime_ms = 0;
	used = cpu - s->cpu_ms;
	time = (uptime - s->uptime_ms) * (f->cpus ? f->cpus : 1);
	s->cpu_ms = cpu;
	s->uptime_ms = uptime;
	return time ? (100 * used + time / 2) / time : 0;
}

/* One measurement answers all who wait for one. */
static void measured(struct front *f, struct job *j, int result, const char *text, int fds[2])
{
	struct sandbox *s = sandbox_find(f, j->q.id);
	auto_buf body = { 0 };
	struct json out = { .out = &body };

	(void)fds;
	if (!s)
		return;
	json_begin_array(&out, NULL);
	if (result == 0) {
		json_begin_object(&out, NULL);
		show_time(&out, "timestamp", front_now_ms());
		json_int(&out, "timestampUnix", front_now_ms() / 1000);
		json_uint(&out, "cpuCount", f->cpus);
		json_uint(&out, "cpuUsedPct", cpu_percent(f, s, text));
		json_uint(&out, "memUsed", number(text, "memory_bytes"));
		json_uint(&out, "memTotal", (uint64_t)s->memory_mib << 20);
		json_uint(&out, "memCache", 0);
		json_uint(&out, "diskUsed", number(text, "disk_bytes"));
		json_uint(&out, "diskTotal", (uint64_t)s->disk_mib << 20);
		json_end_object(&out);
	}
	json_end_array(&out);
	while (s->measuring) {
		struct conn *c = s->measuring;

		s->measuring = c->next_waiting;
		conn_answer(c, 200, "application/json", &body, NULL);
	}
}

/* Seconds of the calendar in the query; -1: they are not there. */
static int64_t seconds_of(const struct conn *c, const char *name)
{
	auto_buf text = { 0 };

	if (query_get(c->http.req.query.s, c->http.req.query.n, name, &text) <= 0 || !text.len)
		return -1;
	return text.data[strspn(text.data, "0123456789")] || text.len > 12
		       ? -1
		       : strtoll(text.data, NULL, 10);
}

/* The numbers are those of now: a range of time has them if now is in it, or close to it. */
static bool wants_now(const struct conn *c)
{
	int64_t now = front_now_ms() / 1000, start = seconds_of(c, "start"),
		end = seconds_of(c, "end");

	return start <= now + RANGE_SLACK_S && (end < 0 || now <= end + RANGE_SLACK_S);
}

/* Beside what else is under way with the sandbox: who polls its numbers holds nobody up. */
void control_metrics(struct conn *c)
{
	struct sandbox *s = control_find_mine(c);
	auto_buf none = { 0 };

	if (!s)
		return;
	if (!wants_now(c)) {
		buf_puts(&none, "[]");
		conn_answer(c, 200, "application/json", &none, NULL);
		return;
	}
	if (!s->measuring && !jobs_ask(c->front, KEEPER_STATS, s, measured)) {
		conn_refuse(c, 503, "the server is busy");
		return;
	}
	c->state = CONN_WAIT;
	c->next_waiting = s->measuring;
	s->measuring = c;
	conn_flush(c);
}

/* -- the server */

void control_server_metrics(struct conn *c)
{
	const struct front *f = c->front;
	const struct counters *n = &f->counters;
	unsigned running = 0, stopped = 0;
	auto_buf out = { 0 };

	for (const struct sandbox *s = f->sandboxes; s; s = s->next) {
		running += s->state == SANDBOX_RUNNING;
		stopped += s->state == SANDBOX_PAUSED;
	}
	buf_printf(&out,
		   "# HELP ward_sandboxes Sandboxes by state.\n# TYPE ward_sandboxes gauge\n"
		   "ward_sandboxes{state=\"running\"} %u\nward_sandboxes{state=\"paused\"} %u\n"
		   "# HELP ward_connections Open connections of clients.\n"
		   "# TYPE ward_connections gauge\nward_connections %zu\n",
		   running, stopped, f->conn_count);
	buf_puts(&out, "# HELP ward_sandbox_events_total What happened to sandboxes.\n"
		       "# TYPE ward_sandbox_events_total counter\n");
	buf_printf(&out,
		   "ward_sandbox_events_total{event=\"created\"} %llu\n"
		   "ward_sandbox_events_total{event=\"killed\"} %llu\n"
		   "ward_sandbox_events_total{event=\"expired\"} %llu\n"
		   "ward_sandbox_events_total{event=\"paused\"} %llu\n"
		   "ward_sandbox_events_total{event=\"resumed\"} %llu\n"
		   "ward_sandbox_events_total{event=\"refused\"} %llu\n"
		   "ward_sandbox_events_total{event=\"lost\"} %llu\n"
		   "ward_sandbox_events_total{event=\"snapshot\"} %llu\n"
		   "ward_sandbox_events_total{event=\"forked\"} %llu\n",
		   (unsigned long long)n->created, (unsigned long long)n->killed,
		   (unsigned long long)n->expired, (unsigned long long)n->paused,
		   (unsigned long long)n->resumed, (unsigned long long)n->refused,
		   (unsigned long long)n->lost, (unsigned long long)n->snapshots,
		   (unsigned long long)n->forks);
	buf_puts(&out, "# HELP ward_http_requests_total Answers by class of status.\n"
		       "# TYPE ward_http_requests_total counter\n");
	for (size_t i = 2; i < ARRAY_LEN(n->requests); i++)
		buf_printf(&out, "ward_http_requests_total{class=\"%zuxx\"} %llu\n", i,
			   (unsigned long long)n->requests[i]);
	buf_printf(&out,
		   "# HELP ward_sandbox_start_seconds Time of starts.\n"
		   "# TYPE ward_sandbox_start_seconds summary\n"
		   "ward_sandbox_start_seconds_sum %.6f\nward_sandbox_start_seconds_count %llu\n",
		   (double)n->start_us / 1e6, (unsigned long long)n->starts);
	pool_metrics(f, &out);
	conn_answer(c, 200, "text/plain; version=0.0.4; charset=utf-8", &out, NULL);
}
