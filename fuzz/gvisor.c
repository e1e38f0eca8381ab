/*
 * Fuzzer of what crosses gVisor's wall. The bytes are a command's file: one that is accepted must
 * be what the writer makes of it again. Then they are how a command ended: what is report must lie
 * in its range. Then they are an answer of gVisor's kernel: its text ends, its number lies in its
 * range.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gvisor/gvisor.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	const char *text = (const char *)bytes;
	struct start s;
	struct answer a;
	int value = -1;
	enum command_report report = command_report_parse(text, n, &value);

	if ((report == REPORT_EXIT && (value < 0 || value > 255)) ||
	    (report == REPORT_SIGNAL && (value < 1 || value > 64)))
		abort();
	if (answer_parse(text, n, &a) == 0 &&
	    (!memchr(a.error, '\0', sizeof(a.error)) || a.result < -1 || a.result > 9999999999))
		abort();
	if (answer_count_threads(text, n) > n)
		abort();
	if (start_parse(text, n, &s) == 0) {
		auto_buf again = { 0 };

		start_write(&s, &again);
		if (again.failed || again.len != n || memcmp(again.data, bytes, n) != 0)
			abort();
		start_free(&s);
	}
	return 0;
}
