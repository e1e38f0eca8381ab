/* Fuzzer of the gateway's records: whatever front sends, what is taken is within bounds, and is
 * written again as it was. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rules/flow_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	uint8_t again[sizeof(struct told)];
	struct told t;
	size_t len;

	for (; n && (len = told_get(bytes, n, &t)); bytes += len, n -= len) {
		if (len > n || t.kind >= TOLD_KINDS || strlen(t.host) != t.host_len)
			abort();
		if (told_put(again, 0, sizeof(again), &t) != len || memcmp(again, bytes, len) != 0)
			abort();
		if (told_put(again, 0, len - 1, &t) != 0)
			abort();
	}
	return 0;
}
