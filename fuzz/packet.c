/* Fuzzes the head of an IP packet and the log's messages around one: nothing outside of the bytes
 * is read. */
#include <assert.h>

#include "gateway/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const uint8_t *at = data, *packet;
	size_t left = n, len;
	struct packet p;

	if (packet_read(data, n, &p))
		assert(p.to.family == 4 || p.to.family == 6);
	while (left && packet_logged(&at, &left, &packet, &len)) {
		assert(at >= data && at <= data + n);
		if (len) {
			assert(packet >= data && packet + len <= data + n);
			(void)!packet_read(packet, len, &p);
		}
	}
	return 0;
}
