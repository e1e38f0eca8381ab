/* Writes MCP's messages, each without a line end, on one line. Ids are JSON, as mcp_read() has
 * them. */
#ifndef WARD_MCP_SAY_H
#define WARD_MCP_SAY_H

#include "mcp/message.h"

/* result, params, data: JSON on one line; NULL params and data: none. */
void mcp_put_result(struct buf *out, const char *id, const struct buf *result);
/* id: "" becomes null. */
void mcp_put_error(struct buf *out, const char *id, int code, const char *message,
		   const char *data);
void mcp_put_notification(struct buf *out, const char *method, const char *params);
void mcp_put_request(struct buf *out, const char *id, const char *method, const char *params);
/* Appends a value that was read, on one line: line ends stand between its tokens only. */
void mcp_put_value(struct buf *out, struct mcp_span value);

#endif
