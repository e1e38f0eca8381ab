/*
 * The first bytes of objects. In: the head of a loose object, a pack or a pack's index, or the body
 * of a tree. Out: what it says it is. Pure; run by the importer and the sweep, in the supervisor;
 * fuzzed (fuzz/git_judge.c). git does not compare an object's content with its name when it reads
 * one: that comparison is the importer's.
 */
#include "rules/git_object.h"

#include <errno.h>
#include <string.h>

#include "rules/git_index.h"

static uint32_t read32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

bool git_loose_ok(const uint8_t *bytes, size_t n)
{
	return n >= GIT_LOOSE_HEAD && (bytes[0] & 0x8f) == 0x08 &&
	       (bytes[0] << 8 | bytes[1]) % 31 == 0 && !(bytes[1] & 0x20);
}

enum git_object_type git_loose_header(const uint8_t *bytes, size_t n, uint64_t *ret_size,
				      size_t *ret_head)
{
	static const struct {
		const char *word;
		enum git_object_type type;
	} types[] = { { "commit ", GIT_COMMIT },
		      { "tree ", GIT_TREE },
		      { "blob ", GIT_BLOB },
		      { "tag ", GIT_TAG } };
	uint64_t size = 0;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		size_t word = strlen(types[i].word), at = word;

		if (n < word || memcmp(bytes, types[i].word, word) != 0)
			continue;
		for (; at < n && at - word < 18 && bytes[at] >= '0' && bytes[at] <= '9'; at++)
			size = size * 10 + (uint64_t)(bytes[at] - '0');
		if (at == word || at == n || bytes[at] != '\0' ||
		    (bytes[word] == '0' && at > word + 1))
			return GIT_OBJECT_BAD;
		*ret_size = size;
		*ret_head = at + 1;
		return types[i].type;
	}
	return GIT_OBJECT_BAD;
}

bool git_pack_ok(const uint8_t *bytes, size_t n, uint32_t *ret_count)
{
	if (n < GIT_PACK_HEAD || memcmp(bytes, "PACK", 4) != 0 || read32(bytes + 4) != 2)
		return false;
	*ret_count = read32(bytes + 8);
	return true;
}

/* The mode in front of a tree's entry, and where its name begins; 0: git does not write it so. */
static uint32_t tree_mode(const uint8_t *bytes, size_t n, size_t *ret_name)
{
	static const struct {
		const char *digits;
		uint32_t mode;
	} modes[] = {
		{ "100644 ", GIT_MODE_FILE },    { "100755 ", GIT_MODE_PROGRAM },
		{ "120000 ", GIT_MODE_LINK },    { "40000 ", GIT_MODE_TREE },
		{ "160000 ", GIT_MODE_GITLINK }, { "100664 ", GIT_MODE_FILE },
	};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		size_t len = strlen(modes[i].digits);

		if (n > len && memcmp(bytes, modes[i].digits, len) == 0) {
			*ret_name = len;
			return modes[i].mode;
		}
	}
	return 0;
}

int git_tree_read(const uint8_t *bytes, size_t n, unsigned hash, git_tree_fn *fn, void *ctx,
		  const char **ret_why)
{
	*ret_why = "a tree that git does not write";
	for (size_t at = 0; at < n;) {
		size_t skip, name_n;
		uint32_t mode = tree_mode(bytes + at, n - at, &skip);
		const char *name = (const char *)bytes + at + skip, *why;
		const char *end = mode ? memchr(name, '\0', n - at - skip) : NULL;
		int status;

		if (!end)
			return -EINVAL;
		name_n = (size_t)(end - name);
		at += skip + name_n + 1;
		if (n - at < hash)
			return -EINVAL;
		why = memchr(name, '/', name_n)
			      ? "a tree with a slash in a name"
			      : git_path_refused(name, name_n, mode == GIT_MODE_LINK);
		if (why) {
			*ret_why = why;
			return -EINVAL;
		}
		status = fn ? fn(ctx, mode, name, name_n, bytes + at) : 0;
		if (status != 0)
			return status;
		at += hash;
	}
	return 0;
}
