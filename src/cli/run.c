/*
 * ward run: one command in one sandbox. In: the options. Out: the command's own exit code, its
 * output untouched; the result as summary, as the last line of standard error (--json) and as a
 * file (--report). In order: the report's place, spec and plan, the box, the result. Whatever is
 * wrong before the box is a refusal: nothing was started.
 */
#include "audit/index.h"
#include "audit/journal.h"
#include "audit/mask.h"
#include "audit/sinks_run.h"
#include "base/err_text.h"
#include "base/progress.h"
#include "base/text.h"
#include "cli/look.h"
#include "cli/ask.h"
#include "cli/desktop.h"
#include "cli/policy_write.h"
#include "cli/program.h"
#include "cli/question.h"
#include "cli/report.h"
#include "cli/review.h"
#include "cli/run.h"
#include "cli/run_detached.h"
#include "cli/run_restore.h"
#include "engine/engines.h"
#include "engine/native/native.h"
#include "engine/oci/oci.h"
#include "model/running.h"
#include "observe/advice.h"
#include "observe/hints.h"
#include "observe/observe.h"
#include "state/store.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/path.h"
#include "egress/creds_start.h"
#include "plan/plan_canary.h"
#include "event/event.h"
#include "event/result.h"
#include "plan/path_view.h"
#include "plan/plan.h"
#include "plan/spec.h"
#include "recover/recover.h"
#include "run/box.h"
#include "run/children.h"
#include "run/commands.h"
#include "run/proposals.h"

/* Nothing was started: says why, in every form that was asked for. ward-box leaves the speaking to
 * the process that waits for it. */
static int refuse(const struct options *o, const struct report *report, struct detached *d,
		  const struct ward_err *why, int code)
{
	auto_buf json = { 0 };
	struct ward_err e = { 0 };

	err_json(why, &json);
	if (report_write(report, &json, &e) < 0)
		say_error(&e, false, EXIT_REFUSED);
	if (d && !d->started) {
		detach_refuse(d, why, code);
		return code;
	}
	return say_error(why, o->json, code);
}

/* The summary is for a person who watches; what was refused, limits, notes and the quarantine are
 * for everybody, a line each, unless --quiet. */
static void print_result(const struct options *o, const struct plan *p, const struct result *r,
			 const struct buf *json)
{
	bool watched = isatty(STDERR_FILENO) && isatty(STDOUT_FILENO);
	auto_buf out = { 0 }, line = { 0 };

	if (!o->quiet)
		result_stopped_text(r, p, &out);
	for (size_t i = 0; i < p->loud.len && !o->json && !o->quiet; i++) {
		buf_puts(&out, "ward: ");
		text_escape(&out, p->loud.items[i]);
		buf_puts(&out, "\n");
	}
	if (o->verbose || (watched && !o->json && !o->quiet)) {
		result_text(r, p, o->verbose, watched && !getenv("NO_COLOR"), &out);
	} else if (!o->json && !o->quiet) {
		if (!o->hints) /* which has said it */
			result_denials_text(r, &out);
		result_quarantine_text(r, &out);
		result_notes_text(r, &out);
	}
	if (o->json) {
		buf_puts(&out, "\n"); /* the command may have left a line open */
		buf_add(&out, buf_text(json), json->len);
		buf_puts(&out, "\n");
	}
	buf_puts(&line, r->midline && out.len && !o->json ? "\n" : "");
	buf_add(&line, buf_text(&out), out.len);
	say_err(&line);
}

/* What a person has allowed during the run: shown as a difference of the policy file and written on
 * a yes; where nobody can be asked, as a command that does so. */
static void offer_policy(const struct options *o, const struct plan *p, const struct result *r)
{
	struct policy_write how = {
		.file = o->policy_file, .dir = p->workspace, .yes = o->yes, .silent = true
	};
	struct ward_err e = { 0 };
	auto_buf out = { 0 };

	if (!r->approved.len || ((o->quiet || o->json) && !o->yes))
		return;
	if (o->yes || (question_possible() && !o->continue_run)) {
		buf_puts(&out, "ward: your answers allowed what the policy does not\n");
		say_err(&out);
		if (policy_write_rules(&how, "network.egress_allowlist", &r->approved, &e) == 0)
			return;
		buf_free(&out);
		out = (struct buf){ 0 };
	}
	buf_puts(&out, "ward: your answers allowed what the policy does not; to keep it:\n"
		       "  ward policy add");
	for (size_t i = 0; i < r->approved.len; i++) /* canonical: no quotation mark of the shell */
		buf_printf(&out, "%s network.egress_allowlist '%s'",
			   r->approved.len > 1 ? " \\\n   " : "", r->approved.items[i]);
	buf_puts(&out, "\n");
	say_err(&out);
}

static int finish(const struct options *o, const struct report *report, struct detached *d,
		  const struct plan *p, struct result *r)
{
	auto_buf json = { 0 };
	struct ward_err e = { 0 };
	int code = r->exit_code;

	if (r->refused)
		return refuse(o, report, d, &r->error, code);
	if (r->error.code)
		say_error(&r->error, false, 0);
	advice_fill(r, p);
	if (o->json || report->dir_fd >= 0)
		result_json(r, p, &json);
	if (report_write(report, &json, &e) < 0)
		code = say_error(&e, false, EXIT_REFUSED);
	print_result(o, p, r, &json);
	offer_policy(o, p, r);
	return code;
}

/* journals; a start costs the same whatever else runs, and guardians look at all */
#define LOOK_AT_START 16

/* Without a state directory the run itself is refused, and says why once. */
static void say_unfinished(const struct ward_err *why)
{
	struct ward_err unused = { 0 };
	auto_fd state = store_open(&unused);

	if (state >= 0)
		say_error(why, false, 0);
}

/* Before the workspace is looked at: what a killed run planted there must not count as having been
 * there. */
static void finish_killed_runs(void)
{
	struct ward_err e = { 0 };
	auto_strv notes = { 0 };

	if (recover_runs_noting(&notes, &e) < 0)
		say_unfinished(&e);
	say_notes(&notes);
	/* also of one that was killed before it was on record */
	if (journal_recover(LOOK_AT_START, &e) < 0)
		say_unfinished(&e);
	if (apply_recover(&e) < 0)
		say_unfinished(&e);
}

/* What --continue means: that run's workspace and its changes. */
static int resolve_continue(struct options *o, struct review *r, struct ward_err *e)
{
	auto_free char *wanted = NULL;
	struct spec_option *grown;
	int status = review_open(o->continue_run, REVIEW_READ, r, e);

	if (status < 0)
		return ward_wrap(e, "--continue");
	if (r->workspace_fd < 0)
		return ward_fail(
			e, ESTALE,
			"--continue: the workspace %s is gone or was replaced by another directory",
			r->record.workspace);
	wanted = o->workspace ? realpath(o->workspace, NULL) : NULL;
	if (o->workspace && (!wanted || strcmp(wanted, r->record.workspace) != 0))
		return ward_fail(e, EINVAL, "--continue %s: that run's workspace is %s, not %.200s",
				 r->id, r->record.workspace, o->workspace);
	o->workspace = r->record.workspace;
	o->continued = r->id;
	grown = reallocarray(o->fields, o->field_count + 1, sizeof(*grown));
	if (!grown)
		return ward_fail(e, ENOMEM, "out of memory");
	o->fields = grown;
	o->field_cap = o->field_count + 1;
	o->fields[o->field_count++] = (struct spec_option){ .field = "filesystem.mode",
							    .value = "review",
							    .option = "--continue" };
	return 0;
}

/* A plan that will not be carried out. */
static void drop_plan(struct plan *plan, struct spec *spec)
{
	creds_end(plan);
	canary_end(plan);
	commands_end(plan);
	proposals_end(plan);
	children_end(plan);
	plan_free(plan);
	spec_clear(spec);
}

/* Brings what was asked for to a plan; a continued run has the id of the one that it continues. */
static int make_plan(struct options *o, const struct box_early *early, struct review *continued,
		     struct checkpoint *restored, struct spec *spec, struct plan **ret_plan,
		     struct progress *progress, struct ward_err *e)
{
	int status = o->continue_run ? resolve_continue(o, continued, e) : 0;

	if (status >= 0 && o->restore)
		status = restore_resolve(o, restored, e);
	if (status >= 0)
		status = ask_plan(o, early->system, spec, ret_plan, progress, e);
	if (status < 0)
		return status;
	if (creds_start(*ret_plan, e) < 0 || canary_start(*ret_plan, e) < 0 ||
	    commands_start(*ret_plan, e) < 0 || proposals_start(*ret_plan, e) < 0 ||
	    children_start(*ret_plan, e) < 0) {
		drop_plan(*ret_plan, spec);
		return -e->code;
	}
	if (o->apply_on_exit && !(*ret_plan)->review) {
		drop_plan(*ret_plan, spec);
		ward_fail(e, EINVAL, "--apply-on-exit: the run is not under review");
		return ward_remedy(e, "add --review");
	}
	return 0;
}

/* After a run under review: counts what it holds, and applies it if that was asked for. A review
 * without changes goes. */
static void look_at_changes(const struct options *o, struct result *result,
			    struct progress *progress)
{
	struct result_changes *c = &result->changes;
	const struct apply_request q = { .paths = &(struct strv){ 0 }, .progress = progress };
	struct apply_report report = { 0 };
	struct ward_err e = { 0 };
	auto_buf left = { 0 };
	struct review r;
	int status = review_open(result->run_id, REVIEW_WRITE, &r, &e);

	c->reviewed = true;
	if (status == 0 && o->apply_on_exit) {
		status = look_before_apply_on_exit(&r, &e);
		if (status == 0)
			status = apply_run(&r, &q, &report, &e);
		c->apply = status == 0;
	} else if (status == 0) {
		status = changes_read(&r, &report.changes, progress, &e);
		if (status == 0)
			status = changes_find_news(&r, &report.changes, &e);
		if (status == 0)
			changes_bases_keep(&r, &report.changes);
	}
	if (status == 0)
		status = changes_tell_news(&report.changes, &result->news, &e);
	progress_end(progress);
	c->counted = status == 0;
	c->added = report.changes.counts[CHANGE_ADDED];
	c->deleted = report.changes.counts[CHANGE_DELETED];
	c->changed = report.changes.counts[CHANGE_CONTENT] + report.changes.counts[CHANGE_MODE] +
		     report.changes.counts[CHANGE_TYPE];
	c->applied = report.counts[APPLY_DONE];
	if (c->apply) {
		struct ward_event v =
			event_make(EVENT_FILE_APPLY, ACTION_APPROVE, r.record.workspace);

		event_number(&v, FIELD_APPLIED, report.counts[APPLY_DONE]);
		event_text(&v, FIELD_VIA, "--apply-on-exit");
		event_emit(result->events, &v);
	}
	c->left = report.counts[APPLY_CONFLICT] + report.counts[APPLY_PROTECTED] +
		  report.counts[APPLY_REFUSED];
	if (c->left)
		review_put_left(&report, &left);
	say_err(&left);
	if (status == 0 && !report.changes.len && !report.changes.git.len && !report.finished)
		status = review_remove(&r, &e);
	if (status < 0)
		say_error(&e, false, 0);
	apply_report_clear(&report);
	review_close(&r);
}

/* What events go through: what masks secrets, what feeds the sinks, the journal. All NULL: no
 * process listens, because the policy says so. */
struct record {
	struct mask *mask;
	struct sinks *sinks;
	struct journal *journal;
};

static int open_record(const struct plan *p, struct record *ret, struct ward_err *e)
{
	const struct policy *policy = &p->spec->policy;
	bool failed = false;
	int r;

	if (policy->audit_journal != JOURNAL_NONE)
		ret->journal = journal_create(policy->audit_on_full == ON_FULL_CONTINUE);
	failed = policy->audit_journal != JOURNAL_NONE && !ret->journal;
	r = failed ? 0 : sinks_create(p, ret->journal, &ret->sinks, e);
	if (!failed && r == 0 && ret->journal)
		ret->mask = mask_create(
			policy, ret->sinks ? sinks_events(ret->sinks) : journal_sink(ret->journal),
			&failed);
	return failed ? ward_fail(e, ENOMEM, "out of memory") : r;
}

static struct event_sink *record_events(const struct record *r)
{
	return r->mask      ? mask_events(r->mask)
	       : r->sinks   ? sinks_events(r->sinks)
	       : r->journal ? journal_sink(r->journal)
			    : NULL;
}

/* A refusal: nothing was begun. */
static void drop_record(struct record *r)
{
	struct result unused = { 0 };
	struct ward_err ignored = { 0 };
	bool due;

	mask_free(r->mask);
	(void)!journal_close(r->journal, &due, &ignored);
	sinks_end(r->sinks, &unused);
}

/* Reports what is not on record, in the report file too. */
static void close_record(struct record *record, struct result *r)
{
	static char program[] = "ward-audit", word[] = "seal";
	char *const seal[] = { program, word, NULL };
	struct ward_err e = { 0 };
	const char *why;
	uint64_t lost = 0;
	bool due = false;
	int status;

	if (!record->journal) {
		r->events = NULL;
		return;
	}
	(void)!event_flush(r->events, &e);
	mask_free(record->mask);
	lost = journal_lost(record->journal, &why);
	if (lost)
		strv_addf(&r->notes, "%" PRIu64 " events are missing in the journal: %s", lost,
			  why);
	r->events = NULL;
	e = (struct ward_err){ 0 };
	status = journal_close(record->journal, &due, &e);
	sinks_end(record->sinks, r);
	if (status == 0) {
		if (due)
			/* now and then; what fails is done by the next one */
			(void)!program_run(seal);
		return;
	}
	if (r->error.code)
		return;
	strv_addf(&r->notes, "%s", e.why);
	r->error = e;
}

/* A run that did not come as far as a journal of its own: the user's has it. */
static void report_refusal(const struct options *o, const struct ward_err *why)
{
	struct ward_event v =
		event_make(EVENT_RUN_REFUSED, ACTION_DENY, why->what[0] ? why->what : o->words[0]);
	struct ward_err ignored = { 0 }; /* it is refused whether it is on record or not */

	event_text(&v, FIELD_WHY, why->why);
	event_text(&v, FIELD_REMEDY, why->remedy[0] ? why->remedy : NULL);
	event_number(&v, FIELD_UID, (uint64_t)getuid());
	(void)!index_report(&v, &ignored);
}

/* What begins before the policy is read: the native engine with the host's own root, unless the
 * options say already that it will be another. oci begins nothing. */
static const struct engine *likely_engine(const struct options *o)
{
	for (size_t i = 0; i < o->field_count; i++)
		if ((strcmp(o->fields[i].field, "isolation") == 0 &&
		     strcmp(o->fields[i].value, "oci") == 0) ||
		    (strcmp(o->fields[i].field, "image") == 0 &&
		     strcmp(o->fields[i].value, "host") != 0))
			return &engine_oci;
	return &engine_native;
}

/* Whether the options take away every limit that a run has in a cgroup unless the policy says
 * otherwise. A policy may still set one: then what has begun is thrown away. */
static bool is_unlimited(const struct options *o)
{
	bool memory = true, pids = true, cpu = false; /* the last word on each counts */

	for (size_t i = 0; i < o->field_count; i++) {
		const struct spec_option *f = &o->fields[i];
		bool limited = strcmp(f->value, "none") != 0;

		if (strcmp(f->field, "resources.memory_limit") == 0)
			memory = limited;
		else if (strcmp(f->field, "resources.pids_limit") == 0)
			pids = limited;
		else if (strcmp(f->field, "resources.cpu_limit") == 0)
			cpu = limited;
	}
	return !memory && !pids && !cpu;
}

static void tell_outcome(const struct result *r, struct run_outcome *ret)
{
	*ret = (struct run_outcome){ .exit_code = r->exit_code,
				     .refused = r->refused,
				     .changes = r->changes.added + r->changes.changed +
						r->changes.deleted };
	memcpy(ret->run_id, r->run_id, sizeof(ret->run_id));
}

/* With --hints denials are also shown on standard error. While the command has the terminal nothing
 * is written there; ward-box has no standard error to write to. */
static struct hints *listen_for_hints(const struct options *o, const struct detached *d,
				      const struct plan *p, struct result *r)
{
	struct hints *h;

	if (!o->hints || d)
		return NULL;
	h = hints_create(p, r->events, o->tty || (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)));
	if (h)
		r->events = hints_sink(h);
	else
		strv_add(&r->notes, "out of memory: no hints");
	return h;
}

/* A file of secrets that the agent could read. */
static void note_env_files(const struct plan *p, struct result *r)
{
	static const char names[][16] = { ".env", ".env.local", ".env.production" };
	auto_buf found = { 0 };
	const char *first = NULL;
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		auto_free char *path = path_join(p->workspace, names[i]);
		struct path_view view;
		struct stat st;

		if (!path || lstat(path, &st) < 0 || !S_ISREG(st.st_mode) || !st.st_size)
			continue;
		view = path_view_of(p);
		if (path_view_find(&view, path, NULL) < PATH_VIEW_READ)
			continue;
		buf_printf(&found, "%s%s", count++ ? ", " : "", names[i]);
		first = first ? first : names[i];
	}
	if (!count || found.failed)
		return;
	strv_addf(&r->loud,
		  "%s could be read inside; to keep %s out: --hide %s (policy: "
		  "filesystem.hide: [%s])",
		  buf_text(&found), count == 1 ? "it" : "them", count == 1 ? first : "'.env*'",
		  count == 1 ? first : "\".env*\"");
	strv_addf(&r->notes, "%s could be read inside", buf_text(&found));
}

/* What everybody shall read: it is a note of the report, and a line of its own. */
static void note_for_all(const struct plan *p, struct result *r)
{
	for (size_t i = 0; i < p->spec->said.len; i++) {
		strv_add(&r->loud, p->spec->said.items[i]);
		strv_add(&r->notes, p->spec->said.items[i]);
	}
}

/* --env NAME of a variable that the caller does not have gives nothing. */
static void note_unset(const struct options *o, struct result *r)
{
	for (size_t i = 0; i < o->field_count; i++) {
		const char *name = o->fields[i].value;

		if (strcmp(o->fields[i].option, "--env") != 0 || strpbrk(name, "=*") ||
		    getenv(name))
			continue;
		strv_addf(&r->loud,
			  "--env %s: your environment has no such variable, so it is not "
			  "set inside; --env %s=VALUE sets it",
			  name, name);
	}
}

/* From a plan that is on record to what became of it: runs it and tells everybody. */
static int carry_out(struct options *o, struct detached *d, struct report *report,
		     struct plan *plan, struct box_early *early, struct record *record)
{
	struct progress *progress = early->progress;
	struct result result = { .timing = early->run.timing, .events = record_events(record) };
	struct ward_err e = { 0 };
	struct desktop *desktop;
	struct hints *hints;
	int code;

	if (d)
		progress_end(progress);
	hints = listen_for_hints(o, d, plan, &result);
	desktop = o->notify ? desktop_create(plan, &result) : NULL;
	note_for_all(plan, &result);
	note_unset(o, &result);
	note_env_files(plan, &result);
	box_run(engine_choose(plan), plan, early, &result);
	if (plan->review && !result.refused)
		look_at_changes(o, &result, progress);
	progress_end(progress);
	if (o->outcome)
		tell_outcome(&result, o->outcome);
	plan_release(plan); /* a process that waits for the end may remove what the run used */
	close_record(record, &result);
	desktop_end(desktop, &result);
	desktop_destroy(desktop);
	hints_finish(hints, result.exit_code != 0);
	code = finish(o, report, d, plan, &result);
	if (d && detach_end(d, plan, &result, &e) <
			 0) /* last: a waiting process finds everything in place */
		code = say_error(&e, false, EXIT_REFUSED);
	hints_destroy(hints);
	result_clear(&result);
	return code;
}

int run_sandbox(struct options *o, struct detached *d)
{
	struct ward_err e = { 0 };
	struct report report;
	struct record record = { 0 };
	struct timing timing = { .on = o->verbose };
	struct box_early early;
	/* these two are not freed behind a run: the kernel takes all of it back at once, and a
	 * process waits for that */
	static struct plan *plan;
	static struct spec spec;
	struct progress shown, *progress = progress_for_terminal(&shown, !o->json);
	struct review continued = { .dir_fd = -1, .upper_fd = -1, .workspace_fd = -1 };
	struct checkpoint restored = { 0 };
	uint64_t began;
	int code;

	if (report_open(&report, o->report_file, &e) < 0)
		return refuse(o, &report, d, &e, EXIT_REFUSED);
	if (o->hints)
		o->observe |= OBSERVE_LOOKS | OBSERVE_READS | OBSERVE_WRITES | OBSERVE_NET;
	box_begin(&early, likely_engine(o), is_unlimited(o), &timing);
	early.detached = d;
	early.progress = progress;
	began = timing_now(&timing);
	finish_killed_runs();
	if (make_plan(o, &early, &continued, &restored, &spec, &plan, progress, &e) < 0) {
		report_refusal(o, &e);
		code = refuse(o, &report, d, &e, EXIT_REFUSED);
	} else if (open_record(plan, &record, &e) < 0) {
		drop_record(&record);
		drop_plan(plan, &spec);
		report_refusal(o, &e);
		code = refuse(o, &report, d, &e, EXIT_REFUSED);
	} else {
		timing_end(&timing, "policy and plan", began);
		code = carry_out(o, d, &report, plan, &early, &record);
		creds_end(plan);
		canary_end(plan);
		commands_end(plan);
		proposals_end(plan);
		children_end(plan);
		plan_end(plan);
	}
	review_close(&continued);
	checkpoint_clear(&restored);
	box_abandon(&early);
	report_close(&report);
	return code;
}

int verb_run(struct options *o)
{
	struct ward_err e = { 0 };

	if (o->detach)
		return run_detached(o);
	o->image_command = !o->word_count;
	if (!o->name)
		return run_sandbox(o, NULL);
	ward_fail(&e, EINVAL, "--name only works with a detached sandbox");
	ward_remedy(&e, "add -d, or remove --name");
	return say_usage(&e, o);
}
