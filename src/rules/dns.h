/*
 * The resolver inside: DNS messages in, DNS messages out, nothing asked upstream, ever. A for an
 * allowed name is its synthetic address; every other type of an allowed name is NODATA (so no IPv6,
 * no HTTPS and SVCB hints, no ECH keys); a name that is not allowed is NXDOMAIN. Exactly one
 * question, class IN, opcode QUERY; EDNS0 is understood and answered. The question is sent back
 * byte for byte (0x20). Pure but for the name table that it is handed.
 *
 * UDP: resolver_answer(..., DNS_UDP_MAX) for each datagram. TCP: two bytes of length in front of
 * each message, both ways (dns_frame); several on one connection; resolver_answer(...,
 * DNS_TCP_MAX).
 */
#ifndef WARD_RULES_DNS_H
#define WARD_RULES_DNS_H

#include "rules/decide.h"
#include "rules/name_table.h"

#define DNS_UDP_MAX 512 /* an answer never needs more than its question and two records */
#define DNS_TCP_MAX 1024
/* a longer question is FORMERR (UDP) or ends the connection (TCP) */
#define DNS_QUERY_MAX 4096
#define DNS_ANSWER_MAX 640 /* room that every answer fits in */

enum {
	DNS_A = 1,
	DNS_SOA = 6,
	DNS_PTR = 12,
	DNS_AAAA = 28,
	DNS_OPT = 41,
	DNS_SVCB = 64,
	DNS_HTTPS = 65,
	DNS_ANY = 255
};
enum {
	DNS_NOERROR,
	DNS_FORMERR,
	DNS_SERVFAIL,
	DNS_NXDOMAIN,
	DNS_NOTIMP,
	DNS_REFUSED,
	DNS_BADVERS = 16
};

struct dns_query {
	uint16_t id;
	uint16_t type, class;
	bool recursion;    /* RD */
	bool edns;         /* an OPT record was there */
	uint16_t udp_size; /* what it said, at least 512 */
	uint16_t rcode;    /* DNS_NOERROR, or what to answer instead */
	/* bytes of the question behind the header; 0: not to be repeated */
	uint16_t question_len;
	/* host is set; false: a name that is no host name (but well-formed) */
	bool named;
	struct host host;
};

/* Reads one message. False: not even worth an error (a response, or no header). Otherwise *ret,
 * with rcode. */
must_check bool dns_read(const uint8_t *bytes, size_t n, struct dns_query *ret);

/* Writes the answer to what dns_read() made of the message (bytes, n): ip (A) or NULL, name (PTR)
 * or NULL, rcode of its own (NXDOMAIN, SERVFAIL) or DNS_NOERROR without both: NODATA. cap is
 * DNS_ANSWER_MAX or more. Returns its length. */
must_check size_t dns_write(const uint8_t *bytes, const struct dns_query *q, uint16_t rcode,
			    const struct ip *ip, const struct host *name, uint8_t *out, size_t cap);

/* What became of a question, for the event. */
struct dns_outcome {
	struct dns_query query;
	bool decided; /* a name was decided on: want and verdict are set */
	struct want want;
	struct verdict verdict;
	uint16_t rcode; /* that was answered */
	struct ip ip;   /* that was given; family 0: none */
};

/* The whole resolver for one message: reads, decides, gives the name its address, answers. 0: send
 * nothing. */
must_check size_t resolver_answer(const struct rules *rules, struct name_table *names,
				  const uint8_t *bytes, size_t n, uint8_t *out, size_t cap,
				  struct dns_outcome *ret);

/* The same where there is no network at all: localhost has its address, every other name is
 * NXDOMAIN at once. *ret: the question, for the event. 0: send nothing. */
must_check size_t resolver_refuse(const uint8_t *bytes, size_t n, uint8_t *out, size_t cap,
				  struct dns_query *ret);

/* TCP: the length of the first whole message in (bytes, n) behind its two bytes of length; 0: more
 * is needed; -EMSGSIZE: end the connection. */
must_check int dns_frame(const uint8_t *bytes, size_t n);

/* The name behind the original destination of a connection: a synthetic address becomes its name,
 * any other stays itself. */
void want_destination(struct want *ret, const struct name_table *names, const struct ip *ip,
		      uint16_t port);

#endif
