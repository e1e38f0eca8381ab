/*
 * Reading FILE.sig of ward evidence. In: bytes from any source. Out: a digest, a key
 * and a signature in their one form; anything else is refused. Pure. Fuzzed
 * (fuzz/evidence_read.c).
 */
#include "cli/evidence_sign.h"

#include <string.h>

/* "WORD HEX\n" at *at. */
static bool take(const char **at, const char *end, const char *word, char *ret, size_t hex)
{
	uint8_t bytes[SIGN_BYTES];
	size_t n = strlen(word);

	if ((size_t)(end - *at) < n + hex + 2 || memcmp(*at, word, n) != 0 || (*at)[n] != ' ' ||
	    (*at)[n + 1 + hex] != '\n' || !chain_unhex(*at + n + 1, hex, bytes, hex / 2))
		return false;
	memcpy(ret, *at + n + 1, hex);
	ret[hex] = '\0';
	*at += n + hex + 2;
	return true;
}

bool evidence_signature_read(const char *text, size_t n, struct evidence_signature *ret)
{
	const char *at = text + strlen(EVIDENCE_HEADLINE) + 1, *end = text + n;

	return n > strlen(EVIDENCE_HEADLINE) &&
	       memcmp(text, EVIDENCE_HEADLINE "\n", strlen(EVIDENCE_HEADLINE) + 1) == 0 &&
	       take(&at, end, "sha256", ret->digest, sizeof(ret->digest) - 1) &&
	       take(&at, end, "key", ret->key, sizeof(ret->key) - 1) &&
	       take(&at, end, "signature", ret->signature, sizeof(ret->signature) - 1) && at == end;
}
