/*
 * Looking into the body of a request before anything of it is sent: GraphQL and JSON-RPC wait until
 * the body is whole, a push of git until its commands are there and, where a rule has no force,
 * until its pack proves that it goes forward only. What waits is bounded. The caller keeps the
 * bytes as they came; here is what they say. No I/O.
 */
#ifndef WARD_INSPECT_BODY_INSPECT_H
#define WARD_INSPECT_BODY_INSPECT_H

#include "rules/http_rule.h"

#define BODY_INSPECT_BYTES (1024 * 1024) /* of GraphQL and JSON-RPC */
/* of a pack whose commits have not proven anything yet */
#define BODY_INSPECT_PUSH_BYTES (8 * 1024 * 1024)

struct body_inspect;

enum body_inspect_say {
	BODY_INSPECT_MORE, /* it is not decided yet */
	BODY_INSPECT_PASS,
	BODY_INSPECT_REFUSE
};

/* What came of it. */
struct body_inspect_verdict {
	enum verdict_reason reason;
	int32_t rule; /* that allows it, or that came nearest */
	uint64_t request_limit, response_limit;
	struct asked asked;
};

/* v has looks. NULL: out of memory. */
must_check struct body_inspect *body_inspect_new(const struct http_verdict *v,
						 const struct http_request *r);
void body_inspect_free(struct body_inspect *l);
/* More of the body, as it came; end: that was all. The rules in force may have changed since v was
 * made. */
must_check enum body_inspect_say body_inspect_take(struct body_inspect *l,
						   const struct rules *rules, const uint8_t *bytes,
						   size_t n, bool end);
const struct body_inspect_verdict *body_inspect_verdict(const struct body_inspect *l);
/* What has passed is refused all the same. */
void body_inspect_deny(struct body_inspect *l, enum verdict_reason reason);
/* The rule at which the request was counted before its body was known. */
int32_t body_inspect_first_rule(const struct body_inspect *l);
/* Whether a refusal is said as git says it, behind the whole body; out: that answer, with `message`
 * for the person who pushed. */
bool body_inspect_is_push(const struct body_inspect *l);
must_check bool body_inspect_report(const struct body_inspect *l, const char *message,
				    struct buf *out);
/* What passed, for a person: of a push its refs with their commits, else the body as it is. */
void body_inspect_show(const struct body_inspect *l, struct buf *out);
/* Bytes that it holds. */
size_t body_inspect_size(const struct body_inspect *l);

#endif
