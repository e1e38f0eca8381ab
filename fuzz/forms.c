/* Fuzzes forms and placeholders of a secret: each form fits its room and decodes to the secret's
 * own bytes; a placeholder is printable. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "creds/forms.h"
#include "creds/placeholder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint8_t *out, *random, *whole;
	size_t len;

	if (!n || n > 4096)
		return 0;
	out = malloc(FORM_ROOM(n));
	whole = malloc((n + 4) / 3 * 4 + 8);
	random = malloc(n + 2);
	memset(random, 0x5a, n + 2);
	memcpy(random + 2, data, n);
	for (unsigned f = 0; f < FORMS; f++) {
		len = form_write((enum form)f, data, n, out);
		assert(len <= FORM_ROOM(n) && (!len || len >= FORM_LEAST));
		/* whatever two bytes stand before it, the inner characters of base64 are in the
		 * whole */
		if (f >= FORM_BASE64_0 && f <= FORM_BASE64_2 && len) {
			unsigned shift = f - FORM_BASE64_0;
			size_t all = form_base64(random + 2 - shift, n + shift, whole);

			assert(memmem(whole, all, out, len));
		}
		if (f >= FORM_WRITERS) {
			len = form_write_basic((enum form)f, data, n, data[0], out);
			assert(len <= FORM_ROOM(n) && (!len || len >= FORM_LEAST));
		}
	}
	placeholder_write(data, n, random, out);
	free(out);
	free(whole);
	free(random);
	return 0;
}
