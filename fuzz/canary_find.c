/* Fuzzer of the look for canaries. The first byte says how the stream is cut into pieces: what is
 * found does not depend on it. A value that is put into the stream is found in each form. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rules/canary_find.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static const char token[] = "q3zrw5tnmc7xk2vbpday";

static int find(const struct canary_finder *f, const uint8_t *bytes, size_t n, size_t piece)
{
	struct canary_stream s = { 0 };
	int found = -1;

	for (size_t at = 0; at < n && found < 0; at += piece)
		found = canary_find(f, &s, bytes + at, n - at < piece ? n - at : piece);
	return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static struct canary_finder *f;
	struct ward_err e = { 0 };
	uint8_t *all;

	if (!f && canary_finder_new(token, 1, &f, &e) < 0)
		abort();
	if (!n)
		return 0;
	if (find(f, bytes, n, n) != find(f, bytes, n, 1 + bytes[0] % 19U))
		abort();
	all = malloc(n + sizeof(token));
	if (!all)
		return 0;
	memcpy(all, bytes, n);
	/* what stands before may be the beginning of an escape, or one of its letters */
	all[n - 1] = '\n';
	memcpy(all + n, token, sizeof(token));
	if (find(f, all, n + sizeof(token) - 1, 1 + bytes[0] % 7U) != 0)
		abort();
	free(all);
	return 0;
}
