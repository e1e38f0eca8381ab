/* Fuzzes what the front of `ward mcp serve --http` reads: requests of a connection that arrives in
 * two pieces, their heads and bodies judged. What is accepted has the token, a Host that is no name
 * of another, and no doubled header; a body that is accepted is what mcp_split() accepts. */
#include <assert.h>
#include <string.h>

#include "mcp/http.h"
#include "rules/http_serve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char secret[] = "0123456789abcdef";

static void judge_body(const uint8_t *bytes, size_t n, const struct mcp_ask *ask)
{
	static struct mcp_parts parts;
	struct mcp_body body;
	struct mcp_no no = { 0 };
	const char *why;

	if (!mcp_http_body(bytes, n, ask, &body, &no)) {
		assert(no.status >= 400 && no.code < 0 && no.why);
		return;
	}
	assert(mcp_split(bytes, n, &parts, &why) == 0);
	assert(body.requests <= parts.count && body.batch == parts.batch);
	assert(!body.stateless || (!body.batch && *ask->method));
}

static void judge(struct http_serve *h, struct buf *body)
{
	uint8_t token[SHA256_BYTES];
	struct mcp_no no = { 0 };
	struct mcp_ask ask;
	struct sha256 sum;
	uint64_t number;
	uint32_t stream;

	sha256_begin(&sum);
	sha256_add(&sum, secret, strlen(secret));
	sha256_end(&sum, token);
	if (!mcp_http_head(&h->head, &h->req, token, &ask, &no)) {
		assert(no.status >= 400 && no.code < 0 && no.why);
		return;
	}
	assert(memmem(h->head_bytes.data, h->head_bytes.len, secret, strlen(secret)));
	assert(h->head.host.kind == HOST_ADDRESS || strcmp(h->head.host.name, "localhost") == 0);
	assert(strlen(ask.session) <= MCP_SESSION_DIGITS && !strpbrk(ask.event, "\r\n"));
	(void)!mcp_http_event(ask.event, &stream, &number);
	if (ask.verb == MCP_POST)
		judge_body((const uint8_t *)buf_text(body), body->len, &ask);
}

static bool step(struct http_serve *h, bool *in_body, struct buf *body)
{
	const uint8_t *bytes;
	const char *why = NULL;
	unsigned status = 0;
	size_t got;
	int r;

	if (!*in_body) {
		r = http_serve_head(h, &status, &why);
		assert(r >= 0 || (status >= 400 && why && *http_serve_reason(status) != 'S'));
		*in_body = r > 0;
		body->len = 0;
		return r > 0;
	}
	got = http_serve_piece(h, &bytes);
	if (h->framing.state == BODY_BAD)
		return false;
	if (got)
		buf_add(body, bytes, got);
	http_serve_took(h, got);
	if (!http_serve_body_is_over(h))
		return got > 0;
	judge(h, body);
	(void)!http_serve_wants_close(h);
	*in_body = false;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct http_serve h = { 0 };
	auto_buf body = { 0 };
	bool in_body = false;
	size_t half = n / 2;
	struct mcp_ask ask = { .verb = MCP_POST,
			       .revision = MCP_STATELESS,
			       .method = "tools/call" };

	for (int piece = 0; piece < 2; piece++) {
		buf_add(&h.in, piece ? data + half : data, piece ? n - half : half);
		while (step(&h, &in_body, &body))
			;
		http_serve_compact(&h);
	}
	http_serve_free(&h);
	judge_body(data, n, &ask);
	return 0;
}
