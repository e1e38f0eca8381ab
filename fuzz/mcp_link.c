/* Fuzzes the records between the front and the server of `ward mcp serve --http`, which either side
 * may forge: a record is whole, of a known kind and a bounded length, whatever pieces it came in;
 * what is put is read back. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "mcp/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void read_back(const struct link_head *head, struct mcp_span bytes)
{
	struct link out = { 0 }, in = { .bytes_max = 4096 };
	struct link_head again;
	struct mcp_span same;

	link_put(&out, *head, bytes.at, (uint32_t)bytes.n);
	link_add(&in, out.out.data, link_waiting(&out));
	assert(link_next(&in, &again, &same) == 1);
	assert(memcmp(head, &again, sizeof(again)) == 0 && same.n == bytes.n);
	assert(!same.n || memcmp(same.at, bytes.at, same.n) == 0);
	assert(link_next(&in, &again, &same) == 0);
	link_sent(&out, link_waiting(&out));
	assert(!link_waiting(&out));
	link_free(&out);
	link_free(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct link l = { .bytes_max = 4096 };
	size_t step = n ? data[0] + 1u : 1;
	struct link_head head;
	struct mcp_span bytes;
	int r = 0;

	for (size_t at = 0; at < n && r >= 0; at += step) {
		link_add(&l, data + at, n - at < step ? n - at : step);
		while ((r = link_next(&l, &head, &bytes)) == 1) {
			assert(head.op && head.op < LINK_OPS && bytes.n <= l.bytes_max);
			read_back(&head, bytes);
		}
		assert(r == 0 || r == -EPROTO);
	}
	link_free(&l);
	return 0;
}
