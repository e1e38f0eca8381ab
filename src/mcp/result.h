/* The result of a tool, from a server that is not trusted, put together anew: the forms that MCP
 * knows and nothing else. Pure, fuzzed (fuzz/mcp_remote.c). */
#ifndef WARD_MCP_RESULT_H
#define WARD_MCP_RESULT_H

#include "mcp/message.h"

#define RESULT_PARTS_MAX 1000

struct mcp_result {
	struct buf members; /* of the result, JSON without braces: for the client */
	/* each text in it, as it was sent, a line each: for a look for secrets */
	struct buf text;
	struct mcp_span structured; /* of the bytes that were read; none: there is none */
	bool failed;                /* isError */
	size_t hidden;              /* texts in which something hid, or acted on a terminal */
	bool odd; /* a key did: it is refused, as no escape of it is the same key */
};

/* Reads one. Characters that hide, turn text around or act on a terminal become visible escapes.
 * False with *ret_why (static): it is no result. The caller frees *ret in any case. */
must_check bool mcp_result_read(struct mcp_span result, struct mcp_result *ret,
				const char **ret_why);
void mcp_result_free(struct mcp_result *r);

#endif
