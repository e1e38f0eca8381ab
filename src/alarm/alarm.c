/*
 * The rules of a run and what they have counted. In: events, in order, and the time. Out: rules
 * that have fired. Pure: a run of the past is judged by the same code (ward check --replay). Texts
 * of events are what a sandbox wrote: they are compared, cut and copied, never interpreted.
 *
 * A count within a time is kept in SLOTS slots of a ring, each a part of the window: an event
 * counts for the window and at most one slot longer. A rule fires at most once in REST_MS, and
 * begins anew when it has fired. With `after` a rule counts what happens after the label's first
 * use; the event that uses the label is not one of them.
 */
#include "alarm/alarm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alarm/metric.h"
#include "base/path.h"
#include "event/event.h"
#include "policy/units.h"
#include "rules/http_path.h"

#define SLOTS 64
#define REST_MS 1000
#define PROCESSES 512 /* whose parents are remembered */
#define TEXT_MAX 4096 /* longer ones match no pattern */

struct rule {
	struct policy_watch w;
	int label;                      /* that it waits for; -1: none */
	uint64_t slots[SLOTS], slot_at; /* number of the newest slot since the beginning of time */
	uint64_t total, peak, fired_ms, silent_until_ms;
	bool has_fired, waiting; /* waiting: to be taken */
	uint64_t fired_value, pid, seq;
	unsigned cause_count, cause_next;
	char causes[ALARM_CAUSES][ALARM_CAUSE_TEXT];
};

struct label {
	struct policy_label l;
	bool used;
};

struct process {
	uint64_t pid, ppid;
	char exe[128];
};

struct alarm {
	struct rule *rules; /* owned */
	size_t rule_count;
	struct label *labels; /* owned */
	size_t label_count;
	char *workspace; /* owned; NULL: unknown */
	bool wanted[METRICS];
	struct metric_state state;
	struct process processes[PROCESSES];
	uint64_t now_ms;
};

void alarm_destroy(struct alarm *a)
{
	if (!a)
		return;
	for (size_t i = 0; a->rules && i < a->rule_count; i++)
		policy_watch_clear(&a->rules[i].w);
	for (size_t i = 0; a->labels && i < a->label_count; i++)
		policy_label_clear(&a->labels[i].l);
	metric_state_clear(&a->state);
	free(a->rules);
	free(a->labels);
	free(a->workspace);
	free(a);
}

static int find_label(const struct alarm *a, const char *name)
{
	for (size_t i = 0; i < a->label_count; i++)
		if (strcmp(a->labels[i].l.name, name) == 0)
			return (int)i;
	return -1;
}

static int fill(struct alarm *a, const struct policy *p, struct ward_err *e)
{
	int r = 0;

	for (size_t i = 0; i < p->watch_labels.len && r == 0; i++) {
		r = policy_label_read(p->watch_labels.items[i], &a->labels[i].l, e);
		a->label_count += r == 0;
	}
	for (size_t i = 0; i < p->watch_rules.len && r == 0; i++) {
		struct rule *rule = &a->rules[i];

		r = policy_watch_read(p->watch_rules.items[i], &rule->w, e);
		if (r < 0)
			break;
		a->rule_count++;
		rule->label = rule->w.after[0] ? find_label(a, rule->w.after) : -1;
		a->wanted[rule->w.count] = true;
		if (rule->w.after[0] && rule->label < 0)
			r = ward_fail(e, EINVAL, "watch.rules: %s: there is no label %s",
				      rule->w.name, rule->w.after);
	}
	return r;
}

int alarm_create(const struct policy *p, const char *workspace, struct alarm **ret,
		 struct ward_err *e)
{
	struct alarm *a;
	int r;

	*ret = NULL;
	if (!p->watch_rules.len)
		return 0;
	a = calloc(1, sizeof(*a));
	if (a) {
		a->rules = calloc(p->watch_rules.len, sizeof(*a->rules));
		a->labels = calloc(p->watch_labels.len + 1, sizeof(*a->labels));
		a->workspace = workspace ? strdup(workspace) : NULL;
	}
	if (!a || !a->rules || !a->labels || (workspace && !a->workspace)) {
		alarm_destroy(a);
		return ward_fail(e, ENOMEM, "out of memory");
	}
	r = fill(a, p, e);
	if (r < 0) {
		alarm_destroy(a);
		return r;
	}
	*ret = a;
	return 0;
}

/* -- patterns */

static bool glob(const char *pattern, const char *text)
{
	return http_glob(pattern, strlen(pattern), text, strlen(text));
}

/* A pattern for paths: what does not begin with / or * is of the workspace. */
static bool glob_path(const char *workspace, const char *pattern, const char *path)
{
	size_t n = workspace ? strlen(workspace) : 0;

	if (!*path)
		return false;
	if (*pattern == '/' || *pattern == '*')
		return glob(pattern, path);
	return n && path_is_beneath(path, workspace) && path[n] == '/' &&
	       glob(pattern, path + n + 1);
}

bool alarm_is_labelled(const struct policy_label *l, const char *workspace, const char *path)
{
	for (size_t i = 0; i < l->paths.len; i++)
		if (glob_path(workspace, l->paths.items[i], path))
			return true;
	return false;
}

static bool any_glob(const struct strv *patterns, const char *text)
{
	for (size_t i = 0; *text && i < patterns->len; i++)
		if (glob(patterns->items[i], text))
			return true;
	return false;
}

static bool is_file_event(const struct ward_event *v)
{
	return v->kind == EVENT_FILE_READ || v->kind == EVENT_FILE_CHANGE ||
	       v->kind == EVENT_FILE_GUARD;
}

static bool is_excepted(const struct alarm *a, const struct rule *rule, const struct ward_event *v)
{
	char text[TEXT_MAX];

	for (size_t i = 0; i < rule->w.except.len; i++) {
		const char *kind = rule->w.except.items[i], *pattern = strchr(kind, ':') + 1;

		if (*kind == 'h') {
			metric_text(v, v->kind == EVENT_DNS ? FIELD_OBJECT : FIELD_HOST, text,
				    sizeof(text));
			if (*text && glob(pattern, text))
				return true;
		} else if (strncmp(kind, "pa", 2) == 0) {
			if (is_file_event(v) &&
			    glob_path(a->workspace, pattern,
				      metric_text(v, FIELD_OBJECT, text, sizeof(text))))
				return true;
		} else if (*kind == 'c') {
			bool used =
				v->kind == EVENT_CREDENTIAL_USE || v->kind == EVENT_CREDENTIAL_LEAK;

			metric_text(v, FIELD_OBJECT, text, sizeof(text));
			if (used && *text && glob(pattern, text))
				return true;
		} else {
			bool started = v->kind == EVENT_EXEC;

			metric_text(v, started ? FIELD_OBJECT : FIELD_EXE, text, sizeof(text));
			if (*text && glob(pattern, text))
				return true;
		}
	}
	return false;
}

/* -- labels */

static bool uses(const struct alarm *a, const struct policy_label *l, const struct ward_event *v)
{
	char text[TEXT_MAX];

	if (v->kind == EVENT_FILE_READ) {
		return alarm_is_labelled(l, a->workspace,
					 metric_text(v, FIELD_OBJECT, text, sizeof(text)));
	} else if (v->kind == EVENT_CONNECT && v->action == ACTION_ALLOW) {
		return any_glob(&l->hosts, metric_text(v, FIELD_HOST, text, sizeof(text)));
	} else if (v->kind == EVENT_CREDENTIAL_USE && v->action != ACTION_DENY) {
		return any_glob(&l->credentials, metric_text(v, FIELD_OBJECT, text, sizeof(text)));
	}
	return false;
}

static void see_labels(struct alarm *a, const struct ward_event *v)
{
	for (size_t i = 0; i < a->label_count; i++)
		if (!a->labels[i].used && uses(a, &a->labels[i].l, v))
			a->labels[i].used = true;
}

/* -- processes */

static void see_process(struct alarm *a, const struct ward_event *v)
{
	const struct event_value *pid = event_get(v, FIELD_PID), *ppid = event_get(v, FIELD_PPID);
	struct process *p;

	if (v->kind != EVENT_EXEC || v->action == ACTION_DENY || !pid || !pid->number)
		return;
	p = &a->processes[pid->number % PROCESSES];
	*p = (struct process){ .pid = pid->number, .ppid = ppid ? ppid->number : 0 };
	metric_text(v, FIELD_OBJECT, p->exe, sizeof(p->exe));
}

void alarm_chain(const struct alarm *a, uint64_t pid, struct buf *out)
{
	for (unsigned i = 0; pid && i < ALARM_CHAIN_MAX; i++) {
		const struct process *p = &a->processes[pid % PROCESSES];

		if (p->pid != pid)
			return;
		buf_printf(out, "%s (%" PRIu64 ")", p->exe[0] ? p->exe : "?", pid);
		buf_add(out, "", 1);
		pid = p->ppid;
	}
}

/* -- counting */

static void clear_counts(struct rule *rule)
{
	memset(rule->slots, 0, sizeof(rule->slots));
	rule->total = 0;
	rule->cause_count = rule->cause_next = 0;
}

/* Forgets the slots that the window has left. */
static void advance(struct rule *rule, uint64_t now_ms)
{
	uint64_t width = (rule->w.within_ms + SLOTS - 1) / SLOTS, at;

	if (!width)
		return;
	at = now_ms / width;
	if (at - rule->slot_at >= SLOTS) {
		memset(rule->slots, 0, sizeof(rule->slots));
		rule->total = 0;
	}
	for (; rule->slot_at < at && at - rule->slot_at < SLOTS; rule->slot_at++) {
		uint64_t *oldest = &rule->slots[(rule->slot_at + 1) % SLOTS];

		rule->total -= *oldest;
		*oldest = 0;
	}
	rule->slot_at = at;
}

static void add(struct rule *rule, uint64_t amount, uint64_t now_ms)
{
	uint64_t *slot;

	advance(rule, now_ms);
	slot = &rule->slots[rule->slot_at % SLOTS];
	if (amount > UINT64_MAX / 4 - rule->total)
		amount = UINT64_MAX / 4 - rule->total; /* nothing real counts that far */
	*slot += amount;
	rule->total += amount;
}

/* Keeps what an event was, for the alert. */
static void note_cause(struct rule *rule, const struct ward_event *v)
{
	const struct event_value *object = event_get(v, FIELD_OBJECT), *pid;
	size_t n = object ? object->len : 0;
	char *cause = rule->causes[rule->cause_next];

	if (n > ALARM_CAUSE_TEXT - 48)
		n = ALARM_CAUSE_TEXT - 48;
	snprintf(cause, ALARM_CAUSE_TEXT, "%s %s %.*s", event_kind_name((enum event_kind)v->kind),
		 event_action_name((enum event_action)v->action), (int)n, n ? object->text : "");
	rule->cause_next = (rule->cause_next + 1) % ALARM_CAUSES;
	rule->cause_count += rule->cause_count < ALARM_CAUSES;
	pid = event_get(v, FIELD_PID);
	rule->pid = pid ? pid->number : 0;
	rule->seq = v->seq;
}

static void judge(struct rule *rule, uint64_t now_ms)
{
	if (rule->total > rule->peak)
		rule->peak = rule->total;
	if (rule->total <= rule->w.above || rule->waiting ||
	    (rule->has_fired && now_ms - rule->fired_ms < REST_MS))
		return;
	rule->has_fired = rule->waiting = true;
	rule->fired_ms = now_ms;
	rule->fired_value = rule->total;
}

static void see_rule(struct alarm *a, struct rule *rule, const struct ward_event *v,
		     uint64_t amount, bool now, uint64_t now_ms)
{
	if (now_ms < rule->silent_until_ms || (rule->label >= 0 && !a->labels[rule->label].used) ||
	    is_excepted(a, rule, v))
		return;
	if (now)
		rule->total = amount;
	else
		add(rule, amount, now_ms);
	note_cause(rule, v);
	judge(rule, now_ms);
}

void alarm_see(struct alarm *a, const struct ward_event *v, uint64_t now_ms)
{
	uint64_t amounts[METRICS];
	bool now[METRICS];

	if (v->kind == EVENT_ALERT || v->kind >= EVENT_KINDS)
		return;
	a->now_ms = now_ms = now_ms > a->now_ms ? now_ms : a->now_ms;
	metric_note(&a->state, v);
	see_process(a, v);
	for (unsigned m = 0; m < METRICS; m++) {
		now[m] = false;
		amounts[m] = a->wanted[m] ? metric_of(&a->state, (enum metric)m, v, &now[m]) : 0;
	}
	for (size_t i = 0; i < a->rule_count; i++) {
		struct rule *rule = &a->rules[i];

		if (amounts[rule->w.count])
			see_rule(a, rule, v, amounts[rule->w.count], now[rule->w.count], now_ms);
		else if (now[rule->w.count] && v->kind == EVENT_RUN_SAMPLE)
			rule->total = 0;
	}
	see_labels(a, v);
}

/* -- firing */

static void put_size(uint64_t bytes, struct buf *out)
{
	char text[32];

	units_format_size(bytes, text, sizeof(text));
	buf_puts(out, text);
}

void alarm_put_count(enum metric m, uint64_t value, struct buf *out)
{
	switch (metric_unit(m)) {
	case METRIC_BYTES:
		put_size(value, out);
		break;
	case METRIC_COST:
		units_put_money(value, out);
		break;
	case METRIC_SECONDS:
		buf_printf(out, "%" PRIu64 " s", value);
		break;
	case METRIC_COUNT:
		buf_printf(out, "%" PRIu64, value);
		break;
	}
}

static void put_why(const struct rule *rule, struct alarm_fire *ret)
{
	const struct policy_watch *w = &rule->w;
	auto_buf out = { 0 };

	buf_printf(&out, "%s: ", metric_name(w->count));
	alarm_put_count(w->count, rule->fired_value, &out);
	if (w->within_ms)
		buf_printf(&out, " within %" PRIu64 " s", w->within_ms / 1000);
	if (w->after[0])
		buf_printf(&out, " after %s", w->after);
	buf_puts(&out, ", more than ");
	alarm_put_count(w->count, w->above, &out);
	snprintf(ret->why, sizeof(ret->why), "%s", buf_text(&out));
}

bool alarm_take(struct alarm *a, struct alarm_fire *ret)
{
	for (size_t i = 0; i < a->rule_count; i++) {
		struct rule *rule = &a->rules[i];

		if (!rule->waiting)
			continue;
		ret->rule = &rule->w;
		ret->rule_number = i;
		ret->value = rule->fired_value;
		ret->pid = rule->pid;
		ret->seq = rule->seq;
		put_why(rule, ret);
		ret->cause_count = rule->cause_count;
		for (unsigned k = 0; k < rule->cause_count; k++)
			memcpy(ret->causes[k],
			       rule->causes[(rule->cause_next + ALARM_CAUSES - rule->cause_count +
					     k) %
					    ALARM_CAUSES],
			       ALARM_CAUSE_TEXT);
		rule->waiting = false;
		clear_counts(rule);
		if (rule->w.count == METRIC_IDLE_CPU) /* the same again before it counts anew */
			a->state.idle_from_ms = a->state.cpu_ms;
		return true;
	}
	return false;
}

void alarm_silence(struct alarm *a, size_t rule_number, uint64_t until_ms)
{
	struct rule *rule = &a->rules[rule_number];

	rule->silent_until_ms = until_ms;
	rule->waiting = false;
	clear_counts(rule);
}

bool alarm_wants_samples(const struct alarm *a)
{
	return a && (a->wanted[METRIC_BYTES_OUT] || a->wanted[METRIC_IDLE_CPU]);
}

uint64_t alarm_peak(const struct alarm *a, size_t rule_number)
{
	return a->rules[rule_number].peak;
}

size_t alarm_rule_count(const struct alarm *a)
{
	return a->rule_count;
}

const struct policy_watch *alarm_rule(const struct alarm *a, size_t rule_number)
{
	return &a->rules[rule_number].w;
}
