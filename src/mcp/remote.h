/*
 * A session with an MCP server that is not trusted: what it says, as bytes, becomes its definitions
 * and the answers to calls; what it is to be sent is gathered. Pure, fuzzed (fuzz/mcp_remote.c).
 *
 * The server is asked for its revision and its tools, and for nothing else. Requests of its own are
 * refused, but for ping; what is no message, and an answer that is not awaited, is dropped. A
 * server that does not keep to the protocol is broken for good.
 */
#ifndef WARD_MCP_REMOTE_H
#define WARD_MCP_REMOTE_H

#include "mcp/lines.h"

#define REMOTE_CALLS_MAX 64       /* that are open */
#define REMOTE_DROPPED_MAX 16     /* calls that were cancelled and are not answered */
#define REMOTE_TOOLS_MAX 512      /* of one server */
#define REMOTE_OUT_MAX (8u << 20) /* bytes that wait for a server that does not read */

enum remote_state { REMOTE_STARTING, REMOTE_LISTING, REMOTE_READY, REMOTE_BROKEN };

/* Who hears what it says. Spans last as long as the call. */
struct remote_sink {
	void *state;
	/* Its description of itself: the result of initialize. */
	void (*info)(void *state, struct mcp_span result);
	/* A list of its tools begins; one of them; they are all there. */
	void (*list_begins)(void *state);
	void (*tool)(void *state, struct mcp_span tool);
	void (*listed)(void *state);
	/* The result of a call, or (failed) its error's object. */
	void (*answer)(void *state, size_t call, bool failed, struct mcp_span body);
	/* It asked for something that is refused. */
	void (*refused)(void *state, const char *method);
};

struct remote_call {
	uint64_t id; /* 0: free */
	bool dropped;
};

struct mcp_remote {
	enum remote_state state;
	const char *why; /* it is broken; static */
	struct buf out;  /* to be sent; the caller takes from its front */
	struct mcp_lines lines;
	struct remote_call calls[REMOTE_CALLS_MAX];
	uint64_t last_id, asked; /* asked: the id of initialize or tools/list; 0: not awaited */
	unsigned pages, lists, junk;
	size_t tools;
	bool again; /* the list has changed while it was read */
};

/* Asks for initialize. */
void remote_begin(struct mcp_remote *u);
/* Reads what it wrote. */
void remote_add(struct mcp_remote *u, const struct remote_sink *sink, const void *bytes, size_t n);
/* Asks it to call a tool; arguments: a JSON object. *ret_call stands for it until it is answered or
 * dropped. -EBUSY: too many are open; -EPIPE: it is not ready. */
must_check int remote_call(struct mcp_remote *u, const char *tool, struct mcp_span arguments,
			   size_t *ret_call);
/* The answer is not wanted any more: tells the server so. */
void remote_drop(struct mcp_remote *u, size_t call);
/* How many calls it was asked for and has not answered; dropped: of those that are not wanted. */
size_t remote_open(const struct mcp_remote *u, bool dropped);
void remote_free(struct mcp_remote *u);

#endif
