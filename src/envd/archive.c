/*
 * Records of an archive (archive.h). In: bytes that a hostile program may have written. Out: a
 * record in its bounds, paths without "." and "..". Pure.
 */
#include "envd/archive.h"

#include <string.h>

void archive_write(uint8_t out[ARCHIVE_HEADER], const struct archive_record *r)
{
	out[0] = r->type;
	out[1] = r->root;
	memcpy(out + 2, &r->mode, 2);
	memcpy(out + 4, &r->bytes, 4);
	memcpy(out + 8, &r->number, 8);
	memcpy(out + 16, &r->nanos, 4);
}

static bool has_names(uint8_t type)
{
	return type == ARCHIVE_DIR || type == ARCHIVE_FILE || type == ARCHIVE_LINK ||
	       type == ARCHIVE_HARD || type == ARCHIVE_FIFO || type == ARCHIVE_ATTRIBUTE;
}

bool archive_read(const uint8_t in[ARCHIVE_HEADER], struct archive_record *ret)
{
	ret->type = in[0];
	ret->root = in[1];
	memcpy(&ret->mode, in + 2, 2);
	memcpy(&ret->bytes, in + 4, 4);
	memcpy(&ret->number, in + 8, 8);
	memcpy(&ret->nanos, in + 16, 4);
	if (ret->type < ARCHIVE_BEGIN || ret->type >= ARCHIVE_TYPES || ret->root >= ARCHIVE_ROOTS ||
	    ret->mode & ~01777 || ret->bytes > ARCHIVE_BYTES || ret->nanos > 999999999)
		return false;
	if (ret->type == ARCHIVE_BEGIN)
		return ret->number == ARCHIVE_VERSION && !ret->bytes;
	if (ret->type == ARCHIVE_DATA || ret->type == ARCHIVE_SIZE)
		return ret->number >= 0 && (ret->type == ARCHIVE_SIZE) == !ret->bytes;
	return has_names(ret->type) || !ret->bytes;
}

/* Names between single slashes, none of them "." or "..". */
static bool is_beneath(const char *path)
{
	if (!*path || strlen(path) >= PATH_MAX)
		return false;
	for (;;) {
		size_t n = strcspn(path, "/");

		if (n == 0 || n > NAME_MAX || (n == 1 && path[0] == '.') ||
		    (n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		if (!path[n])
			return true;
		path += n + 1;
	}
}

bool archive_names(const struct archive_record *r, const char *bytes, const char **ret_path,
		   const char **ret_second, size_t *ret_second_bytes)
{
	size_t n = strlen(bytes);
	bool two =
		r->type == ARCHIVE_LINK || r->type == ARCHIVE_HARD || r->type == ARCHIVE_ATTRIBUTE;

	if (n > r->bytes || (n < r->bytes) != two)
		return false;
	*ret_path = bytes;
	*ret_second = two ? bytes + n + 1 : bytes + n;
	*ret_second_bytes = two ? r->bytes - n - 1 : 0;
	if (r->type == ARCHIVE_ATTRIBUTE)
		return strncmp(bytes, "user.", 5) == 0 && n > 5 && n < 256;
	if (two && strlen(*ret_second) != *ret_second_bytes)
		return false;
	if (r->type == ARCHIVE_HARD && !is_beneath(*ret_second))
		return false;
	if (r->type == ARCHIVE_LINK && (!**ret_second || *ret_second_bytes >= PATH_MAX))
		return false;
	return is_beneath(bytes) || (r->type == ARCHIVE_DIR && !*bytes);
}
