/*
 * The server's side of a connection with HTTP/1.1: requests out of bytes, one at a time, read as
 * strictly as the gateway reads those of sandboxes (http1.h). Bodies are handed out as they come,
 * without what frames them. A pure buffer, fuzzed (fuzz/mcp_http.c).
 */
#ifndef WARD_RULES_HTTP_SERVE_H
#define WARD_RULES_HTTP_SERVE_H

#include "rules/http_body.h"
#include "rules/http_message.h"

struct http_serve {
	struct buf in; /* owned: what came; read up to `at` */
	size_t at, scanned;
	struct buf head_bytes; /* owned: req points into it */
	struct http_head head;
	struct http_request req;
	struct http_body framing;
};

/* Bytes that came and are not read yet. */
static inline size_t http_serve_have(const struct http_serve *h)
{
	return h->in.len - h->at;
}

static inline bool http_serve_body_is_over(const struct http_serve *h)
{
	return h->framing.state == BODY_NONE;
}

/* Reads a head. 1: h->head, h->req and h->framing are those of a request; 0: more is needed; -1:
 * it is refused with *ret_status and *ret_why (static text), and nothing behind it can be read. */
must_check int http_serve_head(struct http_serve *h, unsigned *ret_status, const char **ret_why);
/* Whether the client wants the connection to end behind its answer. */
bool http_serve_wants_close(const struct http_serve *h);
/* Bytes of the body that are there; they stay until http_serve_took(). 0: there are none. Behind
 * it, h->framing.state is BODY_NONE at the body's end, BODY_BAD if it is not framed as HTTP has
 * it. */
size_t http_serve_piece(struct http_serve *h, const uint8_t **ret);
void http_serve_took(struct http_serve *h, size_t n);
/* Forgets the bytes that were read. */
void http_serve_compact(struct http_serve *h);
void http_serve_free(struct http_serve *h);

/* What stands behind a status of ours in an answer. Static text. */
const char *http_serve_reason(unsigned status);

#endif
