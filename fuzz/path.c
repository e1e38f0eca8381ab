/* Fuzzer of base/path's lexical functions: a cleaned path is absolute, has no "." or "..", and
 * cleaning it again changes nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_clean(const char *path)
{
	auto_free char *again = path_clean(path);

	if (path[0] != '/' || !again || strcmp(again, path) != 0)
		abort();
	if (path[1] && path[strlen(path) - 1] == '/')
		abort();
	for (const char *s = path; (s = strchr(s, '/')); s++) {
		size_t length = strcspn(s + 1, "/");

		if (path[1] && length == 0)
			abort();
		if ((length == 1 && s[1] == '.') || (length == 2 && s[1] == '.' && s[2] == '.'))
			abort();
	}
}

/* The bytes are "base NUL rest". */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	auto_free char *text = malloc(n + 2), *base = NULL, *joined = NULL;
	const char *rest;

	if (!text)
		return 0;
	memcpy(text, bytes, n);
	text[n] = text[n + 1] = '\0';
	rest = text + strlen(text) + (strlen(text) < n);
	base = path_clean(text);
	if (!base) {
		if (text[0] == '/')
			abort();
		return 0;
	}
	check_clean(base);
	joined = path_join(base, rest);
	if (!joined)
		abort();
	check_clean(joined);
	if (!path_is_beneath(base, base) || !path_is_beneath(base, "/"))
		abort();
	if (rest[0] != '/' && !strstr(rest, "..") && !path_is_beneath(joined, base))
		abort();
	return 0;
}
