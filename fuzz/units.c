/* Fuzzes numbers with units: no crash, no undefined behaviour, and a result only where the function
 * says so. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "policy/units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static int (*const parsers[])(const char *,
				      uint64_t *) = { units_parse_size, units_parse_cpus,
						      units_parse_seconds, units_parse_uint };
	char text[256], out[64];

	if (n >= sizeof(text))
		return 0;
	memcpy(text, data, n);
	text[n] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(parsers); i++) {
		uint64_t value = UINT64_MAX;
		int r = parsers[i](text, &value);

		assert(r == 0 || r == -EINVAL || r == -ERANGE);
		assert((r == 0) == (value != UINT64_MAX));
		units_format_size(value, out, sizeof(out));
		assert(strlen(out) < 24);
		units_format_ms(value, out, sizeof(out));
		assert(strlen(out) < 48);
	}
	return 0;
}
