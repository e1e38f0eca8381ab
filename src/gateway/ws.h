/* Frames of a websocket, of a server's: where each ends. A message that has ended is looked through and goes, without waiting for the next one. Pure, in
 * constant memory; fuzzed (fuzz/part.c). */
#ifndef WARD_GATEWAY_WS_H
#define WARD_GATEWAY_WS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ws {
	uint8_t head[14];
	uint8_t have;			/* bytes of it */
	bool within;			/* its head is whole, and left bytes of its payload are to come */
	uint64_t left;
};

/* Takes the next n bytes; returns behind which of them a frame ends last, 0: none does. */
size_t ws_take(struct ws *w, const uint8_t *bytes, size_t n);

#endif
