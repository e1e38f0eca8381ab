/*
 * Fuzzes what programs inside send to http://ward.internal/: the bytes as they come, and a body for
 * a request that is well formed. What is taken is what ward-ask could have asked.
 */
#include <assert.h>
#include <string.h>

#include "approve/proposal_http.h"
#include "rules/http_serve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(unsigned status, const struct proposal *p, const char *why)
{
	assert(status == 0 || (status >= 400 && status < 500 && *why));
	if (status || p->verb < PROPOSAL_ALLOW)
		return;
	assert(*p->reason && strlen(p->reason) <= PROPOSAL_REASON_MAX);
	assert(p->verb == PROPOSAL_PUBLISH ? p->port
	       : p->host.kind == HOST_NONE ? p->path[0] == '/'
					   : p->port);
}

static void ask(const uint8_t *data, size_t n)
{
	struct http_serve h = { 0 };
	struct proposal p;
	unsigned status;
	const char *why = "";

	buf_add(&h.in, data, n);
	if (http_serve_head(&h, &status, &why) > 0) {
		const uint8_t *piece = NULL;
		size_t len = http_serve_piece(&h, &piece);

		status =
			proposal_http_read(&h.req, &h.head.host, h.head.port, piece, len, &p, &why);
		check(status, &p, why);
	}
	http_serve_free(&h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char head[] = "POST /allow HTTP/1.1\r\nHost: ward.internal\r\n";
	auto_buf request = { 0 };

	ask(data, n);
	if (n > PROPOSAL_HTTP_BODY)
		return 0;
	buf_printf(&request, "%sContent-Length: %zu\r\n\r\n", head, n);
	buf_add(&request, data, n);
	if (!request.failed)
		ask((const uint8_t *)request.data, request.len);
	return 0;
}
