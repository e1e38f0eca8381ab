/* Fuzzes queries and forms: what is decoded has no NUL, and every field is found by its name. */
#include <assert.h>
#include <string.h>

#include "envd/query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	auto_buf name = { 0 }, value = { 0 }, first = { 0 };
	const char *text = (const char *)data;
	size_t at = 0;
	int r;

	while ((r = query_next(text, n, &at, &name, &value)) > 0) {
		assert(at <= n && strlen(buf_text(&name)) == name.len &&
		       strlen(buf_text(&value)) == value.len);
		first.len = 0;
		assert(query_get(text, n, buf_text(&name), &first) == 1);
	}
	return 0;
}
