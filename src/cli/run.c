/*
 * ward run: one command in one sandbox. In: the options. Out: the command's own exit code, its output untouched; the result as summary, as the last
 * line of standard error (--json) and as a file (--report). In order: the report's place, spec and plan, the box, the result. Whatever is wrong
 * before the box is a refusal: nothing was started.
 */
#include "cli/ask.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "engine/engines.h"
#include "engine/native/native.h"
#include "lib/detach.h"
#include "lib/engine.h"
#include "lib/store.h"

#include <errno.h>

#include "base/io.h"
#include "base/json.h"

/* Nothing was started: says why, in every form that was asked for. ward-box leaves the speaking to the process that
 * waits for it. */
static int refuse(const struct options *o, const struct report *report, struct detached *d, const struct ward_err *why)
{
	auto_buf json = { 0 };
	struct ward_err e = { 0 };

	result_refusal_json(why, &json);
	if (report_write(report, &json, &e) < 0)
		say_error(&e, false, EXIT_REFUSED);
	if (d && !d->started) {
		detach_refuse(d, why);
		return EXIT_REFUSED;
	}
	return say_error(why, o->json, EXIT_REFUSED);
}

/* The summary is for a person who watches; the line about a limit is for everybody. */
static void print_result(const struct options *o, const struct plan *p, const struct result *r,
			 const struct buf *json)
{
	bool watched = isatty(STDERR_FILENO) && isatty(STDOUT_FILENO);
	auto_buf out = { 0 };

	result_stopped_text(r, p, &out);
	if (o->verbose || (watched && !o->json))
		result_text(r, p, o->verbose, watched && !getenv("NO_COLOR"), &out);
	if (o->json) {
		buf_puts(&out, "\n");	/* the command may have left a line open */
		buf_add(&out, buf_text(json), json->len);
		buf_puts(&out, "\n");
	}
	say_err(&out);
}

static int finish(const struct options *o, const struct report *report, struct detached *d, const struct plan *p,
		  const struct result *r)
{
	auto_buf json = { 0 };
	struct ward_err e = { 0 };
	int code = r->exit_code;

	if (r->refused)
		code = refuse(o, report, d, &r->error);
	if (d && detach_end(d, p, r, &e) < 0)
		code = say_error(&e, false, EXIT_REFUSED);
	if (r->refused)
		return code;
	if (r->error.code)
		say_error(&r->error, false, 0);
	if (o->json || report->dir_fd >= 0)
		result_json(r, p, &json);
	if (report_write(report, &json, &e) < 0)
		code = say_error(&e, false, EXIT_REFUSED);
	print_result(o, p, r, &json);
	return code;
}

/* Before the workspace is looked at: what a killed run planted there must not count as having been there. */
static void finish_killed_runs(void)
{
	struct ward_err e = { 0 };

	if (store_recover(&e) < 0)
		say_error(&e, false, 0);
}

/* What the process that asked for a detached sandbox says. */
static int tell_detached(const struct options *o, int r, const struct detach_answer *a, const struct ward_err *e)
{
	auto_buf out = { 0 };
	struct json j = { .out = &out };

	if (r < 0)
		return say_error(e, o->json, EXIT_REFUSED);
	if (!a->ready)
		return say_error(&a->error, o->json, EXIT_REFUSED);
	if (o->json) {
		json_begin_object(&j, NULL);
		json_string(&j, "id", a->id);
		json_string(&j, "name", o->name);
		json_end_object(&j);
	} else {
		buf_puts(&out, a->id);
	}
	buf_puts(&out, "\n");
	return say_out(&out, EXIT_FINE);
}

static int run(struct options *o, struct detached *d)
{
	struct ward_err e = { 0 };
	struct result result = { 0 };
	struct report report;
	struct timing timing = { .on = o->verbose };
	struct box_early early;
	struct plan *plan = NULL;
	struct progress shown, *progress = progress_for_terminal(&shown, !o->json);
	struct spec spec;
	uint64_t began;
	int code;

	if (report_open(&report, o->report_file, &e) < 0)
		return refuse(o, &report, d, &e);
	box_begin(&early, &engine_native, &timing);
	early.detached = d;
	began = timing_now(&timing);
	finish_killed_runs();
	if (ask_plan(o, early.system, &spec, &plan, progress, &e) < 0) {
		code = refuse(o, &report, d, &e);
	} else {
		timing_end(&timing, "policy and plan", began);
		result.timing = &timing;
		if (d)
			progress_end(progress);
		box_run(engine_choose(plan), plan, &early, &result);
		progress_end(progress);
		code = finish(o, &report, d, plan, &result);
		result_clear(&result);
		plan_free(plan);
		spec_clear(&spec);
	}
	box_abandon(&early);
	report_close(&report);
	return code;
}

int verb_run(struct options *o)
{
	struct detached detached = { .name = o->name };
	struct detach_answer answer = { 0 };
	struct ward_err e = { 0 };
	int r;

	if (o->name && !o->detach) {
		ward_fail(&e, EINVAL, "--name names a sandbox that is left running");
		ward_remedy(&e, "add -d, or leave the name out");
		return say_usage(&e, o);
	}
	if (!o->detach)
		return run(o, NULL);
	r = detach_fork(&detached, &answer, &e);
	return r == 0 ? run(o, &detached) : tell_detached(o, r, &answer, &e);
}
