/*
 * Secrets that this process knows are not put on record. In: events of a run; the values of
 * credentials.grants whose source is a variable of ward's own environment. Out: the same events,
 * with "[secret NAME]" for each value. Run by the supervisor, where the policy has such grants,
 * before the journal and so before every sink, export and report. Secrets of other sources never
 * are in this process: inside there is a placeholder only, and what a user types himself cannot be
 * known here. Short values (less than eight bytes) would be found in everything and are not looked
 * for.
 */
#include "audit/mask.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "event/event.h"
#include "policy/policy_grant.h"

#define SHORTEST 8

struct mask {
	struct event_sink sink;
	struct event_sink *behind; /* borrowed */
	struct strv names, values;
};

static void add_values(struct mask *m, const struct policy_grant *g)
{
	const char *at = g->source;

	while (g->from == GRANT_ENV && at && *at) {
		size_t n = strcspn(at, ",");
		auto_free char *name = strndup(at, n);
		const char *value = name ? getenv(name) : NULL;

		if (value && strlen(value) >= SHORTEST) {
			strv_add(&m->names, g->name);
			strv_add(&m->values, value);
		}
		at += n + (at[n] == ',');
	}
}

static bool holds(const struct mask *m, const struct event_value *v)
{
	for (size_t i = 0; i < m->values.len; i++)
		if (v->len &&
		    memmem(v->text, v->len, m->values.items[i], strlen(m->values.items[i])))
			return true;
	return false;
}

static void put_masked(const struct mask *m, const struct event_value *v, struct buf *out)
{
	const char *at = v->text, *end = at + v->len;

	while (at < end) {
		size_t i = 0;

		while (i < m->values.len &&
		       ((size_t)(end - at) < strlen(m->values.items[i]) ||
			memcmp(at, m->values.items[i], strlen(m->values.items[i])) != 0))
			i++;
		if (i < m->values.len) {
			buf_printf(out, "[secret %s]", m->names.items[i]);
			at += strlen(m->values.items[i]);
		} else {
			buf_add(out, at++, 1);
		}
	}
}

static void take(struct event_sink *s, const struct ward_event *taken)
{
	struct mask *m = (struct mask *)(void *)s;
	struct buf texts[EVENT_VALUES_MAX] = { { 0 } };
	struct ward_event v = *taken;

	for (size_t i = 0; i < v.count; i++) {
		enum event_type type = event_field_type((enum event_field)v.values[i].field);

		if ((type != EVENT_TEXT && type != EVENT_LIST) || !holds(m, &v.values[i]))
			continue;
		put_masked(m, &v.values[i], &texts[i]);
		v.values[i].text = texts[i].failed ? "" : buf_text(&texts[i]);
		v.values[i].len = texts[i].failed ? 0 : (uint32_t)texts[i].len;
	}
	event_emit(m->behind, &v);
	for (size_t i = 0; i < v.count; i++)
		buf_free(&texts[i]);
}

static int begin(struct event_sink *s, const char *run, struct ward_err *e)
{
	return event_begin(((struct mask *)(void *)s)->behind, run, e);
}

static int flush(struct event_sink *s, struct ward_err *e)
{
	return event_flush(((struct mask *)(void *)s)->behind, e);
}

struct mask *mask_create(const struct policy *p, struct event_sink *behind, bool *ret_failed)
{
	struct mask *m = behind && p->cred_grants.len ? calloc(1, sizeof(*m)) : NULL;
	struct ward_err ignored = { 0 };

	*ret_failed = behind && p->cred_grants.len && !m;
	for (size_t i = 0; m && i < p->cred_grants.len; i++) {
		auto_grant g = { 0 };

		if (policy_grant_read(p->cred_grants.items[i], &g, &ignored) == 0)
			add_values(m, &g);
	}
	if (m && (m->values.failed || m->names.failed))
		*ret_failed = true;
	if (m && (*ret_failed || !m->values.len)) {
		mask_free(m);
		return NULL;
	}
	if (m) {
		m->sink = (struct event_sink){ .begin = begin, .take = take, .flush = flush };
		m->behind = behind;
	}
	return m;
}

struct event_sink *mask_events(struct mask *m)
{
	return &m->sink;
}

void mask_free(struct mask *m)
{
	if (!m)
		return;
	strv_free(&m->names);
	strv_free(&m->values);
	free(m);
}
