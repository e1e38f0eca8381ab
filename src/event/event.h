/* Making, reporting, writing and reading events. */
#ifndef WARD_EVENT_EVENT_H
#define WARD_EVENT_EVENT_H

#include "model/event.h"

/* An event without fields but its object (NULL: none). */
struct ward_event event_make(enum event_kind kind, enum event_action action, const char *object);
/* Sets a field; one that is set already is replaced, a NULL text and one field too many are left
 * out. */
void event_text(struct ward_event *v, enum event_field f, const char *text);
void event_bytes(struct ward_event *v, enum event_field f, const char *text, size_t len);
/* Words that are each ended by a NUL. */
void event_list(struct ward_event *v, enum event_field f, const char *words, size_t len);
void event_number(struct ward_event *v, enum event_field f, uint64_t number);
void event_flag(struct ward_event *v, enum event_field f);
/* The value of a field; NULL: it has none. */
const struct event_value *event_get(const struct ward_event *v, enum event_field f);

/* Reports it. A sink of NULL: nothing is done. */
static inline void event_emit(struct event_sink *s, const struct ward_event *v)
{
	if (s)
		s->take(s, v);
}

/* The same for its other words. */
static inline int event_begin(struct event_sink *s, const char *run, struct ward_err *e)
{
	return s && s->begin ? s->begin(s, run, e) : 0;
}

static inline int event_flush(struct event_sink *s, struct ward_err *e)
{
	return s && s->flush ? s->flush(s, e) : 0;
}

/* Names and facts of the tables. */
const char *event_kind_name(enum event_kind k);
const char *event_kind_help(enum event_kind k);
/* EVENT_KINDS: there is no such kind. */
enum event_kind event_kind_find(const char *name, size_t len);
const char *event_action_name(enum event_action a);
enum event_action event_action_find(const char *name, size_t len);
const char *event_field_name(enum event_field f);
enum event_type event_field_type(enum event_field f);
enum event_severity event_severity(const struct ward_event *v);
const char *event_severity_name(enum event_severity s);
unsigned event_ocsf_class(enum event_kind k);
unsigned event_ocsf_activity(enum event_kind k);

/* "2026-11-15T15:04:55.123456Z". Pure. */
void event_time_text(uint64_t time_us, char ret[EVENT_TIME_TEXT]);
/* Reads that form, and no other, from n bytes. Pure. */
bool event_time_read(const char *text, size_t n, uint64_t *ret_us);
/* Now, by the wall clock. */
uint64_t event_now_us(void);

/* One line of JSON with its newline, always less than EVENT_LINE_MAX: whatever bytes the texts
 * hold, it is one object, its keys are ours, and nothing in it acts on a terminal. What is too long
 * is cut, and the line says so. Returns its length. Pure. */
size_t event_encode(const struct ward_event *v, char out[EVENT_LINE_MAX]);

/* The reverse, of one line with or without its newline: exactly what event_encode() writes, with
 * `"hash":"..."` as a last key or without one. False: it is something else. Texts of *ret lie in
 * scratch (EVENT_LINE_MAX bytes), *ret_hash (may be NULL) points into the line or is NULL where
 * there is none. Pure. */
bool event_decode(const char *line, size_t n, char scratch[EVENT_LINE_MAX], struct ward_event *ret,
		  const char **ret_hash);

/* The tail that binds a line to the one before: `,"hash":"` 64 digits `"}` newline. */
#define EVENT_TAIL (9 + EVENT_HASH_TEXT + 3)

#endif
