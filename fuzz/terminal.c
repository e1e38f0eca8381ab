/* The terminal filter on hostile bytes: how they are cut must not matter, and no forbidden byte may come out. */
#include <stdlib.h>
#include <string.h>

#include "base/terminal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct terminal whole = { 0 }, pieces = { 0 };
	auto_buf one = { 0 };
	auto_buf many = { 0 };

	terminal_filter(&whole, (const char *)data, size, &one);
	for (size_t i = 0; i < size; i++)
		terminal_filter(&pieces, (const char *)data + i, 1, &many);
	if (one.len != many.len || (one.len && memcmp(one.data, many.data, one.len) != 0))
		abort();
	for (size_t i = 0; i < one.len; i++) {
		unsigned char c = (unsigned char)one.data[i];

		if (c < 0x20 && !memchr("\n\r\t\b\a\v\f\x0e\x0f\x1b", c, 10))
			abort();
		if (c == 0x1b && i + 1 < one.len && strchr("]PX^_cZ", one.data[i + 1]))
			abort();
	}
	return 0;
}
