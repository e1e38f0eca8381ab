/*
 * Reading requests (http_serve.h). In: the bytes of a connection, from any client that reaches the
 * port. Out: requests; what two servers might read differently is refused, with a status. Runs in
 * the processes that read clients of `ward serve` and `ward mcp serve`, which are confined. Pure.
 */
#include "rules/http_serve.h"

#include <string.h>

static int refuse(struct http_serve *h, unsigned status, const char *why, unsigned *ret_status,
		  const char **ret_why)
{
	memset(&h->head, 0, sizeof(h->head));
	h->framing.state = BODY_NONE;
	*ret_status = status;
	*ret_why = why;
	return -1;
}

int http_serve_head(struct http_serve *h, unsigned *ret_status, const char **ret_why)
{
	static const char strange[] = "not a request that can be read in one way";
	enum http_wrong wrong = HTTP_FINE;
	int r = http1_head((const uint8_t *)buf_text(&h->in) + h->at, http_serve_have(h),
			   &h->scanned, &h->head, &wrong);

	if (r == 0)
		return 0;
	if (r < 0 && wrong == HTTP_LARGE)
		return refuse(h, 431, "the request's head is too large", ret_status, ret_why);
	if (r < 0 || h->head.connect)
		return refuse(h, 400, strange, ret_status, ret_why);
	h->head_bytes.len = 0;
	buf_add(&h->head_bytes, h->in.data + h->at, h->head.len);
	h->at += h->head.len;
	h->scanned = 0;
	if (h->head_bytes.failed ||
	    !http_request_read((const uint8_t *)h->head_bytes.data, &h->head, &h->req))
		return refuse(h, 400, strange, ret_status, ret_why);
	if (h->head.chunked)
		body_chunked(&h->framing);
	else
		body_length(&h->framing, h->head.length);
	return 1;
}

bool http_serve_wants_close(const struct http_serve *h)
{
	const struct http_fields *f = &h->req.fields;

	if (h->head.minor == 0)
		return true;
	for (unsigned i = 0; i < f->count; i++)
		if (http_text_is(f->items[i].name, "connection") &&
		    (http_text_is(f->items[i].value, "close") ||
		     (f->items[i].value.n > 5 &&
		      memmem(f->items[i].value.s, f->items[i].value.n, "close", 5))))
			return true;
	return false;
}

size_t http_serve_piece(struct http_serve *h, const uint8_t **ret)
{
	while (http_serve_have(h)) {
		const uint8_t *at = (const uint8_t *)h->in.data + h->at;

		if (h->framing.state == BODY_LENGTH || h->framing.state == BODY_DATA) {
			*ret = at;
			return http_serve_have(h) < h->framing.left ? http_serve_have(h)
								    : (size_t)h->framing.left;
		}
		if (h->framing.state == BODY_NONE || h->framing.state == BODY_BAD)
			break;
		h->at += body_take(&h->framing, at, 1, true);
	}
	return 0;
}

void http_serve_took(struct http_serve *h, size_t n)
{
	if (n)
		h->at += body_take(&h->framing, (const uint8_t *)h->in.data + h->at, n, true);
}

void http_serve_compact(struct http_serve *h)
{
	if (!h->at)
		return;
	memmove(h->in.data, h->in.data + h->at, http_serve_have(h));
	h->in.len -= h->at;
	h->at = 0;
}

void http_serve_free(struct http_serve *h)
{
	buf_free(&h->in);
	buf_free(&h->head_bytes);
}

const char *http_serve_reason(unsigned status)
{
	static const struct {
		unsigned status;
		const char *text;
	} all[] = {
		{ 200, "OK" },
		{ 201, "Created" },
		{ 202, "Accepted" },
		{ 204, "No Content" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 406, "Not Acceptable" },
		{ 409, "Conflict" },
		{ 413, "Content Too Large" },
		{ 415, "Unsupported Media Type" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 507, "Insufficient Storage" },
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i].status == status)
			return all[i].text;
	return "Status";
}
