/* A client of an MCP server on standard input and output, which runs in a sandbox. */
#ifndef WARD_TOOLS_MCP_CLIENT_H
#define WARD_TOOLS_MCP_CLIENT_H

#include "tools/call.h"
#include "tools/mcp_pin.h"

#define MCP_MESSAGE_MAX NODE_BYTES_MAX /* bytes of one message */

struct mcp_client {
	pid_t pid;
	int in_fd, out_fd; /* what it reads, what it writes */
	int error_fd;      /* a memfd */
	unsigned next_id;
	struct buf rest; /* read, and not yet a whole line */
};

/* Starts the command under the policy and opens the session. The caller closes *ret in any case. */
must_check int mcp_open(const struct call_place *at, const struct policy *p, char *const *command,
			struct mcp_client *ret, struct ward_err *e);
/* Ends the server and waits. *ret_error (NULL: not wanted) gets what it wrote to standard error. */
void mcp_close(struct mcp_client *c, struct buf *ret_error);

/* Sends a request (params: JSON) and waits for its answer: *ret_result is its result, which lies in
 * *ret_root; the caller frees that. An error of the server is -EREMOTEIO with *e. */
must_check int mcp_request(struct mcp_client *c, const char *method, const char *params,
			   struct node **ret_root, const struct node **ret_result,
			   struct ward_err *e);

/* All tools that the server lists, as one tree: a list of maps. The caller frees. */
must_check int mcp_list(struct mcp_client *c, struct node **ret_tools, struct ward_err *e);

#endif
