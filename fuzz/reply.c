/* Fuzzer of what an OTLP collector answers, and of where a sink is: bytes of anybody. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "audit/sink.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static const char *const types[] = { "file", "syslog", "otlp", "command" };
	struct sink_reply reply;

	if (sink_reply_read((const char *)bytes, n, &reply) &&
	    (reply.status > 999 || reply.retry_after > 60))
		abort();
	for (size_t i = 0; i < 4; i++) {
		char *text = strndup((const char *)bytes, n);
		struct policy_sink s = { 0 };

		if (text && sink_split(types[i], text, &s) &&
		    (s.port > 65535 || (s.host && strpbrk(s.host, "\r\n /"))))
			abort();
		policy_sink_clear(&s);
		free(text);
	}
	return 0;
}
