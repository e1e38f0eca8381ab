/*
 * Frames of a websocket (ws.h). In: what one side says behind the 101, in pieces. Out: its messages
 * without framing and masks, and frames again for the other side. Everything that could hide a text
 * is refused: reserved bits (no extension was agreed upon), unknown opcodes, masks where there are
 * none, a message within another one. Run by ward-keys.
 */
#include "keys/ws.h"

#include <string.h>

#define FIN 0x80
#define RESERVED 0x70
#define OPCODE 0x0f
#define MASKED 0x80
#define IS_CONTROL 0x08

/* How long the head is, as far as its bytes tell. */
static unsigned head_length(const struct ws *w)
{
	unsigned size = w->have < 2 ? 0 : w->head[1] & 127;

	return w->have < 2 ? 2
			   : 2u +
				     (size == 126   ? 2
				      : size == 127 ? 8
						    : 0) +
				     (w->head[1] & MASKED ? 4 : 0);
}

static uint64_t payload_length(const struct ws *w)
{
	unsigned size = w->head[1] & 127, bytes = size == 126 ? 2 : size == 127 ? 8 : 0;
	uint64_t length = bytes ? 0 : size;

	for (unsigned i = 0; i < bytes; i++)
		length = length << 8 | w->head[2 + i];
	return length;
}

static bool is_control(const struct ws *w)
{
	return w->head[0] & IS_CONTROL;
}

/* A head is whole: whether it may stand here. */
static bool begin_frame(struct ws *w)
{
	uint8_t opcode = w->head[0] & OPCODE;

	w->within = true;
	memcpy(w->mask, w->head + (w->head[1] & MASKED ? head_length(w) - 4 : 0), 4);
	w->left = payload_length(w);
	w->at = 0;
	if ((w->head[0] & RESERVED) || !(w->head[1] & MASKED) == w->masked || w->left >> 63)
		return false;
	if (is_control(w)) {
		w->control_len = 0;
		return opcode <= 10 && (w->head[0] & FIN) && w->left <= WS_CONTROL_MAX;
	}
	if (opcode > 2 || w->message == (opcode != 0))
		return false;
	w->type = opcode ? opcode : w->type;
	w->message = true;
	return true;
}

/* Payload without its mask. */
static void take_payload(struct ws *w, const uint8_t *bytes, size_t n, struct buf *data)
{
	size_t before = data->len;
	uint8_t *to = w->control + w->control_len;

	if (is_control(w)) {
		memcpy(to, bytes, n);
		w->control_len = (uint8_t)(w->control_len + n);
	} else {
		buf_add(data, bytes, n);
		to = data->failed ? NULL : (uint8_t *)data->data + before;
	}
	for (size_t i = 0; to && w->masked && i < n; i++)
		to[i] ^= w->mask[(w->at + i) % 4];
	w->at += n;
	w->left -= n;
}

static enum ws_say end_frame(struct ws *w)
{
	w->within = false;
	w->have = 0;
	if (is_control(w))
		return WS_CONTROL;
	if (!(w->head[0] & FIN))
		return WS_MORE;
	w->message = false;
	return WS_MESSAGE;
}

enum ws_say ws_take(struct ws *w, const uint8_t *bytes, size_t n, struct buf *data,
		    size_t *ret_used)
{
	enum ws_say say = WS_MORE;
	size_t at = 0;

	while (at < n && say == WS_MORE) {
		if (!w->within) {
			w->head[w->have++] = bytes[at++];
			if (w->have < head_length(w))
				continue;
			if (!begin_frame(w))
				say = WS_BAD;
		} else {
			size_t some = n - at < w->left ? n - at : (size_t)w->left;

			take_payload(w, bytes + at, some, data);
			at += some;
		}
		if (say == WS_MORE && w->within && !w->left)
			say = end_frame(w);
	}
	*ret_used = at;
	return data->failed ? WS_BAD : say;
}

static void write_frame(const struct ws *w, uint8_t first, const uint8_t *bytes, size_t n,
			struct buf *out)
{
	uint8_t head[14] = { first, w->masked ? MASKED : 0 };
	unsigned wide = n < 126 ? 0 : n < 65536 ? 2 : 8, len = 2 + wide;
	size_t before;

	head[1] |= (uint8_t)(wide == 0 ? n : wide == 2 ? 126 : 127);
	for (unsigned i = 0; i < wide; i++)
		head[2 + i] = (uint8_t)((uint64_t)n >> 8 * (wide - 1 - i));
	if (w->masked) {
		memcpy(head + len, w->mask, 4);
		len += 4;
	}
	buf_add(out, head, len);
	before = out->len;
	buf_add(out, bytes, n);
	for (size_t i = 0; w->masked && !out->failed && i < n; i++)
		out->data[before + i] = (char)((uint8_t)out->data[before + i] ^ w->mask[i % 4]);
}

void ws_give(struct ws *w, const uint8_t *bytes, size_t n, bool last, struct buf *out)
{
	if (!n && !last)
		return;
	write_frame(w, (uint8_t)((last ? FIN : 0) | (w->begun ? 0 : w->type)), bytes, n, out);
	w->begun = !last;
}

void ws_give_control(const struct ws *w, struct buf *out)
{
	write_frame(w, w->head[0], w->control, w->control_len, out);
}
