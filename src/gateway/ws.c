/*
 * Frames of a websocket (ws.h; RFC 6455, 5.2). In: what a server says behind its 101, in pieces. Out: where frames end. What they are about is of no interest here.
 * Run by ward-keys.
 */
#include "gateway/ws.h"

/* How long the head is, as far as its bytes tell. */
static unsigned head_length(const struct ws *w)
{
	unsigned size = w->have < 2 ? 0 : w->head[1] & 127;

	return w->have < 2 ? 2 : 2u + (size == 126 ? 2 : size == 127 ? 8 : 0) + (w->head[1] & 128 ? 4 : 0);
}

static uint64_t payload_length(const struct ws *w)
{
	unsigned size = w->head[1] & 127, bytes = size == 126 ? 2 : size == 127 ? 8 : 0;
	uint64_t length = bytes ? 0 : size;

	for (unsigned i = 0; i < bytes; i++)
		length = length << 8 | w->head[2 + i];
	return length;
}

size_t ws_take(struct ws *w, const uint8_t *bytes, size_t n)
{
	size_t at = 0, end = 0;

	while (at < n) {
		if (!w->within) {
			w->head[w->have++] = bytes[at++];
			if (w->have < head_length(w))
				continue;
			w->within = true;
			w->left = payload_length(w);
		} else {
			size_t some = n - at < w->left ? n - at : (size_t)w->left;

			at += some;
			w->left -= some;
		}
		if (w->within && !w->left) {
			w->within = false;
			w->have = 0;
			end = at;
		}
	}
	return end;
}
