/*
 * Between the front, which reads HTTP, and the server, which calls tools: records over a stream
 * socket, in both directions. Both sides may be the attacker's, so nothing in a record is taken for
 * granted: its length is bounded here, the rest by its reader. A pure buffer, fuzzed
 * (fuzz/mcp_link.c).
 */
#ifndef WARD_MCP_LINK_H
#define WARD_MCP_LINK_H

#include "mcp/http.h"

#define LINK_BYTES_MAX (1u << 30) /* of one record of the server's: a whole answer */

enum link_op {
	/* to the front */
	LINK_SETUP = 1, /* first of all: the digest of the token */
	/* bytes: a message for the stream; 0: for the session's own one. code: of the error that it
	 * is; 0: none */
	LINK_SEND,
	LINK_NOTHING, /* a request of the stream gets no answer */
	/* to the server */
	LINK_MESSAGE, /* bytes: a body that was accepted; session 0: of the stateless revision */
	LINK_LEFT,    /* the client does not wait for the stream any more */
	LINK_END,     /* the session has ended */
	LINK_OPS
};

enum link_flag {
	LINK_LAST = 1,   /* SEND: the answer to one request */
	LINK_PRIMING = 2 /* SEND: the session's revision has events without a message */
};

struct link_head {
	uint32_t op, bytes, stream, session;
	int32_t code;
	uint32_t flags;
};

struct link {
	struct buf in, out; /* owned */
	size_t in_at, out_at;
	uint32_t bytes_max; /* of a record that comes */
};

/* Appends a record to what goes out. */
void link_put(struct link *l, struct link_head head, const void *bytes, uint32_t n);
/* The next record that came. 1: *ret_head and *ret_bytes, until the next call; 0: more is needed;
 * -EPROTO: what came is no record. */
must_check int link_next(struct link *l, struct link_head *ret_head, struct mcp_span *ret_bytes);
/* Adds what was read. */
void link_add(struct link *l, const void *bytes, size_t n);
/* Bytes that wait to be sent, and that some of them were. */
static inline size_t link_waiting(const struct link *l)
{
	return l->out.len - l->out_at;
}
void link_sent(struct link *l, size_t n);
void link_free(struct link *l);

#endif
