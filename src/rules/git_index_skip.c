/*
 * An index in which git leaves some files alone. In: an index, and a function that chooses entries.
 * Out: the same index with skip-worktree on these: git neither writes such a file nor misses it.
 * Pure; run by the sweep, in the supervisor; fuzzed (fuzz/git_index.c).
 *
 * The flag needs version 3, and two bytes more in each entry that has it. Where entries begin is
 * what EOIE and IEOT say, so these are left out: git reads an index without them, and writes them
 * again.
 */
#include <errno.h>
#include <string.h>

#include "base/sha1.h"
#include "base/sha256.h"
#include "rules/git_index.h"

#define HEADER 12u
#define FLAGS_AT 40u /* behind this and the id */
#define EXTENDED 0x40u
#define SKIP 0x40u

struct skipping {
	struct buf *out;
	git_index_fn *which;
	void *ctx;
	const uint8_t *end; /* of the entries */
	unsigned hash, version;
	int count;
};

static void put32(struct buf *out, uint32_t value)
{
	const uint8_t bytes[4] = { (uint8_t)(value >> 24), (uint8_t)(value >> 16),
				   (uint8_t)(value >> 8), (uint8_t)value };

	buf_add(out, bytes, sizeof(bytes));
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The entry with the flag. What follows the flags keeps its bytes, but what fills it up. */
static void put_skipped(struct skipping *s, const struct git_index_entry *entry)
{
	static const uint8_t zeros[8];
	size_t flags = FLAGS_AT + s->hash, begin = s->out->len;
	const uint8_t *at = entry->bytes + flags;
	bool extended = at[0] & EXTENDED;
	uint8_t words[4] = { (uint8_t)(at[0] | EXTENDED), at[1], extended ? at[2] : 0,
			     extended ? at[3] : 0 };
	size_t rest = flags + (extended ? 4 : 2), used = entry->n - rest;

	words[2] |= SKIP;
	if (s->version < 4)
		used = entry->path_n;
	buf_add(s->out, entry->bytes, flags);
	buf_add(s->out, words, sizeof(words));
	buf_add(s->out, entry->bytes + rest, used);
	if (s->version < 4)
		buf_add(s->out, zeros, 8 - (s->out->len - begin) % 8);
}

static int put_entry(void *ctx, const struct git_index_entry *entry)
{
	struct skipping *s = ctx;
	bool asked = !entry->skip_worktree && entry->mode != GIT_MODE_TREE;
	int chosen = asked ? s->which(s->ctx, entry) : 0;

	if (chosen < 0)
		return chosen;
	if (chosen == 1)
		put_skipped(s, entry);
	else
		buf_add(s->out, entry->bytes, entry->n);
	s->count += chosen == 1;
	s->end = entry->bytes + entry->n;
	return s->out->failed ? -ENOMEM : 0;
}

/* The extensions between two places; git_index_read() has found them whole. */
static void put_extensions(struct skipping *s, const uint8_t *at, const uint8_t *end)
{
	while (end - at >= 8) {
		size_t n = 8 + (size_t)get32(at + 4);

		if (memcmp(at, "EOIE", 4) != 0 && memcmp(at, "IEOT", 4) != 0)
			buf_add(s->out, at, n);
		at += n;
	}
}

static void put_trailer(struct skipping *s)
{
	uint8_t digest[GIT_HASH_MAX];
	struct sha256 s256;
	struct sha1 s1;

	if (s->hash == GIT_SHA256) {
		sha256_begin(&s256);
		sha256_add(&s256, buf_text(s->out), s->out->len);
		sha256_end(&s256, digest);
	} else {
		sha1_begin(&s1);
		sha1_add(&s1, buf_text(s->out), s->out->len);
		sha1_end(&s1, digest);
	}
	buf_add(s->out, digest, s->hash);
}

int git_index_skip(const uint8_t *bytes, size_t n, unsigned hash, git_index_fn *which, void *ctx,
		   struct buf *out, const char **ret_why)
{
	struct skipping s = { .out = out, .which = which, .ctx = ctx, .hash = hash };
	struct git_index_info info;
	int status = git_index_read(bytes, n, hash, NULL, NULL, &info, ret_why);

	if (status != 0)
		return status;
	if (info.split) {
		*ret_why = "it is split in two";
		return -EINVAL;
	}
	out->len = 0;
	s.version = info.version;
	buf_add(out, bytes, 4);
	put32(out, info.version < 3 ? 3 : info.version);
	put32(out, info.entries);
	status = git_index_read(bytes, n, hash, put_entry, &s, &info, ret_why);
	if (status == 0 && s.count) {
		put_extensions(&s, s.end, bytes + n - hash);
		put_trailer(&s);
		status = s.count;
	}
	if (status == 0)
		out->len = 0;
	return out->failed ? -ENOMEM : status;
}
