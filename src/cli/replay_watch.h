/* What watch rules would have done in past runs. */
#ifndef WARD_CLI_REPLAY_WATCH_H
#define WARD_CLI_REPLAY_WATCH_H

#include "base/json.h"
#include "model/event.h"
#include "policy/policy_watch.h"

struct replay_watch;

/* *ret is NULL where the policy, which is borrowed, has no watch rules. All others take NULL. */
must_check int replay_watch_create(const struct policy *p, struct replay_watch **ret,
				   struct ward_err *e);
void replay_watch_free(struct replay_watch *w);
/* One event of a run, in order; the name may go afterwards. */
void replay_watch_see(struct replay_watch *w, const char *run, const struct ward_event *v);
/* Whether a rule that does more than log would have fired. */
bool replay_watch_stops(const struct replay_watch *w);
/* The highest count that a rule came to in any run. */
uint64_t replay_watch_peak(const struct replay_watch *w, size_t rule_number);
/* Whether a run had too low an audit.level for the rule. */
bool replay_watch_is_blind(const struct replay_watch *w, size_t rule_number);
void replay_watch_text(const struct replay_watch *w, struct buf *out);
void replay_watch_json(const struct replay_watch *w, struct json *j);

#endif
