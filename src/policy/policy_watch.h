/* A rule of watch.rules and a label of watch.labels, taken apart. */
#ifndef WARD_POLICY_POLICY_WATCH_H
#define WARD_POLICY_POLICY_WATCH_H

#include "policy/policy.h"

#define WATCH_RULES_MAX 64    /* of one policy */
#define WATCH_LABELS_MAX 32   /* likewise */
#define WATCH_CANARIES_MAX 64 /* files of one policy, and hosts */
#define WATCH_CANARY_PATH 200
#define WATCH_NAME_TEXT 72 /* a name and a NUL */

enum metric {
#define METRIC(id, ...) METRIC_##id,
#include "metrics.def"
	METRICS
};

enum metric_unit { METRIC_COUNT, METRIC_BYTES, METRIC_COST, METRIC_SECONDS };
enum watch_do { WATCH_LOG, WATCH_ASK, WATCH_FREEZE, WATCH_KILL, WATCH_DOS };

struct policy_watch {
	char name[WATCH_NAME_TEXT];
	enum metric count;
	uint64_t above;              /* in the unit of the metric */
	uint64_t within_ms;          /* 0: the whole run */
	char after[WATCH_NAME_TEXT]; /* "": from the start on */
	enum watch_do act;
	struct strv except; /* KIND:PATTERN; owned */
};

struct policy_label {
	char name[WATCH_NAME_TEXT];
	struct strv paths, hosts, credentials; /* owned */
};

/* Takes apart one line of canonical JSON, as struct policy holds them. -EINVAL with *e; *ret is
 * empty then. Pure. */
must_check int policy_watch_read(const char *line, struct policy_watch *ret, struct ward_err *e);
void policy_watch_clear(struct policy_watch *w);
must_check int policy_label_read(const char *line, struct policy_label *ret, struct ward_err *e);
void policy_label_clear(struct policy_label *l);

/* Facts of the table. Static text. */
const char *metric_name(enum metric m);
enum metric_unit metric_unit(enum metric m);
const char *metric_help(enum metric m);
unsigned metric_level(enum metric m); /* AUDIT_BASIC to AUDIT_FULL */
const char *watch_do_name(enum watch_do act);

/* Whether all rules and labels of the policy go together: names are used once, each after has its
 * label, ask has somebody to ask. -EINVAL with *e. Pure. */
must_check int policy_watch_check(const struct policy *p, struct ward_err *e);
/* The lowest audit.level that has all events which the rules count, and the rule that needs it
 * (WATCH_NAME_TEXT bytes). AUDIT_BASIC where there is no rule. Pure. */
unsigned policy_watch_level(const struct policy *p, char *ret_rule);
/* The audit.level that has all events of one rule. Pure. */
unsigned policy_watch_needs(const struct policy *p, const struct policy_watch *w);
/* Whether a rule counts that. Pure. */
bool policy_watch_counts(const struct policy *p, enum metric m);

/* Whether text is a value of that kind ("watch_count", "watch_except"). Pure. */
bool watch_has_shape(const char *kind, const char *text, const char **ret_expected,
		     const char **ret_hint);

/* Whether text can be an entry of canary.files. Pure. */
bool watch_is_canary_file(const char *text);
/* Whether text can be an entry of canary.git_remotes. Pure. */
bool watch_is_canary_remote(const char *text);

#endif
