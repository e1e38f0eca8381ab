/* Fuzzer of version files: what passes as words has no "path:" and no control character in any
 * word, what passes as variables has no line that begins with BASH_ENV=, and each form gives the
 * same answer for the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rules/version_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* Whether a line that is no comment says "path:" before a comment begins in it. */
static int says_path(const char *text, size_t n)
{
	while (n) {
		const char *end = memchr(text, '\n', n), *hash;
		size_t len = end ? (size_t)(end - text) : n;

		hash = memchr(text, '#', len);
		if (memmem(text, hash ? (size_t)(hash - text) : len, "path:", 5))
			return 1;
		text += end ? len + 1 : len;
		n -= end ? len + 1 : len;
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	const char *text = n ? (const char *)bytes : "";

	for (int form = VERSION_WORDS; form <= VERSION_ENV; form++) {
		const char *fault = version_file_fault((enum version_form)form, text, n);

		if (fault != version_file_fault((enum version_form)form, text, n))
			abort();
		if (!fault && form == VERSION_ENV &&
		    (memmem(text, n, "\nBASH_ENV=", 10) || memmem(text, n, "\rBASH_ENV=", 10)))
			abort();
		if (!fault && form != VERSION_PACKAGE && form != VERSION_ENV &&
		    (memchr(text, '\0', n) || says_path(text, n)))
			abort();
	}
	return 0;
}
