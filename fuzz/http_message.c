/*
 * Fuzzes heads taken apart and written anew: a request that is accepted is written so that it is
 * accepted again, says the same, and is for the host that was connected to; a response likewise.
 * Trailers too.
 */
#include <assert.h>
#include <string.h>

#include "rules/http_message.h"

#define NAME "a.example"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void request(const uint8_t *data, size_t n)
{
	static struct http_request first, second;
	struct http_head head, again;
	enum http_wrong wrong;
	size_t scanned = 0;
	struct host host;
	auto_buf out = { 0 };

	if (host_read(NAME, strlen(NAME), &host) != HOST_FINE ||
	    http1_head(data, n, &scanned, &head, &wrong) <= 0 ||
	    !http_request_read(data, &head, &first))
		return;
	http_request_write(&first, &host, 443, 443, first.path, &out);
	assert(!out.failed);
	scanned = 0;
	if (out.len > HTTP1_HEAD_MAX)
		return;
	assert(http1_head((const uint8_t *)out.data, out.len, &scanned, &again, &wrong) == 1 &&
	       again.len == out.len);
	assert(http_request_read((const uint8_t *)out.data, &again, &second));
	assert(host_equal(&again.host, &host) && !again.absolute && again.minor == 1);
	assert(second.method.n == first.method.n &&
	       memcmp(second.method.s, first.method.s, first.method.n) == 0);
	assert(second.path.n == first.path.n &&
	       memcmp(second.path.s, first.path.s, first.path.n) == 0);
	assert(second.body == first.body && second.length == first.length &&
	       second.websocket == first.websocket);
}

static void response(const uint8_t *data, size_t n)
{
	static struct http_response first, second;
	auto_buf out = { 0 };

	if (http_response_read(data, n, &first) <= 0)
		return;
	assert(first.len <= n);
	http_response_write(&first, first.chunked, false, &out);
	assert(!out.failed);
	if (out.len > HTTP_ANSWER_MAX)
		return;
	assert(http_response_read((const uint8_t *)out.data, out.len, &second) == 1 &&
	       second.len == out.len);
	assert(second.status == first.status && second.chunked == first.chunked);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct http_fields trailers;

	request(data, n);
	response(data, n);
	if (http_trailers_read(data, n, &trailers))
		for (unsigned i = 0; i < trailers.count; i++)
			assert(!memchr(trailers.items[i].value.s, '\n', trailers.items[i].value.n));
	return 0;
}
