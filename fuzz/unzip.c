/* Fuzzes compressed bodies, in pieces: bounded, and never a crash. Without a scanner: what comes
 * out is only counted. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "keys/unzip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct scan_for f = { .secrets = true };
	struct unzip *u;
	size_t piece;

	if (n < 2)
		return 0;
	(void)unzip_kind((const char *)data, n < 20 ? n : 20);
	u = unzip_new(data[0] & 1 ? UNZIP_GZIP : UNZIP_DEFLATE);
	piece = (size_t)data[1] + 1;
	for (size_t at = 2; u && at < n; at += piece)
		if (!unzip_look(u, NULL, data + at, n - at < piece ? n - at : piece, &f))
			break;
	unzip_free(u);
	return 0;
}
