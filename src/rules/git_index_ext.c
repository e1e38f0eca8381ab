/*
 * Extensions of the index. In: what follows the entries. Out: whether each one is known and whole.
 * Pure; a part of git_index.c, and fuzzed with it.
 *
 * git skips an extension that it does not know if its name begins with a capital letter; here it is
 * refused: a later git may know it. EOIE and IEOT tell a git with several threads where to read, so
 * they must say what the bytes say, and the bytes at the place where git looks for EOIE must not
 * look like one that is not there. Paths in TREE and REUC are paths of entries to come.
 */
#include "rules/git_index_ext.h"

#include <string.h>

/* An extension's bytes, and how far they have been read. */
struct part {
	const uint8_t *at, *end;
	const struct git_index_shape *shape;
};

static uint32_t read32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static size_t left(const struct part *p)
{
	return (size_t)(p->end - p->at);
}

static bool skip(struct part *p, size_t n)
{
	if (left(p) < n)
		return false;
	p->at += n;
	return true;
}

/* A string up to its NUL. */
static const char *take_string(struct part *p, size_t *ret_n)
{
	const uint8_t *from = p->at, *end = left(p) ? memchr(p->at, '\0', left(p)) : NULL;

	if (!end)
		return NULL;
	*ret_n = (size_t)(end - from);
	p->at = end + 1;
	return (const char *)from;
}

/* A decimal number that ends with `last`; -1 too, where that is allowed. */
static bool take_decimal(struct part *p, char last, bool minus, long *ret)
{
	long value = 0;
	size_t digits = 0;
	bool negative = minus && left(p) && *p->at == '-' && ++p->at;

	for (; left(p) && *p->at >= '0' && *p->at <= '9' && digits < 10; p->at++, digits++)
		value = value * 10 + (*p->at - '0');
	if (!digits || !left(p) || *p->at++ != (uint8_t)last || (negative && value != 1))
		return false;
	*ret = negative ? -1 : value;
	return true;
}

/* A number of seven bits a byte, as git writes lengths. */
static bool take_varint(struct part *p, size_t *ret)
{
	size_t value = 0;

	for (unsigned i = 0; left(p) && i < 5; i++) {
		uint8_t byte = *p->at++;

		value = (value << 7) + (byte & 0x7f);
		if (!(byte & 0x80)) {
			*ret = value;
			return true;
		}
		value++;
	}
	return false;
}

/* A compressed bitmap: bits, words, the words, and where the last run-length word is. *ret_bits:
 * how many bits it has. */
static bool take_bitmap(struct part *p, uint32_t *ret_bits)
{
	uint32_t words, last;

	if (left(p) < 12)
		return false;
	*ret_bits = read32(p->at);
	words = read32(p->at + 4);
	p->at += 8;
	if (words > left(p) / 8 || !skip(p, (size_t)words * 8) || left(p) < 4)
		return false;
	last = read32(p->at);
	p->at += 4;
	return words ? last < words : last == 0;
}

/* One directory of TREE, and how many of its subdirectories follow. */
static bool take_tree(struct part *p, bool top, long *ret_subtrees)
{
	size_t n;
	const char *name = take_string(p, &n);
	long entries;

	if (!name || (top ? n != 0 : memchr(name, '/', n) || git_path_refused(name, n, false)))
		return false;
	if (!take_decimal(p, ' ', true, &entries) || !take_decimal(p, '\n', false, ret_subtrees))
		return false;
	return entries < 0 || skip(p, p->shape->hash);
}

/* Directories with their subdirectories behind them: what is still to come is counted, not nested.
 */
static bool read_tree(struct part *p)
{
	size_t due = 1;

	for (bool top = true; due; top = false) {
		long subtrees;

		if (!take_tree(p, top, &subtrees) || (size_t)subtrees > left(p))
			return false;
		due += (size_t)subtrees - 1;
		if (due > left(p))
			return due == 0;
	}
	return !left(p);
}

static bool is_octal_mode(const char *s, size_t n)
{
	static const char *const modes[] = { "0", "100644", "100755", "120000", "160000" };

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strlen(modes[i]) == n && memcmp(modes[i], s, n) == 0)
			return true;
	return false;
}

/* Conflicts that were resolved: a path, three modes, an id for each that is not 0. */
static bool read_undo(struct part *p)
{
	while (left(p)) {
		size_t n, mode_n, ids = 0;
		const char *path = take_string(p, &n);

		if (!path || git_path_refused(path, n, false))
			return false;
		for (int i = 0; i < 3; i++) {
			const char *mode = take_string(p, &mode_n);

			if (!mode || !is_octal_mode(mode, mode_n))
				return false;
			ids += *mode != '0';
		}
		if (!skip(p, ids * p->shape->hash))
			return false;
	}
	return true;
}

static bool is_name(const char *s, size_t n)
{
	return n < 4096 && !memchr(s, '\n', n);
}

/* One directory of the cache of untracked files: how many untracked names and subdirectories, its
 * name, the names. */
static bool take_untracked_dir(struct part *p, size_t *ret_subdirs)
{
	size_t names, n;
	const char *s;

	if (!take_varint(p, &names) || !take_varint(p, ret_subdirs))
		return false;
	for (size_t i = 0; i <= names; i++) { /* its own name, then the others */
		s = take_string(p, &n);
		if (!s || n > 4096)
			return false;
	}
	return true;
}

/* The directories of the cache, then which of them are valid, check excludes and have a hash; for
 * those, stat data and hashes. */
static bool take_untracked_dirs(struct part *p)
{
	size_t total, due = 1, seen = 0;
	uint32_t bits;

	if (!take_varint(p, &total))
		return false;
	if (!total)
		return true;
	for (; due; seen++) {
		size_t subdirs;

		if (!take_untracked_dir(p, &subdirs) || subdirs > left(p))
			return false;
		due += subdirs - 1;
	}
	if (seen != total)
		return false;
	for (int i = 0; i < 3; i++)
		if (!take_bitmap(p, &bits))
			return false;
	return left(p) >= 1 && p->end[-1] == '\0';
}

/* The cache of untracked files. */
static bool read_untracked(struct part *p)
{
	size_t n, name_n;
	const char *name;

	if (!take_varint(p, &n) || n > 4096 ||
	    !skip(p, n)) /* where and on what system it was made */
		return false;
	if (!skip(p, (size_t)2 * 36 + 4 +
			     (size_t)2 * p->shape->hash)) /* info/exclude and core.excludesFile:
							     stat, flags, hashes */
		return false;
	name = take_string(p, &name_n); /* of the file with patterns in each directory */
	if (!name || !name_n || !is_name(name, name_n) || memchr(name, '/', name_n))
		return false;
	return take_untracked_dirs(p);
}

/* What a file system monitor said last: a time or its token, and a bitmap. */
static bool read_monitor(struct part *p)
{
	uint32_t version = left(p) >= 4 ? read32(p->at) : 0, size, bits;
	const char *token;
	size_t n;

	if ((version != 1 && version != 2) || !skip(p, 4))
		return false;
	if (version == 1) {
		if (!skip(p, 8))
			return false;
	} else {
		token = take_string(p, &n);
		if (!token || n > 4096)
			return false;
		for (size_t i = 0; i < n; i++)
			if ((unsigned char)token[i] <= 0x20 || token[i] == 0x7f)
				return false;
	}
	if (left(p) < 4)
		return false;
	size = read32(p->at);
	p->at += 4;
	return size == left(p) && take_bitmap(p, &bits) && !left(p);
}

/* A split index: the shared one's name, then which of its entries are gone and which replaced. */
static bool read_link(struct part *p, struct git_index_info *info)
{
	uint32_t bits;

	info->split = true;
	if (left(p) < p->shape->hash)
		return false;
	memcpy(info->base, p->at, p->shape->hash);
	p->at += p->shape->hash;
	return !left(p) || (take_bitmap(p, &bits) && take_bitmap(p, &bits) && !left(p));
}

/* Where the entries end. Its place is fixed, which the caller has checked. */
static bool read_end(struct part *p)
{
	return left(p) == (size_t)4 + p->shape->hash && read32(p->at) == p->shape->end;
}

static bool read_blocks(struct part *p, const uint8_t **ret_blocks, size_t *ret_count)
{
	if (left(p) < 4 || read32(p->at) != 1 || (left(p) - 4) % 8)
		return false;
	*ret_blocks = p->at + 4;
	*ret_count = (left(p) - 4) / 8;
	return true;
}

enum { EXT_TREE, EXT_REUC, EXT_UNTR, EXT_FSMN, EXT_EOIE, EXT_IEOT, EXT_SDIR, EXT_LINK, EXT_COUNT };
static const char names[EXT_COUNT][5] = { "TREE", "REUC", "UNTR", "FSMN",
					  "EOIE", "IEOT", "sdir", "link" };

static int find_name(const uint8_t *at)
{
	for (int i = 0; i < EXT_COUNT; i++)
		if (memcmp(at, names[i], 4) == 0)
			return i;
	return -1;
}

static bool read_one(int which, struct part *p, struct git_index_info *info,
		     const uint8_t **ret_blocks, size_t *ret_count)
{
	switch (which) {
	case EXT_TREE:
		return read_tree(p);
	case EXT_REUC:
		return read_undo(p);
	case EXT_UNTR:
		return read_untracked(p);
	case EXT_FSMN:
		return read_monitor(p);
	case EXT_EOIE:
		return read_end(p);
	case EXT_IEOT:
		return read_blocks(p, ret_blocks, ret_count);
	case EXT_SDIR:
		info->sparse = true;
		return !left(p);
	case EXT_LINK:
		return read_link(p, info);
	default:
		return false;
	}
}

const char *git_index_extensions(const uint8_t *bytes, size_t n,
				 const struct git_index_shape *shape, struct git_index_info *info,
				 const uint8_t **ret_blocks, size_t *ret_count)
{
	size_t stop = n - shape->hash, eoie = (size_t)8 + 4 + shape->hash;
	const uint8_t *fixed = stop - shape->end >= eoie ? bytes + stop - eoie : NULL;
	unsigned seen = 0;

	for (size_t at = shape->end; at < stop;) {
		struct part p = { .shape = shape };
		int which = stop - at >= 8 ? find_name(bytes + at) : -1;
		size_t size = which >= 0 ? read32(bytes + at + 4) : 0;

		if (which < 0)
			return "an extension that ward does not know";
		if (size > stop - at - 8 || seen & 1u << which ||
		    (which == EXT_EOIE && bytes + at != fixed))
			return "extensions that git does not write like this";
		seen |= 1u << which;
		p.at = bytes + at + 8;
		p.end = p.at + size;
		if (!read_one(which, &p, info, ret_blocks, ret_count))
			return "an extension that is broken";
		at += 8 + size;
	}
	if (fixed && memcmp(fixed, "EOIE", 4) == 0 && !(seen & 1u << EXT_EOIE))
		return "bytes that look like an extension to some readers only";
	if (shape->empty && !info->split)
		return "an empty path in an index that is not split";
	return NULL;
}
