/*
 * What events add to the metrics of tables/metrics.def. In: one event, whose texts may be anything.
 * Out: an amount. One function a metric, in the order of the table. Pure but for the state that is
 * passed in.
 *
 * Most metrics are sums over events. bytes_out is reported twice: by samples, a running total, and
 * by the end of each connection; the greater one counts. idle_cpu is no sum: each sample says how
 * much processor time was used since anything came out of the sandbox.
 */
#include "alarm/metric.h"

#include <stdlib.h>
#include <string.h>

#include "event/event.h"
#include "policy/units.h"

#define ENTROPY_RANDOM 790 /* hundredths of a bit per byte; text has 400 to 550, programs 600 */

static uint64_t number(const struct ward_event *v, enum event_field f, uint64_t absent)
{
	const struct event_value *value = event_get(v, f);

	return value ? value->number : absent;
}

static uint64_t times(const struct ward_event *v)
{
	return number(v, FIELD_COUNT, 1);
}

const char *metric_text(const struct ward_event *v, enum event_field f, char *out, size_t cap)
{
	const struct event_value *value = event_get(v, f);

	out[0] = '\0';
	if (!value || value->len >= cap || (value->len && memchr(value->text, 0, value->len)))
		return out;
	if (value->len)
		memcpy(out, value->text, value->len);
	out[value->len] = '\0';
	return out;
}

static bool text_is(const struct ward_event *v, enum event_field f, const char *text)
{
	const struct event_value *value = event_get(v, f);

	return value && value->len == strlen(text) && memcmp(value->text, text, value->len) == 0;
}

/* FNV-1a; never 0. */
static uint64_t hash_of(const struct event_value *value)
{
	uint64_t key = 0xcbf29ce484222325;

	for (size_t i = 0; i < value->len; i++)
		key = (key ^ (unsigned char)value->text[i]) * 0x100000001b3;
	return key ? key : 1;
}

/* Whether it is new. Without memory, and in a full table, everything is. */
static bool is_new(struct metric_seen **seen, const struct event_value *value)
{
	uint64_t key;
	size_t at;

	if (!value || !value->len)
		return false;
	if (!*seen)
		*seen = calloc(1, sizeof(**seen));
	if (!*seen)
		return true;
	key = hash_of(value);
	for (at = key % (METRIC_SEEN_MAX * 2); (*seen)->slots[at];
	     at = (at + 1) % (METRIC_SEEN_MAX * 2))
		if ((*seen)->slots[at] == key)
			return false;
	if ((*seen)->count == METRIC_SEEN_MAX)
		return true;
	(*seen)->slots[at] = key;
	(*seen)->count++;
	return true;
}

void metric_state_clear(struct metric_state *s)
{
	free(s->hosts);
	free(s->names);
	*s = (struct metric_state){ 0 };
}

void metric_note(struct metric_state *s, const struct ward_event *v)
{
	if (v->kind == EVENT_RUN_SAMPLE)
		s->sent_sampled = number(v, FIELD_BYTES_OUT, s->sent_sampled);
	else if (v->kind == EVENT_CLOSE && !text_is(v, FIELD_HOW, "published"))
		s->sent_closed += number(v, FIELD_BYTES_OUT, 0);
}

/* -- one function a metric */

static uint64_t of_DENIALS(unused_arg struct metric_state *s, const struct ward_event *v)
{
	/* the other kinds are about the run, not about what it tried */
	static const uint8_t kinds[] = { EVENT_EXEC,
					 EVENT_SYSCALL,
					 EVENT_FILE_CHANGE,
					 EVENT_FILE_GUARD,
					 EVENT_DNS,
					 EVENT_CONNECT,
					 EVENT_HTTP,
					 EVENT_PACKET,
					 EVENT_WAF,
					 EVENT_CREDENTIAL_USE,
					 EVENT_CREDENTIAL_LEAK,
					 EVENT_CREDENTIAL_SIGN };

	return v->action == ACTION_DENY && memchr(kinds, v->kind, sizeof(kinds)) ? times(v) : 0;
}

static uint64_t of_EXECS(unused_arg struct metric_state *s, const struct ward_event *v)
{
	return v->kind == EVENT_EXEC && v->action != ACTION_DENY ? times(v) : 0;
}

static bool is_connection(const struct ward_event *v)
{
	return v->kind == EVENT_CONNECT && v->action == ACTION_ALLOW &&
	       !text_is(v, FIELD_HOW, "published");
}

static uint64_t of_CONNECTIONS(unused_arg struct metric_state *s, const struct ward_event *v)
{
	return is_connection(v) ? times(v) : 0;
}

static uint64_t of_NEW_HOSTS(struct metric_state *s, const struct ward_event *v)
{
	return is_connection(v) && is_new(&s->hosts, event_get(v, FIELD_HOST));
}

static uint64_t of_NEW_NAMES(struct metric_state *s, const struct ward_event *v)
{
	return v->kind == EVENT_DNS && is_new(&s->names, event_get(v, FIELD_OBJECT));
}

static uint64_t of_REQUESTS(unused_arg struct metric_state *s, const struct ward_event *v)
{
	return v->kind == EVENT_HTTP && v->action != ACTION_DENY ? times(v) : 0;
}

static uint64_t of_PUSHES(unused_arg struct metric_state *s, const struct ward_event *v)
{
	static const char push[] = "git=push";
	const struct event_value *asked = event_get(v, FIELD_ASKED);

	return v->kind == EVENT_HTTP && v->action != ACTION_DENY && asked &&
			       asked->len >= sizeof(push) - 1 &&
			       memcmp(asked->text, push, sizeof(push) - 1) == 0
		       ? times(v)
		       : 0;
}

static uint64_t of_BYTES_OUT(struct metric_state *s, unused_arg const struct ward_event *v)
{
	uint64_t now = s->sent_sampled > s->sent_closed ? s->sent_sampled : s->sent_closed,
		 more = now > s->sent ? now - s->sent : 0;

	s->sent += more;
	return more;
}

static uint64_t of_CREDENTIAL_USES(unused_arg struct metric_state *s, const struct ward_event *v)
{
	return (v->kind == EVENT_CREDENTIAL_USE || v->kind == EVENT_CREDENTIAL_SIGN) &&
			       v->action != ACTION_DENY
		       ? times(v)
		       : 0;
}

static uint64_t of_LEAKS(unused_arg struct metric_state *s, const struct ward_event *v)
{
	return v->kind == EVENT_CREDENTIAL_LEAK ? times(v) : 0;
}

static uint64_t of_SPEND(unused_arg struct metric_state *s, const struct ward_event *v)
{
	char text[64];
	uint64_t cost;

	return v->kind == EVENT_SPEND &&
			       units_parse_money(metric_text(v, FIELD_COST, text, sizeof(text)),
						 &cost) == 0
		       ? cost
		       : 0;
}

static uint64_t of_IDLE_CPU(struct metric_state *s, const struct ward_event *v)
{
	uint64_t traffic;

	if (v->kind != EVENT_RUN_SAMPLE || !event_get(v, FIELD_OUTPUT))
		return 0; /* of a ward that did not report the output */
	traffic = number(v, FIELD_OUTPUT, 0) + number(v, FIELD_BYTES_IN, 0) +
		  number(v, FIELD_BYTES_OUT, 0);
	s->cpu_ms = number(v, FIELD_CPU_MS, 0);
	if (!s->sampled || traffic != s->traffic)
		s->idle_from_ms = s->sampled ? s->cpu_ms : 0;
	s->sampled = true;
	s->traffic = traffic;
	return s->cpu_ms > s->idle_from_ms ? (s->cpu_ms - s->idle_from_ms) / 1000 : 0;
}

static uint64_t of_FILES_READ(unused_arg struct metric_state *s, const struct ward_event *v)
{
	return v->kind == EVENT_FILE_READ ? times(v) : 0;
}

static uint64_t of_FILES_CHANGED(unused_arg struct metric_state *s, const struct ward_event *v)
{
	return v->kind == EVENT_FILE_CHANGE && v->action != ACTION_DENY &&
			       !text_is(v, FIELD_CHANGE, "delete")
		       ? times(v)
		       : 0;
}

static uint64_t of_FILES_DELETED(unused_arg struct metric_state *s, const struct ward_event *v)
{
	return v->kind == EVENT_FILE_CHANGE && v->action != ACTION_DENY &&
			       text_is(v, FIELD_CHANGE, "delete")
		       ? times(v)
		       : 0;
}

static uint64_t of_FILES_ENCRYPTED(unused_arg struct metric_state *s, const struct ward_event *v)
{
	return v->kind == EVENT_FILE_CHANGE && number(v, FIELD_ENTROPY, 0) >= ENTROPY_RANDOM;
}

uint64_t metric_of(struct metric_state *s, enum metric m, const struct ward_event *v, bool *ret_now)
{
	*ret_now = m == METRIC_IDLE_CPU;
	switch (m) {
#define METRIC(id, ...)                                                                            \
	case METRIC_##id:                                                                          \
		return of_##id(s, v);
#include "metrics.def"
	case METRICS:
		break;
	}
	return 0;
}
