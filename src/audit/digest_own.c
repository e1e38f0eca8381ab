/*
 * The chain's digest with the SHA-256 that ward carries. In: the hash before, a line. Out: its
 * hash. Pure; run by the writer in the supervisor, for whom a crypto library would cost more at
 * every start than it saves.
 */
#include "audit/chain.h"
#include "base/sha256.h"

void chain_digest(const uint8_t before[CHAIN_BYTES], const void *bytes, size_t n,
		  uint8_t ret[CHAIN_BYTES])
{
	struct sha256 s;

	_Static_assert(CHAIN_BYTES == SHA256_BYTES, "the chain's hash is SHA-256");
	sha256_begin(&s);
	sha256_add(&s, before, CHAIN_BYTES);
	sha256_add(&s, bytes, n);
	sha256_end(&s, ret);
}
