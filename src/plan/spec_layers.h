/* A policy file with what it builds on: its profile, and what it extends. Private to src/plan. */
#ifndef WARD_PLAN_SPEC_LAYERS_H
#define WARD_PLAN_SPEC_LAYERS_H

#include "model/spec.h"

#define LAYERS_MAX 32 /* files and profiles of one policy */
#define LAYERS_DEEP 8 /* how far extends may lead */

/* One document, read. */
struct document {
	char *name; /* for messages */
	char *path; /* absolute, links resolved; NULL: a built-in profile */
	struct buf bytes;
	bool profile; /* it was named, so it is the user's own or built in */
};

struct layers {
	struct document items[LAYERS_MAX]; /* what is extended goes before what extends it */
	size_t count;
	bool profile_said;
	char *profile; /* that the last one that says so names; NULL: none */
};

void layers_clear(struct layers *l);
/* Reads what the document (of the path, links resolved) extends, and takes a copy of the document.
 * Errors of documents are gathered in *errors. */
must_check int layers_gather(struct layers *l, const char *name, const char *path,
			     const struct buf *bytes, struct policy_errors *errors,
			     struct ward_err *e);
/* Reads all of them over s->policy, and notes in *s where they lie. Paths in each are relative to
 * its own directory; those in the last, the file itself, are left for the caller. */
must_check int layers_apply(const struct layers *l, struct spec *s, struct policy_errors *errors,
			    struct ward_err *e);
/* The SHA-256 that trust in the file goes by: of its content, or, where it extends files, of the
 * content of all of them, in order. Profiles are the user's own word and not in it. */
void layers_digest(const struct layers *l, char ret_hex[SHA256_HEX]);
/* Appends the content of the files, each below its name where there are several. */
void layers_text(const struct layers *l, struct buf *out);

#define auto_layers __attribute__((cleanup(layers_clear))) struct layers

#endif
