/*
 * TLS towards programs inside: we show ourselves as the server that was connected to. The greeting
 * must name that host. Which protocol is chosen depends on what the real server speaks: TLS_ASK
 * means that the client offers HTTP/2 and that it is not known yet; tls_down_answer() says it, then
 * tls_down_handshake() goes on. Otherwise as tls_up.h.
 */
#ifndef WARD_TRANSPORT_TLS_DOWN_H
#define WARD_TRANSPORT_TLS_DOWN_H

#include "rules/tls_hello.h"
#include "transport/ca.h"
#include "transport/tls_up.h"

struct tls_server; /* what all connections of a sandbox share */
struct tls_down;

must_check struct tls_server *tls_server_new(void);

/* A connection over fd, which is borrowed; early: what the client has said already. alpn: what the
 * real server speaks, 0: not known. NULL: no memory, or no certificate can be made. */
must_check struct tls_down *tls_down_new(struct tls_server *s, struct ca *ca, int fd,
					 const struct host *host, const void *early, size_t early_n,
					 unsigned alpn);
void tls_down_free(struct tls_down *d);
must_check enum tls_say tls_down_handshake(struct tls_down *d);
void tls_down_answer(struct tls_down *d, enum tls_alpn alpn);
must_check enum tls_say tls_down_read(struct tls_down *d, void *bytes, size_t n, size_t *ret_n);
/* What tls_down_read() would say, without reading. */
must_check enum tls_say tls_down_peek(struct tls_down *d);
must_check enum tls_say tls_down_write(struct tls_down *d, const void *bytes, size_t n,
				       size_t *ret_n);
void tls_down_end(struct tls_down *d);
enum tls_alpn tls_down_alpn(const struct tls_down *d);
/* What was wrong with the greeting; TLS_HELLO_FINE where something else failed. */
enum tls_hello_wrong tls_down_wrong(const struct tls_down *d);
/* Whether the program refused our certificate: it trusts none but those it brought. */
bool tls_down_is_distrusted(const struct tls_down *d);

#endif
