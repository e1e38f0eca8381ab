/*
 * Rules that are about what a request asks for (graphql, json_rpc, git), and the head of a request:
 * whether the head alone decides, or the body must be looked into before anything is sent. Pure,
 * fuzzed (fuzz/http_rule.c).
 */
#ifndef WARD_RULES_BODY_HEAD_H
#define WARD_RULES_BODY_HEAD_H

#include "rules/body_rule.h"
#include "rules/decide.h"
#include "rules/http_path.h"

enum body_inspect_kind {
	BODY_INSPECT_NONE,    /* the head says it all */
	BODY_INSPECT_GRAPHQL, /* JSON */
	BODY_INSPECT_GRAPHQL_TEXT,
	BODY_INSPECT_RPC,
	BODY_INSPECT_PUSH /* git-receive-pack */
};

/* Whether the rule's conditions (len bytes, at least one of them of that sort) let the head pass.
 * path: its normal form. */
must_check enum verdict_reason body_inspect_head(const char *conditions, size_t len,
						 const struct http_request *r,
						 const struct http_path *path, struct asked *ret,
						 enum body_inspect_kind *ret_look);

/* Whether the conditions have an entry of this sort: enum policy_http; text NULL: any. */
bool body_inspect_has(const char *conditions, size_t len, char sort, const char *text);
/* Whether one of the patterns of this sort fits; true where there is none. */
bool body_inspect_fits(const char *conditions, size_t len, char sort, const char *text, size_t n);

/* Whether the head is one of git's smart protocol, whatever the rules say. */
bool body_inspect_is_git(const struct http_request *r);

#endif
