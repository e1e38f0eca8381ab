/*
 * The report of ward check --unused. In: grants that were judged. Out: text, JSON, SARIF or JUnit:
 * what was not used, what is not known and why, what stays, and the narrowed file as a difference.
 */
#include "cli/unused/parts.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/difference.h"
#include "event/event.h"

/* Why it is not known whether a grant was used. */
static void put_unknown(const struct unused *u, const struct unused_grant *g, struct buf *out)
{
	const struct unused_record *r = &u->records[g->record];
	uint64_t blind = 0;

	for (unsigned level = g->level + 1u; level < UNUSED_LEVELS; level++)
		blind += r->by_level[level];
	if (blind)
		buf_printf(out,
			   "its use is on record from audit.level: %s on, and %" PRIu64
			   " of %" PRIu64 " runs had less",
			   policy_enum_name(POLICY_F_audit_level, g->level), blind, r->runs);
	else if (r->lost)
		buf_printf(out, "%" PRIu64 " events of these runs are missing", r->lost);
	else
		buf_printf(out, "%" PRIu64 " of %" PRIu64 " calls named no agent (--agent)",
			   r->nameless, r->runs);
}

static void add_finding(const struct unused *u, const struct unused_grant *g,
			struct check_findings *f)
{
	enum unused_verdict verdict = unused_judge(u, g);
	uint64_t runs = g->kind == UNUSED_TOOL ? u->runs : u->records[g->record].runs;
	auto_buf why = { 0 };

	if (verdict == UNUSED_UNKNOWN) {
		put_unknown(u, g, &why);
		check_add(f, CHECK_UNSEEN, g->at, NULL, "%s: %s", g->shown, buf_text(&why));
	} else if (verdict == UNUSED_NEVER) {
		if (g->kept)
			buf_printf(&why, "keep it, or change it by hand: %s", g->kept);
		else if (g->kind == UNUSED_CHANGES)
			buf_puts(&why, "filesystem.mode: read_only");
		else
			buf_puts(&why, "remove it");
		check_add(f, CHECK_UNUSED, g->at, buf_text(&why),
			  "%s: not used in the last %u days (%" PRIu64 " run%s)", g->shown, u->days,
			  runs, runs == 1 ? "" : "s");
	}
	f->failed |= why.failed;
}

static void put_text(const struct unused *u, const struct check_findings *f,
		     const struct buf *difference, struct buf *out)
{
	size_t used = 0, unknown = f->len - check_errors(f);
	char since[EVENT_TIME_TEXT];

	for (size_t i = 0; i < f->len; i++) {
		const struct check_finding *x = &f->items[i];
		bool error = x->rule == CHECK_UNUSED;

		text_escape(out, x->file);
		buf_printf(out, ":%u:%u: %s: %s [%s]\n", x->line, x->column,
			   error ? "error" : "warning", x->message, check_rule_row(x->rule)->name);
		if (error)
			buf_printf(out, "  %s\n", x->fix);
	}
	for (size_t i = 0; i < u->notes.len; i++) {
		buf_puts(out, "note: ");
		text_escape(out, u->notes.items[i]);
		buf_puts(out, "\n");
	}
	if (difference->len)
		buf_puts(out, buf_text(difference));
	for (size_t i = 0; i < u->count; i++)
		used += u->grants[i].uses > 0;
	event_time_text(u->first_us, since);
	text_escape(out, u->file);
	buf_printf(out,
		   ": %" PRIu64 " runs since %.10s: %zu grants not used, %zu used, %zu not on "
		   "record\n",
		   u->runs, since, check_errors(f), used, unknown);
}

static void put_json(const struct unused *u, const struct check_findings *f,
		     const struct buf *difference, struct buf *out)
{
	char since[EVENT_TIME_TEXT], first[EVENT_TIME_TEXT];
	struct json j = { .out = out };

	event_time_text(u->since_us, since);
	event_time_text(u->first_us, first);
	json_begin_object(&j, NULL);
	json_string(&j, "file", u->file);
	json_bool(&j, "valid", check_errors(f) == 0);
	json_uint(&j, "days", u->days);
	json_string(&j, "since", since);
	json_string(&j, "first", first);
	json_uint(&j, "runs", u->runs);
	json_begin_array(&j, "findings");
	for (size_t i = 0; i < f->len; i++) {
		const struct check_finding *x = &f->items[i];

		json_begin_object(&j, NULL);
		json_string(&j, "rule", check_rule_row(x->rule)->name);
		json_string(&j, "level", x->rule == CHECK_UNUSED ? "error" : "warning");
		json_string(&j, "file", x->file);
		json_uint(&j, "line", x->line);
		json_uint(&j, "column", x->column);
		json_string(&j, "message", x->message);
		json_string(&j, "fix", x->fix ? x->fix : check_rule_row(x->rule)->help);
		json_end_object(&j);
	}
	json_end_array(&j);
	json_begin_array(&j, "used");
	for (size_t i = 0; i < u->count; i++)
		if (u->grants[i].uses) {
			json_begin_object(&j, NULL);
			json_string(&j, "grant", u->grants[i].shown);
			json_uint(&j, "uses", u->grants[i].uses);
			json_end_object(&j);
		}
	json_end_array(&j);
	json_begin_array(&j, "notes");
	for (size_t i = 0; i < u->notes.len; i++)
		json_string(&j, NULL, u->notes.items[i]);
	json_end_array(&j);
	json_string(&j, "diff", difference->len ? buf_text(difference) : NULL);
	json_string(&j, "narrowed", u->narrowed.len ? buf_text(&u->narrowed) : NULL);
	json_string(&j, "written", u->o->check_write);
	json_end_object(&j);
	buf_puts(out, "\n");
}

int unused_report(struct unused *u, struct ward_err *e)
{
	const char *format = u->o->format ? u->o->format : u->o->json ? "json" : "text";
	struct check_findings f = { .file = u->file };
	auto_buf difference = { 0 }, name = { 0 }, out = { 0 };
	int r = 0;

	for (size_t i = 0; i < u->count; i++)
		add_finding(u, &u->grants[i], &f);
	buf_printf(&name, "%s (narrowed)", u->file);
	if (u->narrowed.len)
		r = difference_put(u->file, &u->bytes, buf_text(&name), &u->narrowed, &difference);
	if (r < 0 || f.failed || name.failed || difference.failed)
		r = ward_fail(e, ENOMEM, "out of memory");
	else if (strcmp(format, "json") == 0)
		put_json(u, &f, &difference, &out);
	else if (strcmp(format, "sarif") == 0)
		check_report_sarif(&f, &out);
	else if (strcmp(format, "junit") == 0)
		check_report_junit(&f, u->file, &out);
	else
		put_text(u, &f, &difference, &out);
	if (r == 0)
		r = say_out(&out, check_errors(&f) ? EXIT_FINDINGS : EXIT_FINE);
	check_free(&f);
	return r;
}
