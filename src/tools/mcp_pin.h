/* What an MCP server says of its tools, in one form, and the digests that pin it. Pure. */
#ifndef WARD_TOOLS_MCP_PIN_H
#define WARD_TOOLS_MCP_PIN_H

#include "tools/tools.h"

/* The pin of a list of tools: "sha256:" and 64 digits. */
void mcp_pin(const struct node *tools, char ret[72]);
/* A JSON value with sorted keys; skip: a key that is left out at the top (NULL: none). */
void mcp_canonical(const struct node *n, const char *skip, struct buf *out);

#endif
