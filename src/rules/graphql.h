/*
 * A GraphQL document: which operation it is, and which fields of the root it asks for. Fragments
 * and inline fragments are followed, an alias is not a name, directives leave nothing out: a field
 * that may be asked for counts. What is not an executable document, or might be read in two ways,
 * is refused. Pure, fuzzed (fuzz/graphql.c).
 */
#ifndef WARD_RULES_GRAPHQL_H
#define WARD_RULES_GRAPHQL_H

#include "base/buf.h"

enum graphql_kind { GRAPHQL_QUERY, GRAPHQL_MUTATION, GRAPHQL_SUBSCRIPTION, GRAPHQL_KINDS };

extern const char graphql_words[GRAPHQL_KINDS][16];

/* Called for each field of the root; false: it is not allowed, and nothing more is looked at. */
typedef bool graphql_field(void *context, enum graphql_kind kind, const char *name, size_t n);

/* Reads a document and asks about each field of the root of the operation that is meant: the one of
 * that name (NULL or "": the only one). NULL: it was read, and *ret_allowed says what came of the
 * questions; else what is wrong with it, a static text. */
must_check const char *graphql_read(const char *text, size_t n, const char *operation,
				    graphql_field *ask, void *context, bool *ret_allowed);

#endif
