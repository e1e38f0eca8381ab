/*
 * What kind of address it is. Only PUBLIC ones are reached without more being said; see decide.h
 * for the rules that may reach the others. The documentation ranges (192.0.2/24, 198.51.100/24,
 * 203.0.113/24, 2001:db8::/32) count as public: tests use them. A pure function over a table,
 * longest prefix first.
 */
#ifndef WARD_RULES_ADDRESS_H
#define WARD_RULES_ADDRESS_H

#include "policy/hostname.h"

enum address_class {
	ADDRESS_PUBLIC,
	ADDRESS_PRIVATE, /* 10/8, 172.16/12, 192.168/16, 100.64/10, fc00::/7, fec0::/10 */
	/* 169.254/16 and the other addresses at which clouds give out credentials */
	ADDRESS_METADATA,
	ADDRESS_LOOPBACK,   /* 127/8, 0.0.0.0/8, ::1, :: */
	ADDRESS_LINK_LOCAL, /* fe80::/10: means nothing without an interface */
	ADDRESS_MULTICAST,  /* 224/4, 255.255.255.255, ff00::/8 */
	/* 198.18/15 (the synthetic range), 192.0.0/24, 192.88.99/24, 240/4, IPv6 outside 2000::/3,
	 * 2001::/23 */
	ADDRESS_RESERVED,
	/* IPv4 inside: 64:ff9b::/96, 64:ff9b:1::/48, 2002::/16, 2001::/32, ::/96,
	 * ::ffff:0:0:0/96 */
	ADDRESS_TRANSLATED,
	ADDRESS_CLASSES
};

enum address_class address_classify(const struct ip *a);

/* The host's own addresses, which no rule opens: a connection to them reaches the host's services.
 */
struct address_own {
	const struct ip *items;
	size_t len;
};
bool address_is_own(const struct address_own *own, const struct ip *a);

#endif
