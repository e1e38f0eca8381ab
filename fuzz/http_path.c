/* Fuzzes normal paths: what comes out is its own normal form, has no segment to resolve, and both
 * readings are of one length or less. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "rules/http_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(const char *s, size_t n)
{
	assert(n && s[0] == '/');
	assert(!memmem(s, n, "//", 2) && !memmem(s, n, "/./", 3) && !memmem(s, n, "/../", 4));
	assert(n < 3 || memcmp(s + n - 3, "/..", 3) != 0);
	for (size_t i = 0; i < n; i++)
		assert(s[i] > ' ' && s[i] <= '~' && s[i] != '\\' && s[i] != '?' && s[i] != '#');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct http_path once, twice;

	if (!http_path_read((const char *)data, n, &once))
		return 0;
	check(once.text, once.len);
	if (once.two)
		check(once.other, once.other_len);
	assert(http_path_read(once.text, once.len, &twice));
	assert(twice.len == once.len && memcmp(twice.text, once.text, once.len) == 0);
	assert(http_glob("*", 1, once.text, once.len) && http_glob("/*", 2, once.text, once.len));
	return 0;
}
