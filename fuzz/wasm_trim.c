/* The library that ward-wasm takes the compiler out of: any bytes are refused or changed in place,
 * none beyond their end; what was trimmed has no compiler left. */
#include <stdlib.h>
#include <string.h>

#include "wasm/wasm.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);

	if (!copy)
		return 0;
	memcpy(copy, bytes, n);
	wasm_trim(copy, n);
	free(copy);
	return 0;
}
