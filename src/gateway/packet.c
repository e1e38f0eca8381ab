/*
 * Where a packet was meant to go. In: the first bytes of an IP packet that a program inside sent. Out: protocol, destination
 * and port. It is only ever told, never decided upon: the kernel has refused the packet already. A pure function.
 */
#include "gateway/packet.h"

#include <netinet/in.h>

static void read_port(const uint8_t *bytes, size_t n, size_t at, struct packet *ret)
{
	if ((ret->protocol == IPPROTO_TCP || ret->protocol == IPPROTO_UDP) && at + 4 <= n)
		ret->port = (uint16_t)(bytes[at + 2] << 8 | bytes[at + 3]);
}

bool packet_read(const uint8_t *bytes, size_t n, struct packet *ret)
{
	*ret = (struct packet){ 0 };
	if (n >= 20 && bytes[0] >> 4 == 4) {
		ret->protocol = bytes[9];
		ret->to = ip_from_4(bytes + 16);
		if ((bytes[6] & 0x1f) == 0 && bytes[7] == 0)	/* not the rest of a packet in pieces */
			read_port(bytes, n, (size_t)(bytes[0] & 15) * 4, ret);
		return true;
	}
	if (n >= 40 && bytes[0] >> 4 == 6) {
		ret->protocol = bytes[6];
		ret->to = ip_from_16(bytes + 24);
		read_port(bytes, n, 40, ret);
		return true;
	}
	return false;
}
