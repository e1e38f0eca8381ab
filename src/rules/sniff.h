/*
 * The gate of one connection: holds the mode's promise over its first bytes (splice) or over all of
 * them (http), and says when the pump may go blind and splice. Fixed size, no allocation, no copy
 * of the traffic; the caller keeps the bytes that were not released yet in one linear buffer of at
 * most SNIFF_HELD_MAX.
 *
 *   sniff_init(&g, mode, host, port)     host: what was connected to, canonical (want.host)
 *   SNIFF_BLIND from the start for tcp.
 *
 *   client bytes: append them to the held buffer, call sniff_client(&g, held, n, &release), send
 *   the first `release` bytes to the server, keep the rest held. Nothing is ever released before it
 *   was checked; of what is released some may have been changed (http: a field that asks for
 *   another protocol). Again with more bytes, and after each sniff_server() that returned
 *   SNIFF_AGAIN (a pipelined request may have waited for an answer). server bytes: sniff_server(&g,
 *   bytes, n), each byte once, in order, before it is sent to the client; it may be sent whatever
 *   the answer but SNIFF_REFUSE. SNIFF_BLIND: send what is held, then move bytes both ways without
 *   looking (splice). SNIFF_REFUSE: nothing more may pass; g.reason says why. Reset both sides. For
 *   http sniff_reply() is a small answer for the client in front of the close.
 *
 * If the client half-closes while bytes are held: they are dropped and the connection is closed (it
 * was never complete).
 */
#ifndef WARD_RULES_SNIFF_H
#define WARD_RULES_SNIFF_H

#include "rules/decide.h"
#include "rules/http1.h"
#include "rules/tls_hello.h"

#define SNIFF_HELD_MAX (80 * 1024)

enum sniff_say { SNIFF_OPEN, SNIFF_AGAIN, SNIFF_BLIND, SNIFF_REFUSE };

struct sniff {
	uint8_t mode;   /* enum rule_mode */
	uint8_t reason; /* enum verdict_reason, behind SNIFF_REFUSE */
	bool blind;
	union {
		struct tls_sniff tls;
		struct http_sniff http;
	};
};

void sniff_init(struct sniff *g, enum rule_mode mode, const struct host *host, uint16_t port);
must_check enum sniff_say sniff_client(struct sniff *g, uint8_t *held, size_t n,
				       size_t *ret_release);
must_check enum sniff_say sniff_server(struct sniff *g, const uint8_t *bytes, size_t n);
/* An answer for the client behind SNIFF_REFUSE; "" for what is not HTTP, and while the server's own
 * answers are under way. Static text. */
const char *sniff_reply(const struct sniff *g);

#endif
