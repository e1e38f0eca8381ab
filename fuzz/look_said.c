/* Fuzzes what ward reads of ward-scan about changes: findings with all their texts, or an error. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "review/look.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct look_findings f = { 0 };
	char *copy = malloc(n ? n : 1); /* exactly as long, for the sanitizer */

	assert(copy);
	memcpy(copy, data, n);
	if (look_read(copy, n, &f) == 0)
		for (size_t i = 0; i < f.len; i++)
			assert(f.items[i].rule && f.items[i].path && f.items[i].title &&
			       f.items[i].severity < LOOK_SEVERITIES);
	else
		assert(!f.items);
	look_clear(&f);
	free(copy);
	return 0;
}
