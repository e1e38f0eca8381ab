/*
 * HMAC with SHA-256, as RFC 2104 has it. In: a key and a message in parts. Out: the digest as
 * hexadecimal digits. For what ward signs with a key that it shares with a program of the user's
 * (`ward approve --webhook`). Pure; what was derived from the key is wiped.
 */
#include "base/hmac.h"

#include <string.h>

#define BLOCK_BYTES 64

void hmac_hex(const void *key, size_t key_n, const struct hmac_part *parts, size_t count,
	      char ret_hex[SHA256_HEX])
{
	uint8_t pad[BLOCK_BYTES] = { 0 }, inner[SHA256_BYTES];
	struct sha256 s;

	if (key_n > sizeof(pad)) {
		sha256_begin(&s);
		sha256_add(&s, key, key_n);
		sha256_end(&s, pad);
	} else if (key_n) {
		memcpy(pad, key, key_n);
	}
	for (size_t i = 0; i < sizeof(pad); i++)
		pad[i] ^= 0x36;
	sha256_begin(&s);
	sha256_add(&s, pad, sizeof(pad));
	for (size_t i = 0; i < count; i++)
		sha256_add(&s, parts[i].bytes, parts[i].n);
	sha256_end(&s, inner);
	for (size_t i = 0; i < sizeof(pad); i++)
		pad[i] ^= 0x36 ^ 0x5c;
	sha256_begin(&s);
	sha256_add(&s, pad, sizeof(pad));
	sha256_add(&s, inner, sizeof(inner));
	sha256_end_hex(&s, ret_hex);
	explicit_bzero(pad, sizeof(pad));
	explicit_bzero(inner, sizeof(inner));
	explicit_bzero(&s, sizeof(s));
}

bool hmac_equal(const char a[SHA256_HEX], const char b[SHA256_HEX])
{
	unsigned char difference = 0;

	for (size_t i = 0; i < SHA256_HEX; i++)
		difference |= (unsigned char)(a[i] ^ b[i]);
	return difference == 0;
}
