/*
 * Streamable HTTP: what the head and the body of a request say, and whether it may come in at all.
 * Every check that needs no state is here: Host and Origin (pages of a browser, DNS rebinding), the
 * bearer token, the form of the request, headers that must agree with the body. Pure, fuzzed
 * (fuzz/mcp_http.c).
 */
#ifndef WARD_MCP_HTTP_H
#define WARD_MCP_HTTP_H

#include "base/sha256.h"
#include "mcp/message.h"
#include "rules/http_message.h"

#define MCP_HTTP_PATH "/mcp"
#define MCP_SESSION_DIGITS 32
#define MCP_EVENT_MAX 32 /* of an event's id, with its NUL */
#define MCP_REVISION_MAX 16
#define MCP_NAME_MAX 256 /* of the header mcp-name, with its NUL */
#define MCP_STATELESS "2026-07-28"

enum mcp_verb { MCP_POST, MCP_GET, MCP_DELETE };

/* A request's head, judged. Texts are "" where there is none. */
struct mcp_ask {
	enum mcp_verb verb;
	char session[MCP_SESSION_DIGITS + 1];
	char revision[MCP_REVISION_MAX];
	char event[MCP_EVENT_MAX]; /* the last one that the client has seen */
	char method[MCP_METHOD_MAX], name[MCP_NAME_MAX];
};

/* What the body of a POST holds. */
struct mcp_body {
	bool batch, initialize, stateless;
	size_t requests;     /* that want an answer */
	char id[MCP_ID_MAX]; /* of the one request; "": unknown */
};

/* A request that is refused. */
struct mcp_no {
	unsigned status;
	int code;        /* of the JSON-RPC error */
	const char *why; /* static text */
};

/* Judges a head that http_serve_head() has accepted. token: the digest of the bearer token. False
 * with *ret_no: it is refused. */
must_check bool mcp_http_head(const struct http_head *head, const struct http_request *request,
			      const uint8_t token[SHA256_BYTES], struct mcp_ask *ret,
			      struct mcp_no *ret_no);
/* Judges the body of a POST. ret->id is set, if it is known, where it is refused, too. */
must_check bool mcp_http_body(const uint8_t *bytes, size_t n, const struct mcp_ask *ask,
			      struct mcp_body *ret, struct mcp_no *ret_no);
/* "STREAM-NUMBER", as we name events; false: it is none of ours. */
must_check bool mcp_http_event(const char *text, uint32_t *ret_stream, uint64_t *ret_number);
/* Whether it is one of the revisions that begin with `initialize`. */
bool mcp_is_session_revision(const char *revision);

#endif
