/* OpenSSL, begun without its configuration, its variables and its cleaning up at the end. */
#ifndef WARD_TRANSPORT_TLS_INIT_H
#define WARD_TRANSPORT_TLS_INIT_H

#include <openssl/ssl.h>

static inline void tls_init(void)
{
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL);
}

#endif
