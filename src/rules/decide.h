/*
 * The decision. `struct want` says what a program asked for, `struct verdict` what becomes of it:
 * the two types to learn.
 *
 *   1. front makes a want: of a DNS question, of a connection's original destination
 *   (want_destination), of a CONNECT head or a
 *      SOCKS request (want_host).
 *   2. decide_name(): by name or literal address and port. Denied: refuse, event, done; nothing was
 *   asked upstream.
 *   3. dial resolves verdict.reach == REACH_NAME's name (for REACH_ADDRESS and REACH_SERVICE,
 *   verdict.ip is the address: nothing
 *      to resolve), and calls decide_address() for every address; it connects only to one that
 *      passed, to that very address.
 *   4. sniff.h holds the mode's promise over the first bytes of the connection (SNI, Host); what it
 *   refuses is a verdict too
 *      (verdict_refuse).
 *
 * A verdict is fixed-size and without pointers: it goes over a socket as it is. When rules change,
 * verdicts of an older generation are decided again with step 2 and flows that no longer pass are
 * closed (REASON_CHANGED).
 *
 * Phase two: a name reaches public addresses; with `private: true` private ones too. An address
 * that stands alone in a rule ("169.254.169.254:80", not a block) is reached whether private or
 * metadata: it was named. A block gives its public addresses, with `private: true` its private
 * ones, never metadata. Loopback and the host's own addresses are reached as host_services only;
 * multicast, reserved and translated ones never.
 */
#ifndef WARD_RULES_DECIDE_H
#define WARD_RULES_DECIDE_H

#include "rules/address.h"
#include "rules/egress_rules.h"

enum verdict_reason {
#define REASON(id, ...) REASON_##id,
#include "egress.def"
	VERDICT_REASONS
};

enum want_how {
	WANT_DNS,         /* a question to the resolver; port 0 */
	WANT_TRANSPARENT, /* a connection, to a synthetic or a literal address */
	WANT_CONNECT,     /* HTTP proxy: CONNECT, or a request in absolute form */
	WANT_SOCKS
};

struct want {
	uint8_t how; /* enum want_how */
	bool stale;  /* a synthetic address without a name; host is that address */
	uint16_t port;
	struct host host;
};

enum verdict_reach { REACH_NAME, REACH_BLOCK, REACH_ADDRESS, REACH_SERVICE };

struct verdict {
	bool allow;
	/* not allowed yet: a person is asked; the rest is as it will be with a yes */
	bool ask;
	bool private;   /* private addresses count too */
	uint8_t reason; /* enum verdict_reason */
	uint8_t mode;   /* enum rule_mode */
	uint8_t reach;  /* enum verdict_reach; BLOCK and ADDRESS: a literal */
	uint16_t port;
	int32_t rule;    /* index, -1: none (mode open, or no rule) */
	int32_t service; /* index, -1 */
	uint64_t generation;
	/* BLOCK, ADDRESS, SERVICE: where to; after decide_address: the address */
	struct ip ip;
};

/* A want for a host that was written as text (CONNECT, SOCKS, DNS). */
void want_host(struct want *ret, enum want_how how, const struct host *host, uint16_t port);

/* Phase one. */
void decide_name(const struct rules *r, const struct want *w, struct verdict *ret);

/* Phase two: may a connection with this (allowed) verdict go to that address? Needs no rules: dial
 * has none. */
void decide_address(const struct verdict *named, const struct ip *ip, const struct address_own *own,
		    struct verdict *ret);

/* v denied for another reason, everything else kept. */
void verdict_refuse(struct verdict *v, enum verdict_reason reason);

/* "not in the allow-list" and the name for events, "not_listed". Static text. */
const char *verdict_reason_text(enum verdict_reason reason);
const char *verdict_reason_name(enum verdict_reason reason);

#endif
