/*
 * Envelopes of Connect streams (envelope.h). In: the body of a request, or a message. Out: the
 * other of the two. ward's clients never compress: a message that is compressed is refused. Run by
 * ward-envd. Pure.
 */
#include "envd/envelope.h"

void envelope_write(uint8_t flags, const void *message, size_t n, struct buf *out)
{
	const uint8_t head[ENVELOPE_HEADER] = { flags, (uint8_t)(n >> 24), (uint8_t)(n >> 16),
						(uint8_t)(n >> 8), (uint8_t)n };

	buf_add(out, head, sizeof(head));
	buf_add(out, message, n);
}

int envelope_read(const uint8_t *body, size_t n, const uint8_t **ret, size_t *ret_n)
{
	size_t length;

	if (n < ENVELOPE_HEADER || body[0] != 0)
		return -1;
	length = (size_t)body[1] << 24 | (size_t)body[2] << 16 | (size_t)body[3] << 8 | body[4];
	if (length != n - ENVELOPE_HEADER)
		return -1;
	*ret = body + ENVELOPE_HEADER;
	*ret_n = length;
	return 0;
}
