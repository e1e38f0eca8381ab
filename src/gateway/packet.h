/* The head of an IP packet, for the audit of what was tried. */
#ifndef WARD_GATEWAY_PACKET_H
#define WARD_GATEWAY_PACKET_H

#include "policy/hostname.h"

struct packet {
	uint8_t protocol; /* IPPROTO_* */
	struct ip to;
	uint16_t port; /* TCP and UDP; 0: none */
};

/* Reads (bytes, n), which begins with the IP header and may be cut off. False: not an IP packet. A
 * pure function, fuzzed (fuzz/packet.c). */
must_check bool packet_read(const uint8_t *bytes, size_t n, struct packet *ret);

/* Takes the next of the netlink messages in (*bytes, *n) of nfnetlink_log: the packet in it (len 0:
 * none). False: there is no other, or it cannot be read. Pure, fuzzed with it. */
must_check bool packet_logged(const uint8_t **bytes, size_t *n, const uint8_t **ret_packet,
			      size_t *ret_len);

#endif
