/* One call of a tool of an MCP server. Private to src/tools. */
#ifndef WARD_TOOLS_MCP_CALL_H
#define WARD_TOOLS_MCP_CALL_H

#include "tools/call.h"

/* arguments: the JSON object. A server whose list of tools is not the pinned one is refused. */
must_check int mcp_call(const struct tools_source *s, const struct call_place *at,
			const struct policy *p, const struct tool_tool *tool, const char *arguments,
			struct call_result *ret, struct ward_err *e);

#endif
