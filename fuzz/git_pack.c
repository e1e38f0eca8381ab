/* Fuzzes the reading of packs: whole and in pieces, the same is proven. The first 40 bytes are the
 * update. */
#include <assert.h>

#include "inspect/git_pack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool proves(const uint8_t *data, size_t n, size_t piece)
{
	struct git_pack *p = git_pack_new(20);
	bool early = false, all;

	assert(p && git_pack_want(p, data, data + 20));
	data += 40;
	n -= 40;
	for (size_t i = 0; i < n; i += piece) {
		git_pack_take(p, data + i, n - i < piece ? n - i : piece);
		early |= git_pack_proves(p, false);
	}
	all = git_pack_proves(p, true);
	assert(!early || all);
	assert(git_pack_unproven(p) == (all ? 1 : 0));
	git_pack_free(p);
	return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	if (n < 40)
		return 0;
	assert(proves(data, n, n) == proves(data, n, 7));
	return 0;
}
