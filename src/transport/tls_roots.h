/* The certificates of the host's trust store, decoded only when one of them is asked for: a store
 * has 140 of them, and decoding all takes longer than everything else that a gateway does before it
 * begins. Private to src/gateway. */
#ifndef WARD_TRANSPORT_TLS_ROOTS_H
#define WARD_TRANSPORT_TLS_ROOTS_H

#include <openssl/x509_vfy.h>
#include <stddef.h>

struct tls_roots;

/* Reads PEM text; NULL: no certificate in it, or no memory. */
struct tls_roots *tls_roots_new(const char *pem, size_t n);
void tls_roots_free(struct tls_roots *r);
unsigned tls_roots_count(const struct tls_roots *r);
/* Reads all names now, which the first lookup would have to. */
void tls_roots_index(struct tls_roots *r);
/* The i-th as DER. */
const unsigned char *tls_roots_get(const struct tls_roots *r, unsigned i, size_t *ret_n);
/* Makes the store look here; r must outlive it. */
int tls_roots_attach(struct tls_roots *r, X509_STORE *store);

#endif
