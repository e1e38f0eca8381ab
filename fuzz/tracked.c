/* Fuzzer of the list of tracked files (review/changes_base.c): what is found is a whole object
 * name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "review/changes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	const char *git_dir;
	char id[65];
	bool program;

	if (changes_tracked_find((const char *)bytes, n, "a/b", &git_dir, id, &program) &&
	    strlen(id) != 40 && strlen(id) != 64)
		abort();
	return 0;
}
