/*
 * Watch rules over past runs. In: a policy, events of journals in their order. Out: which rules
 * would have fired, where first and how often; which could not see what they count, because the
 * run's audit.level was too low. The rules are judged by the code that judges them in a run
 * (src/alarm), by the times of the events. What would have followed is unknown: a run that would
 * have been stopped is read to its end.
 */
#include "cli/replay_watch.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "alarm/alarm.h"
#include "base/text.h"
#include "event/event.h"

struct fired {
	uint64_t count, seq, peak;
	char run[200], why[192]; /* of the first time */
	bool blind;
};

struct replay_watch {
	const struct policy *policy; /* borrowed */
	struct alarm *alarm;         /* of the run at hand */
	char run[200];
	struct fired fired[WATCH_RULES_MAX];
	struct policy_watch rules[WATCH_RULES_MAX];
	size_t rule_count;
};

int replay_watch_create(const struct policy *p, struct replay_watch **ret, struct ward_err *e)
{
	struct replay_watch *w;

	*ret = NULL;
	if (!p->watch_rules.len)
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return ward_fail(e, ENOMEM, "out of memory");
	w->policy = p;
	for (; w->rule_count < p->watch_rules.len && w->rule_count < WATCH_RULES_MAX;
	     w->rule_count++)
		if (policy_watch_read(p->watch_rules.items[w->rule_count], &w->rules[w->rule_count],
				      e) < 0) {
			replay_watch_free(w);
			return -e->code;
		}
	*ret = w;
	return 0;
}

/* The run at hand is over. */
static void finish_run(struct replay_watch *w)
{
	for (size_t i = 0; w->alarm && i < w->rule_count; i++)
		if (alarm_peak(w->alarm, i) > w->fired[i].peak)
			w->fired[i].peak = alarm_peak(w->alarm, i);
	alarm_destroy(w->alarm);
	w->alarm = NULL;
}

void replay_watch_free(struct replay_watch *w)
{
	if (!w)
		return;
	finish_run(w);
	for (size_t i = 0; i < w->rule_count; i++)
		policy_watch_clear(&w->rules[i]);
	free(w);
}

static bool text_is(const struct event_value *value, const char *text)
{
	return value && value->len == strlen(text) && memcmp(value->text, text, value->len) == 0;
}

static void note_level(struct replay_watch *w, const struct ward_event *v)
{
	const struct event_value *level = event_get(v, FIELD_LEVEL);
	unsigned had = text_is(level, "full")     ? AUDIT_FULL
		       : text_is(level, "writes") ? AUDIT_WRITES
		       : text_is(level, "exec")   ? AUDIT_EXEC
						  : AUDIT_BASIC;

	for (size_t i = 0; i < w->rule_count; i++)
		if (policy_watch_needs(w->policy, &w->rules[i]) < had)
			w->fired[i].blind = true;
}

static void begin_run(struct replay_watch *w, const char *run, const struct ward_event *v)
{
	const struct event_value *place = event_get(v, FIELD_WORKSPACE);
	auto_free char *workspace =
		v->kind == EVENT_RUN_START && place ? strndup(place->text, place->len) : NULL;
	struct ward_err ignored = { 0 };

	finish_run(w);
	snprintf(w->run, sizeof(w->run), "%s", run);
	if (v->kind == EVENT_RUN_START)
		note_level(w, v);
	(void)!alarm_create(w->policy, workspace, &w->alarm, &ignored);
}

void replay_watch_see(struct replay_watch *w, const char *run, const struct ward_event *v)
{
	struct alarm_fire f;

	if (!w)
		return;
	if (v->kind == EVENT_RUN_START || !w->alarm || strcmp(w->run, run) != 0)
		begin_run(w, run, v);
	if (!w->alarm)
		return;
	alarm_see(w->alarm, v, v->time_us / 1000);
	while (alarm_take(w->alarm, &f)) {
		struct fired *fired = &w->fired[f.rule_number];

		if (!fired->count++) {
			fired->seq = f.seq;
			snprintf(fired->run, sizeof(fired->run), "%s", run);
			snprintf(fired->why, sizeof(fired->why), "%s", f.why);
		}
	}
}

bool replay_watch_stops(const struct replay_watch *w)
{
	for (size_t i = 0; w && i < w->rule_count; i++)
		if (w->fired[i].count && w->rules[i].act != WATCH_LOG)
			return true;
	return false;
}

uint64_t replay_watch_peak(const struct replay_watch *w, size_t rule_number)
{
	uint64_t now = w->alarm ? alarm_peak(w->alarm, rule_number) : 0;

	return now > w->fired[rule_number].peak ? now : w->fired[rule_number].peak;
}

bool replay_watch_is_blind(const struct replay_watch *w, size_t rule_number)
{
	return w->fired[rule_number].blind;
}

void replay_watch_text(const struct replay_watch *w, struct buf *out)
{
	bool titled = false;

	for (size_t i = 0; w && i < w->rule_count; i++) {
		const struct fired *f = &w->fired[i];

		if (!f->count)
			continue;
		if (!titled)
			buf_puts(out, "watch rules that would have fired:\n");
		titled = true;
		buf_printf(out, "  %s (%s): %s  (", w->rules[i].name,
			   watch_do_name(w->rules[i].act), f->why);
		if (f->count > 1)
			buf_printf(out, "%" PRIu64 " times, first ", f->count);
		text_escape(out, f->run);
		buf_printf(out, " #%" PRIu64 ")\n", f->seq);
	}
	for (size_t i = 0; w && i < w->rule_count; i++)
		if (w->fired[i].blind)
			buf_printf(out,
				   "note: the watch rule %s cannot be judged in runs whose "
				   "audit.level was below %s\n",
				   w->rules[i].name,
				   policy_enum_name(POLICY_F_audit_level,
						    policy_watch_needs(w->policy, &w->rules[i])));
}

void replay_watch_json(const struct replay_watch *w, struct json *j)
{
	json_begin_array(j, "alerts");
	for (size_t i = 0; w && i < w->rule_count; i++) {
		const struct fired *f = &w->fired[i];

		json_begin_object(j, NULL);
		json_string(j, "rule", w->rules[i].name);
		json_string(j, "do", watch_do_name(w->rules[i].act));
		json_uint(j, "count", f->count);
		json_uint(j, "peak", replay_watch_peak(w, i));
		json_bool(j, "blind", f->blind);
		if (f->count) {
			json_string(j, "why", f->why);
			json_string(j, "run", f->run);
			json_uint(j, "event", f->seq);
		}
		json_end_object(j);
	}
	json_end_array(j);
}
