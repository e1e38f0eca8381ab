/* Fuzzes names of archive entries: what is accepted stays beneath the root, is clean, and cleaning
 * it again changes nothing. */
#include <assert.h>
#include <string.h>

#include "image/entry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_path(const char *path)
{
	size_t len = strlen(path);

	assert(len < ENTRY_PATH_MAX && path[0] != '/' && !strstr(path, "//") &&
	       (!len || path[len - 1] != '/'));
	for (const char *at = path; *at;) {
		size_t part = strcspn(at, "/");

		assert(part && part <= ENTRY_NAME_MAX && !(part == 1 && at[0] == '.') &&
		       !(part == 2 && memcmp(at, "..", 2) == 0));
		at += part + (at[part] == '/');
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char path[ENTRY_PATH_MAX], again[ENTRY_PATH_MAX];
	enum entry_kind kind;

	if (!entry_read_link((const char *)data, n, path)) {
		check_path(path);
		assert(*path && !entry_read_link(path, strlen(path), again) &&
		       strcmp(path, again) == 0);
	}
	if (!entry_read((const char *)data, n, path, &kind)) {
		check_path(path);
		assert((kind == ENTRY_ROOT) == (!*path && kind != ENTRY_OPAQUE));
	}
	return 0;
}
