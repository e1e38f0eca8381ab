/* Fuzzes requests of libward: no crash, and what is read is written back as the same bytes. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "api/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	auto_free char *copy = malloc(n + 1);
	struct ward_err e = { 0 };
	struct request r;

	if (!copy)
		return 0;
	memcpy(copy, data, n);
	if (request_read(copy, n, &r, &e) == 0) {
		auto_buf again = { 0 };
		auto_strv words = { 0 };

		for (size_t i = 0; i < r.count; i++)
			strv_add(&words, r.words[i]);
		assert(request_write(r.flags, &words, &again, &e) == 0);
		assert(again.len == n && memcmp(again.data, data, n) == 0);
		request_clear(&r);
	} else {
		assert(e.code == EINVAL);
	}
	return 0;
}
