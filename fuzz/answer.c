/* Fuzzes answers of secret stores: one byte chooses what is looked for. What is found is a part of
 * the answer, and no error has any of it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "creds/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const fields[] = { NULL, "data.data.key", "data", "", "a..b" };
	uint8_t out[4096];
	size_t len = sizeof(out);
	uint64_t lease;
	struct ward_err e = { 0 };
	auto_free uint8_t *exact = n ? malloc(n) : NULL;

	if (!n)
		return 0;
	memcpy(exact, data, n);
	if (data[0] % 6 == 5) {
		if (answer_read_aws(exact + 1, n - 1, out, &len, &e) == 0)
			assert(len && len <= sizeof(out) && memchr(out, '\n', len));
	} else if (answer_read(exact + 1, n - 1, fields[data[0] % 6], out, &len, &lease, &e) == 0) {
		assert(len && len <= sizeof(out));
	} else {
		assert(e.code);
	}
	return 0;
}
