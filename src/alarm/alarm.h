/*
 * Rules about the behaviour of a sandbox (watch.rules): they count what events report, and fire
 * when it is too much. A pure state machine over events: no clock, no I/O. The time comes in as an
 * argument, so that a run of the past is judged as one that happens. What is done when a rule fires
 * is the caller's: run/box_alarm.c.
 */
#ifndef WARD_ALARM_ALARM_H
#define WARD_ALARM_ALARM_H

#include "model/event.h"
#include "policy/policy_watch.h"

#define ALARM_CAUSES 8       /* events that an alert shows: the last ones */
#define ALARM_CAUSE_TEXT 256 /* each of them, with a NUL */
#define ALARM_CHAIN_MAX 16   /* processes */

struct alarm;

/* A rule has fired. */
struct alarm_fire {
	const struct policy_watch *rule; /* borrowed of the alarm */
	size_t rule_number;              /* its place in watch.rules */
	uint64_t value;                  /* the count, in the unit of the metric */
	uint64_t pid;                    /* inside, of the last event that counted; 0: unknown */
	uint64_t seq;                    /* of that event; 0: it has no number yet */
	char why[192];                   /* "61 denials within 60 s, more than 60" */
	unsigned cause_count;
	char causes[ALARM_CAUSES][ALARM_CAUSE_TEXT]; /* oldest first; hold what a sandbox wrote */
};

/* Whether a file of that path is one of the label's; workspace: of the run, NULL: unknown. Pure. */
bool alarm_is_labelled(const struct policy_label *l, const char *workspace, const char *path);

/* The rules of the policy, for a run in that workspace (NULL: unknown). *ret is NULL where the
 * policy has no rule. The policy is not needed any more afterwards. */
must_check int alarm_create(const struct policy *p, const char *workspace, struct alarm **ret,
			    struct ward_err *e);
void alarm_destroy(struct alarm *a);

/* One event, in the order in which they happen; now_ms only ever grows. */
void alarm_see(struct alarm *a, const struct ward_event *v, uint64_t now_ms);
/* The next rule that has fired and was not taken. False: none. */
bool alarm_take(struct alarm *a, struct alarm_fire *ret);
/* A rule does not count before that time (UINT64_MAX: never again in this run). */
void alarm_silence(struct alarm *a, size_t rule_number, uint64_t until_ms);

/* Whether a rule counts what only regular samples (run.sample) tell. */
bool alarm_wants_samples(const struct alarm *a);
/* The highest count that a rule has come to, whether it fired or not. */
uint64_t alarm_peak(const struct alarm *a, size_t rule_number);
size_t alarm_rule_count(const struct alarm *a);
const struct policy_watch *alarm_rule(const struct alarm *a, size_t rule_number);

/* The process and its parents as far as exec events name them, as "PROGRAM (PID)", each ended by a
 * NUL, into *out. */
void alarm_chain(const struct alarm *a, uint64_t pid, struct buf *out);
/* A count with its unit, as a person reads it: "61", "3.2 MB", "0.25", "90 s". */
void alarm_put_count(enum metric m, uint64_t value, struct buf *out);

#endif
