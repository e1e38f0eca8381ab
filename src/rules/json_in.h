/*
 * JSON of a request's body, read as strictly as the strictest server would: UTF-8 without a mark in
 * front, the grammar of RFC 8259, bounded depth, and no key twice in one object, at any depth,
 * however it is escaped: two readers that differ in which one counts must not see different
 * requests. Nothing is built; the caller walks. Pure, fuzzed (fuzz/json_rpc.c, fuzz/graphql.c).
 *
 *   struct json_level l;
 *   if (json_in_open(j, '{', &l))
 *           while (json_in_next(j, &l, &key))
 *                   json_in_skip(j);
 *   ... !j->bad
 */
#ifndef WARD_RULES_JSON_IN_H
#define WARD_RULES_JSON_IN_H

#include "base/buf.h"

#define JSON_IN_DEPTH 64

struct json_in {
	const uint8_t *at, *end;
	unsigned depth;
	bool bad;       /* it cannot be understood; nothing more is read */
	uint64_t *keys; /* hashes of the keys of all objects that are open; owned */
	size_t n_keys, cap;
	struct buf key; /* owned */
};

struct json_level {
	size_t first; /* of its keys */
	char close;
	bool some;
};

void json_in_init(struct json_in *j, const uint8_t *bytes, size_t n);
void json_in_free(struct json_in *j);
/* The first character of the next value: { [ " t f n - or a digit; 0: there is none. */
char json_in_peek(struct json_in *j);
/* Enters an object or array; false: the next value is none. */
must_check bool json_in_open(struct json_in *j, char open, struct json_level *ret);
/* The next member or element, whose value must be read then; false: there is none, or j->bad.
 * ret_key: of an object, NUL-terminated; borrowed until the next call. */
must_check bool json_in_next(struct json_in *j, struct json_level *l, const char **ret_key);
/* Any value, unread. */
void json_in_skip(struct json_in *j);
/* A string, without its escapes, appended to out (NULL: nowhere). It has no NUL and no half of a
 * character. */
void json_in_string(struct json_in *j, struct buf *out);
/* Nothing follows. */
must_check bool json_in_end(struct json_in *j);

/* Whether a key is the word but for its case, or might be to a reader that folds letters: such a
 * key is refused beside the word itself. */
bool json_in_resembles(const char *key, const char *word);

/* Whether all of it is UTF-8. */
bool json_in_utf8(const uint8_t *bytes, size_t n);

#endif
