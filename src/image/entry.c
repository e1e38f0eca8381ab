/*
 * Names of archive entries. In: bytes of an archive. Out: a path relative to the root, without "."
 * and "..", or the reason why it is refused. Absolute names and ".." are refused rather than cut
 * off: an archive that has them was not made to be unpacked into a directory. Whiteouts are OCI's:
 * ".wh.NAME" takes away NAME of older layers, ".wh..wh..opq" everything older in its directory.
 */
#include "image/entry.h"

#include <string.h>

#define MARK ".wh."
#define MARK_LEN 4
#define OPAQUE ".wh..wh..opq"

const char *entry_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Appends one part of the name. */
static const char *add_part(const char *part, size_t n, char *path, size_t *len)
{
	if (n > ENTRY_NAME_MAX)
		return "a part of its name is longer than 255 bytes";
	if (n == 2 && memcmp(part, "..", 2) == 0)
		return "its name leads upwards (..)";
	if (*len + n + 2 > ENTRY_PATH_MAX)
		return "its name is longer than 4095 bytes";
	if (*len)
		path[(*len)++] = '/';
	memcpy(path + *len, part, n);
	*len += n;
	return NULL;
}

static const char *clean(const char *bytes, size_t n, char path[ENTRY_PATH_MAX])
{
	unsigned depth = 0;
	size_t len = 0;

	if (memchr(bytes, '\0', n))
		return "its name has a NUL byte";
	if (n && bytes[0] == '/')
		return "its name is absolute";
	if (!n)
		return "it has no name";
	for (size_t at = 0; at < n;) {
		const char *slash = memchr(bytes + at, '/', n - at);
		size_t part = slash ? (size_t)(slash - bytes) - at : n - at;

		if (part && !(part == 1 && bytes[at] == '.')) {
			const char *wrong = add_part(bytes + at, part, path, &len);

			if (wrong)
				return wrong;
			if (++depth > ENTRY_DEPTH_MAX)
				return "it is more than 128 directories deep";
		}
		at += part + 1;
	}
	path[len] = '\0';
	return NULL;
}

/* Turns the path of a mark into the path of what it means. */
static const char *read_mark(char *path, enum entry_kind *ret_kind)
{
	char *base = path + (entry_base(path) - path);
	const char *name = base + MARK_LEN;

	if (strcmp(base, OPAQUE) == 0) {
		base[base == path ? 0 : -1] = '\0';
		*ret_kind = ENTRY_OPAQUE;
		return NULL;
	}
	if (strncmp(name, MARK, MARK_LEN) == 0) {
		*ret_kind = ENTRY_IGNORED;
		return NULL;
	}
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return "it is a whiteout of an invalid name";
	memmove(base, name, strlen(name) + 1);
	*ret_kind = ENTRY_WHITEOUT;
	return NULL;
}

/* A mark in the middle of a path would be a directory that no image can have. */
static const char *refuse_inner_marks(const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(path, '/')) {
		if (strncmp(path, MARK, MARK_LEN) == 0)
			return "a parent directory has the name of a whiteout";
		path = slash + 1;
	}
	return NULL;
}

const char *entry_read(const char *bytes, size_t n, char path[ENTRY_PATH_MAX],
		       enum entry_kind *ret_kind)
{
	const char *wrong = clean(bytes, n, path);

	if (!wrong)
		wrong = refuse_inner_marks(path);
	if (wrong)
		return wrong;
	*ret_kind = *path ? ENTRY_PLAIN : ENTRY_ROOT;
	return strncmp(entry_base(path), MARK, MARK_LEN) == 0 ? read_mark(path, ret_kind) : NULL;
}

const char *entry_read_link(const char *bytes, size_t n, char path[ENTRY_PATH_MAX])
{
	const char *wrong = clean(bytes, n, path);

	return wrong || *path ? wrong : "it leads to the root itself";
}
