/*
 * Fuzzer of the index. The first byte chooses the hash, the trailer is made here, so that entries
 * and extensions are reached. What comes out: paths that no file system takes for .git, in order,
 * and nothing below another entry.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/sha1.h"
#include "base/sha256.h"
#include "rules/git_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

struct seen {
	char before[4096];
	unsigned stage;
	uint32_t count;
};

static int see(void *ctx, const struct git_index_entry *entry)
{
	struct seen *s = ctx;
	int order = strcmp(s->before, entry->path);

	if (strlen(entry->path) != entry->path_n || entry->path_n >= sizeof(s->before) ||
	    entry->stage > 3)
		abort();
	if (strcasestr(entry->path, "/.git/") || strncasecmp(entry->path, ".git/", 5) == 0 ||
	    strstr(entry->path, "/../") || *entry->path == '/' ||
	    strcasecmp(entry->path, ".git") == 0)
		abort();
	if (s->count && *entry->path && (order > 0 || (order == 0 && s->stage >= entry->stage)))
		abort();
	memcpy(s->before, entry->path, entry->path_n + 1);
	s->stage = entry->stage;
	s->count++;
	return 0;
}

/* Every second entry. */
static int choose(void *ctx, const struct git_index_entry *entry unused_arg)
{
	return (*(unsigned *)ctx)++ % 2;
}

static int count_skipped(void *ctx, const struct git_index_entry *entry)
{
	*(uint32_t *)ctx += entry->skip_worktree;
	return 0;
}

/* What is written is an index of the same entries, and more of them are left alone. */
static void try_skip(const uint8_t *bytes, size_t n, unsigned hash)
{
	auto_buf out = { 0 };
	struct git_index_info old, info;
	const char *why = NULL;
	uint32_t before = 0, after = 0;
	unsigned counter = 1;
	int chosen = git_index_skip(bytes, n, hash, choose, &counter, &out, &why);

	if (chosen < 0 && chosen != -EINVAL)
		abort();
	if (chosen <= 0)
		return;
	if (git_index_read(bytes, n, hash, count_skipped, &before, &old, &why) != 0 ||
	    git_index_read((const uint8_t *)out.data, out.len, hash, count_skipped, &after, &info,
			   &why) != 0 ||
	    info.entries != old.entries || after != before + (uint32_t)chosen)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct git_index_info info;
	struct seen s = { 0 };
	uint8_t digest[GIT_HASH_MAX];
	auto_buf whole = { 0 };
	struct sha256 s256;
	struct sha1 s1;
	const char *why = NULL;
	unsigned hash;
	int status;

	if (!n)
		return 0;
	hash = bytes[0] & 1 ? GIT_SHA256 : GIT_SHA1;
	sha1_begin(&s1);
	sha1_add(&s1, bytes + 1, n - 1);
	sha256_begin(&s256);
	sha256_add(&s256, bytes + 1, n - 1);
	if (hash == GIT_SHA1)
		sha1_end(&s1, digest);
	else
		sha256_end(&s256, digest);
	buf_add(&whole, bytes + 1, n - 1);
	buf_add(&whole, digest, hash);
	status = git_index_read((const uint8_t *)whole.data, whole.len, hash, see, &s, &info, &why);
	if ((status != 0 && (status != -EINVAL || !why)) ||
	    (status == 0 && s.count != info.entries))
		abort();
	try_skip((const uint8_t *)whole.data, whole.len, hash);
	return 0;
}
