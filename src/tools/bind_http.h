/* The argv of a tool that is an HTTP request. Private to src/tools. */
#ifndef WARD_TOOLS_BIND_HTTP_H
#define WARD_TOOLS_BIND_HTTP_H

#include "tools/bind.h"

/* Fills call->argv and call->body from call's values. */
must_check int bind_http(const struct tool_tool *tool, struct tools_call *call, struct ward_err *e);

#endif
