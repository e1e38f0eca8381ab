/*
 * ward check --replay: past runs against a new policy. In: a policy file; runs or files of
 * journals, which are verified first. Out: what was done and would be refused, what was refused and
 * would be allowed, what the record cannot tell; exit status 1 when something would be lost.
 * Changes nothing. Run by ward-explain.
 *
 * The policy is compiled for each run's own workspace by the functions that compile it for a run:
 * rules, and the plan with its mounts and guards; watch rules count again (replay_watch.c). Where
 * that cannot be (the workspace is elsewhere, as in CI), files and limits are not judged, which the
 * output says. replay_judge.c compares.
 */
#include "cli/explain_parts.h"
#include "cli/replay_journals.h"
#include "cli/replay_judge.h"
#include "cli/replay_watch.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "cli/ask.h"
#include "event/event.h"
#include "plan/plan.h"
#include "plan/spec.h"

#define GROUPS_MAX 1000

struct found {
	char *run, *what, *why; /* owned */
	uint64_t seq, count;
	uint8_t kind, verdict;
};

struct work {
	const struct options *o;
	const char *file;
	struct policy policy;
	struct rules *rules;
	struct found *found; /* owned */
	size_t found_count;
	uint64_t counts[4], more, runs, events;
	struct strv notes;
	struct replay_watch *watch; /* owned; NULL: the policy has no watch rules */
	/* of the run at hand */
	const char *run;
	char *workspace, *profile; /* that spec and plan are for; owned */
	struct rules *own_rules;   /* with that profile; NULL: there is none */
	bool planned;
	struct spec spec;
	struct plan *plan;
	struct path_view view;
	uint64_t limits[LIMITS];
};

static void forget_plan(struct work *w)
{
	if (w->planned) {
		plan_free(w->plan);
		spec_clear(&w->spec);
	}
	w->planned = false;
	w->plan = NULL;
	rules_free(w->own_rules);
	w->own_rules = NULL;
}

static void work_clear(struct work *w)
{
	forget_plan(w);
	free(w->workspace);
	free(w->profile);
	for (size_t i = 0; w->found && i < w->found_count; i++) {
		free(w->found[i].run);
		free(w->found[i].what);
		free(w->found[i].why);
	}
	free(w->found);
	rules_free(w->rules);
	replay_watch_free(w->watch);
	policy_clear(&w->policy);
	strv_free(&w->notes);
}

/* The new policy as it would be carried out in a workspace. */
static void make_plan(struct work *w, const char *workspace, const char *profile)
{
	struct options o = { .verb = VERB_PLAN,
			     .policy_file = w->file,
			     .workspace = workspace,
			     .profile = profile };
	struct ward_err e = { 0 };

	if (w->workspace && strcmp(w->workspace, workspace) == 0 &&
	    strcmp(w->profile ? w->profile : "", profile ? profile : "") == 0)
		return;
	forget_plan(w);
	free(w->workspace);
	free(w->profile);
	w->workspace = strdup(workspace);
	w->profile = profile ? strdup(profile) : NULL;
	w->planned = ask_plan(&o, NULL, &w->spec, &w->plan, NULL, &e) == 0;
	/* what the profile gives is there as it was */
	if (w->planned && profile && rules_compile(&w->spec.policy, 1, &w->own_rules, &e) < 0)
		forget_plan(w);
	if (!w->planned) {
		auto_buf note = { 0 };

		buf_puts(&note, "files, programs and limits of runs in ");
		text_escape(&note, workspace);
		buf_printf(&note, " are not judged: %s", e.why);
		if (!strv_has(&w->notes, buf_text(&note)))
			strv_add(&w->notes, buf_text(&note));
		return;
	}
	w->view = path_view_of(w->plan);
	for (enum limit l = 0; l < LIMITS; l++)
		w->limits[l] = w->plan->limits[l].value;
}

/* -- events */

static void keep(struct work *w, const struct ward_event *v, enum replay_verdict verdict,
		 const char *why)
{
	const struct event_value *count = event_get(v, FIELD_COUNT);
	const struct explain_run about = { 0 };
	auto_explanation x = { 0 };
	struct found *f = w->found;
	uint64_t times = count ? count->number : 1;

	explain_event(v, &about, &x);
	w->counts[verdict] += times;
	for (size_t i = 0; i < w->found_count; i++, f++)
		if (f->verdict == verdict && f->kind == v->kind &&
		    strcmp(f->what, buf_text(&x.what)) == 0 && strcmp(f->why, why) == 0) {
			f->count += times;
			return;
		}
	if (w->found_count == GROUPS_MAX) {
		w->more += times;
		return;
	}
	*f = (struct found){ .run = strdup(w->run),
			     .what = strdup(buf_text(&x.what)),
			     .why = strdup(why),
			     .seq = v->seq,
			     .count = times,
			     .kind = v->kind,
			     .verdict = (uint8_t)verdict };
	w->found_count += f->run && f->what && f->why;
}

static void begin_run(void *ctx, const char *run)
{
	((struct work *)ctx)->run = run;
}

static bool see(void *ctx, const struct ward_event *v)
{
	struct work *w = ctx;
	struct replay r = { .policy = &w->policy, .rules = w->rules, .workspace = w->workspace };
	enum replay_verdict verdict;
	auto_buf why = { 0 };

	w->events++;
	replay_watch_see(w->watch, w->run, v);
	if (v->kind == EVENT_RUN_START) {
		const struct event_value *workspace = event_get(v, FIELD_WORKSPACE);
		auto_free char *path = workspace && workspace->len
					       ? strndup(workspace->text, workspace->len)
					       : NULL;

		const struct event_value *given = event_get(v, FIELD_PROFILE);
		auto_free char *profile =
			given && given->len ? strndup(given->text, given->len) : NULL;

		if (path)
			make_plan(w, path, profile);
		return true;
	}
	if (w->own_rules) {
		r.policy = &w->spec.policy;
		r.rules = w->own_rules;
	}
	if (w->planned) {
		r.view = &w->view;
		r.limits = w->limits;
	}
	verdict = replay_judge(&r, v, &why);
	if (verdict != REPLAY_SAME)
		keep(w, v, verdict, buf_text(&why));
	return true;
}

/* -- telling */

static const char *const verdict_names[] = { "same", "lost", "gained", "unsure" };

static void put_text(const struct work *w, struct buf *out)
{
	static const char titles[][48] = { "", "would be refused:", "would be newly allowed:",
					   "not decided by the record:" };

	for (unsigned k = REPLAY_LOST; k <= REPLAY_UNSURE; k++) {
		if (w->counts[k])
			buf_printf(out, "%s\n", titles[k]);
		for (size_t i = 0; i < w->found_count; i++) {
			const struct found *f = &w->found[i];

			if (f->verdict != k)
				continue;
			buf_puts(out, "  ");
			buf_printf(out, "%s: %s", f->what, f->why);
			if (f->count > 1)
				buf_printf(out, "  (%" PRIu64 " times, first ", f->count);
			else
				buf_puts(out, "  (");
			text_escape(out, f->run);
			buf_printf(out, " #%" PRIu64 ")\n", f->seq);
		}
	}
	replay_watch_text(w->watch, out);
	if (w->more)
		buf_printf(out, "and %" PRIu64 " more\n", w->more);
	for (size_t i = 0; i < w->notes.len; i++)
		buf_printf(out, "note: %s\n", w->notes.items[i]);
	text_escape(out, w->file);
	buf_printf(out,
		   ": %" PRIu64 " runs, %" PRIu64 " events: %" PRIu64 " lost, %" PRIu64
		   " gained, %" PRIu64 " unsure\n",
		   w->runs, w->events, w->counts[REPLAY_LOST], w->counts[REPLAY_GAINED],
		   w->counts[REPLAY_UNSURE]);
}

static void put_json(const struct work *w, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	json_string(&j, "file", w->file);
	json_uint(&j, "runs", w->runs);
	json_uint(&j, "events", w->events);
	for (unsigned k = REPLAY_LOST; k <= REPLAY_UNSURE; k++) {
		json_begin_array(&j, verdict_names[k]);
		for (size_t i = 0; i < w->found_count; i++) {
			const struct found *f = &w->found[i];

			if (f->verdict != k)
				continue;
			json_begin_object(&j, NULL);
			json_string(&j, "run", f->run);
			json_uint(&j, "event", f->seq);
			json_string(&j, "kind", event_kind_name((enum event_kind)f->kind));
			json_string(&j, "what", f->what);
			json_string(&j, "why", f->why);
			json_uint(&j, "count", f->count);
			json_end_object(&j);
		}
		json_end_array(&j);
	}
	replay_watch_json(w->watch, &j);
	json_uint(&j, "more", w->more);
	json_begin_array(&j, "notes");
	for (size_t i = 0; i < w->notes.len; i++)
		json_string(&j, NULL, w->notes.items[i]);
	json_end_array(&j);
	json_end_object(&j);
	buf_puts(out, "\n");
}

/* The policy by itself: valid, and its rules compiled. */
static int read_new(struct work *w, struct ward_err *e)
{
	struct policy_errors errors = { 0 };
	int r = policy_defaults(&w->policy, e);

	if (r == 0)
		r = spec_read_policy(w->file, &w->policy, &errors, e);
	if (errors.lines.len)
		ask_print_errors(&errors);
	strv_free(&errors.lines);
	if (r == 0)
		r = policy_watch_check(&w->policy, e);
	if (r == 0)
		r = replay_watch_create(&w->policy, &w->watch, e);
	return r < 0 ? r : rules_compile(&w->policy, 1, &w->rules, e);
}

int check_replay(struct options *o)
{
	struct work w = { .o = o, .file = o->word_count ? o->words[o->word_count - 1] : NULL };
	struct replay_source source = {
		.begin = begin_run, .see = see, .context = &w, .all = o->all, .notes = &w.notes
	};
	struct ward_err e = { 0 }, journals = { 0 };
	auto_fd audit = place_open(false, &journals);
	auto_free char *found = NULL;
	auto_buf out = { 0 };
	int r = w.file ? 0 : ask_policy_file(&found, &e);

	w.file = w.file ? w.file : found;
	if (r == 0)
		r = read_new(&w, &e);
	if (r == 0 && audit < 0 && journals.code != ENOENT) {
		e = journals;
		r = audit;
	}
	w.found = r == 0 ? calloc(GROUPS_MAX + 1, sizeof(*w.found)) : NULL;
	if (r == 0 && !w.found)
		r = ward_fail(&e, ENOMEM, "out of memory");
	if (r == 0)
		r = replay_journals(&source, audit, o->words, o->word_count ? o->word_count - 1 : 0,
				    &e);
	w.runs = source.runs;
	if (r == 0 && o->json)
		put_json(&w, &out);
	else if (r == 0)
		put_text(&w, &out);
	r = r < 0 ? say_error(&e, o->json, EXIT_REFUSED)
		  : say_out(&out, w.counts[REPLAY_LOST] || replay_watch_stops(w.watch)
					  ? EXIT_FINDINGS
					  : EXIT_FINE);
	work_clear(&w);
	return r;
}
