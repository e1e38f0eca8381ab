/*
 * Messages of gRPC (grpc.h). In: a body's bytes in whatever pieces. Out: which of them are what. Of
 * other flags than those two, as grpc-web has them, nothing is known. Runs in ward-keys.
 */
#include "keys/grpc.h"

#include <strings.h>

#define PREFIX_BYTES 5

static size_t take_prefix(struct grpc *g, const uint8_t *bytes, size_t n, enum grpc_part *ret_part,
			  bool *ret_ends)
{
	size_t i = 0;

	for (; i < n && g->have < PREFIX_BYTES; i++) {
		if (g->have == 0) {
			g->bad = bytes[i] > GRPC_FLAG_MAX;
			g->packed = bytes[i];
			g->size = 0;
		} else {
			g->size = g->size << 8 | bytes[i];
		}
		if (g->bad) {
			*ret_part = GRPC_BAD;
			return n;
		}
		g->have++;
	}
	*ret_part = GRPC_PREFIX;
	g->left = g->size;
	*ret_ends = g->have == PREFIX_BYTES && !g->left;
	if (*ret_ends)
		g->have = 0;
	return i;
}

size_t grpc_take(struct grpc *g, const uint8_t *bytes, size_t n, enum grpc_part *ret_part,
		 bool *ret_ends)
{
	*ret_ends = false;
	*ret_part = GRPC_BAD;
	if (g->bad)
		return n;
	if (g->have < PREFIX_BYTES)
		return take_prefix(g, bytes, n, ret_part, ret_ends);
	if (n > g->left)
		n = g->left;
	*ret_part = g->packed ? GRPC_PACKED : GRPC_PLAIN;
	g->left -= (uint32_t)n;
	*ret_ends = !g->left;
	if (*ret_ends)
		g->have = 0;
	return n;
}

bool grpc_is_within(const struct grpc *g, uint32_t most)
{
	return !g->bad && g->have && (g->have < PREFIX_BYTES || g->size <= most);
}

bool grpc_is_type(const char *value, size_t n)
{
	static const char name[] = "application/grpc";
	const size_t m = sizeof(name) - 1;

	return n >= m && strncasecmp(value, name, m) == 0 &&
	       (n == m || value[m] == '+' || value[m] == ';' || value[m] == ' ');
}
