/* Fuzzes what a hostile guest announces of a tree's pieces, cut into parts of any size, with and
 * without a device. */
#include <assert.h>
#include <errno.h>

#include "vm/disk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct seen {
	bool has_slots;
	uint32_t slots;
	uint64_t bytes;
};

static int on_take(void *ctx, const void *bytes, size_t n)
{
	struct seen *s = ctx;
	volatile uint8_t last = ((const uint8_t *)bytes)[n - 1];

	(void)last;
	assert(n > 0 && n <= DISK_INLINE_MAX);
	s->bytes += n;
	return 0;
}

static int on_load(void *ctx, uint32_t slot, uint32_t len)
{
	struct seen *s = ctx;

	assert(s->has_slots && slot == s->slots % DISK_SLOTS && len > 0 && len <= DISK_SLOT_BYTES);
	s->slots++;
	return len == 77 ? -ENOSPC : 0; /* whoever takes it may give up */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct seen seen = { .has_slots = n && data[0] & 1 };
	struct disk_reader r = {
		.has_slots = seen.has_slots, .take = on_take, .load = on_load, .ctx = &seen
	};
	size_t part = n ? 1 + (data[0] >> 1) : 1;
	int err = 0;

	for (size_t at = 1; at < n && err == 0; at += part)
		err = disk_read(&r, data + at, n - at < part ? n - at : part);
	assert(seen.bytes <= n && (err == 0 || err == -EPROTO || err == -ENOSPC));
	assert(r.have < sizeof(r.piece) && r.next < DISK_SLOTS && r.left <= DISK_INLINE_MAX);
	return 0;
}
