/*
 * Classes of addresses. In: an address, of a name that was resolved or as a program gave it. Out:
 * its class, by a table of blocks; the longest prefix decides, what IPv4 no row has is public, what
 * IPv6 no row has is reserved. IPv4-mapped IPv6 never comes here as IPv6 (ip_from_16). Pure; run by
 * the process that dials, after resolution and before every connect.
 */
#include "rules/address.h"

struct block {
	uint8_t family, prefix, class;
	uint8_t bytes[16];
};

/* Whether the first bits of both are the same. */
static bool begins(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	for (unsigned i = 0; i < whole; i++)
		if (a[i] != b[i])
			return false;
	return !rest || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

/* Within a family from the longest prefix to the shortest. */
static const struct block blocks[] = {
	/* clouds hand out credentials here: AWS, GCP, Azure and others at 169.254/16; Azure;
	 * Alibaba; Oracle */
	{ 4, 32, ADDRESS_METADATA, { 168, 63, 129, 16 } },
	{ 4, 32, ADDRESS_METADATA, { 100, 100, 100, 200 } },
	{ 4, 32, ADDRESS_METADATA, { 192, 0, 0, 192 } },
	{ 4, 32, ADDRESS_MULTICAST, { 255, 255, 255, 255 } },
	{ 4, 24, ADDRESS_RESERVED, { 192, 0, 0 } },   /* protocol assignments */
	{ 4, 24, ADDRESS_RESERVED, { 192, 88, 99 } }, /* 6to4 relays */
	{ 4, 16, ADDRESS_METADATA, { 169, 254 } },
	{ 4, 16, ADDRESS_PRIVATE, { 192, 168 } },
	{ 4, 15, ADDRESS_RESERVED, { 198, 18 } }, /* benchmarks, and the synthetic addresses */
	{ 4, 12, ADDRESS_PRIVATE, { 172, 16 } },
	{ 4, 10, ADDRESS_PRIVATE, { 100, 64 } }, /* carrier-grade NAT */
	{ 4, 8, ADDRESS_LOOPBACK, { 0 } },       /* connects to the host itself */
	{ 4, 8, ADDRESS_PRIVATE, { 10 } },
	{ 4, 8, ADDRESS_LOOPBACK, { 127 } },
	{ 4, 4, ADDRESS_MULTICAST, { 224 } },
	{ 4, 4, ADDRESS_RESERVED, { 240 } },
	{ 4, 0, ADDRESS_PUBLIC, { 0 } },

	{ 6, 128, ADDRESS_LOOPBACK, { 0 } },
	{ 6, 128, ADDRESS_LOOPBACK, { [15] = 1 } },
	{ 6,
	  128,
	  ADDRESS_METADATA,
	  { 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54 } }, /* AWS */
	/* GCP */
	{ 6, 128, ADDRESS_METADATA, { 0xfd, 0x20, 0x00, 0xce, [14] = 0x02, [15] = 0x54 } },
	{ 6, 96, ADDRESS_TRANSLATED, { 0 } }, /* IPv4-compatible */
	/* IPv4-mapped */
	{ 6, 96, ADDRESS_TRANSLATED, { [10] = 0xff, [11] = 0xff } },
	{ 6, 96, ADDRESS_TRANSLATED, { [8] = 0xff, [9] = 0xff } }, /* IPv4-translated */
	{ 6, 96, ADDRESS_TRANSLATED, { 0x00, 0x64, 0xff, 0x9b } }, /* NAT64 */
	/* NAT64, local */
	{ 6, 48, ADDRESS_TRANSLATED, { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 } },
	{ 6, 32, ADDRESS_TRANSLATED, { 0x20, 0x01, 0x00, 0x00 } }, /* Teredo */
	/* documentation */
	{ 6, 32, ADDRESS_PUBLIC, { 0x20, 0x01, 0x0d, 0xb8 } },
	{ 6, 23, ADDRESS_RESERVED, { 0x20, 0x01 } },   /* protocol assignments */
	{ 6, 16, ADDRESS_TRANSLATED, { 0x20, 0x02 } }, /* 6to4 */
	{ 6, 10, ADDRESS_LINK_LOCAL, { 0xfe, 0x80 } },
	{ 6, 10, ADDRESS_PRIVATE, { 0xfe, 0xc0 } }, /* site-local */
	{ 6, 8, ADDRESS_MULTICAST, { 0xff } },
	{ 6, 7, ADDRESS_PRIVATE, { 0xfc } },
	{ 6, 3, ADDRESS_PUBLIC, { 0x20 } }, /* global unicast */
	{ 6, 0, ADDRESS_RESERVED, { 0 } },
};

enum address_class address_classify(const struct ip *a)
{
	for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
		if (blocks[i].family == a->family &&
		    begins(a->bytes, blocks[i].bytes, blocks[i].prefix))
			return (enum address_class)blocks[i].class;
	return ADDRESS_RESERVED; /* no address at all */
}

bool address_is_own(const struct address_own *own, const struct ip *a)
{
	for (size_t i = 0; own && i < own->len; i++)
		if (ip_equal(&own->items[i], a))
			return true;
	return false;
}
