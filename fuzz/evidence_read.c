/* Fuzzes the signature files of ward evidence: what is taken is written again as it was. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "cli/evidence_sign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct evidence_signature s = { 0 };
	char again[1024];
	int len;

	if (!evidence_signature_read((const char *)data, n, &s))
		return 0;
	len = snprintf(again, sizeof(again),
		       EVIDENCE_HEADLINE "\nsha256 %s\nkey %s\nsignature %s\n", s.digest, s.key,
		       s.signature);
	assert((size_t)len == n && memcmp(again, data, n) == 0);
	return 0;
}
