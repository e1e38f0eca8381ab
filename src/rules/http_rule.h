/*
 * What a rule says about HTTP, asked about one request. Of each kind of condition that the rule
 * has, one must be met (of headers all); of the rules for one host, one must allow the request.
 * Pure, fuzzed (fuzz/http_rule.c).
 */
#ifndef WARD_RULES_HTTP_RULE_H
#define WARD_RULES_HTTP_RULE_H

#include "rules/body_head.h"
#include "rules/decide.h"
#include "rules/http_message.h"
#include "rules/http_path.h"

#define HTTP_LOOKS 16

/* A rule that allows the request if its body fits. */
struct http_look {
	int32_t rule;
	/* enum body_inspect_kind; NONE: whatever the body is, if a person says yes */
	uint8_t kind;
	uint64_t request_limit, response_limit;
};

/* What was decided about a request. */
struct http_verdict {
	uint8_t reason; /* enum verdict_reason; REASON_ALLOWED */
	/* that allows it (rules->items[rule].ask: when a person has said yes), or came nearest */
	int32_t rule;
	uint64_t request_limit, response_limit; /* RULE_NONE: no limit */
	/* as it is to be forwarded: into the request, or into *room */
	struct http_text path;
	struct asked asked; /* graphql, json_rpc and git: what for */
	bool ask;           /* allowed after a person's yes; with looks, their rules say that */
	/* > 0: allowed if one of these rules allows its body, too */
	unsigned n_looks;
	struct http_look looks[HTTP_LOOKS];
};

/* Whether rule, or one for the same host and port behind it, allows the request. room: for the
 * normal path. */
void http_decide(const struct rules *r, int32_t rule, uint16_t port,
		 const struct http_request *request, struct http_path *room,
		 struct http_verdict *ret);

#endif
