/*
 * ward audit metrics: numbers for Prometheus. In: all journals and their index. Out: the text
 * format, on standard output or as a file for the textfile collector of the node exporter.
 * Everything is counted anew each time, from what is on record: there is no daemon that could have
 * forgotten something. A journal that was pruned counts no more, which Prometheus takes for a
 * reset. Run by ward-audit.
 */
#include "cli/audit/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/escape.h"
#include "audit/sink_state.h"
#include "base/io.h"
#include "event/event.h"

enum outcome { RUN_OK, RUN_FAILED, RUN_LIMITED, RUN_REFUSED, OUTCOMES };

static const double buckets[] = { 0.01, 0.1, 1, 10, 60, 600, 3600, 36000 };

#define LIMIT_NAMES 24

struct metrics {
	uint64_t events[EVENT_KINDS][EVENT_ACTIONS]; /* as often as they happened */
	uint64_t outcomes[OUTCOMES];
	uint64_t bytes_in, bytes_out, cpu_ms, duration_ms, memory_peak, lost, ended;
	uint64_t in_bucket[ARRAY_LEN(buckets)];
	struct {
		char name[32];
		uint64_t count;
	} limits[LIMIT_NAMES];
	size_t limit_count;
	uint64_t journals, live, journal_events, journal_bytes, checkpoint_us;
};

static uint64_t number_of(const struct ward_event *v, enum event_field f, uint64_t fallback)
{
	const struct event_value *value = event_get(v, f);

	return value ? value->number : fallback;
}

static void see_limit(struct metrics *m, const struct ward_event *v)
{
	const struct event_value *object = event_get(v, FIELD_OBJECT);
	char name[32];
	size_t i = 0;

	snprintf(name, sizeof(name), "%.*s",
		 object ? (int)(object->len < 31 ? object->len : 31) : 0,
		 object ? object->text : "");
	while (i < m->limit_count && strcmp(m->limits[i].name, name) != 0)
		i++;
	if (i == LIMIT_NAMES)
		return;
	if (i == m->limit_count)
		memcpy(m->limits[m->limit_count++].name, name, sizeof(name));
	m->limits[i].count++;
}

static void see_end(struct metrics *m, const struct ward_event *v)
{
	uint64_t ms = number_of(v, FIELD_DURATION_MS, 0), peak = number_of(v, FIELD_MEMORY_PEAK, 0);

	m->outcomes[v->action == ACTION_DENY      ? RUN_LIMITED
		    : number_of(v, FIELD_EXIT, 0) ? RUN_FAILED
						  : RUN_OK]++;
	m->ended++;
	m->duration_ms += ms;
	m->cpu_ms += number_of(v, FIELD_CPU_MS, 0);
	m->bytes_in += number_of(v, FIELD_BYTES_IN, 0);
	m->bytes_out += number_of(v, FIELD_BYTES_OUT, 0);
	m->memory_peak = peak > m->memory_peak ? peak : m->memory_peak;
	for (size_t i = 0; i < ARRAY_LEN(buckets); i++)
		m->in_bucket[i] += (double)ms / 1000 <= buckets[i];
}

static void see(void *with, const struct ward_event *v)
{
	struct metrics *m = with;

	m->events[v->kind][v->action] += number_of(v, FIELD_COUNT, 1);
	if (v->kind == EVENT_RUN_END)
		see_end(m, v);
	else if (v->kind == EVENT_RUN_REFUSED)
		m->outcomes[RUN_REFUSED]++;
	else if (v->kind == EVENT_LIMIT || v->kind == EVENT_NET_LIMIT)
		see_limit(m, v);
	else if (v->kind == EVENT_JOURNAL_GAP)
		m->lost += number_of(v, FIELD_LOST, 0);
	else if (v->kind == EVENT_JOURNAL_CHECKPOINT)
		m->checkpoint_us = v->time_us;
}

/* What the index has of runs is seen once, with the index. */
static void see_run(void *with, const struct ward_event *v)
{
	struct metrics *m = with;

	if (v->seq)
		m->journal_events++;
	see(with, v);
}

static void count_run(struct metrics *m, int audit_fd, const char *run)
{
	static char scratch[EVENT_LINE_MAX];
	auto_strv files = { 0 };
	bool live;

	m->journals++;
	lines_files(audit_fd, run, &files, &live);
	m->live += live;
	for (size_t i = 0; i < files.len; i++) {
		struct ward_event v;
		const char *line;
		struct lines l;
		struct stat st;
		size_t n;

		if (lines_open(&l, audit_fd, files.items[i]) < 0)
			continue;
		m->journal_bytes += fstat(l.fd, &st) == 0 ? (uint64_t)st.st_size : 0;
		while (lines_next(&l, &line, &n) > 0)
			if (event_decode(line, n, scratch, &v, NULL))
				see_run(m, &v);
		lines_close(&l);
	}
}

/* -- the text */

static void put_head(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_one(struct buf *out, const char *name, const char *type, const char *help,
		    uint64_t value)
{
	put_head(out, name, type, help);
	buf_printf(out, "%s %" PRIu64 "\n", name, value);
}

static void put_ms(struct buf *out, const char *name, uint64_t ms)
{
	buf_printf(out, "%s %" PRIu64 ".%03u\n", name, ms / 1000, (unsigned)(ms % 1000));
}

static void put_runs(const struct metrics *m, struct buf *out)
{
	static const char names[][8] = { "ok", "failed", "limit", "refused" };

	put_head(out, "ward_runs_total", "counter", "Runs that have ended, by outcome.");
	for (unsigned i = 0; i < OUTCOMES; i++)
		buf_printf(out, "ward_runs_total{outcome=\"%s\"} %" PRIu64 "\n", names[i],
			   m->outcomes[i]);
	put_one(out, "ward_runs_live", "gauge",
		"Runs whose journal is being written, or whose writer was killed.", m->live);
	put_head(out, "ward_run_duration_seconds", "histogram", "Duration of runs.");
	for (size_t i = 0; i < ARRAY_LEN(buckets); i++)
		buf_printf(out, "ward_run_duration_seconds_bucket{le=\"%g\"} %" PRIu64 "\n",
			   buckets[i], m->in_bucket[i]);
	buf_printf(out, "ward_run_duration_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n", m->ended);
	put_ms(out, "ward_run_duration_seconds_sum", m->duration_ms);
	buf_printf(out, "ward_run_duration_seconds_count %" PRIu64 "\n", m->ended);
	put_head(out, "ward_run_cpu_seconds_total", "counter", "CPU time of runs that have ended.");
	put_ms(out, "ward_run_cpu_seconds_total", m->cpu_ms);
	put_one(out, "ward_run_memory_peak_bytes", "gauge", "Peak memory of a single run.",
		m->memory_peak);
	put_one(out, "ward_egress_bytes_total", "counter", "Bytes sent by sandboxes.",
		m->bytes_out);
	put_one(out, "ward_ingress_bytes_total", "counter",
		"Bytes received by sandboxes over the network.", m->bytes_in);
}

static void put_events(const struct metrics *m, struct buf *out)
{
	put_head(out, "ward_events_total", "counter", "Events, by kind and action.");
	for (unsigned k = 0; k < EVENT_KINDS; k++)
		for (unsigned a = 0; a < EVENT_ACTIONS; a++)
			if (m->events[k][a])
				buf_printf(out,
					   "ward_events_total{kind=\"%s\",action=\"%s\"} %" PRIu64
					   "\n",
					   event_kind_name((enum event_kind)k),
					   event_action_name((enum event_action)a),
					   m->events[k][a]);
	put_head(out, "ward_denials_total", "counter", "Denials, by kind.");
	for (unsigned k = 0; k < EVENT_KINDS; k++)
		if (m->events[k][ACTION_DENY] && k != EVENT_RUN_END)
			buf_printf(out, "ward_denials_total{kind=\"%s\"} %" PRIu64 "\n",
				   event_kind_name((enum event_kind)k), m->events[k][ACTION_DENY]);
	put_head(out, "ward_limits_hit_total", "counter", "Limits that runs reached.");
	for (size_t i = 0; i < m->limit_count; i++) {
		buf_puts(out, "ward_limits_hit_total{limit=\"");
		escape_label(out, m->limits[i].name, strlen(m->limits[i].name));
		buf_printf(out, "\"} %" PRIu64 "\n", m->limits[i].count);
	}
}

static void put_sinks(int audit_fd, struct buf *out)
{
	auto_strv names = { 0 };
	uint64_t records = 0, events = 0;
	char run[48];

	sink_state_list(audit_fd, &names);
	for (size_t i = 0; i < names.len; i++) {
		auto_buf text = { 0 };
		char path[PLACE_NAME];

		snprintf(path, sizeof(path), SINK_DIR "/%.60s", names.items[i]);
		if (!sink_state_run(names.items[i], run) ||
		    io_read_file(audit_fd, path, SINK_LINE_MAX, &text) < 0 || text.len < 20)
			continue;
		records++;
		events += sink_state_left(audit_fd, run, strtoull(text.data, NULL, 10));
	}
	put_one(out, "ward_sinks_pending", "gauge", "Sinks with undelivered events.", records);
	put_one(out, "ward_sinks_pending_events", "gauge", "Events not yet delivered to sinks.",
		events);
}

static void put_journals(const struct metrics *m, struct buf *out)
{
	uint64_t now = event_now_us();

	put_one(out, "ward_journals", "gauge", "Number of journals.", m->journals);
	put_one(out, "ward_journal_bytes", "gauge", "Size of the journals.", m->journal_bytes);
	put_one(out, "ward_journal_events", "gauge", "Events in the journals.", m->journal_events);
	put_one(out, "ward_journal_lost_events_total", "counter",
		"Events that could not be written, counted instead.", m->lost);
	put_head(out, "ward_journal_signed_timestamp_seconds", "gauge",
		 "Time of the last signature of the index; 0: never.");
	put_ms(out, "ward_journal_signed_timestamp_seconds", m->checkpoint_us / 1000);
	put_head(out, "ward_journal_lag_seconds", "gauge",
		 "Age of the last signature; 0: there is none.");
	put_ms(out, "ward_journal_lag_seconds",
	       m->checkpoint_us && now > m->checkpoint_us ? (now - m->checkpoint_us) / 1000 : 0);
}

int audit_metrics(struct options *o, int audit_fd)
{
	struct metrics *m = calloc(1, sizeof(*m));
	struct audit_out file = { 0 };
	struct ward_err e = { 0 };
	auto_strv runs = { 0 };
	auto_buf out = { 0 };

	if (!m || lines_runs(audit_fd, &runs, &e) < 0 ||
	    audit_out_open(&file, o->output, false, &e) < 0) {
		free(m);
		return say_error(&e, o->json, EXIT_REFUSED);
	}
	file.shared = true; /* numbers only, for a collector that runs as another user */
	for (size_t i = 0; i < runs.len; i++)
		count_run(m, audit_fd, runs.items[i]);
	audit_each(audit_fd, NULL, see, m);
	put_head(&out, "ward_build_info", "gauge", "The version of ward.");
	buf_puts(&out, "ward_build_info{version=\"" WARD_VERSION "\"} 1\n");
	put_runs(m, &out);
	put_events(m, &out);
	put_journals(m, &out);
	put_sinks(audit_fd, &out);
	free(m);
	audit_out_write(&file, &out);
	return audit_out_close(&file, &e) < 0 ? say_error(&e, o->json, EXIT_REFUSED) : EXIT_FINE;
}
