/*
 * Names and addresses in their one canonical form. Whatever a policy, a DNS query, an SNI, a Host
 * header, CONNECT or SOCKS calls a host, it becomes a struct host once, here, and is compared as
 * that ever after: lower case, no trailing dot, ASCII (A-labels), or the bytes of an address. What
 * different programs read differently is refused, not guessed: 0x7f.1, 017.0.0.1, 2130706433,
 * 127.1, empty labels, NUL, zones. Pure functions over (pointer, length), fuzzed (fuzz/hostname.c).
 */
#ifndef WARD_POLICY_HOSTNAME_H
#define WARD_POLICY_HOSTNAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/own.h"

#define HOSTNAME_MAX 253 /* characters of a name; a struct host has a NUL behind */
#define HOST_TEXT 256    /* room for any struct host as text */

enum host_kind { HOST_NONE, HOST_NAME, HOST_ADDRESS };

/* An address; IPv4 inside IPv6 (::ffff:a.b.c.d) never stands in one: ip_from_*() turn it into
 * IPv4. */
struct ip {
	uint8_t family;    /* 4, 6, or 0: none */
	uint8_t bytes[16]; /* network order; IPv4: the first four, the rest 0 */
};

struct host {
	uint8_t kind;                /* enum host_kind */
	uint8_t len;                 /* of name */
	char name[HOSTNAME_MAX + 1]; /* HOST_NAME: canonical, NUL-terminated; "" otherwise */
	struct ip ip;                /* HOST_ADDRESS */
};

/* Why a text is no host. */
enum host_wrong { HOST_FINE, HOST_EMPTY, HOST_LONG, HOST_CHARACTER, HOST_LABEL, HOST_SPELLING };

/* Reads n bytes from a program inside as a name or an address: "Example.COM.", "192.0.2.1",
 * "2001:db8::1", "[2001:db8::1]". No wildcard, no port. Anything that is not ASCII is refused: a
 * program that speaks IDNA sends A-labels. */
must_check enum host_wrong host_read(const char *bytes, size_t n, struct host *ret);

/* The same for "host[:port]" as in Host and CONNECT: brackets around IPv6 are required there.
 * *ret_port is 0 when none is given; "host:" and ports outside 1..65535 are HOST_SPELLING. */
must_check enum host_wrong host_read_port(const char *bytes, size_t n, struct host *ret,
					  uint16_t *ret_port);

bool host_equal(const struct host *a, const struct host *b);
/* The name, or the address in its usual form without brackets. Returns out. */
const char *host_text(const struct host *h, char out[HOST_TEXT]);

/* From network order; ip_from_16 makes IPv4 of an IPv4-mapped address. */
struct ip ip_from_4(const uint8_t bytes[4]);
struct ip ip_from_16(const uint8_t bytes[16]);
bool ip_equal(const struct ip *a, const struct ip *b);
/* Whether the first prefix bits of both are the same and the families too. */
bool ip_within(const struct ip *a, const struct ip *block, unsigned prefix);
/* "192.0.2.1" or "2001:db8::1"; "" for none. Returns out. */
const char *ip_text(const struct ip *a, char out[HOST_TEXT]);

#endif
