/* What one event adds to a metric. Private to src/alarm. */
#ifndef WARD_ALARM_METRIC_H
#define WARD_ALARM_METRIC_H

#include "model/event.h"
#include "policy/policy_watch.h"

#define METRIC_SEEN_MAX 4096 /* hosts, names: more of them all count as new */

/* What was there already: FNV hashes of names. */
struct metric_seen {
	uint64_t slots[METRIC_SEEN_MAX * 2];
	uint32_t count;
};

/* What the metrics remember about the run. */
struct metric_state {
	struct metric_seen *hosts, *names;        /* owned; made when they are needed */
	uint64_t sent_sampled, sent_closed, sent; /* bytes: by samples, by ends; what counted */
	uint64_t cpu_ms, idle_from_ms, traffic;   /* of the last sample */
	bool sampled;
};

/* Notes what the event means for the run; before any metric is asked. */
void metric_note(struct metric_state *s, const struct ward_event *v);
/* What the event adds to the metric, in its unit; *ret_now is set for a metric that is not a sum
 * but has this value now. 0: the event is not about it. Asked once for each metric and event. */
uint64_t metric_of(struct metric_state *s, enum metric m, const struct ward_event *v,
		   bool *ret_now);
void metric_state_clear(struct metric_state *s);

/* The value of a text field, ended by a NUL in cap bytes; "" where there is none or it is too long
 * to be compared. */
const char *metric_text(const struct ward_event *v, enum event_field f, char *out, size_t cap);

#endif
