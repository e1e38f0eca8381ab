/*
 * Lines of a stream (lines.h). In: bytes as they come. Out: whole lines. A line that is too long
 * costs no memory beyond the limit: it is reported once and thrown away up to its end. Pure.
 */
#include "mcp/lines.h"

#include <errno.h>
#include <string.h>

/* Forgets what was handed out. */
static void compact(struct mcp_lines *l)
{
	if (!l->from)
		return;
	memmove(l->bytes.data, l->bytes.data + l->from, l->bytes.len - l->from);
	l->bytes.len -= l->from;
	l->scanned -= l->from;
	l->from = 0;
}

void mcp_lines_add(struct mcp_lines *l, const void *bytes, size_t n)
{
	compact(l);
	if (l->skipping) {
		const char *end = n ? memchr(bytes, '\n', n) : NULL;
		size_t drop = end ? (size_t)(end - (const char *)bytes) + 1 : n;

		l->skipping = !end;
		bytes = (const char *)bytes + drop;
		n -= drop;
	}
	buf_add(&l->bytes, bytes, n);
}

static int too_long(struct mcp_lines *l, const char *end)
{
	if (end) {
		l->from = l->scanned = (size_t)(end - l->bytes.data) + 1;
	} else {
		l->from = l->scanned = l->bytes.len;
		l->skipping = true;
	}
	return -EMSGSIZE;
}

int mcp_lines_next(struct mcp_lines *l, struct mcp_span *ret)
{
	if (l->bytes.failed)
		return -ENOMEM;
	while (l->scanned < l->bytes.len) {
		char *end = memchr(l->bytes.data + l->scanned, '\n', l->bytes.len - l->scanned);
		size_t n = (end ? (size_t)(end - l->bytes.data) : l->bytes.len) - l->from;

		if (n > MCP_BYTES_MAX + 1)
			return too_long(l, end);
		if (!end) {
			l->scanned = l->bytes.len;
			return 0;
		}
		ret->at = (const uint8_t *)l->bytes.data + l->from;
		ret->n = n && end[-1] == '\r' ? n - 1 : n;
		l->from = l->scanned = l->from + n + 1;
		if (ret->n)
			return 1;
	}
	return 0;
}

void mcp_lines_free(struct mcp_lines *l)
{
	buf_free(&l->bytes);
	*l = (struct mcp_lines){ 0 };
}
