/* What rules and grants may say about HTTP, entry by entry. Private to src/policy. */
#ifndef WARD_POLICY_POLICY_HTTP_H
#define WARD_POLICY_POLICY_HTTP_H

#include "policy/policy.h"

/* Whether text is an entry of this shape: method, path, parameter, condition (a header's), media,
 * graphql, json_rpc, git, repository, ref. True for shapes that are none of these. *ret_hint may be
 * left alone. A pure function. */
bool http_shape(const char *shape, const char *text, const char **ret_expected,
		const char **ret_hint);

/* Whether all of it is ASCII that shows. */
bool http_is_printable(const char *s);

/* Writes an entry of this shape as the gateway compares it: methods in upper case, names of headers
 * in lower case. Never longer than it was. */
void http_canonical(const char *shape, char *text);

/* What of a rule map does not go together; see policy_item.c. */
struct reader;
struct node;
void http_check_rule(struct reader *r, const char *path, const struct node *map);

#endif
