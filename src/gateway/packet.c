/*
 * Where a packet was meant to go. In: the first bytes of an IP packet that a program inside sent.
 * Out: protocol, destination and port. It is only ever reported, never decided upon: the kernel has
 * refused the packet already. A pure function.
 */
#include "gateway/packet.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <string.h>

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
		/* not the rest of a packet in pieces */
		if ((bytes[6] & 0x1f) == 0 && bytes[7] == 0)
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

#define ALIGN4(n) (((n) + 3) & ~(size_t)3)

bool packet_logged(const uint8_t **bytes, size_t *n, const uint8_t **ret_packet, size_t *ret_len)
{
	struct nlmsghdr header;
	size_t at = sizeof(header) + sizeof(struct nfgenmsg), end, step;

	*ret_len = 0;
	if (*n < sizeof(header))
		return false;
	memcpy(&header, *bytes, sizeof(header));
	end = header.nlmsg_len;
	if (end < sizeof(header) || end > *n)
		return false;
	if (header.nlmsg_type == (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET))
		while (at + sizeof(struct nlattr) <= end) {
			struct nlattr attribute;

			memcpy(&attribute, *bytes + at, sizeof(attribute));
			if (attribute.nla_len < sizeof(attribute) || attribute.nla_len > end - at)
				break;
			if ((attribute.nla_type & NLA_TYPE_MASK) == NFULA_PAYLOAD) {
				*ret_packet = *bytes + at + sizeof(attribute);
				*ret_len = attribute.nla_len - sizeof(attribute);
			}
			at += ALIGN4(attribute.nla_len);
		}
	step = ALIGN4(end) < *n ? ALIGN4(end) : *n;
	*bytes += step;
	*n -= step;
	return true;
}
