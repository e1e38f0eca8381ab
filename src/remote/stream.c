/*
 * Messages of a stream (stream.h). In: bytes of a server. Out: the first message among them. Pure.
 */
#include "remote/stream.h"

#include <signal.h>
#include <string.h>

#include "remote/value.h"

#define HEADER 5

int stream_read(const uint8_t *bytes, size_t n, struct stream_message *ret)
{
	size_t len;

	if (n < HEADER)
		return 0;
	len = (size_t)bytes[1] << 24 | (size_t)bytes[2] << 16 | (size_t)bytes[3] << 8 | bytes[4];
	if (bytes[0] & ~STREAM_END || len > STREAM_MESSAGE_MAX)
		return -1;
	if (n - HEADER < len)
		return 0;
	*ret = (struct stream_message){ bytes[0], bytes + HEADER, len, HEADER + len };
	return 1;
}

/* "signal: NAME" */
static int signal_of(const char *status)
{
	static const char prefix[] = "signal: ";
	const char *name = status + sizeof(prefix) - 1;

	if (strncmp(status, prefix, sizeof(prefix) - 1) != 0 || strcmp(name, "killed") == 0)
		return SIGKILL;
	if (strcmp(name, "terminated") == 0)
		return SIGTERM;
	for (int i = 1; i < 65; i++) {
		const char *known = sigdescr_np(i);

		if (known && strcmp(known, name) == 0)
			return i;
	}
	return SIGKILL;
}

int stream_exit_code(const struct values *v, const struct value *end)
{
	if (value_bool(v, end, "exited"))
		return (int)(value_uint(v, end, "exitCode") & 0xff);
	return 128 + signal_of(value_text(v, end, "status"));
}
