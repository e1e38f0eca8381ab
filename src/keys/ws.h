/*
 * Frames of a websocket (RFC 6455, 5.2), taken apart and made anew. What is looked through is
 * messages, not frames: a text that a sender has cut into several frames of one message is one
 * text. Pure but for the buffer that the caller hands over; fuzzed (fuzz/ws.c).
 */
#ifndef WARD_KEYS_WS_H
#define WARD_KEYS_WS_H

#include "base/buf.h"

#define WS_CONTROL_MAX 125

struct ws {
	bool masked;  /* the sender masks: a program does, a server does not */
	bool message; /* one is under way */
	bool begun;   /* some of it has gone on */
	uint8_t type; /* of that message: its first opcode */
	uint8_t head[14];
	uint8_t have; /* bytes of it */
	/* its head is whole, and left bytes of its payload are to come */
	bool within;
	uint64_t left, at; /* at: of the payload */
	uint8_t mask[4];   /* of the frame that came last */
	uint8_t control[WS_CONTROL_MAX];
	uint8_t control_len;
};

/* WS_MESSAGE: the message in data is whole. WS_CONTROL: a control frame is. WS_BAD: not what a
 * websocket without extensions says. */
enum ws_say { WS_MORE, WS_MESSAGE, WS_CONTROL, WS_BAD };

/* Takes the next n bytes up to the end of a message or control frame: *ret_used of them. Payload of
 * messages comes behind what is in data. */
enum ws_say ws_take(struct ws *w, const uint8_t *bytes, size_t n, struct buf *data,
		    size_t *ret_used);
/* Writes n bytes of the message as a frame, as the sender of w would; last: nothing more of it
 * follows. */
void ws_give(struct ws *w, const uint8_t *bytes, size_t n, bool last, struct buf *out);
/* Writes the control frame that was taken last. */
void ws_give_control(const struct ws *w, struct buf *out);

#endif
