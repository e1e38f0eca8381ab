/* The head of an IP packet, for the audit of what was tried. */
#ifndef WARD_GATEWAY_PACKET_H
#define WARD_GATEWAY_PACKET_H

#include "policy/hostname.h"

struct packet {
	uint8_t protocol;	/* IPPROTO_* */
	struct ip to;
	uint16_t port;		/* TCP and UDP; 0: none */
};

/* Reads (bytes, n), which begins with the IP header and may be cut off. False: not an IP packet. A pure function, fuzzed
 * (fuzz/packet.c). */
must_check bool packet_read(const uint8_t *bytes, size_t n, struct packet *ret);

#endif
