/* What a tool wrote is untrusted: judged before anybody sees it. */
#ifndef WARD_TOOLS_OUTPUT_H
#define WARD_TOOLS_OUTPUT_H

#include "tools/json_schema.h"

/* What was found in an output. */
struct output_verdict {
	bool is_json;    /* the whole of it is one JSON value */
	bool matches;    /* the schema, or there is none */
	unsigned hidden; /* control, turning and hidden characters, and bytes that are not UTF-8 */
	unsigned hidden_line; /* of the first, from 1 */
	struct schema_error why;
};

/* Pure: over n bytes, with a NUL behind them; schema: JSON text or NULL. */
void output_judge(const char *bytes, size_t n, const char *schema, struct output_verdict *ret);

/* The same in a process of its own, which has no rights and ends: a reader that is broken into has
 * nothing. */
must_check int output_judge_apart(const struct buf *bytes, const char *schema,
				  struct output_verdict *ret, struct ward_err *e);

/* Looks for secrets with ward-scan: RULE:LINE of each. */
must_check int output_scan(const struct buf *bytes, struct strv *ret_rules, struct ward_err *e);

#endif
