/* Fuzzes records of an archive of a sandbox's files: what is read is written the same way again,
 * and a path never leaves its root. */
#include <assert.h>
#include <string.h>

#include "envd/archive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_path(const char *path)
{
	assert(*path != '/' && strlen(path) < PATH_MAX);
	for (const char *at = path; at; at = strchr(at, '/')) {
		at += *at == '/';
		assert(strncmp(at, "../", 3) != 0 && strcmp(at, "..") != 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static char bytes[ARCHIVE_BYTES + 1];
	uint8_t again[ARCHIVE_HEADER];
	struct archive_record r;
	const char *path, *second;
	size_t length;

	if (n < ARCHIVE_HEADER || !archive_read(data, &r))
		return 0;
	assert(r.root < ARCHIVE_ROOTS && !(r.mode & 06000) && r.bytes <= ARCHIVE_BYTES);
	archive_write(again, &r);
	assert(memcmp(again, data, sizeof(again)) == 0);
	r.bytes = (uint32_t)(n - sizeof(again) < ARCHIVE_BYTES ? n - sizeof(again) : ARCHIVE_BYTES);
	memcpy(bytes, data + sizeof(again), r.bytes);
	bytes[r.bytes] = '\0';
	if (!archive_names(&r, bytes, &path, &second, &length))
		return 0;
	assert(second >= bytes && second + length <= bytes + r.bytes);
	if (r.type != ARCHIVE_ATTRIBUTE)
		check_path(path);
	if (r.type == ARCHIVE_HARD)
		check_path(second);
	return 0;
}
