/*
 * SHA-256 of a stream, by OpenSSL: layers are large, and it uses what the processor has for that.
 * In: bytes. Out: hexadecimal digits. A failure gives an empty digest, which equals none.
 */
#include "image/hash.h"

#include <openssl/evp.h>
#include <stdio.h>

void hash_begin(struct hash *h)
{
	h->ctx = EVP_MD_CTX_new();
	if (h->ctx && EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL) != 1) {
		EVP_MD_CTX_free(h->ctx);
		h->ctx = NULL;
	}
}

void hash_add(struct hash *h, const void *bytes, size_t n)
{
	if (h->ctx && EVP_DigestUpdate(h->ctx, bytes, n) != 1) {
		EVP_MD_CTX_free(h->ctx);
		h->ctx = NULL;
	}
}

void hash_end(struct hash *h, char ret_hex[DIGEST_HEX])
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	ret_hex[0] = '\0';
	if (h->ctx && EVP_DigestFinal_ex(h->ctx, sum, &n) == 1 && n == 32)
		for (unsigned i = 0; i < n; i++)
			snprintf(ret_hex + 2 * i, 3, "%02x", sum[i]);
	EVP_MD_CTX_free(h->ctx);
	h->ctx = NULL;
}
