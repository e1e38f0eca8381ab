/*
 * What a rule says about the body of a request: GraphQL operations and fields, JSON-RPC methods.
 * Asked about a body that is whole. What cannot be understood in one way only is refused. Pure,
 * fuzzed (fuzz/graphql.c, fuzz/json_rpc.c).
 *
 * GraphQL comes as JSON in a POST ({query, operationName, variables, extensions}, or a list of
 * them), as application/graphql, or as the parameter "query" of a GET. A request that leaves the
 * text to the server (a persisted query, by extensions.persistedQuery or by a key of its own)
 * passes where the rule says "persisted". JSON-RPC comes in a POST, one message or a list; an
 * answer to the server (result or error, no method) passes.
 */
#ifndef WARD_RULES_BODY_RULE_H
#define WARD_RULES_BODY_RULE_H

#include "rules/http_message.h"

/* What was asked for, as the rule would name it. */
#define ASKED_MORE 208

struct asked {
	/* "graphql=mutation:addStar", the first that is not allowed; of what is allowed all, as far
	 * as they go in; "..." where it was cut */
	char text[176];
	/* for the remedy: "use=push+force ref=refs/heads/x" of git, "mixed=1" where others were
	 * asked for, too */
	char more[ASKED_MORE];
	/* it cannot be understood: why, a static text; NULL: it was */
	const char *wrong;
};

/* conditions: of the rule, len bytes. True: all of it is allowed. */
must_check bool graphql_body_fits(const char *conditions, size_t len, const uint8_t *bytes,
				  size_t n, struct asked *ret);
must_check bool graphql_text_fits(const char *conditions, size_t len, const char *text, size_t n,
				  struct asked *ret);
/* Of a GET. */
must_check bool graphql_query_fits(const char *conditions, size_t len, struct http_text query,
				   struct asked *ret);
must_check bool rpc_body_fits(const char *conditions, size_t len, const uint8_t *bytes, size_t n,
			      struct asked *ret);

/* Whether the URL has a parameter that a GraphQL server might take for a part of the request. */
bool graphql_query_speaks(struct http_text query);

/* Appends a word: what is not printable, or ends words, becomes "?". */
void asked_add(struct asked *a, const char *text, size_t n);

#endif
