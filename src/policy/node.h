/* A document as a tree with positions, whichever syntax it came in, and the errors of its reader.
 * Private to src/policy. */
#ifndef WARD_POLICY_NODE_H
#define WARD_POLICY_NODE_H

#include "policy/policy.h"

#define NODE_DEPTH_MAX 32
#define NODE_BYTES_MAX (1024 * 1024)
#define NODE_KEYS_MAX 256 /* of one map; the search for doubles is quadratic */

enum node_kind {
	NODE_NULL,
	NODE_BOOL,   /* text is "true" or "false" */
	NODE_NUMBER, /* JSON only */
	/* YAML, not quoted, neither null nor a bool: a number or a string, as the field wants it */
	NODE_WORD,
	NODE_STRING,
	NODE_LIST,
	NODE_MAP
};

struct node {
	enum node_kind kind;
	unsigned line, column; /* from 1, in characters */
	char *text;            /* of a scalar; behind the node itself, no NUL within */
	char *key;             /* in a map; owned */
	unsigned key_line, key_column;
	/* For the editor (policy_edit.c): where it and its key begin, and where it ends, in
	 * characters from the start (a document has at most NODE_BYTES_MAX). The end of a list or
	 * map is that of its closing bracket; one that has none (flow is false) ends with its last
	 * child. */
	unsigned key_from, from, to;
	bool flow;                 /* a list or map in brackets */
	bool block;                /* a text of several lines behind | or > */
	unsigned count;            /* of children */
	struct node *first, *last; /* children; owned */
	struct node *next;
};

/* Where errors go: to a list with file and position, or, for one value of the command line, to
 * *e. */
struct reader {
	const char *name;             /* of the file */
	struct policy_errors *errors; /* borrowed; NULL: e is used */
	struct ward_err *e;
	unsigned count; /* of errors */
};

struct place {
	unsigned line, column;
};

/* Records "FILE:LINE:COLUMN: message; hint" (hint NULL: none). */
void reader_error(struct reader *r, struct place at, const char *hint, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
void reader_out_of_memory(struct reader *r);

/* A new node with a copy of n bytes of text (NULL: none); NULL and an error when out of memory. */
must_check struct node *node_new(struct reader *r, enum node_kind kind, struct place at,
				 const char *text, size_t n);
void node_free(struct node *n);
/* Adds child to a list or, under its key, to a map. Takes child. A double key, or too many, is an
 * error and freed. */
void node_add(struct reader *r, struct node *parent, struct node *child);
/* The child with this key, NULL if there is none. */
const struct node *node_get(const struct node *map, const char *key);
/* "a list", "a map", "null", "true", or the text in quotes: what stands there, for messages. */
void node_show(struct buf *out, const struct node *n);

/* The document's tree, also where something in it was refused (see r->count), so that the rest can
 * be checked; NULL for an empty document and where the syntax breaks off. The caller frees. */
must_check struct node *yaml_read(struct reader *r, const uint8_t *bytes, size_t n);
must_check struct node *json_read(struct reader *r, const uint8_t *bytes, size_t n);

#define auto_node __attribute__((cleanup(node_free_ptr))) struct node *
static inline void node_free_ptr(struct node **n)
{
	node_free(*n);
}

#endif
