/*
 * ward watch suggest: thresholds by evidence. In: the journals of past runs, verified. Out: watch
 * rules in YAML that none of these runs would have broken, with what the runs came to as a comment.
 * Each metric is measured by the code that judges rules in a run, with a rule that never fires: in
 * windows of a minute, or in the whole run where a rate says little. Changes nothing. Run by
 * ward-explain.
 */
#include "cli/explain_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "alarm/alarm.h"
#include "base/json.h"
#include "cli/replay_journals.h"
#include "cli/replay_watch.h"
#include "event/event.h"
#include "policy/units.h"

#define NEVER "4611686018427387904" /* more than any run counts */
#define NEVER_COST "1000000000"
#define WINDOW 60

struct measuring {
	struct policy policy;
	struct replay_watch *watch; /* owned */
	struct strv notes;
	const char *run;
};

/* What is measured over the whole run: rare things, and those that only add up. */
static bool is_whole(enum metric m)
{
	return metric_unit(m) != METRIC_COUNT || m == METRIC_LEAKS || m == METRIC_NEW_HOSTS ||
	       m == METRIC_PUSHES;
}

static int make_rules(struct measuring *w, struct ward_err *e)
{
	int r = policy_defaults(&w->policy, e);

	for (unsigned i = 0; i < METRICS && r == 0; i++) {
		enum metric m = (enum metric)i;
		bool cost = metric_unit(m) == METRIC_COST;
		auto_buf rule = { 0 };

		buf_printf(&rule, "{name: %s, count: %s, %s: %s", metric_name(m), metric_name(m),
			   cost ? "above_cost" : "above", cost ? NEVER_COST : NEVER);
		if (!is_whole(m))
			buf_printf(&rule, ", within_seconds: %d", WINDOW);
		buf_puts(&rule, "}");
		r = policy_set(&w->policy, "watch.rules", buf_text(&rule), true, POLICY_CLI, e);
	}
	return r < 0 ? r : replay_watch_create(&w->policy, &w->watch, e);
}

static void begin_run(void *context, const char *run)
{
	((struct measuring *)context)->run = run;
}

static bool see(void *context, const struct ward_event *v)
{
	struct measuring *w = context;

	replay_watch_see(w->watch, w->run, v);
	return true;
}

/* Twice as much, and then the next of 1, 2 and 5 with zeros; 0 stays 0. */
static uint64_t threshold(uint64_t peak)
{
	static const uint64_t steps[] = { 1, 2, 5 };

	for (uint64_t unit = 1; peak && unit < UINT64_MAX / 100; unit *= 10)
		for (size_t i = 0; i < ARRAY_LEN(steps); i++)
			if (steps[i] * unit >= 2 * peak)
				return steps[i] * unit;
	return 0;
}

static void put_above(enum metric m, uint64_t peak, struct buf *out)
{
	if (metric_unit(m) == METRIC_COST) {
		buf_puts(out, "above_cost: ");
		units_put_money(threshold(peak), out);
	} else {
		buf_printf(out, "above: %" PRIu64, threshold(peak));
	}
}

static void put_yaml(const struct measuring *w, uint64_t runs, struct buf *out)
{
	buf_printf(out, "# from %" PRIu64 " run%s\nwatch:\n  rules:\n", runs, runs == 1 ? "" : "s");
	for (unsigned i = 0; i < METRICS; i++) {
		enum metric m = (enum metric)i;
		uint64_t peak = replay_watch_peak(w->watch, i);
		auto_buf most = { 0 };

		if (replay_watch_is_blind(w->watch, i) && !peak)
			continue;
		alarm_put_count(m, peak, &most);
		buf_printf(out, "    - {name: %s, count: %s, ", metric_name(m), metric_name(m));
		put_above(m, peak, out);
		if (!is_whole(m))
			buf_printf(out, ", within_seconds: %d", WINDOW);
		buf_printf(out, "}  # most so far: %s\n", buf_text(&most));
	}
	for (unsigned i = 0; i < METRICS; i++)
		if (replay_watch_is_blind(w->watch, i))
			buf_printf(out, "# %s: some of these runs had an audit.level below %s\n",
				   metric_name((enum metric)i),
				   policy_enum_name(POLICY_F_audit_level,
						    metric_level((enum metric)i)));
}

static void put_json(const struct measuring *w, uint64_t runs, struct buf *out)
{
	struct json j = { .out = out };

	json_begin_object(&j, NULL);
	json_uint(&j, "runs", runs);
	json_begin_array(&j, "rules");
	for (unsigned i = 0; i < METRICS; i++) {
		enum metric m = (enum metric)i;
		uint64_t peak = replay_watch_peak(w->watch, i);

		json_begin_object(&j, NULL);
		json_string(&j, "count", metric_name(m));
		json_uint(&j, "peak", peak);
		json_uint(&j, "above", threshold(peak));
		json_uint(&j, "within_seconds", is_whole(m) ? 0 : WINDOW);
		json_bool(&j, "blind", replay_watch_is_blind(w->watch, i));
		json_end_object(&j);
	}
	json_end_array(&j);
	json_end_object(&j);
	buf_puts(out, "\n");
}

/* Measures all runs that the words name. */
static int measure(struct options *o, struct measuring *w, uint64_t *ret_runs, struct ward_err *e)
{
	struct replay_source source = {
		.begin = begin_run, .see = see, .context = w, .all = o->all, .notes = &w->notes
	};
	auto_fd audit = place_open(false, e);
	int r = audit < 0 ? audit : make_rules(w, e);

	if (r == 0)
		r = replay_journals(&source, audit, o->words + 1, o->word_count - 1, e);
	if (r == 0 && !source.runs) {
		r = ward_fail(e, ENOENT, "no run of this workspace is on record");
		ward_remedy(e, "ward watch suggest --all, or run something first");
	}
	*ret_runs = source.runs;
	return r;
}

int watch_suggest(struct options *o)
{
	struct measuring w = { 0 };
	struct ward_err e = { 0 };
	auto_buf out = { 0 };
	uint64_t runs = 0;
	int r;

	if (strcmp(o->words[0], "suggest") != 0) {
		ward_fail(&e, EINVAL, "watch: unknown word %.80s", o->words[0]);
		ward_remedy(&e, "ward watch suggest");
		return say_usage(&e, o);
	}
	r = measure(o, &w, &runs, &e);
	if (r == 0 && o->json)
		put_json(&w, runs, &out);
	else if (r == 0)
		put_yaml(&w, runs, &out);
	r = r < 0 ? say_error(&e, o->json, EXIT_REFUSED) : say_out(&out, EXIT_FINE);
	replay_watch_free(w.watch);
	policy_clear(&w.policy);
	strv_free(&w.notes);
	return r;
}
