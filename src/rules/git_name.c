/*
 * Names in git data. In: bytes of a sandbox's making. Out: whether they are an object id, or a path
 * that git may write into a work tree. Pure; run by the importer and the sweep, in the supervisor;
 * fuzzed (fuzz/git_index.c).
 *
 * git checks no path when it reads an index: an entry ".git/hooks/post-checkout" is written by the
 * next checkout. So this checks what git checks when it adds a path, for every file system at once:
 * a repository may lie on one that folds case (ext4 with casefold, HFS+, NTFS), ignores some code
 * points, or knows short names.
 */
#include "rules/git_name.h"

#include <string.h>
#include <strings.h>

#define PATH_BYTES_MAX 4095

bool git_is_hex(const void *s, size_t n)
{
	const char *c = s;

	for (size_t i = 0; i < n; i++)
		if (!((c[i] >= '0' && c[i] <= '9') || (c[i] >= 'a' && c[i] <= 'f')))
			return false;
	return n > 0;
}

bool git_is_id(const void *s, size_t n, unsigned hash)
{
	return (hash == GIT_SHA1 || hash == GIT_SHA256) && n == (size_t)hash * 2 &&
	       git_is_hex(s, n);
}

/* The code points that a file system may ignore in a name: Unicode's Default_Ignorable_Code_Point
 * (ext4 with casefold), of which those that HFS+ ignores are a part. */
static const struct {
	uint32_t first, last;
} ignored[] = {
	{ 0x00ad, 0x00ad },   { 0x034f, 0x034f }, { 0x061c, 0x061c },   { 0x115f, 0x1160 },
	{ 0x17b4, 0x17b5 },   { 0x180b, 0x180f }, { 0x200b, 0x200f },   { 0x202a, 0x202e },
	{ 0x2060, 0x206f },   { 0x3164, 0x3164 }, { 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },
	{ 0xffa0, 0xffa0 },   { 0xfff0, 0xfff8 }, { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a },
	{ 0xe0000, 0xe0fff },
};

/* How many bytes at s are one code point that may be ignored; 0: none. */
static size_t ignored_length(const uint8_t *s, size_t n)
{
	size_t len = *s >= 0xf0 ? 4 : *s >= 0xe0 ? 3 : *s >= 0xc2 ? 2 : 0;
	uint32_t point = len == 4 ? *s & 7u : len == 3 ? *s & 15u : *s & 31u;

	if (!len || len > n)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (s[i] & 0x3f);
	}
	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		if (point >= ignored[i].first && point <= ignored[i].last)
			return len;
	return 0;
}

/* Copies the first bytes of a name without what file systems ignore. Returns how many there are. */
static size_t fold(const char *name, size_t n, char *to, size_t room)
{
	size_t len = 0;

	for (size_t i = 0; i < n && len < room;) {
		size_t skip = ignored_length((const uint8_t *)name + i, n - i);

		if (skip)
			i += skip;
		else
			to[len++] = name[i++];
	}
	return len;
}

/* Whether nothing follows but what NTFS drops: dots, spaces, and a stream behind a colon. */
static bool ends_there(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && (s[i] == '.' || s[i] == ' '))
		i++;
	return i == n || s[i] == ':';
}

static bool part_is_dotgit(const char *part, size_t n)
{
	char name[32];
	size_t len, digits = 4;

	/* most names are known by their first byte: only bytes beyond ASCII may be ignored */
	if (n && (uint8_t)*part < 0x80 && *part != '.' && *part != 'g' && *part != 'G')
		return false;
	len = fold(part, n, name, sizeof(name));
	if (len >= 4 && strncasecmp(name, ".git", 4) == 0 && ends_there(name + 4, len - 4))
		return true;
	if (len < 5 || strncasecmp(name, "git~", 4) != 0)
		return false;
	while (digits < len && name[digits] >= '0' && name[digits] <= '9')
		digits++;
	return digits > 4 && ends_there(name + digits, len - digits);
}

bool git_name_is_dotgit(const char *name, size_t n)
{
	while (n) {
		const char *stop = memchr(name, '\\', n);
		size_t part = stop ? (size_t)(stop - name) : n;

		if (part_is_dotgit(name, part))
			return true;
		part += stop != NULL;
		name += part;
		n -= part;
	}
	return false;
}

/* Whether a name is, or folds to, .gitmodules. */
static bool is_gitmodules(const char *name, size_t n)
{
	char folded[32];
	size_t len = fold(name, n, folded, sizeof(folded));

	if (len >= 11 && strncasecmp(folded, ".gitmodules", 11) == 0 &&
	    ends_there(folded + 11, len - 11))
		return true;
	return len >= 8 &&
	       (strncasecmp(folded, "gitmod~", 7) == 0 || strncasecmp(folded, "gi7eba~", 7) == 0);
}

const char *git_path_refused(const char *path, size_t n, bool link)
{
	if (!n)
		return "an empty path";
	if (n > PATH_BYTES_MAX)
		return "a path that is too long";
	if (memchr(path, '\0', n))
		return "a path with a NUL byte";
	for (size_t at = 0; at <= n;) {
		const char *name = path + at, *stop = at < n ? memchr(name, '/', n - at) : NULL;
		size_t len = stop ? (size_t)(stop - name) : n - at;

		if (!len)
			return "a path that begins or ends with a slash, or has two in a row";
		if ((len == 1 && *name == '.') || (len == 2 && name[0] == '.' && name[1] == '.'))
			return "a path with \".\" or \"..\"";
		if (git_name_is_dotgit(name, len))
			return "a path into a git directory";
		if (!stop && link && is_gitmodules(name, len))
			return "a .gitmodules that is a symbolic link";
		at += len + 1;
	}
	return NULL;
}
