/* Messages on a stream, one a line: what stdio has. A pure buffer, fuzzed (fuzz/mcp_message.c). */
#ifndef WARD_MCP_LINES_H
#define WARD_MCP_LINES_H

#include "mcp/message.h"

struct mcp_lines {
	struct buf bytes;     /* owned */
	size_t from, scanned; /* the line begins at, and has no end before */
	bool skipping;        /* a line that is too long: up to its end */
};

/* Adds what was read. */
void mcp_lines_add(struct mcp_lines *l, const void *bytes, size_t n);
/* The next line that is not empty, without its end. 1: *ret is one, until the next call; 0: more
 * is needed; -EMSGSIZE: one was longer than MCP_BYTES_MAX and is dropped, the next call goes on
 * behind it; -ENOMEM. */
must_check int mcp_lines_next(struct mcp_lines *l, struct mcp_span *ret);
void mcp_lines_free(struct mcp_lines *l);

#endif
