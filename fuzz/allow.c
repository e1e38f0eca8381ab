/* Fuzzes the reader of allow lists, and globs against a path. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "scan/allow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct allow a = { 0 };
	struct ward_err e = { 0 };
	char *text = malloc(n + 1);

	assert(text);
	memcpy(text, data, n);
	text[n] = 0;
	if (allow_read(&a, "list", text, n, &e) == 0)
		(void)allow_covers(&a, "0123456789abcdef", 0, "src/deep/down/file.c");
	else
		assert(e.code && e.why[0]);
	allow_free(&a);
	free(text);
	return 0;
}
