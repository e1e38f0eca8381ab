/*
 * The index. In: the bytes of index, sharedindex.ID or patch-merge-index. Out: its entries, or a
 * refusal. Pure; run by the importer and the sweep, in the supervisor; fuzzed (fuzz/git_index.c).
 *
 * git checks little of what it reads here: no path, no trailer, not even that the length of a path
 * agrees with its bytes. Two versions of git may read one file differently, and one git does so
 * too, depending on how many threads it has (IEOT says where each thread begins). So every number
 * that some reader might go by is compared with the bytes: lengths, the order, the end of the
 * entries, the threads' blocks. Extensions are git_index_ext.c's.
 */
#include "rules/git_index.h"

#include <errno.h>
#include <string.h>

#include "base/sha1.h"
#include "base/sha256.h"
#include "rules/git_index_ext.h"

#define HEADER 12u
#define STAT_BYTES 40u /* times, device, inode, mode, owner and size in front of the id */
#define MODE_AT 24u
#define PATH_MAX_BYTES 4096u

#define FLAG_ASSUME 0x8000u
#define FLAG_EXTENDED 0x4000u
#define FLAG_NAME 0x0fffu
#define MORE_SKIP 0x4000u
#define MORE_INTENT 0x2000u

/* What is known while entries are read. */
struct reading {
	const uint8_t *bytes;
	size_t n; /* without the trailer */
	unsigned hash, version;
	size_t at;
	char path[PATH_MAX_BYTES], before[PATH_MAX_BYTES];
	size_t path_n, before_n;
	unsigned stage, stage_before;
	size_t copied; /* characters that a path of version 4 takes over from the one before */
	uint16_t above[PATH_MAX_BYTES]; /* lengths of the entries of stage 0 that begin like this
					   one */
	size_t above_n;
	uint32_t empty;
	bool judged; /* the paths were, when they were read before */
	const char *why;
};

static uint32_t read32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static bool trailer_ok(const uint8_t *bytes, size_t n, unsigned hash)
{
	uint8_t digest[GIT_HASH_MAX];
	struct sha256 s256;
	struct sha1 s1;

	if (hash == GIT_SHA256) {
		sha256_begin(&s256);
		sha256_add(&s256, bytes, n - hash);
		sha256_end(&s256, digest);
	} else {
		sha1_begin(&s1);
		sha1_add(&s1, bytes, n - hash);
		sha1_end(&s1, digest);
	}
	return memcmp(digest, bytes + n - hash, hash) == 0;
}

static bool refuse(struct reading *r, const char *why)
{
	r->why = why;
	return false;
}

/* The number in front of a path of version 4: seven bits a byte, one more than they say for each
 * byte but the last. */
static bool read_strip(struct reading *r, size_t *ret)
{
	size_t value = 0;

	for (unsigned i = 0; r->at < r->n && i < 4; i++) {
		uint8_t byte = r->bytes[r->at++];

		value = (value << 7) + (byte & 0x7f);
		if (!(byte & 0x80)) {
			*ret = value;
			return true;
		}
		value++;
	}
	return false;
}

/* The path at r->at, up to its NUL, into r->path. */
static bool read_path(struct reading *r, unsigned flags)
{
	const char *rest;
	const void *end;
	size_t strip = 0, len;

	r->copied = 0;
	if (r->version == 4) {
		if (!read_strip(r, &strip) || strip > r->before_n)
			return refuse(r, "a path that takes over more than there is");
		r->copied = r->before_n - strip;
	}
	rest = (const char *)r->bytes + r->at;
	end = r->at < r->n ? memchr(rest, '\0', r->n - r->at) : NULL;
	len = end ? (size_t)((const char *)end - rest) : 0;
	if (!end || r->copied + len >= PATH_MAX_BYTES)
		return refuse(r, "a path that does not end, or is too long");
	memcpy(r->path, r->before, r->copied);
	memcpy(r->path + r->copied, rest, len + 1);
	r->path_n = r->copied + len;
	if ((flags & FLAG_NAME) != (r->path_n < FLAG_NAME ? r->path_n : FLAG_NAME))
		return refuse(r, "a path whose length does not match");
	r->at += len;
	return true;
}

/* The NUL behind a path, or the one to eight with which older versions fill up. */
static bool skip_padding(struct reading *r, size_t start)
{
	size_t used = r->at - start, fill = r->version == 4 ? 1 : 8 - used % 8;

	if (r->n - r->at < fill)
		return refuse(r, "it is truncated");
	for (size_t i = 0; i < fill; i++)
		if (r->bytes[r->at + i])
			return refuse(r, "bytes between two entries");
	r->at += fill;
	return true;
}

/* Whether the entry comes behind the one before it, as git sorts them. */
static bool order_ok(const struct reading *r, bool first)
{
	size_t n = r->path_n < r->before_n ? r->path_n : r->before_n;
	int way;

	if (first || !r->before_n)
		return true; /* the empty paths of a split index come first */
	way = memcmp(r->before, r->path, n);
	if (way == 0)
		way = r->before_n < r->path_n ? -1 : r->before_n > r->path_n;
	return way < 0 || (way == 0 && r->path_n && r->stage_before && r->stage_before < r->stage);
}

/* Whether a merged entry lies below another one, which would have to be a directory and something
 * else at once. */
static bool below_another(struct reading *r)
{
	size_t same = 0, whole = r->path_n - (r->path_n && r->path[r->path_n - 1] == '/');

	while (same < r->path_n && same < r->before_n && r->path[same] == r->before[same])
		same++;
	while (r->above_n && r->above[r->above_n - 1] > same)
		r->above_n--;
	if (r->stage)
		return false;
	for (size_t i = 0; i < r->above_n; i++)
		if (r->path[r->above[i]] == '/')
			return true;
	r->above[r->above_n++] = (uint16_t)whole;
	return false;
}

static bool mode_ok(uint32_t mode)
{
	return mode == GIT_MODE_FILE || mode == GIT_MODE_PROGRAM || mode == GIT_MODE_LINK ||
	       mode == GIT_MODE_GITLINK || mode == GIT_MODE_TREE;
}

static bool check_path(struct reading *r, uint32_t mode, bool first)
{
	size_t n = r->path_n;
	const char *why;

	if (!n) {
		if (!first && r->before_n)
			return refuse(r, "an empty path behind others");
		r->empty++;
		return true;
	}
	if (mode == GIT_MODE_TREE) {
		if (r->path[n - 1] != '/')
			return refuse(r, "a directory whose path does not end with a slash");
		n--;
	}
	why = git_path_refused(r->path, n, mode == GIT_MODE_LINK);
	if (why)
		return refuse(r, why);
	if (!order_ok(r, first))
		return refuse(r, "entries that are not in order");
	return !below_another(r) || refuse(r, "an entry below another one that is no directory");
}

static bool read_entry(struct reading *r, bool first, struct git_index_entry *entry)
{
	size_t start = r->at;
	unsigned flags, more = 0;

	if (r->n - r->at < STAT_BYTES + r->hash + 4)
		return refuse(r, "it is truncated");
	entry->mode = read32(r->bytes + r->at + MODE_AT);
	entry->id = r->bytes + r->at + STAT_BYTES;
	entry->ctime_s = read32(r->bytes + r->at);
	entry->ctime_ns = read32(r->bytes + r->at + 4);
	entry->mtime_s = read32(r->bytes + r->at + 8);
	entry->mtime_ns = read32(r->bytes + r->at + 12);
	entry->size = read32(r->bytes + r->at + STAT_BYTES - 4);
	r->at += STAT_BYTES + r->hash;
	flags = (unsigned)r->bytes[r->at] << 8 | r->bytes[r->at + 1];
	r->at += 2;
	if (flags & FLAG_EXTENDED) {
		more = (unsigned)r->bytes[r->at] << 8 | r->bytes[r->at + 1];
		r->at += 2;
		if (r->version < 3 || more & ~(MORE_SKIP | MORE_INTENT))
			return refuse(r, "flags that this version does not have");
	}
	if (!mode_ok(entry->mode))
		return refuse(r, "an entry with a mode that git does not have");
	r->stage_before = r->stage;
	r->stage = entry->stage = flags >> 12 & 3;
	entry->assume_unchanged = flags & FLAG_ASSUME;
	entry->skip_worktree = more & MORE_SKIP;
	entry->intent_to_add = more & MORE_INTENT;
	memcpy(r->before, r->path, r->path_n + 1);
	r->before_n = r->path_n;
	if (!read_path(r, flags) || !skip_padding(r, start) ||
	    (!r->judged && !check_path(r, entry->mode, first)))
		return false;
	entry->path = r->path;
	entry->path_n = r->path_n;
	entry->bytes = r->bytes + start;
	entry->n = r->at - start;
	return true;
}

/* The next block of IEOT must begin at this entry, and nowhere else. */
struct blocks {
	const uint8_t *at;
	size_t left;
	uint32_t until; /* entries to come before it */
};

static bool block_ok(struct blocks *b, size_t start, const struct reading *r)
{
	if (!b->at || b->until)
		return true;
	if (!b->left || read32(b->at) != start || !read32(b->at + 4) || r->copied)
		return false;
	b->until = read32(b->at + 4);
	b->at += 8;
	b->left--;
	return true;
}

static void count(struct git_index_info *info, const struct git_index_entry *entry)
{
	info->hidden += entry->assume_unchanged || entry->skip_worktree;
	info->gitlinks += entry->mode == GIT_MODE_GITLINK;
}

/* Reads all entries once. b: what IEOT says, NULL when that is not known yet: then paths are
 * judged and entries counted. */
static int read_entries(struct reading *r, struct git_index_info *info, struct blocks *b,
			git_index_fn *fn, void *ctx, bool *ret_trees)
{
	for (uint32_t i = 0; i < info->entries; i++) {
		struct git_index_entry entry;
		size_t start = r->at;
		int status;

		if (!read_entry(r, i == 0, &entry))
			return -EINVAL;
		if (b && !block_ok(b, start, r)) {
			r->why = "blocks for threads that do not agree with the entries";
			return -EINVAL;
		}
		if (b && b->at)
			b->until--;
		*ret_trees |= entry.mode == GIT_MODE_TREE;
		if (!b) {
			count(info, &entry);
			continue;
		}
		status = fn ? fn(ctx, &entry) : 0;
		if (status != 0)
			return status;
	}
	return 0;
}

static const char *check_header(const uint8_t *bytes, size_t n, unsigned hash,
				struct git_index_info *info)
{
	if ((hash != GIT_SHA1 && hash != GIT_SHA256) || n < HEADER + hash ||
	    memcmp(bytes, "DIRC", 4) != 0)
		return "it is not an index";
	*info = (struct git_index_info){ .version = read32(bytes + 4),
					 .entries = read32(bytes + 8) };
	if (info->version < 2 || info->version > 4)
		return "its version is unknown to ward";
	return trailer_ok(bytes, n, hash) ? NULL : "its checksum is wrong";
}

int git_index_read(const uint8_t *bytes, size_t n, unsigned hash, git_index_fn *fn, void *ctx,
		   struct git_index_info *ret, const char **ret_why)
{
	const struct reading begin = { .bytes = bytes, .n = n - hash, .hash = hash, .at = HEADER };
	struct git_index_shape shape = { .hash = hash };
	struct reading r = begin;
	struct blocks b = { 0 };
	bool trees = false;
	int status = -EINVAL;

	*ret_why = check_header(bytes, n, hash, ret);
	if (*ret_why)
		return -EINVAL;
	r.version = ret->version;
	if (read_entries(&r, ret, NULL, NULL, NULL, &trees) == 0) {
		shape = (struct git_index_shape){
			.hash = hash, .entries = ret->entries, .end = r.at, .empty = r.empty
		};
		r.why = git_index_extensions(bytes, n, &shape, ret, &b.at, &b.left);
		if (!r.why && trees && !ret->sparse)
			r.why = "a directory in an index that is not sparse";
		status = r.why ? -EINVAL : 0;
	}
	if (status == 0 && (fn || b.at)) {
		r = begin;
		r.version = ret->version;
		r.judged = true;
		status = read_entries(&r, ret, &b, fn, ctx, &trees);
		if (status == 0 && b.at && (b.left || b.until)) {
			r.why = "blocks for threads that do not agree with the entries";
			status = -EINVAL;
		}
	}
	*ret_why = r.why;
	return status;
}
