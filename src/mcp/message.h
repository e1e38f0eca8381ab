/*
 * Messages of MCP: JSON-RPC 2.0, read as strictly as the strictest peer would. A message is UTF-8
 * without NUL, escaped or not, has no key twice in one object at any depth, at most 64 levels, and
 * no member that another reader could take for one of JSON-RPC's own ("ID", "Method"). Nothing is
 * copied: parts are spans of the bytes that were read. Pure, fuzzed (fuzz/mcp_message.c).
 */
#ifndef WARD_MCP_MESSAGE_H
#define WARD_MCP_MESSAGE_H

#include "base/buf.h"

#define MCP_BYTES_MAX (4u << 20) /* of one message, or of one batch */
#define MCP_ID_MAX 256           /* of an id as JSON, with its NUL */
#define MCP_METHOD_MAX 64
#define MCP_BATCH_MAX 128 /* messages of one batch */

/* Errors of JSON-RPC and of MCP. */
enum mcp_code {
	MCP_PARSE = -32700,
	MCP_INVALID = -32600,
	MCP_NO_METHOD = -32601,
	MCP_BAD_PARAMS = -32602,
	MCP_INTERNAL = -32603,
	MCP_NO_RESOURCE = -32002,
	MCP_HEADER_MISMATCH = -32020,
	MCP_NO_CAPABILITY = -32021,
	MCP_NO_REVISION = -32022
};

/* A JSON value, as it was sent; n is 0 where there is none. */
struct mcp_span {
	const uint8_t *at;
	size_t n;
};

enum mcp_kind { MCP_REQUEST, MCP_NOTIFICATION, MCP_RESULT, MCP_FAILURE };

struct mcp_message {
	enum mcp_kind kind;
	/* As JSON, in one form for equal ids; "": none. Only text and whole numbers are ids;
	 * "null" stands in a failure whose sender did not know one. */
	char id[MCP_ID_MAX];
	char method[MCP_METHOD_MAX];
	struct mcp_span params; /* an object; none where it was left out */
	struct mcp_span body;   /* the result, or the error's object */
};

/* What one line, or one body, holds. */
struct mcp_parts {
	bool batch;
	size_t count; /* 1 where it is no batch */
	struct mcp_span items[MCP_BATCH_MAX];
};

/* Reads all of the bytes and finds the messages in them. 0, or MCP_PARSE or MCP_INVALID with
 * *ret_why (static text): nothing in them may be used. */
must_check int mcp_split(const uint8_t *bytes, size_t n, struct mcp_parts *ret,
			 const char **ret_why);
/* Reads one of those. 0, or MCP_INVALID with *ret_why; ret->id is what can be answered then, and
 * "" where that is not known. */
must_check int mcp_read(struct mcp_span part, struct mcp_message *ret, const char **ret_why);

/* -- values within a message that was accepted */

/* { [ " t f n, 0 for a number, or '\0' - and n == 0 - for none. */
char mcp_type(struct mcp_span v);
/* The member of that name; false: v is no object, or has none. */
bool mcp_get(struct mcp_span v, const char *key, struct mcp_span *ret);
/* Appends a text without its quotes and escapes; false: v is no text. */
bool mcp_text(struct mcp_span v, struct buf *out);
/* Whether v is the text. */
bool mcp_is(struct mcp_span v, const char *word);
/* A whole number up to max; false: v is none, or larger. */
bool mcp_uint(struct mcp_span v, uint64_t max, uint64_t *ret);
/* A text or a whole number in one form for equal ones, as JSON; false: it is neither, or long. */
bool mcp_id(struct mcp_span v, char ret[MCP_ID_MAX]);

/* Calls each() for every member, with its key, or element (key is NULL), until it returns false.
 * True: all were seen. v must be an object or array. */
bool mcp_each(struct mcp_span v, bool (*each)(void *state, const char *key, struct mcp_span value),
	      void *state);

#endif
