/* Accepting what a server says of itself: ward mcp trust, and ward learn --mcp. */
#ifndef WARD_CLI_MCP_TRUST_H
#define WARD_CLI_MCP_TRUST_H

#include "cli/mcp/wrap.h"

/* On a connection of a relay that was asked for definitions: waits for them. */
must_check int trust_take(int fd, struct buf *ret, struct ward_err *e);
/* Reads what it answered. The caller frees *ret. */
must_check int trust_read(const struct buf *text, struct node **ret, struct ward_err *e);
/* Shows it on standard error, and accepts it without a question. */
must_check int trust_accept(const struct source *s, const struct node *said, struct ward_err *e);

#endif
