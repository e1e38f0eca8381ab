/* Fuzzes envelopes of Connect streams and base64: what is read is written the same way again. */
#include <assert.h>
#include <string.h>

#include "envd/base64.h"
#include "envd/envelope.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	auto_buf out = { 0 }, text = { 0 }, back = { 0 };
	const uint8_t *message;
	size_t length;

	if (envelope_read(data, n, &message, &length) == 0) {
		envelope_write(0, message, length, &out);
		assert(out.failed || (out.len == n && memcmp(out.data, data, n) == 0));
	}
	base64_write(data, n, &text);
	assert(base64_read(text.data ? text.data : "", text.len, &back));
	assert(back.len == n && (!n || memcmp(back.data, data, n) == 0));
	back.len = 0;
	if (base64_read((const char *)data, n, &back))
		assert(back.len <= n / 4 * 3 + 3);
	return 0;
}
