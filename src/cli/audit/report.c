/*
 * ward audit report: one run as a page for a browser. In: its journal and what the index has of it.
 * Out: one file of HTML, without scripts and without anything from elsewhere. This file gathers;
 * every table is bounded, and says how much it leaves out. Everything that a sandbox chose is
 * hostile here and is escaped where it is written (report_page.c). Run by ward-audit.
 */
#include "cli/audit/report.h"

#include <errno.h>
#include <string.h>

#include "cli/audit/parts.h"
#include "event/event.h"
#include "observe/advice.h"
#include "observe/explain.h"
#include "policy/units.h"

/* A value as text that is owned: words of a command joined by spaces, other lists by commas, no
 * NUL within. */
static char *text_of(struct run_report *r, const struct ward_event *v, enum event_field f)
{
	const struct event_value *value = event_get(v, f);
	auto_buf out = { 0 };
	char *text;

	if (!value || !value->text)
		return NULL;
	buf_puts(&out, "");
	for (size_t at = 0; at < value->len;) {
		size_t n = strnlen(value->text + at, value->len - at);

		if (at)
			buf_puts(&out, event_field_type(f) != EVENT_LIST ? "\xef\xbf\xbd"
				       : f == FIELD_ARGV                 ? " "
									 : ", ");
		buf_add(&out, value->text + at, n);
		at += n + 1;
	}
	text = buf_take(&out);
	r->failed |= !text;
	return text;
}

static uint64_t number_of(const struct ward_event *v, enum event_field f, uint64_t fallback)
{
	const struct event_value *value = event_get(v, f);

	return value ? value->number : fallback;
}

static bool same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static void free_row(struct report_row *row)
{
	for (size_t i = 0; i < ARRAY_LEN(row->texts); i++)
		free(row->texts[i]);
}

/* Adds a row, or its counts to the one that has the same texts (key of them count). Takes the
 * texts. */
static void add_row(struct run_report *r, struct report_table *t, struct report_row row, size_t key)
{
	for (size_t i = 0; i < t->len && key; i++) {
		bool equal = t->rows[i].kind == row.kind;

		for (size_t k = 0; k < key && equal; k++)
			equal = same(t->rows[i].texts[k], row.texts[k]);
		if (!equal)
			continue;
		t->rows[i].count += row.count;
		for (size_t k = 0; k < ARRAY_LEN(row.numbers); k++)
			t->rows[i].numbers[k] += row.numbers[k];
		free_row(&row);
		return;
	}
	if (t->len == (key ? REPORT_ROWS : REPORT_EVENTS)) {
		t->more += key ? row.count : 1;
		free_row(&row);
		return;
	}
	if (t->len == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 16;
		struct report_row *grown = reallocarray(t->rows, cap, sizeof(*grown));

		if (!grown) {
			r->failed = true;
			free_row(&row);
			return;
		}
		t->rows = grown;
		t->cap = cap;
	}
	t->rows[t->len++] = row;
}

static struct report_row row_of(const struct ward_event *v)
{
	return (struct report_row){ .kind = v->kind,
				    .action = v->action,
				    .severity = (uint8_t)event_severity(v),
				    .first_us = v->time_us,
				    .count = number_of(v, FIELD_COUNT, 1) };
}

/* -- what each kind says */

static void see_start(struct run_report *r, const struct ward_event *v)
{
	if (r->has_start)
		return; /* a continued run: the first one counts */
	r->has_start = true;
	r->command = text_of(r, v, FIELD_ARGV);
	r->workspace = text_of(r, v, FIELD_WORKSPACE);
	r->policy = text_of(r, v, FIELD_POLICY);
	r->profile = text_of(r, v, FIELD_PROFILE);
	r->engine = text_of(r, v, FIELD_ENGINE);
	r->network = text_of(r, v, FIELD_NETWORK);
	r->level = text_of(r, v, FIELD_LEVEL);
	r->layers = text_of(r, v, FIELD_LAYERS);
	r->absent = text_of(r, v, FIELD_ABSENT);
}

static void see_end(struct run_report *r, const struct ward_event *v)
{
	r->has_end = true;
	r->limited = v->action == ACTION_DENY;
	r->exit = number_of(v, FIELD_EXIT, 0);
	r->signal = number_of(v, FIELD_SIGNAL, 0);
	r->duration_ms += number_of(v, FIELD_DURATION_MS, 0);
	r->cpu_ms += number_of(v, FIELD_CPU_MS, 0);
	r->bytes_in += number_of(v, FIELD_BYTES_IN, 0);
	r->bytes_out += number_of(v, FIELD_BYTES_OUT, 0);
	if (number_of(v, FIELD_MEMORY_PEAK, 0) > r->memory_peak)
		r->memory_peak = number_of(v, FIELD_MEMORY_PEAK, 0);
	free(r->why);
	r->why = text_of(r, v, FIELD_WHY);
}

/* What ward explain offers, an option and a command, or words; else what the event itself says. */
static char *remedy_of(struct run_report *r, const struct ward_event *v)
{
	const struct explain_run run = { .workspace = r->workspace, .policy_file = r->policy };
	auto_explanation x = { 0 };
	auto_buf command = { 0 };

	if (!explain_is_denial(v))
		return text_of(r, v, FIELD_REMEDY);
	explain_event(v, &run, &x);
	if (x.change_count) {
		buf_puts(&command, "ward run ");
		advice_option(x.changes, x.change_count, r->policy, &command);
		buf_puts(&command, " ...\n");
	}
	explain_command(&x, &run, &command);
	r->failed |= x.failed || command.failed;
	return command.len    ? buf_take(&command)
	       : x.advice.len ? buf_take(&x.advice)
			      : text_of(r, v, FIELD_REMEDY);
}

static void see_denial(struct run_report *r, const struct ward_event *v)
{
	struct report_row row = row_of(v);
	auto_free char *exe = NULL;

	row.texts[0] = text_of(r, v, FIELD_OBJECT);
	row.texts[1] = text_of(r, v, FIELD_WHY);
	row.texts[2] = text_of(r, v, FIELD_RULE);
	row.texts[3] = remedy_of(r, v);
	add_row(r, &r->denials, row, 4);
	r->denied += number_of(v, FIELD_COUNT, 1);
	exe = text_of(r, v, FIELD_EXE);
	report_add_act(r, number_of(v, FIELD_PID, 0), number_of(v, FIELD_PPID, 0), exe, DID_REFUSE,
		       number_of(v, FIELD_COUNT, 1));
}

static unsigned what_of(const struct ward_event *v, const char *change)
{
	if (v->kind == EVENT_FILE_READ)
		return PATH_READ;
	if (v->kind == EVENT_FILE_GUARD)
		return v->action == ACTION_DENY ? PATH_REFUSED : 0;
	if (v->kind == EVENT_FILE_QUARANTINE)
		return PATH_QUARANTINED;
	if (v->kind != EVENT_FILE_CHANGE || !change)
		return 0;
	return strcmp(change, "create") == 0   ? PATH_CREATED
	       : strcmp(change, "delete") == 0 ? PATH_DELETED
	       : strcmp(change, "rename") == 0 ? PATH_RENAMED
	       : strcmp(change, "mode") == 0   ? PATH_MODE
					       : PATH_WRITTEN;
}

static void see_file(struct run_report *r, const struct ward_event *v)
{
	auto_free char *path = text_of(r, v, FIELD_OBJECT), *change = text_of(r, v, FIELD_CHANGE),
		       *exe = text_of(r, v, FIELD_EXE);
	unsigned what = what_of(v, change);
	auto_buf whole = { 0 };

	if (!path || !*path)
		return;
	if (*path != '/' && r->workspace) /* guards name it within the workspace */
		buf_puts(&whole, r->workspace);
	if (*path != '/')
		buf_puts(&whole, "/");
	buf_puts(&whole, path);
	r->failed |= whole.failed;
	if (what && !whole.failed)
		report_add_path(r, buf_text(&whole), what, exe);
	if (v->kind == EVENT_FILE_READ || v->kind == EVENT_FILE_CHANGE)
		report_add_act(r, number_of(v, FIELD_PID, 0), number_of(v, FIELD_PPID, 0), exe,
			       v->kind == EVENT_FILE_READ ? DID_READ : DID_WRITE, 1);
}

/* What was done with a review or the quarantine. */
static void see_review(struct run_report *r, const struct ward_event *v)
{
	struct report_row row = row_of(v);

	row.texts[0] = text_of(r, v, FIELD_OBJECT);
	row.texts[1] = text_of(r, v, FIELD_VIA);
	add_row(r, &r->reviews, row, 2);
}

static void see_spend(struct run_report *r, const struct ward_event *v)
{
	struct report_row row = row_of(v);
	auto_free char *cost = text_of(r, v, FIELD_COST);
	uint64_t millionths = 0;

	if (!cost || units_parse_money(cost, &millionths) < 0)
		millionths = 0;
	row.texts[0] = text_of(r, v, FIELD_OBJECT);
	row.numbers[0] = number_of(v, FIELD_TOKENS_IN, 0);
	row.numbers[1] = number_of(v, FIELD_TOKENS_OUT, 0);
	row.numbers[2] = millionths;
	if (__builtin_add_overflow(r->spent, millionths, &r->spent))
		r->spent = UINT64_MAX;
	add_row(r, &r->spends, row, 1);
}

static void see_net(struct run_report *r, const struct ward_event *v)
{
	struct report_row row = row_of(v);

	row.texts[0] = text_of(r, v, FIELD_HOST);
	if (!row.texts[0])
		row.texts[0] = text_of(r, v, FIELD_OBJECT);
	row.kind = EVENT_CONNECT; /* one row for a host, whatever kinds of events name it */
	row.count = v->kind == EVENT_CONNECT && v->action != ACTION_DENY ? row.count : 0;
	row.numbers[0] = v->kind == EVENT_CLOSE ? number_of(v, FIELD_BYTES_OUT, 0) : 0;
	row.numbers[1] = v->kind == EVENT_CLOSE ? number_of(v, FIELD_BYTES_IN, 0) : 0;
	row.numbers[2] = v->action == ACTION_DENY ? number_of(v, FIELD_COUNT, 1) : 0;
	add_row(r, &r->hosts, row, 1);
}

static void see_program(struct run_report *r, const struct ward_event *v)
{
	report_add_exec(r, number_of(v, FIELD_PID, 0), number_of(v, FIELD_PPID, 0),
			text_of(r, v, FIELD_OBJECT), text_of(r, v, FIELD_ARGV), v->time_us);
}

static void see_sample(struct run_report *r, const struct ward_event *v)
{
	struct report_sample *s = &r->samples[r->sample_count];

	if (r->sample_count == REPORT_SAMPLES)
		return;
	*s = (struct report_sample){ .ms = number_of(v, FIELD_DURATION_MS, 0),
				     .cpu_ms = number_of(v, FIELD_CPU_MS, 0),
				     .memory = number_of(v, FIELD_MEMORY, 0),
				     .pids = number_of(v, FIELD_PIDS, 0) };
	if (r->sample_count && s->ms <= s[-1].ms)
		return; /* a continued run counts from zero again */
	r->sample_count++;
}

static void see_any(struct run_report *r, const struct ward_event *v)
{
	struct report_row row = row_of(v);

	r->events++;
	r->counts[v->kind]++;
	if (!r->began_us)
		r->began_us = v->time_us;
	if (v->time_us > r->ended_us)
		r->ended_us = v->time_us;
	if (r->point_count < REPORT_POINTS && v->kind != EVENT_RUN_SAMPLE)
		r->points[r->point_count++] =
			(struct report_point){ v->time_us, v->kind, v->action, row.severity };
	if (v->kind == EVENT_RUN_SAMPLE)
		return;
	row.texts[0] = text_of(r, v, FIELD_OBJECT);
	row.texts[1] = text_of(r, v, FIELD_WHY);
	add_row(r, &r->events_list, row, 0);
}

static void see(void *with, const struct ward_event *v)
{
	struct run_report *r = with;
	const char *kind = event_kind_name((enum event_kind)v->kind);

	see_any(r, v);
	if (v->kind == EVENT_RUN_START)
		see_start(r, v);
	else if (v->kind == EVENT_RUN_END)
		see_end(r, v);
	else if (v->kind == EVENT_RUN_SAMPLE)
		see_sample(r, v);
	else if (v->action == ACTION_DENY || v->kind == EVENT_LIMIT)
		see_denial(r, v);
	if (v->kind == EVENT_EXEC && v->action != ACTION_DENY)
		see_program(r, v);
	else if (v->kind == EVENT_FILE_APPLY || v->kind == EVENT_FILE_DISCARD ||
		 v->kind == EVENT_FILE_RESTORE)
		see_review(r, v);
	else if (strncmp(kind, "file.", 5) == 0)
		see_file(r, v);
	else if (v->kind == EVENT_SPEND)
		see_spend(r, v);
	else if (v->kind == EVENT_CONNECT || v->kind == EVENT_CLOSE || v->kind == EVENT_DNS)
		see_net(r, v);
	else if (v->kind == EVENT_RUN_NOTE || strncmp(kind, "journal.", 8) == 0) {
		struct report_row row = row_of(v);

		row.texts[0] = text_of(r, v, FIELD_OBJECT);
		row.texts[1] = text_of(r, v, FIELD_WHY);
		row.numbers[0] = number_of(v, FIELD_LOST, 0);
		add_row(r, &r->notes, row, 2);
	}
}

static void clear_table(struct report_table *t)
{
	for (size_t i = 0; i < t->len; i++)
		free_row(&t->rows[i]);
	free(t->rows);
}

static void clear(struct run_report *r)
{
	char *const texts[] = { r->command, r->workspace, r->policy, r->profile, r->engine,
				r->network, r->level,     r->layers, r->absent,  r->why };
	struct report_table *const tables[] = { &r->denials, &r->reviews, &r->hosts,
						&r->spends,  &r->notes,   &r->events_list };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		free(texts[i]);
	for (size_t i = 0; i < ARRAY_LEN(tables); i++)
		clear_table(tables[i]);
	report_clear_paths(r);
	report_clear_processes(r);
	free(r->points);
	free(r->samples);
}

int audit_report(struct options *o, int audit_fd)
{
	auto_free char *run = NULL;
	struct run_report r = { .points = calloc(REPORT_POINTS, sizeof(*r.points)),
				.samples = calloc(REPORT_SAMPLES, sizeof(*r.samples)) };
	struct audit_out file = { 0 };
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	int status = audit_find_run(audit_fd, o->word_count > 1 ? o->words[1] : NULL, &run, &e);

	if (status == 0 && (!r.points || !r.samples))
		status = ward_fail(&e, ENOMEM, "out of memory");
	if (status == 0) {
		r.run = run;
		audit_each(audit_fd, run, see, &r);
		report_page(&r, &out);
		if (r.failed)
			status = ward_fail(&e, ENOMEM, "out of memory");
	}
	clear(&r);
	if (status == 0)
		status = audit_out_open(&file, o->output, false, &e);
	if (status < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	audit_out_write(&file, &out);
	return audit_out_close(&file, &e) < 0 ? say_error(&e, o->json, EXIT_REFUSED) : EXIT_FINE;
}
