/* Messages of gRPC: in whatever pieces a body comes, the same bytes are the same parts, and every
 * byte is of one. */
#include <assert.h>
#include <string.h>

#include "keys/grpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What each byte is, and whether a message ends behind it. */
static void walk(const uint8_t *data, size_t size, size_t piece, uint8_t *out)
{
	struct grpc g = { 0 };
	bool bad = false;

	for (size_t from = 0; from < size; from += piece) {
		size_t end = size - from < piece ? size : from + piece;

		for (size_t at = from; at < end;) {
			enum grpc_part part;
			bool ends;
			size_t n = grpc_take(&g, data + at, end - at, &part, &ends);

			assert(n && n <= end - at);
			assert(!bad || part == GRPC_BAD);
			assert(!ends || part != GRPC_BAD);
			/* which of the bytes was the flag is of no interest */
			if (part == GRPC_BAD && !bad) {
				memset(out + at, 0, size - at);
				out[size] = 1;
			}
			bad |= part == GRPC_BAD;
			if (!bad)
				memset(out + at, 1 + (int)part, n);
			if (!bad && ends)
				out[at + n - 1] |= 128;
			at += n;
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t one[4097] = { 0 }, other[4097] = { 0 };

	if (!size || size > 4096)
		return 0;
	(void)!grpc_is_type((const char *)data, size);
	walk(data, size, size, one);
	walk(data, size, 1 + data[size - 1] % 7, other);
	assert(one[size] == other[size]);
	if (!one[size])
		assert(memcmp(one, other, size) == 0);
	return 0;
}
