/* Fuzzes MCP's messages, on lines that arrive in two pieces. What is accepted is JSON to the
 * policy's reader, too, and an id that is written back is read as the same. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "mcp/lines.h"
#include "mcp/say.h"
#include "policy/node.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool touch(void *state, const char *key, struct mcp_span value)
{
	auto_buf text = { 0 };
	uint64_t number;
	char id[MCP_ID_MAX];

	assert(value.n && mcp_type(value));
	(void)!mcp_text(value, &text);
	(void)!mcp_uint(value, 1000, &number);
	(void)!mcp_id(value, id);
	*(size_t *)state += key ? strlen(key) : 1;
	return true;
}

static void read_back(const struct mcp_message *m)
{
	auto_buf out = { 0 }, result = { 0 };
	struct mcp_message again;
	struct mcp_parts parts;
	const char *why;

	buf_puts(&result, "{}");
	mcp_put_result(&out, m->id, &result);
	assert(!memchr(out.data, '\n', out.len));
	assert(mcp_split((const uint8_t *)out.data, out.len, &parts, &why) == 0);
	assert(mcp_read(parts.items[0], &again, &why) == 0);
	assert(again.kind == MCP_RESULT && strcmp(again.id, m->id) == 0);
}

static void one(struct mcp_span line)
{
	static struct mcp_parts parts;
	struct ward_err e;
	struct reader reader = { .name = "message", .e = &e };
	struct mcp_message m;
	const char *why = NULL;
	size_t sum = 0;

	if (mcp_split(line.at, line.n, &parts, &why) != 0) {
		assert(why);
		return;
	}
	if (line.n < NODE_BYTES_MAX) {
		auto_node root = json_read(&reader, line.at, line.n);

		assert(root || strstr(e.why, "levels deep") || strstr(e.why, "keys"));
	}
	for (size_t i = 0; i < parts.count; i++) {
		if (mcp_read(parts.items[i], &m, &why) != 0) {
			assert(why);
			continue;
		}
		assert(strlen(m.id) < MCP_ID_MAX && strlen(m.method) < MCP_METHOD_MAX);
		if (m.kind == MCP_REQUEST)
			read_back(&m);
		if (m.params.n)
			assert(mcp_each(m.params, touch, &sum));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct mcp_lines l = { 0 };
	struct mcp_span line;
	size_t half = n / 2;
	int r;

	for (int piece = 0; piece < 2; piece++) {
		mcp_lines_add(&l, piece ? data + half : data, piece ? n - half : half);
		while ((r = mcp_lines_next(&l, &line)) != 0 && r != -ENOMEM)
			if (r == 1) {
				assert(!memchr(line.at, '\n', line.n));
				one(line);
			}
	}
	mcp_lines_free(&l);
	one((struct mcp_span){ data, n });
	return 0;
}
