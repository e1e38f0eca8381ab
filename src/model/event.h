/*
 * One event: what has happened, to what, who did it, which rule decided, what would allow it. Every
 * part of the supervisor reports here; kinds and fields are rows of tables/events.def.
 *
 *	struct ward_event v = event_make(EVENT_CONNECT, ACTION_DENY, "api.example.com:443");
 *
 *	event_text(&v, FIELD_HOST, "api.example.com");
 *	event_number(&v, FIELD_PORT, 443);
 *	event_emit(r->events, &v);
 *
 * Texts are borrowed until event_emit() returns, may hold any bytes, and are escaped and cut where
 * the event is written down.
 */
#ifndef WARD_MODEL_EVENT_H
#define WARD_MODEL_EVENT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_kind {
#define KIND(id, ...) EVENT_##id,
#include "events.def"
	EVENT_KINDS
};

enum event_field {
#define FIELD(id, ...) FIELD_##id,
#include "events.def"
	EVENT_FIELDS
};

enum event_type { EVENT_TEXT, EVENT_LIST, EVENT_NUMBER, EVENT_FLAG };
/* LOG: no process decided, it has happened. */
enum event_action {
	ACTION_LOG,
	ACTION_ALLOW,
	ACTION_DENY,
	ACTION_ASK,
	ACTION_APPROVE,
	EVENT_ACTIONS
};
/* The numbers are OCSF's. */
enum event_severity {
	SEVERITY_INFO = 1,
	SEVERITY_LOW,
	SEVERITY_MEDIUM,
	SEVERITY_HIGH,
	SEVERITY_CRITICAL
};

#define EVENT_VALUES_MAX 24
#define EVENT_LINE_MAX 16384 /* with its newline */
#define EVENT_TIME_TEXT 28   /* 2026-11-15T15:04:55.123456Z and a NUL */
#define EVENT_HASH_TEXT 64   /* hexadecimal digits */

struct event_value {
	uint8_t field; /* enum event_field */
	uint32_t len;  /* of text; a list's words are each ended by a NUL within it */
	uint64_t number;
	const char *text; /* borrowed */
};

struct ward_event {
	uint8_t kind;   /* enum event_kind */
	uint8_t action; /* enum event_action */
	uint8_t count;
	uint64_t seq, time_us; /* given by the process that writes it down; time since 1970, UTC */
	const char *run;       /* likewise; NULL: it is no run's */
	struct event_value values[EVENT_VALUES_MAX]; /* in the order of the table */
};

/* Where events go. Its owner embeds this. */
struct event_sink {
	/* A run begins, the sandbox does not run yet: what cannot be put on record must not happen.
	 * NULL: nothing to do. */
	int (*begin)(struct event_sink *s, const char *run, struct ward_err *e);
	/* Keeps it, and gives it number and time. Texts are borrowed. */
	void (*take)(struct event_sink *s, const struct ward_event *v);
	/* Everything that was taken shall be on record now. An error: it cannot be, and the run
	 * must end. NULL: nothing to do. */
	int (*flush)(struct event_sink *s, struct ward_err *e);
};

#endif
