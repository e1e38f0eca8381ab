/* A call from arguments to a judged result: what `ward tool run` and the MCP server do. */
#ifndef WARD_TOOLS_INVOKE_H
#define WARD_TOOLS_INVOKE_H

#include "tools/call.h"

struct invoke_request {
	const struct tools_source *source;
	const struct tool_agent *agent; /* NULL: any */
	const struct tool_tool *tool;
	const struct tools_argument *arguments;
	size_t count;
	const struct buf *input; /* standard input; NULL: none */
	/* Asks a person where the tool wants that: 0 yes, -errno with *e. NULL: no one can be
	 * asked, which is a no. */
	int (*approve)(const struct invoke_request *r, const struct tools_call *call,
		       struct ward_err *e);
	bool approved; /* a person has agreed to this call already */
};

struct invoke_result {
	bool ok;      /* exit 0, and the output may be used */
	bool blocked; /* the output must not be used: why says why */
	struct call_result call;
	struct output_verdict verdict;
	struct strv findings; /* what was found in the output, one line each */
	char why[1024];       /* harmless for a terminal */
};

/* -errno with *e: nothing was started, or ward failed; policy errors are in *errors. The caller
 * frees *ret with invoke_free() in any case. */
must_check int tools_invoke(const struct invoke_request *r, struct invoke_result *ret,
			    struct policy_errors *errors, struct ward_err *e);
void invoke_free(struct invoke_result *r);

/* The policy that a tool's calls run under; -EPERM with *e: the scope is wider than the agent's
 * policy. The caller clears *ret. */
must_check int tools_make_policy(const struct tools_source *s, const struct tool_agent *agent,
				 const struct tool_tool *tool, const char *empty,
				 struct policy *ret, struct policy_errors *errors,
				 struct ward_err *e);

/* The result as one JSON object. */
void invoke_json(const struct tool_tool *tool, const struct invoke_result *r, struct buf *out);

#endif
