/*
 * TLS towards servers, over a connected non-blocking descriptor. The server's certificate and its
 * name are always checked, against the host's trust store; there is no switch for that.
 *
 *   tls_trust_new(fd, ...) once, before the process is confined: fd is the trust store, PEM
 *   certificates in one file
 *   tls_trust_ready() once, before the first connection: what takes long, while no flow waits
 *   tls_up_new(trust, fd, ...) a connection; the caller keeps the descriptor, polls it and closes
 *   it
 *   tls_up_handshake()           until TLS_DONE; then tls_up_alpn(), tls_up_read(), tls_up_write()
 *   tls_up_end(), tls_up_free()
 *
 * Nothing blocks. TLS_READ and TLS_WRITE mean: again when the descriptor can be read, or written.
 * Whatever was asked for, the other direction may be what it waits for. Behind TLS_FAILED
 * tls_up_why() says why in words for people, without a byte that the server chose. Sessions are
 * kept per name and port and resumed by themselves. OpenSSL reads no file, no variable and no
 * configuration here. The process ignores SIGPIPE. Not for two threads.
 */
#ifndef WARD_TRANSPORT_TLS_UP_H
#define WARD_TRANSPORT_TLS_UP_H

#include <stdint.h>

#include "base/err.h"
#include "policy/hostname.h"

#define TLS_TRUST_MAX (16 * 1024 * 1024) /* bytes of a trust store */

enum tls_say {
	TLS_DONE, /* it did something: for read and write, *ret_n > 0 */
	TLS_READ,
	TLS_WRITE,
	TLS_END, /* the server said that nothing more comes */
	TLS_CUT, /* the connection ended without that: what came last may be incomplete */
	TLS_FAILED,
	TLS_ASK /* tls_down.h only */
};

/* What is offered, and what was chosen; the protocol of a server that chooses none is HTTP/1. */
enum tls_alpn { TLS_ALPN_HTTP1 = 1, TLS_ALPN_HTTP2 = 2, TLS_ALPN_BOTH = 3 };

struct tls_trust;
struct tls_up;
struct tls_roots;

/* Reads the trust store; fd is borrowed. Certificates in it that cannot be read are left out; one
 * without any is refused. */
must_check int tls_trust_new(int fd, struct tls_trust **ret, struct ward_err *e);
must_check int tls_trust_ready(struct tls_trust *t, struct ward_err *e);
void tls_trust_free(struct tls_trust *t);
/* How many certificates it trusts. */
unsigned tls_trust_count(const struct tls_trust *t);
struct tls_roots *tls_trust_roots(const struct tls_trust *t);

/* A connection to host (a name or an address) and port over fd, which is borrowed. offer: enum
 * tls_alpn. NULL: no memory. */
must_check struct tls_up *tls_up_new(struct tls_trust *t, int fd, const struct host *host,
				     uint16_t port, enum tls_alpn offer);
must_check enum tls_say tls_up_handshake(struct tls_up *u);
must_check enum tls_say tls_up_read(struct tls_up *u, void *bytes, size_t n, size_t *ret_n);
/* What tls_up_read() would say, without reading. */
must_check enum tls_say tls_up_peek(struct tls_up *u);
/* Writes some of it; what was not taken may come again from another place in memory, unchanged. */
must_check enum tls_say tls_up_write(struct tls_up *u, const void *bytes, size_t n, size_t *ret_n);
/* Says that nothing more comes, once and without waiting. */
void tls_up_end(struct tls_up *u);
void tls_up_free(struct tls_up *u);

enum tls_alpn tls_up_alpn(const struct tls_up *u);
/* Whether it goes on with an earlier session. */
bool tls_up_is_resumed(const struct tls_up *u);
/* Whether bytes were read from the descriptor that no tls_up_read() has given out yet. */
bool tls_up_is_pending(const struct tls_up *u);
/* Why it failed: "the certificate of api.example.com is not trusted: self-signed certificate".
 * Lives as long as u. */
const char *tls_up_why(const struct tls_up *u);

#endif
