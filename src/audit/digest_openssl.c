/*
 * The chain's digest with OpenSSL, which uses what the processor has for it. In: the hash before, a
 * line. Out: its hash. Run by ward-audit, which verifies millions of lines; one thread, so one
 * context is enough for all of them.
 */
#include "audit/chain.h"

#include <openssl/evp.h>
#include <stdlib.h>

void chain_digest(const uint8_t before[CHAIN_BYTES], const void *bytes, size_t n,
		  uint8_t ret[CHAIN_BYTES])
{
	/* made once: looking the algorithm up costs more than a line's hash */
	static EVP_MD_CTX *context;
	static EVP_MD *sha256;

	if (!context) {
		context = EVP_MD_CTX_new();
		sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	}
	if (!context || !sha256 || !EVP_DigestInit_ex2(context, sha256, NULL) ||
	    !EVP_DigestUpdate(context, before, CHAIN_BYTES) ||
	    !EVP_DigestUpdate(context, bytes, n) || !EVP_DigestFinal_ex(context, ret, NULL))
		abort(); /* no answer must be taken for a right one */
}
