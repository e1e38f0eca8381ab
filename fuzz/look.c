/* Fuzzes the look at changes: every number that comes out is a row, and nothing is read beyond the
 * line. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "scan/look_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void found(void *ctx, size_t rule)
{
	assert(rule < look_rule_count());
	++*(size_t *)ctx;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const uint8_t *end = n ? memchr(data, '\n', n) : NULL;
	size_t path_bytes = end ? (size_t)(end - data) : 0, count = 0;
	char *path = strndup((const char *)data, path_bytes);
	size_t rest = n - path_bytes < LOOK_LINE_MAX ? n - path_bytes : LOOK_LINE_MAX;
	uint8_t *line = malloc(rest + 1); /* exactly as long, for the sanitizer */

	assert(path && line);
	memcpy(line, data + path_bytes, rest);
	line = realloc(line, rest ? rest : 1);
	assert(line);
	look_path(path, found, &count);
	look_begin(line, rest, found, &count);
	look_line(path, line, rest, true, found, &count);
	assert(count <= 2 * look_rule_count());
	free(line);
	free(path);
	return 0;
}
