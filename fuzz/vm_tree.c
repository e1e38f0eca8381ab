/* Fuzzes the records with which a hostile guest sends files back, cut into pieces; and what clients
 * of ward-vm's socket say. */
#include <assert.h>
#include <string.h>

#include "vm/party.h"
#include "vm/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct seen {
	bool in_file;
	uint64_t size, done;
};

static int on_head(void *ctx, const struct tree_head *h, const char *name)
{
	struct seen *s = ctx;

	assert(!s->in_file && tree_check_head(h) && strlen(name) == h->name_len);
	assert(name[0] != '/' && strcmp(name, "..") != 0 && !strstr(name, "/../") &&
	       !strstr(name, "//") && strncmp(name, "../", 3) != 0);
	if (h->type == TREE_FILE)
		*s = (struct seen){ .in_file = true, .size = h->size };
	return 0;
}

static int on_link(void *ctx, const struct tree_head *h, const char *name, const char *target)
{
	assert(strlen(target) == h->size && h->size);
	return on_head(ctx, h, name);
}

static int on_chunk(void *ctx, uint64_t offset, const void *bytes, size_t n)
{
	struct seen *s = ctx;
	volatile uint8_t last = ((const uint8_t *)bytes)[n - 1];

	(void)last;
	assert(s->in_file && offset >= s->done && offset + n <= s->size);
	s->done = offset + n;
	return 0;
}

static int on_file_end(void *ctx)
{
	struct seen *s = ctx;

	assert(s->in_file);
	s->in_file = false;
	return 0;
}

static const struct tree_sink sink = {
	.head = on_head, .link = on_link, .chunk = on_chunk, .file_end = on_file_end
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct tree_reader r;
	struct party_message m;
	struct seen seen = { 0 };
	size_t piece = n ? 1 + data[0] : 1;
	int err = 0;

	if (party_check(data, n, &m))
		assert(m.op <= PARTY_RESIZE);
	r = (struct tree_reader){ .sink = &sink,
				  .ctx = &seen,
				  .bytes_max = 100000,
				  .records_max = 100,
				  .more = n ? data[0] & 3 : 0 };
	for (size_t at = 1; at < n && err == 0; at += piece)
		err = tree_read(&r, data + at, n - at < piece ? n - at : piece);
	assert(r.records <= 101);
	return 0;
}
