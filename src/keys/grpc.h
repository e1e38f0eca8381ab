/*
 * Messages of gRPC in a body: a flag, four bytes of length, the message. Where one ends is where
 * the scanner of the body need not wait for more: no text that is looked for goes on behind a flag,
 * and what has no flag there is refused. A pure function over (pointer, length), fuzzed
 * (fuzz/grpc.c).
 */
#ifndef WARD_KEYS_GRPC_H
#define WARD_KEYS_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRPC_FLAG_MAX 1 /* the flag is 0 or 1: compressed */

enum grpc_part { GRPC_PREFIX, GRPC_PLAIN, GRPC_PACKED, GRPC_BAD };

/* Where a body is; zero at first. */
struct grpc {
	uint32_t size, left; /* of the message, once have is 5 */
	uint8_t have;        /* bytes of the prefix */
	bool packed, bad;
};

/* Takes some of n > 0 bytes, all of one part; returns how many. *ret_ends: a message ends behind
 * them. Behind GRPC_BAD all is taken. */
size_t grpc_take(struct grpc *g, const uint8_t *bytes, size_t n, enum grpc_part *ret_part,
		 bool *ret_ends);
/* Whether it is in the middle of a message of at most so many bytes, as far as is known. */
bool grpc_is_within(const struct grpc *g, uint32_t most);
/* The value of Content-Type. */
bool grpc_is_type(const char *value, size_t n);

#endif
