/* Values of a document, checked against the table: from nodes to what struct policy holds. Private
 * to src/policy. */
#ifndef WARD_POLICY_POLICY_VALUE_H
#define WARD_POLICY_POLICY_VALUE_H

#include "policy/node.h"
#include "policy/schema.h"

#define VALUE_PATH 128 /* room for the path of a field or of a key inside a list */

/* "path.key" and "path[index]". */
void value_key_path(char out[VALUE_PATH], const char *path, const char *key);
void value_index_path(char out[VALUE_PATH], const char *path, unsigned index);

/* Records "PATH: expected WHAT, found NODE; hint". */
void value_error(struct reader *r, const char *path, const struct node *n, const char *expected,
		 const char *hint);
/* Records an unknown key of a map: "PATH: unknown ..." with the nearest of the candidates. */
void value_unknown_key(struct reader *r, const char *path, const struct node *n,
		       const struct strv *known);

/* The scalar of a key, borrowed; NULL: there is none. */
const char *value_text_of(const struct node *map, const char *key);
/* Records "PATH.KEY: WHY; hint" at that key, which the map has. */
void value_refuse(struct reader *r, const char *path, const struct node *map, const char *key,
		  const char *why, const char *hint);

/* Each checks one node and records what is wrong with it. True: *ret is set. Strings are borrowed
 * from the node. */
bool value_string(struct reader *r, const char *path, const char *values, const struct node *n,
		  const char **ret);
bool value_enum(struct reader *r, const char *path, const char *values, const struct node *n,
		unsigned *ret);
bool value_bool(struct reader *r, const char *path, const struct node *n, bool *ret);
bool value_number(struct reader *r, const char *path, enum schema_type type, const char *values,
		  const struct node *n, uint64_t *ret);
/* Appends each string to *ret; kind is the row's values: "", "env", "pattern", "service",
 * "host". */
void value_strings(struct reader *r, const char *path, const char *kind, const struct node *n,
		   struct strv *ret);
/* The same, where one string needs no brackets. */
void value_words(struct reader *r, const char *path, const char *kind, const struct node *n,
		 struct strv *ret);
/* One word or a list of words of values. */
void value_enums(struct reader *r, const char *path, const char *values, const struct node *n,
		 struct strv *ret);

/* Whether text is a string of this kind; otherwise *ret_expected says what was expected. A pure
 * function. */
bool value_has_shape(const char *kind, const char *text, const char **ret_expected,
		     const char **ret_hint);

/* Lists of maps: see policy_item.c. */
void item_mounts(struct reader *r, const char *path, const struct node *n,
		 struct policy_mounts *ret);
void item_objects(struct reader *r, const char *path, const char *object, const struct node *n,
		  struct strv *ret);
void item_commands(struct reader *r, const char *path, const struct node *n, struct strv *ret);

/* A value of the command line as a tree: a scalar, or one entry of a list, as it is; what begins
 * with [ or { as JSON or YAML. */
must_check struct node *policy_value_tree(struct reader *r, const struct schema_row *row,
					  const char *value);
bool policy_is_list(const struct schema_row *row);
/* Whether a document is read as JSON: by its name, or because it begins with {. */
bool policy_is_json(const char *name, const uint8_t *bytes, size_t n);
/* A text as YAML has it: plain where every reader takes it for the same string, else quoted. */
void policy_scalar_text(struct buf *out, const char *s);

/* What of a grant does not go together: see policy_grant.c. */
/* the same of a sink: policy_sink.c */
void item_check_sink(struct reader *r, const char *path, const struct node *map);
/* of a rule of watch.rules, and of a label: policy_watch.c */
void item_check_watch(struct reader *r, const char *path, const struct node *map);
void item_check_label(struct reader *r, const char *path, const struct node *map);
void item_check_ssh(struct reader *r, const char *path, const struct node *map);
void item_check_grant(struct reader *r, const char *path, const struct node *map);

/* Takes apart host[:port] of an egress rule. ret_host (256 bytes) is canonical: lower case, no
 * trailing dot, an IPv6 address without brackets, a prefix length behind a slash. *ret_port is 0
 * when none is given. NULL, or what is wrong. */
must_check const char *host_parse(const char *text, bool with_port, char ret_host[256],
				  unsigned *ret_port);

#endif
