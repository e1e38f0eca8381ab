/*
 * The TLS greeting, read byte by byte as it comes: over TCP segments and over TLS records, in
 * constant memory. A connection in mode splice passes if its ClientHello names (SNI) exactly the
 * host that was connected to, hides no other (ECH) and is whole.
 *
 * After it the client is not trusted yet: a server may ask for a second ClientHello
 * (HelloRetryRequest), and that one may name another host. So until the server has sent a
 * ServerHello that is no retry, every handshake record of the client must be a ClientHello with the
 * same name; early data, alerts and change-cipher-spec pass. Then the rest is encrypted: blind.
 *
 * What splice cannot see: a name inside the encrypted part (domain fronting). That takes
 * inspection.
 */
#ifndef WARD_RULES_TLS_HELLO_H
#define WARD_RULES_TLS_HELLO_H

#include "policy/hostname.h"

#define TLS_HELLO_MAX 65536            /* bytes of one ClientHello message */
#define TLS_HELLO_HELD_MAX (72 * 1024) /* and with its record headers */
#define TLS_HELLO_NAME_MAX 255

enum tls_hello_wrong {
	TLS_HELLO_FINE,
	TLS_HELLO_NOT_TLS,
	TLS_HELLO_OLD, /* SSLv2, or malformed */
	TLS_HELLO_LARGE,
	TLS_HELLO_NO_NAME,
	TLS_HELLO_OTHER_NAME,
	TLS_HELLO_HIDDEN /* ECH or its predecessor ESNI */
};

/* A ClientHello in the reading. Streams: every byte is seen once, nothing is kept but the name. */
struct tls_hello {
	uint8_t state; /* of the machine in tls_hello.c */
	uint8_t wrong; /* enum tls_hello_wrong */
	bool begun, done;
	bool has_name, has_ech, has_alpn, offers_h2;
	uint32_t left;   /* bytes of the message that are to come */
	uint32_t field;  /* bytes of the current field that are to come */
	uint32_t number; /* a number in the reading */
	/* the extension in the reading; bytes that its list has left */
	uint16_t type, inner;
	uint8_t name_len, proto_len;
	char proto[2]; /* an ALPN protocol, as far as it is of interest */
	char name[TLS_HELLO_NAME_MAX + 1];
};

void tls_hello_init(struct tls_hello *h);
/* Takes the next bytes of handshake content; returns how many it used: fewer than n only when done
 * or wrong. */
size_t tls_hello_take(struct tls_hello *h, const uint8_t *bytes, size_t n);

struct tls_sniff {
	struct host host;
	struct tls_hello hello;
	uint8_t wrong; /* enum tls_hello_wrong */
	bool greeted;  /* a whole ClientHello was checked */
	bool retried;  /* a HelloRetryRequest was seen */
	bool blind;
	/* client side */
	uint32_t seen;                 /* of the held bytes */
	uint8_t header_len, header[5]; /* the record header in the reading */
	uint32_t record_left;
	/* server side */
	uint8_t server_header_len, server_header[5];
	uint32_t server_left; /* of the record */
	uint32_t server_skip; /* of a handshake message that is of no more interest */
	uint8_t server_len;
	uint8_t server_bytes[38]; /* of a handshake message: header, version, random */
};

void tls_sniff_init(struct tls_sniff *g, const struct host *host);
/* held: all client bytes that were not released yet. Returns how many may go now; see g->wrong and
 * g->blind. */
must_check size_t tls_sniff_client(struct tls_sniff *g, const uint8_t *held, size_t n);
/* The next bytes of the server. */
void tls_sniff_server(struct tls_sniff *g, const uint8_t *bytes, size_t n);

#endif
