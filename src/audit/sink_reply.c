/*
 * The answer of an OTLP collector. In: bytes of HTTP/1 from outside. Out: what it means. A pure
 * function, fuzzed (fuzz/reply.c).
 */
#include <string.h>
#include <strings.h>

#include "audit/sink.h"

#define RETRY_MAX 60 /* seconds */

/* A number behind a key somewhere in the body, as text or not: proto3's JSON has both. */
static uint64_t number_behind(const char *body, size_t n, const char *key)
{
	const char *at = memmem(body, n, key, strlen(key)), *end = body + n;
	uint64_t number = 0;

	if (!at)
		return 0;
	for (at += strlen(key); at < end && (*at == '"' || *at == ':' || *at == ' '); at++)
		;
	for (; at < end && *at >= '0' && *at <= '9' && number < UINT32_MAX; at++)
		number = number * 10 + (uint64_t)(*at - '0');
	return number;
}

bool sink_reply_read(const char *bytes, size_t n, struct sink_reply *ret)
{
	const char *end = memmem(bytes, n, "\r\n\r\n", 4), *line;

	*ret = (struct sink_reply){ 0 };
	if (!end || end - bytes < 12 || memcmp(bytes, "HTTP/1.", 7) != 0 || bytes[8] != ' ')
		return false;
	for (int i = 9; i < 12; i++) {
		if (bytes[i] < '0' || bytes[i] > '9')
			return false;
		ret->status = ret->status * 10 + (unsigned)(bytes[i] - '0');
	}
	for (line = bytes; line < end; line++) {
		static const char name[] = "\r\nretry-after:";
		const size_t len = sizeof(name) - 1;

		if ((size_t)(end - line) <= len || strncasecmp(line, name, len) != 0)
			continue;
		for (line += len; line < end && *line == ' '; line++)
			;
		for (; line < end && *line >= '0' && *line <= '9' && ret->retry_after <= RETRY_MAX;
		     line++)
			ret->retry_after = ret->retry_after * 10 + (unsigned)(*line - '0');
		if (ret->retry_after > RETRY_MAX)
			ret->retry_after = RETRY_MAX;
		break;
	}
	end += 4;
	ret->rejected = number_behind(end, n - (size_t)(end - bytes), "\"rejectedLogRecords\"");
	return true;
}
