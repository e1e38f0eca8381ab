/*
 * Records between the front and the server (link.h). In: bytes as they come. Out: whole records, of
 * a known kind and a bounded length. Pure.
 */
#include "mcp/link.h"

#include <errno.h>
#include <string.h>

#define SENT_KEPT (256u * 1024) /* bytes that were sent, and are still kept */

void link_put(struct link *l, struct link_head head, const void *bytes, uint32_t n)
{
	head.bytes = n;
	buf_add(&l->out, &head, sizeof(head));
	if (n)
		buf_add(&l->out, bytes, n);
}

void link_add(struct link *l, const void *bytes, size_t n)
{
	if (l->in_at) {
		memmove(l->in.data, l->in.data + l->in_at, l->in.len - l->in_at);
		l->in.len -= l->in_at;
		l->in_at = 0;
	}
	buf_add(&l->in, bytes, n);
}

int link_next(struct link *l, struct link_head *ret_head, struct mcp_span *ret_bytes)
{
	size_t have = l->in.len - l->in_at;

	if (l->in.failed)
		return -EPROTO;
	if (have < sizeof(*ret_head))
		return 0;
	memcpy(ret_head, l->in.data + l->in_at, sizeof(*ret_head));
	if (!ret_head->op || ret_head->op >= LINK_OPS || ret_head->bytes > l->bytes_max)
		return -EPROTO;
	if (have - sizeof(*ret_head) < ret_head->bytes)
		return 0;
	ret_bytes->at = (const uint8_t *)l->in.data + l->in_at + sizeof(*ret_head);
	ret_bytes->n = ret_head->bytes;
	l->in_at += sizeof(*ret_head) + ret_head->bytes;
	return 1;
}

void link_sent(struct link *l, size_t n)
{
	l->out_at += n;
	if (l->out_at == l->out.len) {
		buf_free(&l->out);
		l->out_at = 0;
	} else if (l->out_at > SENT_KEPT) {
		memmove(l->out.data, l->out.data + l->out_at, l->out.len - l->out_at);
		l->out.len -= l->out_at;
		l->out_at = 0;
	}
}

void link_free(struct link *l)
{
	buf_free(&l->in);
	buf_free(&l->out);
}
