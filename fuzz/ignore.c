/*
 * Fuzzer of gitignore patterns. The bytes are a pattern text, NUL, a path. The list's verdict must
 * be that of its last line that has one by itself: the filing of patterns by name must not change
 * an answer.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/ignore.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* The verdict line by line. */
static enum ignore_verdict slowly(const char *text, size_t n, const char *path, bool is_dir)
{
	enum ignore_verdict last = IGNORE_NONE;

	while (n) {
		const char *newline = memchr(text, '\n', n);
		size_t length = newline ? (size_t)(newline - text) : n;
		struct ignore *one = NULL;
		enum ignore_verdict v;

		if (ignore_add(&one, text, length) < 0)
			abort();
		v = ignore_decide(one, path, is_dir);
		if (v != IGNORE_NONE)
			last = v;
		ignore_free(one);
		length += newline ? 1 : 0;
		text += length;
		n -= length;
	}
	return last;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	const uint8_t *nul = n ? memchr(bytes, '\0', n) : NULL;
	size_t text_length = nul ? (size_t)(nul - bytes) : 0;
	auto_free char *path = NULL;
	struct ignore *ig = NULL;

	if (!nul || text_length + 1 == n ||
	    (text_length >= 3 && memmem(bytes + 1, text_length - 1, "\xef\xbb\xbf", 3)))
		return 0; /* a mark at a later line's beginning is no mark */
	path = strndup((const char *)nul + 1, n - text_length - 1);
	if (!path || ignore_add(&ig, (const char *)bytes, text_length) < 0)
		abort();
	if (*path && *path != '/')
		for (int is_dir = 0; is_dir < 2; is_dir++)
			if (ignore_decide(ig, path, is_dir) !=
			    slowly((const char *)bytes, text_length, path, is_dir))
				abort();
	ignore_free(ig);
	return 0;
}
