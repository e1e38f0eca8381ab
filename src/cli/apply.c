/*
 * ward apply and ward discard: what becomes of a review. In: [RUN] [PATH...]. Out: the workspace
 * with the changes that were asked for, or the review without them; what was done and what was
 * left, and why. Runs with the user's rights. Signals wait until the path that is being worked on
 * is whole, then the work ends cleanly.
 */
#include "cli/apply_ask.h"
#include "cli/look.h"
#include "cli/review.h"
#include "cli/tell.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/progress.h"
#include "base/text.h"
#include "event/event.h"
#include "review/apply.h"

static bool is_interrupted(void *ctx)
{
	const sigset_t *waited = ctx;
	const struct timespec now = { 0 };

	return sigtimedwait(waited, NULL, &now) > 0;
}

static const char *outcome_name(enum apply_outcome o)
{
	static const char *const names[] = { "left",    "applied", "conflict", "protected",
					     "refused", "marked",  "part" };

	return names[o];
}

static void json_report(const struct review *r, const struct apply_report *report,
			const struct look_findings *found, bool dry_run, struct json *j)
{
	json_begin_object(j, NULL);
	json_string(j, "run", r->id);
	json_string(j, "workspace", r->record.workspace);
	json_bool(j, "dry_run", dry_run);
	json_begin_array(j, "paths");
	for (size_t i = 0; i < report->changes.len; i++) {
		const struct change *c = &report->changes.items[i];

		if (c->implied || report->outcomes[i] == APPLY_LEFT)
			continue;
		json_begin_object(j, NULL);
		json_string(j, "path", c->path);
		json_string(j, "change", review_kind_name(c));
		json_string(j, "outcome", outcome_name(report->outcomes[i]));
		json_string(j, "why", report->outcomes[i] == APPLY_REFUSED ? c->refused : NULL);
		json_bool(j, "merged", c->merged);
		json_string(j, "steers", c->steers);
		json_end_object(j);
	}
	json_end_array(j);
	for (size_t i = APPLY_DONE; i < APPLY_OUTCOMES; i++)
		json_uint(j, outcome_name((enum apply_outcome)i), report->counts[i]);
	json_begin_array(j, "git");
	for (size_t i = 0; i < (dry_run ? report->changes.git.len : report->git.len); i++)
		json_string(j, NULL, dry_run ? report->changes.git.items[i] : report->git.items[i]);
	json_end_array(j);
	json_bool(j, "finished", report->finished);
	look_json(found, j);
	json_end_object(j);
}

/* Whether markers could show one of the conflicts that are left. */
static bool has_markable(const struct apply_report *report)
{
	for (size_t i = 0; i < report->changes.len; i++)
		if (report->outcomes[i] == APPLY_CONFLICT && report->changes.items[i].markable)
			return true;
	return false;
}

void review_put_left(const struct apply_report *report, struct buf *out)
{
	static const char *const why[] = {
		NULL,        NULL, "changed outside since the run began",
		"protected", NULL, "both versions are in it, between markers",
		NULL
	};

	for (size_t i = 0; i < report->changes.len; i++) {
		const struct change *c = &report->changes.items[i];
		enum apply_outcome o = report->outcomes[i];

		if (c->implied || o == APPLY_LEFT || o == APPLY_DONE || o == APPLY_PART)
			continue;
		buf_printf(out,
			   "%s: ", o == APPLY_CONFLICT || o == APPLY_MARKED ? "conflict" : "left");
		text_escape(out, c->path);
		buf_printf(out, ": %s\n", o == APPLY_REFUSED ? c->refused : why[o]);
	}
	if (report->counts[APPLY_CONFLICT])
		buf_puts(out,
			 "  to apply the agent's version of a conflict: ward apply --force PATH\n");
	if (has_markable(report))
		buf_puts(out, "  to get both versions with conflict markers: ward apply --markers "
			      "PATH\n");
	if (report->counts[APPLY_PROTECTED])
		buf_puts(out,
			 "  to apply protected paths after review: ward apply --protected PATH\n");
}

static void put_steers(const struct apply_report *report, struct buf *out)
{
	for (size_t i = 0; i < report->changes.len; i++) {
		const struct change *c = &report->changes.items[i];

		if (!c->steers || report->outcomes[i] != APPLY_DONE)
			continue;
		buf_puts(out, "affects tools that you may run: ");
		text_escape(out, c->path);
		buf_printf(out, ": %s\n", c->steers);
	}
}

static void put_report(const struct review *r, const struct apply_report *report, bool dry_run,
		       struct buf *out)
{
	size_t rest = 0, merged = 0;

	for (size_t i = 0; i < report->changes.len; i++)
		merged += report->changes.items[i].merged && report->outcomes[i] == APPLY_DONE;
	review_put_left(report, out);
	for (size_t i = 0; i < APPLY_OUTCOMES; i++)
		rest += i == APPLY_DONE || i == APPLY_MARKED ? 0 : report->counts[i];
	buf_printf(out, "%s%zu change%s", dry_run ? "would apply " : "applied ",
		   report->counts[APPLY_DONE], report->counts[APPLY_DONE] == 1 ? "" : "s");
	if (report->counts[APPLY_PART])
		buf_printf(out, ", and a part of %zu", report->counts[APPLY_PART]);
	if (merged)
		buf_printf(out, "; %zu merged with edits of your own", merged);
	if (rest)
		buf_printf(out, "; %zu left in the review of %s", rest, r->id);
	buf_puts(out, "\n");
	put_steers(report, out);
	for (size_t i = 0; i < (dry_run ? report->changes.git.len : report->git.len); i++) {
		text_escape(out, dry_run ? report->changes.git.items[i] : report->git.items[i]);
		buf_puts(out, "\n");
	}
}

int review_check_paths(const struct review *r, const struct changes *all, const struct strv *paths,
		       struct ward_err *e)
{
	for (size_t i = 0; i < paths->len; i++) {
		size_t n = strlen(paths->items[i]);
		bool found = n == 0 || (all->git.len && n >= 4 &&
					strcmp(paths->items[i] + n - 4, ".git") == 0);

		for (size_t k = 0; k < all->len && !found; k++)
			found = strncmp(all->items[k].path, paths->items[i], n) == 0 &&
				(all->items[k].path[n] == '/' || !all->items[k].path[n]);
		if (found)
			continue;
		ward_fail(e, ENOENT, "the review of %s has no change to %s", r->id,
			  paths->items[i]);
		return ward_remedy(e, "ward diff %s lists its changes", r->id);
	}
	return 0;
}

/* Nothing is done then. */
static int check_paths(const struct review *r, const struct strv *paths, struct ward_err *e)
{
	struct changes all = { 0 };
	int status = paths->len ? changes_read(r, &all, NULL, e) : 0;

	if (status == 0)
		status = review_check_paths(r, &all, paths, e);
	changes_clear(&all);
	return status;
}

static int finish_apply(const struct options *o, const struct review *r,
			const struct apply_report *report, const struct look_findings *found,
			int status, const struct ward_err *e)
{
	int code = report->counts[APPLY_CONFLICT] || report->counts[APPLY_PROTECTED] ||
				   report->counts[APPLY_REFUSED] || report->counts[APPLY_MARKED]
			   ? EXIT_FINDINGS
			   : EXIT_FINE;
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	if (status < 0)
		return say_error(e, o->json, EXIT_REFUSED);
	if (o->json) {
		json_report(r, report, found, o->dry_run, &j);
		buf_puts(&out, "\n");
	} else {
		put_report(r, report, o->dry_run, &out);
	}
	return say_out(&out, code);
}

/* On record, with what was left. */
static void tell_apply(const struct review *r, const struct apply_report *report)
{
	struct ward_event v = event_make(EVENT_FILE_APPLY, ACTION_APPROVE, r->record.workspace);

	v.run = r->id;
	event_number(&v, FIELD_APPLIED, report->counts[APPLY_DONE]);
	event_number(&v, FIELD_LEFT,
		     report->counts[APPLY_CONFLICT] + report->counts[APPLY_PROTECTED] +
			     report->counts[APPLY_REFUSED]);
	tell_done(&v);
}

/* Asks first where that is wanted, then does it. */
static int do_apply(struct options *o, struct review *r, const struct review_asked *asked,
		    sigset_t *waited, struct progress *progress, struct apply_report *report,
		    struct ward_err *e)
{
	struct apply_answers answers = { 0 };
	struct apply_request q = { .paths = &asked->paths,
				   .with_protected = o->with_protected,
				   .force = o->force,
				   .markers = o->markers,
				   .dry_run = o->dry_run,
				   .progress = progress,
				   .stop = is_interrupted,
				   .ctx = waited };
	int status = o->patch ? apply_ask(o, r, asked, &answers, e) : 0;

	if (o->patch) {
		q.paths = &answers.paths;
		q.picked = true;
		q.picks = answers.picks;
		q.pick_count = answers.len;
	}
	if (status == 0) {
		sigprocmask(SIG_BLOCK, waited, NULL);
		status = apply_run(r, &q, report, e);
	}
	apply_answers_clear(&answers);
	return status;
}

int verb_apply(struct options *o)
{
	struct progress shown, *progress = progress_for_terminal(&shown, !o->json && !o->patch);
	struct apply_report report = { 0 };
	struct look_findings found = { 0 };
	struct review_asked asked;
	struct ward_err e = { 0 };
	sigset_t waited;
	struct review r;
	bool blocked;
	int status, code;

	sigemptyset(&waited);
	for (size_t i = 0; i < 3; i++)
		sigaddset(&waited, (const int[]){ SIGINT, SIGTERM, SIGHUP }[i]);
	review_finish_killed();
	if (review_ask(o, REVIEW_WRITE, &asked, &r, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	status = check_paths(&r, &asked.paths, &e);
	if (status == 0)
		status = look_before_apply(o, &r, &asked.paths, &found, &e);
	blocked = status == -EPERM;
	if (status == 0)
		status = do_apply(o, &r, &asked, &waited, progress, &report, &e);
	progress_end(progress);
	if (!o->dry_run && report.counts[APPLY_DONE] + report.counts[APPLY_PART])
		tell_apply(&r, &report);
	code = finish_apply(o, &r, &report, &found, status, &e);
	if (blocked)
		code = EXIT_FINDINGS;
	look_clear(&found);
	apply_report_clear(&report);
	review_asked_clear(&asked);
	review_close(&r);
	return code;
}

int verb_discard(struct options *o)
{
	struct review_asked asked;
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	struct json j = { .out = &out };
	struct review r;
	size_t count = 0;
	int status;

	review_finish_killed();
	if (review_ask(o, REVIEW_WRITE, &asked, &r, &e) < 0)
		return say_error(&e, o->json, EXIT_REFUSED);
	status = check_paths(&r, &asked.paths, &e);
	if (status == 0)
		status = apply_discard(&r, &asked.paths, &count, &e);
	if (status == 0) {
		struct ward_event v =
			event_make(EVENT_FILE_DISCARD, ACTION_LOG, r.record.workspace);

		v.run = r.id;
		event_number(&v, FIELD_COUNT, count);
		tell_done(&v);
	}
	if (status == 0 && o->json) {
		json_begin_object(&j, NULL);
		json_string(&j, "run", r.id);
		json_uint(&j, "discarded", count);
		json_end_object(&j);
		buf_puts(&out, "\n");
	} else if (status == 0) {
		buf_printf(&out, "discarded %zu change%s\n", count, count == 1 ? "" : "s");
	}
	review_asked_clear(&asked);
	review_close(&r);
	return status < 0 ? say_error(&e, o->json, EXIT_REFUSED) : say_out(&out, EXIT_FINE);
}
