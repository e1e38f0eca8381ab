/*
 * Reader of a tree's records, both sides' code. In: pieces of a stream; on the host's side a
 * hostile guest wrote it. Out: calls of a sink with heads, names and chunks that were checked: a
 * name stays beneath the tree, chunks lie within their file and in order, bytes and records are
 * counted against a limit. No I/O of its own, one record's head and name in memory.
 */
#include "vm/tree.h"

#include <errno.h>
#include <string.h>

#define FILE_MAX (1ull << 62)

bool tree_check_head(const struct tree_head *h)
{
	if (h->magic != TREE_MAGIC || h->type < TREE_DIR || h->type >= TREE_TYPES ||
	    h->name_len > TREE_NAME_MAX || h->mode > 07777 || h->zero || h->mtime_ns >= 1000000000)
		return false;
	if (h->type == TREE_FILE)
		return h->size <= FILE_MAX;
	if (h->type == TREE_LINK)
		return h->size > 0 && h->size <= TREE_NAME_MAX;
	if (h->type == TREE_END && h->name_len)
		return false;
	return h->size == 0;
}

bool tree_check_chunk(const struct tree_chunk *c, uint64_t size, uint64_t done)
{
	if (c->zero || c->len > TREE_CHUNK_MAX)
		return false;
	if (!c->len)
		return c->offset == 0;
	return c->offset >= done && c->offset <= size && c->len <= size - c->offset;
}

bool tree_check_name(const char *name, size_t n)
{
	size_t begin = 0;

	if (n > TREE_NAME_MAX || memchr(name, 0, n))
		return false;
	for (size_t i = 0; n && i <= n; i++) {
		size_t len = i - begin;

		if (i < n && name[i] != '/')
			continue;
		if (len == 0 || len > 255 || (len == 1 && name[begin] == '.') ||
		    (len == 2 && name[begin] == '.' && name[begin + 1] == '.'))
			return false;
		begin = i + 1;
	}
	return true;
}

/* Fills a part of `size` bytes; true when it is complete. */
static bool gather(struct tree_reader *r, void *part, size_t size, const uint8_t **at, size_t *n)
{
	size_t take = size - r->have < *n ? size - r->have : *n;

	if (take)
		memcpy((uint8_t *)part + r->have, *at, take);
	*at += take;
	*n -= take;
	r->have += take;
	if (r->have < size)
		return false;
	r->have = 0;
	return true;
}

static int take_head(struct tree_reader *r)
{
	if (!tree_check_head(&r->head))
		return -EPROTO;
	if (++r->records > r->records_max)
		return -E2BIG;
	r->at = TREE_AT_NAME;
	return 0;
}

static int take_name(struct tree_reader *r)
{
	r->name[r->head.name_len] = '\0';
	if (!tree_check_name(r->name, r->head.name_len))
		return -EPROTO;
	r->at = r->head.type == TREE_FILE              ? TREE_AT_CHUNK
		: r->head.type == TREE_LINK            ? TREE_AT_TARGET
		: r->head.type == TREE_END && !r->more ? TREE_AT_END
						       : TREE_AT_HEAD;
	r->done = 0;
	if (r->head.type == TREE_END && r->more)
		r->more--;
	return r->head.type == TREE_LINK ? 0 : r->sink->head(r->ctx, &r->head, r->name);
}

static int take_target(struct tree_reader *r)
{
	r->target[r->head.size] = '\0';
	if (memchr(r->target, 0, (size_t)r->head.size))
		return -EPROTO;
	r->at = TREE_AT_HEAD;
	return r->sink->link(r->ctx, &r->head, r->name, r->target);
}

static int take_chunk(struct tree_reader *r)
{
	if (!tree_check_chunk(&r->piece, r->head.size, r->done))
		return -EPROTO;
	if (!r->piece.len) {
		r->at = TREE_AT_HEAD;
		return r->sink->file_end(r->ctx);
	}
	if (__builtin_add_overflow(r->bytes, r->piece.len, &r->bytes) || r->bytes > r->bytes_max)
		return -E2BIG;
	r->done = r->piece.offset + r->piece.len;
	r->at = TREE_AT_BYTES;
	return 0;
}

/* A chunk's bytes go to the sink as they come. */
static int take_bytes(struct tree_reader *r, const uint8_t **at, size_t *n)
{
	size_t take = r->piece.len - r->have < *n ? r->piece.len - r->have : *n;
	int err = take ? r->sink->chunk(r->ctx, r->piece.offset + r->have, *at, take) : 0;

	*at += take;
	*n -= take;
	r->have += take;
	if (r->have == r->piece.len) {
		r->have = 0;
		r->at = TREE_AT_CHUNK;
	}
	return err;
}

int tree_read(struct tree_reader *r, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	int err = 0;

	while (n && err == 0) {
		switch (r->at) {
		case TREE_AT_HEAD:
			err = gather(r, &r->head, sizeof(r->head), &at, &n) ? take_head(r) : 0;
			if (err || r->at != TREE_AT_NAME || r->head.name_len)
				break;
			__attribute__((fallthrough)); /* a name of no bytes is there already */
		case TREE_AT_NAME:
			err = gather(r, r->name, r->head.name_len, &at, &n) ? take_name(r) : 0;
			break;
		case TREE_AT_TARGET:
			err = gather(r, r->target, (size_t)r->head.size, &at, &n) ? take_target(r)
										  : 0;
			break;
		case TREE_AT_CHUNK:
			err = gather(r, &r->piece, sizeof(r->piece), &at, &n) ? take_chunk(r) : 0;
			break;
		case TREE_AT_BYTES:
			err = take_bytes(r, &at, &n);
			break;
		case TREE_AT_END:
			return -EPROTO; /* something behind the last record */
		}
	}
	return err;
}
