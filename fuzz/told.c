/* Fuzzer of the gateway's records: whatever front sends, what is taken is within bounds, and is
 * written again as it was. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rules/flow_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	uint8_t again[sizeof(struct flow_report)];
	struct flow_report t;
	size_t len;

	for (; n && (len = flow_report_get(bytes, n, &t)); bytes += len, n -= len) {
		if (len > n || t.kind >= FLOW_REPORT_KINDS || strlen(t.host) != t.host_len)
			abort();
		if (flow_report_put(again, 0, sizeof(again), &t) != len ||
		    memcmp(again, bytes, len) != 0)
			abort();
		if (flow_report_put(again, 0, len - 1, &t) != 0)
			abort();
	}
	return 0;
}
