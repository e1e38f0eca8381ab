/*
 * Fuzzer of a checkpoint's record. One that is accepted has a workspace, a digest and an image's
 * name without a slash, and is, written and read again, the same; two texts of what must be the
 * same are compared.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "state/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct checkpoint c = { 0 }, again = { 0 };
	auto_buf text = { 0 }, difference = { 0 };

	if (checkpoint_parse((const char *)bytes, n, &c) < 0)
		return 0;
	if (strchr(c.image, '/') || strlen(c.sha256) != SHA256_HEX - 1 || c.workspace[0] != '/')
		abort();
	checkpoint_write(&c, &text);
	if (text.failed || checkpoint_parse(text.data, text.len, &again) < 0 ||
	    strcmp(again.same, c.same) != 0 || again.command.len != c.command.len ||
	    again.bytes != c.bytes)
		abort();
	checkpoint_difference(c.same, c.workspace, &difference);
	checkpoint_clear(&again);
	checkpoint_clear(&c);
	return 0;
}
