/* JSON of a server as values in an array. What a server sends is not trusted: the reader is strict
 * (rules/json_in.h), and a value that is not there, or of another kind, reads as nothing. Pure,
 * fuzzed (fuzz/remote_answer.c). */
#ifndef WARD_REMOTE_VALUE_H
#define WARD_REMOTE_VALUE_H

#include "base/buf.h"

enum value_kind { VALUE_NONE, VALUE_PLAIN, VALUE_TEXT, VALUE_LIST, VALUE_OBJECT };

struct value {
	enum value_kind kind;
	size_t key, text;   /* places in values.text; of VALUE_PLAIN: number, true, false, null */
	size_t child, next; /* places in values.items; 0: none */
};

#define VALUES_MAX 1000000

struct values {
	struct value *items; /* [0] is the whole; owned */
	size_t len, cap;
	struct buf text;
};

/* Reads all of it. 0, -EINVAL: it is no JSON, or has more than VALUES_MAX values; -ENOMEM. */
must_check int values_read(const uint8_t *bytes, size_t n, struct values *ret);
void values_free(struct values *v);
/* The member of an object; NULL: there is none, or v or of is NULL. */
const struct value *value_get(const struct values *v, const struct value *of, const char *key);
/* The first member or element, and the one behind another; NULL: none. */
const struct value *value_first(const struct values *v, const struct value *of);
const struct value *value_next(const struct values *v, const struct value *of);
/* The text of a string member, "" if there is none. Borrowed. */
const char *value_text(const struct values *v, const struct value *of, const char *key);
/* The key of a member. Borrowed. */
const char *value_key(const struct values *v, const struct value *of);
/* The text of the value itself. */
const char *value_own_text(const struct values *v, const struct value *of);
/* A number that is none or negative is 0. A string of digits is read, too. */
uint64_t value_uint(const struct values *v, const struct value *of, const char *key);
bool value_bool(const struct values *v, const struct value *of, const char *key);
/* Milliseconds since 1970 of a member like 2026-01-02T03:04:05.678Z; 0: none. */
uint64_t value_time_ms(const struct values *v, const struct value *of, const char *key);

#endif
