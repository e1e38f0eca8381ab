/*
 * ward audit export: events in the formats of others. In: journals of the runs that are named (or
 * --all, with the index), the filter of show. Out: OCSF, CEF, RFC 5424 or the journal's own JSON
 * one record a line, OTLP one request of many records a line. Run by ward-audit; the mapping is
 * audit/export.c's.
 */
#include "cli/audit/parts.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "audit/export.h"
#include "audit/tail.h"
#include "base/io.h"
#include "event/event.h"

#define FOLLOW_MS 100
#define BATCH 256 /* log records of one request */

struct exporting {
	struct audit_filter filter;
	enum export_format format;
	struct export_from from;
	struct audit_out out;
	struct buf text;
	unsigned batch; /* records of the request that is open */
	uint64_t count;
};

static void end_batch(struct exporting *x)
{
	if (!x->batch)
		return;
	export_otlp_end(&x->text);
	buf_puts(&x->text, "\n");
	x->batch = 0;
}

static void put_event(struct exporting *x, const struct ward_event *v)
{
	x->count++;
	if (x->format != EXPORT_OTLP) {
		export_event(x->format, &x->from, v, &x->text);
		buf_puts(&x->text, "\n");
		return;
	}
	if (!x->batch)
		export_otlp_begin(&x->from, &x->text);
	else
		buf_puts(&x->text, ",");
	export_event(x->format, &x->from, v, &x->text);
	if (++x->batch == BATCH)
		end_batch(x);
}

/* only: that run's, without what the index says of its journal. */
static bool put_line(struct exporting *x, const char *line, size_t n, const char *only)
{
	static char scratch[EVENT_LINE_MAX];
	struct ward_event v;

	if (!event_decode(line, n, scratch, &v, NULL))
		return true; /* ward audit verify tells of it */
	if (only && (!v.run || strcmp(v.run, only) != 0 ||
		     strncmp(event_kind_name((enum event_kind)v.kind), "journal.", 8) == 0))
		return true;
	if (audit_filter_passes(&x->filter, &v))
		put_event(x, &v);
	return x->text.len < 65536 || audit_out_write(&x->out, &x->text);
}

static void export_run(struct exporting *x, int audit_fd, const char *run, bool follow)
{
	const struct timespec moment = { .tv_nsec = FOLLOW_MS * 1000000L };
	enum tail_state state;
	struct tail tail;
	const char *line;
	size_t n;

	tail_begin(&tail, audit_fd, run);
	do {
		state = tail_next(&tail, &line, &n);
		if (state == TAIL_LINE && !put_line(x, line, n, NULL))
			break;
		if (state == TAIL_WAIT && follow) {
			end_batch(x);
			if (!audit_out_write(&x->out, &x->text))
				break;
			nanosleep(&moment, NULL);
		}
	} while (state == TAIL_LINE || (state == TAIL_WAIT && follow));
	tail_close(&tail);
}

static void export_index(struct exporting *x, int audit_fd, const char *only)
{
	auto_strv files = { 0 };
	bool live;

	lines_files(audit_fd, NULL, &files, &live);
	for (size_t i = 0; i < files.len && !x->out.error; i++) {
		const char *line;
		struct lines l;
		size_t n;

		if (lines_open(&l, audit_fd, files.items[i]) < 0)
			continue;
		while (lines_next(&l, &line, &n) > 0 && put_line(x, line, n, only))
			;
		lines_close(&l);
	}
}

int audit_runs(const struct options *o, int audit_fd, struct strv *ret, struct ward_err *e)
{
	if (o->all)
		return lines_runs(audit_fd, ret, e);
	for (size_t i = 1; i < o->word_count || i == 1; i++) {
		char *run = NULL;
		int r = audit_find_run(audit_fd, i < o->word_count ? o->words[i] : NULL, &run, e);

		if (r < 0)
			return r;
		strv_take(ret, run);
	}
	return ret->failed ? ward_fail(e, ENOMEM, "out of memory") : 0;
}

static int read_format(const struct options *o, enum export_format *ret, struct ward_err *e)
{
	*ret = o->format ? export_format_find(o->format) : EXPORT_FORMATS;
	if (*ret < EXPORT_FORMATS)
		return 0;
	ward_fail(e, EINVAL, o->format ? "--format %.60s: unknown format" : "no format given",
		  o->format);
	return ward_remedy(e, "--format ocsf, cef, syslog (RFC 5424), otlp or json");
}

int audit_export(struct options *o, int audit_fd)
{
	char host[256] = "";
	struct exporting x = { .from = { .host = host } };
	struct ward_err e = { 0 };
	auto_strv runs = { 0 };

	gethostname(host, sizeof(host) - 1);
	if (read_format(o, &x.format, &e) < 0 || audit_filter_read(o, &x.filter, &e) < 0)
		return say_error(&e, o->json, EXIT_USAGE);
	if (audit_runs(o, audit_fd, &runs, &e) < 0 ||
	    audit_out_open(&x.out, o->output, o->follow, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	for (size_t i = 0; i < runs.len && !x.out.error; i++) {
		export_run(&x, audit_fd, runs.items[i], o->follow && i + 1 == runs.len && !o->all);
		if (!o->all)
			export_index(&x, audit_fd, runs.items[i]);
	}
	if (o->all)
		export_index(&x, audit_fd, NULL);
	end_batch(&x);
	audit_out_write(&x.out, &x.text);
	buf_free(&x.text);
	return audit_out_close(&x.out, &e) < 0 ? say_error(&e, o->json, EXIT_REFUSED) : EXIT_FINE;
}
