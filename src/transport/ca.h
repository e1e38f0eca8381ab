/*
 * The authority of one sandbox: a key that only front has, a certificate that no one but this
 * sandbox trusts, and the certificates that are shown to programs inside in the name of the servers
 * that inspect rules name. The certificate is constrained to those names, may sign no other
 * authority and lives for a week; what it signs lives for a day.
 */
#ifndef WARD_TRANSPORT_CA_H
#define WARD_TRANSPORT_CA_H

#include <openssl/ssl.h>

#include "base/err.h"
#include "policy/hostname.h"

#define CA_NAMES_MAX 256

struct ca;

/* names: each with all below it; none: every name (a rule for `*`). */
must_check int ca_new(const char *const *names, size_t n, struct ca **ret, struct ward_err *e);
void ca_free(struct ca *c);

/* The certificate, and its name's hash as in /etc/ssl/certs/HASH.0. */
X509 *ca_certificate(const struct ca *c);
uint32_t ca_hash(const struct ca *c);
/* Its PEM text behind what out has. */
struct buf;
must_check bool ca_pem(const struct ca *c, struct buf *out);

/* Makes the connection show itself as that host: its certificate is made, or comes from the
 * cache. */
must_check bool ca_show(struct ca *c, SSL *ssl, const struct host *host);

#endif
