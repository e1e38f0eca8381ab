/* Fuzzer of the trust store's reader: whatever the file has, every certificate found lies within
 * what was decoded, and names can be read. */
#include <stdint.h>
#include <stdlib.h>

#include "transport/tls_roots.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct tls_roots *r = tls_roots_new((const char *)bytes, n);
	size_t sum = 0;

	if (!r)
		return 0;
	for (unsigned i = 0; i < tls_roots_count(r); i++) {
		size_t len;
		const unsigned char *der = tls_roots_get(r, i, &len);

		if (!len || der[0] != 0x30)
			abort();
		sum += len;
	}
	if (sum > n / 4 * 3 + 3)
		abort();
	tls_roots_index(r);
	tls_roots_free(r);
	return 0;
}
