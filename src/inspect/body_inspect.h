/*
 * Looking into the body of a request before anything of it is sent: GraphQL and JSON-RPC wait until
 * the body is whole, a push of git until its commands are there and, where a rule has no force,
 * until its pack proves that it goes forward only. What waits is bounded. The caller keeps the
 * bytes as they came; here is what they say. No I/O.
 */
#ifndef WARD_INSPECT_BODY_INSPECT_H
#define WARD_INSPECT_BODY_INSPECT_H

#include "rules/http_rule.h"

#define LOOK_BYTES (1024 * 1024) /* of GraphQL and JSON-RPC */
/* of a pack whose commits have not proven anything yet */
#define LOOK_PUSH_BYTES (8 * 1024 * 1024)

struct look;

enum look_say {
	LOOK_MORE, /* it is not decided yet */
	LOOK_PASS,
	LOOK_REFUSE
};

/* What came of it. */
struct look_verdict {
	enum verdict_reason reason;
	int32_t rule; /* that allows it, or that came nearest */
	uint64_t request_limit, response_limit;
	struct asked asked;
};

/* v has looks. NULL: out of memory. */
must_check struct look *look_new(const struct http_verdict *v, const struct http_request *r);
void look_free(struct look *l);
/* More of the body, as it came; end: that was all. The rules in force may have changed since v was
 * made. */
must_check enum look_say look_take(struct look *l, const struct rules *rules, const uint8_t *bytes,
				   size_t n, bool end);
const struct look_verdict *look_verdict(const struct look *l);
/* The rule at which the request was counted before its body was known. */
int32_t look_first_rule(const struct look *l);
/* Whether a refusal is said as git says it, behind the whole body; out: that answer, with `message`
 * for the person who pushed. */
bool look_is_push(const struct look *l);
must_check bool look_report(const struct look *l, const char *message, struct buf *out);
/* Bytes that it holds. */
size_t look_size(const struct look *l);

#endif
