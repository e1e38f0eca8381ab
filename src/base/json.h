/* Writes JSON into a buffer: commas, nesting and escapes are the writer's business, never the
 * caller's. */
#ifndef WARD_BASE_JSON_H
#define WARD_BASE_JSON_H

#include <stdint.h>

#include "base/buf.h"

struct json {
	struct buf *out; /* borrowed */
	unsigned depth;
	bool comma; /* the next value needs a comma in front */
};

/* Begins an object or array; key is NULL inside an array and at the top. */
void json_begin_object(struct json *j, const char *key);
void json_end_object(struct json *j);
void json_begin_array(struct json *j, const char *key);
void json_end_array(struct json *j);
/* A document that is one list: {"key":[ and its end, with a new line. */
void json_begin_list(struct json *j, const char *key);
void json_end_list(struct json *j);

void json_string(struct json *j, const char *key, const char *value); /* NULL value: null */
void json_uint(struct json *j, const char *key, uint64_t value);
void json_int(struct json *j, const char *key, int64_t value);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

/* Appends s as a quoted JSON string; bytes that are not UTF-8 become U+FFFD, control characters are
 * escaped. */
void json_quote(struct buf *out, const char *text);

#endif
