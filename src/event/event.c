/*
 * Events: making one, and the facts of tables/events.def. In: kinds, fields, borrowed texts. Out:
 * struct ward_event. Pure but for the clock; run in the supervisor, on the start path, so nothing
 * is allocated and every table is a few bytes a row. How an event becomes a line and a line an
 * event again: event_line.c.
 */
#include "event/event.h"

#include <string.h>
#include <time.h>

struct kind_row {
	uint8_t plain, denied, activity;
	uint16_t class;
};

static const struct kind_row kinds[] = {
#define KIND(id, name, plain, denied, class, activity, help)                                       \
	{ SEVERITY_##plain, SEVERITY_##denied, activity, class },
#include "events.def"
};

static const uint8_t types[] = {
#define FIELD(id, name, type, help) EVENT_##type,
#include "events.def"
};

const char *event_kind_name(enum event_kind k)
{
	static const char names[][24] = {
#define KIND(id, name, ...) name,
#include "events.def"
	};

	return k < EVENT_KINDS ? names[k] : "";
}

const char *event_kind_help(enum event_kind k)
{
	switch (k) {
#define KIND(id, name, plain, denied, class, activity, help)                                       \
	case EVENT_##id:                                                                           \
		return help;
#include "events.def"
	case EVENT_KINDS:
		break;
	}
	return "";
}

static bool same(const char *name, const char *text, size_t len)
{
	return strncmp(name, text, len) == 0 && name[len] == '\0';
}

enum event_kind event_kind_find(const char *name, size_t len)
{
	unsigned k = 0;

	while (k < EVENT_KINDS && !same(event_kind_name((enum event_kind)k), name, len))
		k++;
	return (enum event_kind)k;
}

const char *event_action_name(enum event_action a)
{
	static const char names[][8] = { "log", "allow", "deny", "ask", "approve" };

	_Static_assert(ARRAY_LEN(names) == EVENT_ACTIONS, "each action has a name");
	return a < EVENT_ACTIONS ? names[a] : "";
}

enum event_action event_action_find(const char *name, size_t len)
{
	unsigned a = 0;

	while (a < EVENT_ACTIONS && !same(event_action_name((enum event_action)a), name, len))
		a++;
	return (enum event_action)a;
}

const char *event_field_name(enum event_field f)
{
	static const char names[][20] = {
#define FIELD(id, name, type, help) name,
#include "events.def"
	};

	return f < EVENT_FIELDS ? names[f] : "";
}

enum event_type event_field_type(enum event_field f)
{
	return (enum event_type)types[f];
}

enum event_severity event_severity(const struct ward_event *v)
{
	const struct kind_row *row = &kinds[v->kind];

	return (enum event_severity)(v->action == ACTION_DENY ? row->denied : row->plain);
}

const char *event_severity_name(enum event_severity s)
{
	static const char names[][12] = { "", "info", "low", "medium", "high", "critical" };

	return (size_t)s < ARRAY_LEN(names) ? names[s] : "";
}

unsigned event_ocsf_class(enum event_kind k)
{
	return kinds[k].class;
}

unsigned event_ocsf_activity(enum event_kind k)
{
	return kinds[k].activity;
}

/* The place of a field, made if need be; NULL: there is no room. */
static struct event_value *place(struct ward_event *v, enum event_field f)
{
	size_t i = v->count;

	while (i > 0 && v->values[i - 1].field >= f)
		i--;
	if (i == v->count || v->values[i].field != f) {
		/* there is always room to say that something was cut */
		if (v->count >= EVENT_VALUES_MAX - (f != FIELD_CUT))
			return NULL;
		if (i < v->count)
			memmove(&v->values[i + 1], &v->values[i],
				(v->count - i) * sizeof(v->values[0]));
		v->count++;
	}
	v->values[i] = (struct event_value){ .field = (uint8_t)f };
	return &v->values[i];
}

void event_bytes(struct ward_event *v, enum event_field f, const char *text, size_t len)
{
	struct event_value *at = text ? place(v, f) : NULL;

	if (!at)
		return;
	at->text = text;
	at->len = len > EVENT_LINE_MAX ? EVENT_LINE_MAX : (uint32_t)len;
}

void event_text(struct ward_event *v, enum event_field f, const char *text)
{
	event_bytes(v, f, text, text ? strnlen(text, EVENT_LINE_MAX) : 0);
}

void event_list(struct ward_event *v, enum event_field f, const char *words, size_t len)
{
	event_bytes(v, f, words, len);
}

void event_number(struct ward_event *v, enum event_field f, uint64_t number)
{
	struct event_value *at = place(v, f);

	if (at)
		at->number = number;
}

void event_flag(struct ward_event *v, enum event_field f)
{
	event_number(v, f, 1);
}

const struct event_value *event_get(const struct ward_event *v, enum event_field f)
{
	for (size_t i = 0; i < v->count; i++)
		if (v->values[i].field == f)
			return &v->values[i];
	return NULL;
}

struct ward_event event_make(enum event_kind kind, enum event_action action, const char *object)
{
	struct ward_event v;

	v.kind = (uint8_t)kind;
	v.action = (uint8_t)action;
	v.count = 0;
	v.seq = v.time_us = 0;
	v.run = NULL;
	event_text(&v, FIELD_OBJECT, object);
	return v;
}

uint64_t event_now_us(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec < 0 ? 0 : (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}
