/*
 * ward audit show: the events of a run, as a timeline for people or as they are (--json). In: its
 * journal, and what the index says of it after its end. Out: standard output. Everything in an
 * event that a sandbox chose is escaped on its way to a terminal. Run by ward-audit.
 */
#include "cli/audit/parts.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "audit/tail.h"
#include "base/io.h"
#include "base/text.h"
#include "event/event.h"

#define FOLLOW_MS 100

struct show {
	struct audit_filter filter;
	bool json, colour;
	uint64_t from_us; /* times are shown relative to it */
	struct buf out;
	bool failed; /* the reader is gone */
};

static const char *colour_of(const struct show *s, const struct ward_event *v)
{
	static const char *const by_severity[] = {
		"", "", "", "\033[33m", "\033[31m", "\033[1;31m"
	};

	if (!s->colour)
		return "";
	return v->action == ACTION_DENY  ? "\033[31m"
	       : v->action == ACTION_ASK ? "\033[33m"
					 : by_severity[event_severity(v)];
}

static void put_text(struct buf *out, const struct event_value *value)
{
	for (size_t at = 0; at < value->len; at += strlen(value->text + at) + 1) {
		if (at)
			buf_puts(out, " ");
		text_escape(out, value->text + at);
	}
}

static void put_value(struct buf *out, const struct event_value *value)
{
	enum event_field f = (enum event_field)value->field;

	if (event_field_type(f) == EVENT_FLAG) {
		buf_printf(out, " %s", event_field_name(f));
		return;
	}
	buf_printf(out, " %s=", event_field_name(f));
	if (event_field_type(f) == EVENT_NUMBER)
		buf_printf(out, "%" PRIu64, value->number);
	else
		put_text(out, value);
}

/* Whether the line leaves it out: it shows it elsewhere, or it is of no use to a reader. */
static bool is_left_out(const struct event_value *value)
{
	enum event_field f = (enum event_field)value->field;

	if (event_field_type(f) == EVENT_LIST && !value->len)
		return true;
	return f == FIELD_OBJECT || f == FIELD_WHY || f == FIELD_REMEDY || f == FIELD_LAYERS;
}

/*  "   +1.234  deny   net.connect       api.example.com:443  rule=... : why" */
static void put_event(struct show *s, const struct ward_event *v)
{
	uint64_t since = v->time_us > s->from_us ? v->time_us - s->from_us : 0;
	const struct event_value *object = event_get(v, FIELD_OBJECT),
				 *why = event_get(v, FIELD_WHY),
				 *remedy = event_get(v, FIELD_REMEDY);
	const char *colour = colour_of(s, v);

	buf_printf(&s->out, "%9" PRIu64 ".%03u  %s%-7s %-16s%s ", since / 1000000,
		   (unsigned)(since / 1000 % 1000), colour,
		   event_action_name((enum event_action)v->action),
		   event_kind_name((enum event_kind)v->kind), *colour ? "\033[0m" : "");
	if (object)
		put_text(&s->out, object);
	for (size_t i = 0; i < v->count; i++)
		if (!is_left_out(&v->values[i]))
			put_value(&s->out, &v->values[i]);
	if (why) {
		buf_puts(&s->out, ": ");
		put_text(&s->out, why);
	}
	buf_puts(&s->out, "\n");
	if (remedy && remedy->len) {
		buf_puts(&s->out, "               remedy: ");
		put_text(&s->out, remedy);
		buf_puts(&s->out, "\n");
	}
}

static void write_out(struct show *s)
{
	if (s->out.len && io_write_all(STDOUT_FILENO, s->out.data, s->out.len) < 0)
		s->failed = true;
	s->out.len = 0;
}

static void show_line(struct show *s, const char *line, size_t n, const char *only_run)
{
	static char scratch[EVENT_LINE_MAX];
	struct ward_event v;

	if (!event_decode(line, n, scratch, &v, NULL)) {
		if (!s->json && !only_run)
			buf_puts(&s->out, "  (unreadable line; see ward audit verify)\n");
		return;
	}
	if (only_run && (!v.run || strcmp(v.run, only_run) != 0 ||
			 strncmp(event_kind_name((enum event_kind)v.kind), "journal.", 8) == 0))
		return;
	if (!audit_filter_passes(&s->filter, &v) ||
	    (v.kind == EVENT_RUN_SAMPLE && !s->json && !s->filter.kinds))
		return; /* samples are for plots */
	if (s->json)
		buf_add(&s->out, line, n);
	else
		put_event(s, &v);
	if (s->out.len > 65536)
		write_out(s);
}

static void show_file(struct show *s, int audit_fd, const char *name, const char *only_run)
{
	const char *line;
	struct lines l;
	size_t n;

	if (lines_open(&l, audit_fd, name) < 0)
		return;
	while (!s->failed && lines_next(&l, &line, &n) > 0)
		show_line(s, line, n, only_run);
	lines_close(&l);
}

/* Goes on until the run has ended. */
static void follow_run(struct show *s, int audit_fd, const char *run)
{
	const struct timespec moment = { .tv_nsec = FOLLOW_MS * 1000000L };
	enum tail_state state;
	struct tail tail;
	const char *line;
	size_t n;

	tail_begin(&tail, audit_fd, run);
	while (!s->failed &&
	       ((state = tail_next(&tail, &line, &n)) == TAIL_LINE || state == TAIL_WAIT)) {
		if (state == TAIL_LINE) {
			show_line(s, line, n, NULL);
			continue;
		}
		write_out(s);
		nanosleep(&moment, NULL);
	}
	tail_close(&tail);
}

static void put_head(struct show *s, int audit_fd, const char *run)
{
	static char scratch[EVENT_LINE_MAX];
	const struct event_value *argv, *workspace;
	char time[EVENT_TIME_TEXT];
	struct ward_event v;

	if (!audit_first(audit_fd, run, scratch, &v))
		return;
	s->from_us = v.time_us;
	if (s->json)
		return;
	event_time_text(v.time_us, time);
	buf_printf(&s->out, "%srun %s%s  %s", s->colour ? "\033[1m" : "", run,
		   s->colour ? "\033[0m" : "", time);
	argv = event_get(&v, FIELD_ARGV);
	workspace = event_get(&v, FIELD_WORKSPACE);
	if (workspace) {
		buf_puts(&s->out, "  in ");
		put_text(&s->out, workspace);
	}
	if (argv) {
		buf_puts(&s->out, "  $ ");
		put_text(&s->out, argv);
	}
	buf_puts(&s->out, "\n");
}

static void show_run(struct show *s, int audit_fd, const char *run, bool follow)
{
	auto_strv files = { 0 }, index = { 0 };
	bool live, unused;

	put_head(s, audit_fd, run);
	lines_files(audit_fd, run, &files, &live);
	if (follow && live)
		follow_run(s, audit_fd, run);
	for (size_t i = 0; i < files.len && !s->failed && !(follow && live); i++)
		show_file(s, audit_fd, files.items[i], NULL);
	lines_files(audit_fd, NULL, &index, &unused);
	for (size_t i = 0; i < index.len && !s->failed; i++)
		show_file(s, audit_fd, index.items[i], run);
	write_out(s);
}

int audit_show(struct options *o, int audit_fd)
{
	struct show s = { .json = o->json,
			  .colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR") && !o->json };
	auto_free char *run = NULL;
	struct ward_err e = { 0 };
	auto_strv runs = { 0 };
	int r = audit_filter_read(o, &s.filter, &e);

	if (r < 0)
		return say_error(&e, o->json, EXIT_USAGE);
	if (o->all)
		r = lines_runs(audit_fd, &runs, &e);
	else
		r = audit_find_run(audit_fd, o->words[1], &run, &e);
	if (r < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	if (run)
		strv_add(&runs, run);
	for (size_t i = 0; i < runs.len && !s.failed; i++)
		show_run(&s, audit_fd, runs.items[i], o->follow && !o->all);
	if (o->all) { /* what belongs to no run */
		auto_strv index = { 0 };
		bool unused;

		s.from_us = 0;
		lines_files(audit_fd, NULL, &index, &unused);
		for (size_t i = 0; i < index.len && s.filter.kinds; i++)
			show_file(&s, audit_fd, index.items[i], NULL);
		write_out(&s);
	}
	buf_free(&s.out);
	return EXIT_FINE;
}
