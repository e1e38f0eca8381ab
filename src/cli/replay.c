/*
 * ward check --replay: past runs against a new policy. In: a policy file; runs or files of
 * journals, which are verified first. Out: what was done and would be refused, what was refused and
 * would be allowed, what the record cannot tell; exit status 1 when something would be lost.
 * Changes nothing. Run by ward-explain.
 *
 * The policy is compiled for each run's own workspace by the functions that compile it for a run:
 * rules, and the plan with its mounts and guards. Where that cannot be (the workspace is elsewhere,
 * as in CI), files and limits are not judged, which the output says. replay_judge.c compares.
 */
#include "cli/explain_parts.h"
#include "cli/replay_judge.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "audit/verify.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/ask.h"
#include "event/event.h"
#include "plan/plan.h"
#include "plan/project.h"
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

static bool see(void *ctx, const struct ward_event *v)
{
	struct work *w = ctx;
	struct replay r = { .policy = &w->policy, .rules = w->rules, .workspace = w->workspace };
	enum replay_verdict verdict;
	auto_buf why = { 0 };

	w->events++;
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

/* -- journals */

static int fail_changed(const char *name, uint64_t line, const char *what, struct ward_err *e)
{
	ward_fail(e, EBADMSG, "the journal %.200s was changed: line %" PRIu64 ": %.200s", name,
		  line, what);
	return ward_remedy(e, "ward audit verify shows details; the journal was not used");
}

static int check_run(int audit_fd, const char *run, struct ward_err *e)
{
	struct verify v = { .audit_fd = audit_fd, .began_us = event_now_us() };
	int r = 0;

	verify_index(&v);
	verify_run(&v, run);
	if (v.fault_count)
		r = fail_changed(v.faults[0].file, v.faults[0].line, v.faults[0].what, e);
	else if (v.failed)
		r = ward_fail(e, ENOMEM, "out of memory");
	verify_clear(&v);
	return r;
}

static int replay_run(struct work *w, int audit_fd, const char *run, struct ward_err *e)
{
	int r = check_run(audit_fd, run, e);

	if (r < 0)
		return r;
	w->run = run;
	w->runs++;
	explain_events(audit_fd, run, see, w);
	return 0;
}

/* A file by itself: its chain must hold from its first line on. Judged only after all of it was
 * checked. */
static int replay_file(struct work *w, const char *path, bool judge, struct ward_err *e)
{
	static char scratch[EVENT_LINE_MAX];
	struct chain chain = { 0 };
	struct ward_event v;
	struct lines l;
	const char *line;
	size_t n;
	int r = lines_open(&l, AT_FDCWD, path);

	if (r < 0)
		return ward_fail(e, -r, "cannot open %.300s: %s", path, strerror(-r));
	w->run = path;
	while ((r = lines_next(&l, &line, &n)) > 0) {
		if (!judge && chain_check(&chain, line, n) != CHAIN_FINE) {
			r = fail_changed(
				path, l.number,
				"it does not follow the line before, or is not a journal line", e);
			break;
		}
		if (judge && event_decode(line, n, scratch, &v, NULL))
			see(w, &v);
	}
	if (r == 0 && !judge && l.at < l.len)
		r = fail_changed(path, l.number + 1, "it is truncated", e);
	else if (r == -EBADMSG && !e->code)
		r = fail_changed(path, l.number + 1, "it is too long", e);
	lines_close(&l);
	w->runs += judge;
	return r;
}

static int replay_word(struct work *w, int audit_fd, const char *word, struct ward_err *e)
{
	auto_free char *run = NULL;
	int r;

	if (strchr(word, '/') || access(word, F_OK) == 0) {
		r = replay_file(w, word, false, e);
		return r < 0 ? r : replay_file(w, word, true, e);
	}
	if (audit_fd < 0)
		return ward_fail(e, ENOENT,
				 "there is neither a journal for run %.60s nor such a file", word);
	r = audit_find_run(audit_fd, word, &run, e);
	return r < 0 ? r : replay_run(w, audit_fd, run, e);
}

/* Whether a run was in this workspace. */
static bool is_here(int audit_fd, const char *run, const char *here)
{
	static char scratch[EVENT_LINE_MAX];
	struct ward_event v = event_make(EVENT_RUN_NOTE, ACTION_LOG, NULL);
	const struct event_value *workspace =
		audit_first(audit_fd, run, scratch, &v) ? event_get(&v, FIELD_WORKSPACE) : NULL;

	return workspace && strlen(here) == workspace->len &&
	       memcmp(here, workspace->text, workspace->len) == 0;
}

/* Every run of this workspace; with --all of every one. */
static int replay_all(struct work *w, int audit_fd, struct ward_err *e)
{
	auto_free char *here = NULL, *project = NULL;
	auto_strv runs = { 0 };
	int r = audit_fd < 0 ? ward_fail(e, ENOENT, "there is no journal yet")
			     : lines_runs(audit_fd, &runs, e);

	if (r == 0 && !w->o->all)
		r = workspace_here(&here, e);
	if (r == 0 && here)
		r = project_find(here, &project, NULL, e);
	for (size_t i = 0; i < runs.len && r == 0; i++)
		if (!here || is_here(audit_fd, runs.items[i], project ? project : here))
			r = replay_run(w, audit_fd, runs.items[i], e);
	if (r == 0 && here && !w->runs)
		strv_add(&w->notes, "no run of this workspace is on record; --all compares with "
				    "the runs of every workspace");
	return r;
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
	return r < 0 ? r : rules_compile(&w->policy, 1, &w->rules, e);
}

int check_replay(struct options *o)
{
	struct work w = { .o = o,
			  .file = o->word_count ? o->words[o->word_count - 1] : "ward.yaml" };
	struct ward_err e = { 0 }, journals = { 0 };
	auto_fd audit = place_open(false, &journals);
	auto_buf out = { 0 };
	int r = read_new(&w, &e);

	if (r == 0 && audit < 0 && journals.code != ENOENT) {
		e = journals;
		r = audit;
	}
	w.found = r == 0 ? calloc(GROUPS_MAX + 1, sizeof(*w.found)) : NULL;
	if (r == 0 && !w.found)
		r = ward_fail(&e, ENOMEM, "out of memory");
	if (r == 0 && o->word_count <= 1)
		r = replay_all(&w, audit, &e);
	for (size_t i = 0; i + 1 < o->word_count && r == 0; i++)
		r = replay_word(&w, audit, o->words[i], &e);
	if (r == 0 && o->json)
		put_json(&w, &out);
	else if (r == 0)
		put_text(&w, &out);
	r = r < 0 ? say_error(&e, o->json, EXIT_REFUSED)
		  : say_out(&out, w.counts[REPLAY_LOST] ? EXIT_FINDINGS : EXIT_FINE);
	work_clear(&w);
	return r;
}
