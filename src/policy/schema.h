/* The rows of tables/policy.def as data, for the parts of the policy that walk them. Private to
 * src/policy. */
#ifndef WARD_POLICY_SCHEMA_H
#define WARD_POLICY_SCHEMA_H

#include "policy/policy.h"

enum schema_type {
	TYPE_STRING,
	TYPE_ENUM,
	TYPE_BOOL,
	TYPE_UINT,
	TYPE_SIZE,
	TYPE_MEMORY,
	TYPE_CPUS,
	TYPE_SECONDS,
	TYPE_MONEY,
	TYPE_STRINGS,
	TYPE_ENUMS,
	TYPE_MOUNTS,
	TYPE_INGRESS,
	TYPE_GPUS,
	TYPE_TOOLCHAINS,
	TYPE_RULES,
	TYPE_GRANTS,
	TYPE_SSH,
	TYPE_COMMANDS,
	TYPE_SINKS,
	TYPE_PRICES,
	TYPE_WATCH,
	TYPE_LABELS,
	TYPE_CHANNELS,
	TYPE_UINTS, /* only inside items */
	SCHEMA_TYPES
};

enum schema_narrow {
	NARROW_LOWER,
	NARROW_HIGHER,
	NARROW_FEWER,
	NARROW_MORE,
	NARROW_ANY,
	NARROW_SAME
};

/* How a type is held in struct policy. */
enum schema_held { HELD_TEXT, HELD_INDEX, HELD_FLAG, HELD_NUMBER, HELD_LIST, HELD_MOUNTS };

struct schema_row {
	struct policy_row row;
	enum schema_type type;
	enum schema_narrow narrow;
	size_t offset; /* of the member in struct policy */
};

/* A key of a map inside a list. */
struct schema_item {
	enum schema_type type;
	bool required;
	char object[12], name[20], values[28];
	char fallback[12]; /* "": none */
};

struct schema_group {
	char name[16];
};

const struct schema_row *schema_row(enum policy_field field);
/* The row with this path, POLICY_FIELDS if there is none. */
enum policy_field schema_find(const char *path);
const struct schema_group *schema_groups(size_t *ret_count);
/* The next item of object behind item (NULL: the first); NULL at the end. */
const struct schema_item *schema_next_item(const char *object, const struct schema_item *item);
enum schema_held schema_held(enum schema_type type);
/* Where row's value is in p. */
void *schema_member(struct policy *p, const struct schema_row *row);
const void *schema_const_member(const struct policy *p, const struct schema_row *row);

/* Whether "a|b|c" has text as its word number *ret_index. */
bool schema_word(const char *words, const char *text, size_t n, unsigned *ret_index);
/* Word number index of "a|b|c" in a list: its start, *ret_len; NULL behind the last. */
const char *schema_nth_word(const char *words, unsigned index, size_t *ret_len);

/* Parses a number of a row or item ("none" where its values have it) and checks its range. Returns
 * 0, -EINVAL (not such a number) or -ERANGE (not within the range). */
must_check int schema_number(enum schema_type type, const char *values, const char *text,
			     uint64_t *ret_value);
/* "a whole number from 2 to 4194304, or none" and the like; for messages. */
void schema_expected(enum schema_type type, const char *values, struct buf *out);
/* A number of this type as it would be written. */
void schema_number_text(enum schema_type type, uint64_t value, struct buf *out);

/* What policy.c lends to the reader. */
void policy_clear_field(struct policy *p, enum policy_field field);
void policy_mounts_free(struct policy_mounts *m);
/* Appends copies. */
must_check int policy_mounts_add(struct policy_mounts *m, const char *path, const char *at,
				 bool writable);

#endif
